"""Paragraphs of the specification that stories refer to, as `docs/rules.py` takes them from the documentation."""

from functools import cache
from importlib.resources import files

import msgspec


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One paragraph: its heading, and its text as HTML of our own documentation."""

    title: str
    html: str


@cache
def _rules() -> dict[str, Rule]:
    text = (files("patra.web.console") / "rules.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Rule])


def rule(anchor: str) -> Rule | None:
    """The paragraph of an anchor such as `f-3-8-19`; None where no story refers to it."""
    return _rules().get(anchor)
