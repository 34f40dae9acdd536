"""Every section of the runbook has the same form and names only alerts, checks, log events, codes and commands that exist."""

import re
import shlex
from functools import cache
from itertools import takewhile
from pathlib import Path

import click
import pytest
import yaml

from patra.app.configuration.settings import every_setting
from patra.kernel.telemetry import METRICS
from tests.source_tree import ROOT, sources
from tests.unit.cli.test_main_tree import EVERY

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "operations" / "runbook.md"
PARTS = ["You see", "It means", "Do", "It is over when"]
ALERT = re.compile(r"\bPatra[A-Z]\w+")
NOT_OURS = {
    "cp", "pg_rewind", "pg_basebackup", "error_id", "failing", "rotate", "revoke", "pagination.total",
    "pagination.totalTolerance", "rateLimit",
}  # fmt: skip
"""Programs, fields of answers and of packs, columns, subcommands."""


def sections() -> dict[str, str]:
    found = re.split(r"^## (.+)\n", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@cache
def rules() -> dict[str, dict[str, str]]:
    document = yaml.safe_load((REPOSITORY / "deploy" / "prometheus" / "patra.rules.yml").read_text("utf-8"))
    return {rule["alert"]: rule["annotations"] for group in document["groups"] for rule in group["rules"]}


@cache
def names_in_the_code() -> frozenset[str]:
    """Everything that stands as a text of its own in the source: log events, codes, checks, alerts, loops."""
    texts = (path.read_text("utf-8") for path in ROOT.rglob("*.py"))
    return frozenset(name for text in texts for name in re.findall(r"\"([\w. ]{3,40})\"", text))


SECTIONS = sections()
in_each_section = pytest.mark.parametrize("heading", SECTIONS)


@in_each_section
def test_a_section_says_what_is_seen_what_it_means_what_to_do_and_when_it_is_over(heading: str) -> None:
    body = SECTIONS[heading]
    assert re.findall(r"^\*\*([^*]+)\*\*", body, flags=re.MULTILINE) == PARTS
    assert len(body.split()) < 260, "half a screen"


@in_each_section
def test_every_name_in_a_section_exists(heading: str) -> None:
    prose = re.sub(r"```.*?```", "", SECTIONS[heading], flags=re.DOTALL)
    sources()
    metrics = {metric.name for metric in METRICS}
    settings = {setting.key for setting in every_setting()}
    unknown: list[str] = []
    for name in re.findall(r"`([^`\n]+)`", prose):
        if ALERT.fullmatch(name):
            known = name in rules()
        elif name.startswith("patra_"):
            known = name in metrics
        elif re.fullmatch(r"[a-z][\w ]*(?:\.\w+)?", name) and not name.startswith("patra "):
            known = name in names_in_the_code() or name in settings or name in NOT_OURS
        else:
            known = True  # a path, a file, an option, a command
        if not known:
            unknown.append(name)
    assert unknown == []


def commands(text: str) -> list[str]:
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL))
    return re.findall(r"^\$ (patra .*)$", blocks, flags=re.MULTILINE)


def mentions(text: str) -> list[str]:
    """Commands in sentences, which may leave their arguments out."""
    return re.findall(r"`(patra [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def problem(line: str, *, whole: bool = True) -> str | None:
    """What is wrong with a command line; None where it could be run."""
    words = shlex.split(line, comments=True)[1:]
    path = next((" ".join(words[:n]) for n in range(len(words), 0, -1) if " ".join(words[:n]) in EVERY), None)
    if path is None:
        return f"{line}: no such command"
    command, rest = EVERY[path], words[len(path.split()) :]
    options = {name for parameter in command.params for name in parameter.opts}
    if unknown := [word for word in rest if word.startswith("--") and word not in options]:
        return f"{line}: no option {unknown[0]}"
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    given = len(list(takewhile(lambda word: not word.startswith("--"), rest)))
    needed = sum(parameter.required for parameter in arguments)
    if (whole and given < needed) or (given > len(arguments) and all(parameter.nargs == 1 for parameter in arguments)):
        return f"{line}: {given} arguments"
    return None


@in_each_section
def test_every_command_in_a_section_can_be_run(heading: str) -> None:
    found = commands(SECTIONS[heading])
    assert found
    assert [wrong for line in found if (wrong := problem(line))] == []
    assert [wrong for line in mentions(SECTIONS[heading]) if (wrong := problem(line, whole=False))] == []


@pytest.mark.parametrize("line", ["patra bakcup x", "patra backup", "patra backup x --fast", "patra verify a b"])
def test_a_command_line_that_cannot_be_run_is_noticed(line: str) -> None:
    assert problem(line) is not None


@pytest.mark.parametrize("alert", rules())
def test_a_rule_names_a_section_that_names_the_rule(alert: str) -> None:
    page, _, place = rules()[alert]["runbook"].partition("#")
    assert REPOSITORY / page == PAGE
    by_anchor = {anchor(heading): body for heading, body in SECTIONS.items()}
    assert alert in ALERT.findall(by_anchor[place].partition("**It means**")[0])
