"""The first sentence of a story says what became of its key."""

from typing import Any

from patra.app.story.model import Engine, Entry, Pending, Shape
from patra.app.story.verdict import verdict

SECOND = 1_000_000


def entry(what: str, state: str = "", engine: Engine = Engine.ATTRIBUTION, **more: Any) -> Entry:
    return Entry(id=what, at=0, engine=engine, shape=Shape.WRITTEN, what=what, text=what, state=state, **more)


def waits(what: str, text: str, engine: Engine = Engine.ATTRIBUTION, due: int | None = None) -> Pending:
    return Pending(engine=engine, what=what, text=text, due=due)


def test_attribution_says_whether_it_was_billed() -> None:
    rejected = entry("event_decided", "drop", code="f_event_invalid", code_text="a field is missing")
    known = entry("event_decided", "drop", code="f_event_invalid", code_text="one of many", cause="x is not a number")
    assert verdict("attribution.eventId", [known], []) == "Not billed: x is not a number (f_event_invalid)."
    said = [
        verdict("attribution.closureKey", [entry("billable_fact_recorded", "committed")], []),
        verdict("attribution.closureKey", [entry("billable_fact_recorded", "new")], []),
        verdict("attribution.batchId", [entry("billable_fact_recorded", "committed")] * 3, []),
        verdict("attribution.closureKey", [entry("billable_fact_recorded", "conflicted", code="g_x")], []),
        verdict("attribution.eventId", [entry("event_decided", code="f_accepted"), rejected], []),
        verdict("attribution.eventId", [entry("event_decided", code="f_accepted")], []),
        verdict("attribution.closureKey", [entry("event_decided")], [waits("closure", "due", due=SECOND)]),
    ]
    assert said == [
        "Billed once.",
        "Billed once, 1 of it not yet archived.",
        "Billed 3 times, each under a key of its own.",
        "Not billed: its record is conflicted (g_x).",
        "Not billed: a field is missing (f_event_invalid).",
        "Counted, nothing to bill.",
        "Not billed yet: open until 1970-01-01T00:00:01Z.",
    ]


def test_an_event_that_was_sent_again_keeps_the_reason_of_its_first_answer() -> None:
    def decided(code: str) -> Entry:
        return entry("event_decided", code=code)

    again = decided("f_dedup_committed_duplicate")
    corrected = [decided("f_event_missing_required"), decided("f_billing_conflict_duplicate_impression"), again]
    assert verdict("attribution.eventId", corrected, []) == "Not billed (f_billing_conflict_duplicate_impression)."
    assert verdict("attribution.eventId", [again], []) == "Not billed (f_dedup_committed_duplicate)."


def test_ingest_says_how_it_ended_or_what_it_waits_for() -> None:
    def task(state: str, **more: Any) -> Entry:
        return entry("task_created", state, Engine.INGEST, **more)

    assert verdict("ingest.task", [task("SUCCEEDED")], []) == "The task is done."
    assert verdict("ingest.task", [task("FAILED", code="i_gave_up")], []) == "The task failed (i_gave_up)."
    assert verdict("ingest.plan", [task("SUCCEEDED")] * 2 + [task("FAILED")], []) == ("3 tasks: 2 SUCCEEDED, 1 FAILED.")
    assert verdict("ingest.task", [task("QUEUED")], [waits("task", "Task t waits.", Engine.INGEST)]) == (
        "Ingest: Task t waits."
    )
    stored = [task("SUCCEEDED"), entry("record_changed", "changed", Engine.INGEST)]
    assert verdict("ingest.doi", stored, []) == "The record is stored."
    assert verdict("ingest.task", stored, []) == "The task is done."


def test_the_bus_says_who_handled_it_and_where_it_is_dead() -> None:
    handled = [entry("event_handled", "done", Engine.BUS, detail={"group": name}) for name in "abcde"]
    dead = entry("dead_letter_written", "open", Engine.BUS, detail={"group": "x"}, code="b_handler_failed")
    waiting = waits("delivery", "y has yet to handle it", Engine.BUS)
    assert verdict("bus.event_id", [*handled, dead], [waiting]) == (
        "On the bus: handled by a, b, c and 2 more; 1 delivery waits; dead in x (b_handler_failed)."
    )
    mended = entry("dead_letter_written", "replayed", Engine.BUS, detail={"group": "x"})
    assert verdict("bus.event_id", [mended], []) == ""


def test_the_studio_says_whether_there_is_a_film() -> None:
    moved = entry("run_moved", "failed", Engine.STUDIO, code="s_x", code_text="it broke")
    assert verdict("studio.run", [moved], []) == "The run failed: it broke (s_x)."
    assert verdict("studio.run", [moved, entry("film_published", "", Engine.STUDIO)], []) == "The film is published."


def test_the_engine_of_the_key_speaks_first() -> None:
    handled = entry("event_handled", "done", Engine.BUS, detail={"group": "g"})
    billed = entry("billable_fact_recorded", "committed")
    assert verdict("bus.event_id", [billed, handled], []) == "On the bus: handled by g. Billed once."
    assert verdict("attribution.eventId", [billed, handled], []) == "Billed once. On the bus: handled by g."
