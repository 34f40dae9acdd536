"""Sentences on a terminal break between words; elsewhere they stay whole, so that a program can read them."""

import io
import sys
from pathlib import Path

import pytest

from patra.cli.main import run
from patra.cli.terminal.wrapping import wrap_text

PATH = "/a/folder/whose/name/is/rather/long/and/has/no/blank/in/it/patra.db"
TEXT = f"patra: store_missing: there is no store at {PATH}, and this command does not create one"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard error is one, 60 columns wide; for the body of a test, since pytest has its own before."""
    monkeypatch.setenv("COLUMNS", "60")
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    return made


def test_a_line_breaks_between_words_and_a_path_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    lines = wrap_text(TEXT, err=True).split("\n")
    assert len(lines) > 1
    assert any(PATH in line for line in lines), "it can be copied"
    assert all(len(line) <= 60 or PATH in line for line in lines)
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == TEXT


def test_short_lines_and_their_margins_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    assert wrap_text("one\n  two   three\n", err=True) == "one\n  two   three\n"


def test_colours_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(monkeypatch)
    assert wrap_text(f"\x1b[1m{TEXT}\x1b[0m", err=True) == f"\x1b[1m{TEXT}\x1b[0m"


def test_into_a_pipe_a_line_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert wrap_text(TEXT, err=True) == TEXT


@pytest.mark.parametrize(
    "line", [["audit"], ["ingest", "schedule", "add", "a/b", "c", "--at", "03:00", "--topic", "sea fog"]]
)
def test_a_refusal_fits_the_terminal(line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PATRA_STORE_URL", raising=False)
    shown = terminal(monkeypatch)
    assert run(line) in {2, 3}
    said = shown.getvalue()
    assert len(said) > 100
    assert all(len(one) <= 60 or " " not in one.strip() for one in said.splitlines()), said
