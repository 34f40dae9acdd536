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
    Related(relation="origin", kind="attribution.appId", key="shop"),
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
    assert "origin: attribution.appId shop" in whole
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


def test_steps_of_the_work_of_ingest_are_left_to_wide_unless_it_left_the_normal_way(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def step(what: str, key: str, state: str, engine: str = "ingest") -> StoryEntry:
        own = Related(relation="own", kind="ingest.task", key=key)
        text = f"{what} of {key}: {state}"
        return msgspec.structs.replace(MOVED, id=text, engine=engine, what=what, state=state, text=text, related=[own])

    def told(*steps: StoryEntry, kind: str = "ingest.record", wide: bool = False) -> str:
        found = Story(
            key="r", kind=kind, outcome="found", entries=list(steps), pending=[], related=[],
            candidates=[], searched=[], advice=[], next=None,
        )  # fmt: skip
        with click.Context(command) as ctx:
            ctx.meta["patra.wide"] = wide
            print_story(found)
        return click.unstyle(capsys.readouterr().out)

    good = [
        step("task_created", "t1", "SUCCEEDED"), step("task_moved", "t1", "EXECUTING"), step("record_changed", "r", ""),
    ]  # fmt: skip
    said = told(*good)
    assert "record_changed of r" in said
    assert "t1" not in said
    assert "and 2 steps of plans, tasks and runs that went as they should: --wide lists them" in said
    assert "t1: EXECUTING" in told(*good, wide=True)
    assert "task_created of t1" in told(*good, kind="ingest.task"), "the story of a task begins with it"
    bad = [*good, step("task_moved", "t2", "EXECUTING"), step("task_moved", "t2", "FAILED")]
    assert "t2: EXECUTING" in told(*bad), "what went wrong is told to its end"
    lost = [*good, step("task_moved", "t1", "QUEUED")]
    assert "t1: QUEUED" in told(*lost), "a lease that ran out is no normal step"
    assert "t1: EXECUTING" not in told(*bad)
    assert "run_moved of film" in told(step("run_moved", "film", "RUNNING", engine="studio")), "a film's stages stay"


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
