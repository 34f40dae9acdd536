"""A story on a terminal: no column, line or key more than a person needs."""

import sys

import click
import msgspec
import pytest

from patra.app.story.model import Related, Searched, Story, StoryEntry
from patra.cli.story import command, print_story

MOVED = StoryEntry(
    id="1", at="2026-01-01T00:00:00Z", engine="attribution", shape="state", what="moved", text="A record was committed.",
    state="", code="", code_text="", rule_version="", docs="", detail={}, related=[],
)  # fmt: skip
RELATED = [
    Related(relation="app", kind="attribution.appId", key="shop"),
    Related(relation="record", kind="attribution.recordKey", key="12b6"),
    Related(relation="audit", kind="attribution.auditKey", key="fe_1|drop"),
]


def said(capsys: pytest.CaptureFixture[str], *, wide: bool = False, engines: tuple[str, ...] = ("attribution",)) -> str:
    entries = [msgspec.structs.replace(MOVED, id=str(n), engine=engines[n % len(engines)]) for n in range(3)]
    found = Story(
        key="e2", kind="attribution.eventId", outcome="found", entries=entries, pending=[], related=RELATED,
        candidates=[], searched=[], advice=[], next=None,
    )  # fmt: skip
    with click.Context(command) as ctx:
        ctx.meta["patra.wide"] = wide
        print_story(found)
    return click.unstyle(capsys.readouterr().out)


def test_repeated_entries_are_one_row_and_keys_of_records_are_left_to_wide(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    text = said(capsys)
    assert text.count("A record was committed.") == 1
    assert "(3 times)" in text
    assert "engine" not in text
    assert "related  app: attribution.appId shop\nrelated  2 keys of records and audits: --wide lists them\n" in text
    whole = said(capsys, wide=True)
    assert whole.count("A record was committed.") == 3
    assert "attribution.recordKey 12b6" in whole
    assert "engine" in said(capsys, engines=("attribution", "bus"))


def test_steps_of_records_are_left_to_wide_unless_one_was_not_committed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def told(*states: str, wide: bool = False) -> str:
        steps = [
            msgspec.structs.replace(MOVED, id=state, what="record_moved", state=state, text=f"The record is {state}.")
            for state in states
        ]
        billed = msgspec.structs.replace(MOVED, what="event_decided", text="Event e2 was billed.")
        found = Story(
            key="e2", kind="attribution.eventId", outcome="found", entries=[billed, *steps], pending=[], related=[],
            candidates=[], searched=[], advice=[], next=None,
        )  # fmt: skip
        with click.Context(command) as ctx:
            ctx.meta["patra.wide"] = wide
            print_story(found)
        return click.unstyle(capsys.readouterr().out)

    assert "and 1 step of records that were committed as they should: --wide lists them" in told("committed")
    assert "The record is committed." not in told("committed")
    assert "The record is committed." in told("committed", wide=True)
    assert "The record is committed." in told("failed", "committed"), "what went wrong is told to its end"
    assert "--wide lists them" not in told("failed", "committed")


def test_a_pipe_gets_everything(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys)
    assert text.count("A record was committed.") == 3
    assert "attribution.auditKey fe_1|drop" in text


def test_what_was_not_found_is_said_in_lines_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    kinds = [f"attribution.kindNumber{n}" for n in range(9)]
    advice = ["Keys are compared exactly: look for a part that was cut off, a blank, or another case."]
    searched = [Searched(engine="attribution", kinds=kinds, complete=True)]
    print_story(
        Story(
            key="e-9", kind=None, outcome="unknown", entries=[], pending=[], related=[], candidates=[],
            searched=searched, advice=advice, next=None,
        )
    )  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 50 for line in lines), lines
    assert advice[0] in " ".join(line.strip() for line in lines)
