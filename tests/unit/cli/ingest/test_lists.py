"""Headings of the lists: words on a terminal, the names of the store in a pipe."""

import sys

import click
import pytest

from patra.cli.ingest.lists import TITLES
from patra.cli.terminal.options import show
from patra.ingest.operations.reads.read_models import READ_MODELS

CURSOR = {"provenance_code": "crossref", "cursor_value": "2026-01-01", "observed_max_value": "2026-01-02"}


@pytest.mark.parametrize("name", READ_MODELS)
def test_every_column_of_a_list_has_a_heading_of_words(name: str) -> None:
    headings = [TITLES.get(column, column) for column in READ_MODELS[name].shown]
    assert [one for one in headings if "_" in one] == []
    assert len(set(headings)) == len(headings)


def test_a_terminal_has_the_words_and_a_pipe_the_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    show([CURSOR], as_json=False, titles=TITLES)
    assert capsys.readouterr().out.splitlines()[0] == "provenance_code\tcursor_value\tobserved_max_value"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show([CURSOR], as_json=False, titles=TITLES)
    heading = click.unstyle(capsys.readouterr().out).splitlines()[0]
    assert heading.split() == ["source", "watermark", "latest", "seen"]
