"""Which window a trigger means (ch. 6.1, 6.2, 8.1)."""

import pytest

from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.planning.trigger import Trigger
from patra.ingest.planning.window_intent import Idle, window_note, window_of
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, HOUR, MINUTE, parse_instant
from tests.unit.ingest.sample_packs import loaded

NOW = parse_instant("2026-11-16T02:03:04Z")


def at(text):
    return parse_instant(text)


def window(operation=Operation.HARVEST, watermark=None, overrides=None, **said):
    spec = compile_spec(loaded("page"), "articles", operation, Overrides(sections=overrides or {})).spec
    return window_of(spec, Trigger(source="pagelike", endpoint="articles", operation=operation, **said), watermark, NOW)


def test_a_harvest_goes_from_the_watermark_to_now_minus_the_lag_on_the_grid():
    assert window(watermark=at("2026-11-15T10:30:00Z")) == Span(at("2026-11-15T10:00:00Z"), at("2026-11-16T01:00:00Z"))


@pytest.mark.parametrize(
    ("align", "end", "unit"), [("hour", "2026-11-15T14:00:00Z", "hour"), ("min", "2026-11-15T14:03:00Z", "minute")]
)
def test_the_note_of_a_window_names_the_instant_before_which_it_ends(align, end, unit):
    overrides = Overrides(sections={"window": {"align": align, "safetyLag": "PT12H"}})
    spec = compile_spec(loaded("page"), "articles", Operation.HARVEST, overrides).spec
    asked = Trigger(source="pagelike", endpoint="articles", operation=Operation.HARVEST)
    found = window_of(spec, asked, at("2026-11-15T10:00:00Z"), NOW)
    assert isinstance(found, Span)
    assert window_note(spec, asked, found, NOW + 5) == (
        f"window 2026-11-15T10:00:00Z … {end}: up to the last whole {unit} before 2026-11-15T14:03:04Z (now minus "
        "window.safetyLag PT12H); a later run reads the rest"
    )


def test_the_first_harvest_begins_where_the_pack_says():
    assert window().start == at("2024-01-01T00:00:00Z")
    assert window(overrides={"window": {"initial": "P1D"}}).start == at("2026-11-15T02:00:00Z")


def test_a_harvest_without_a_beginning_is_refused_with_advice():
    found = window(overrides={"window": {"initial": None}})
    assert isinstance(found, Idle)
    assert (found.code, found.refused) == (Reason.WINDOW_INVALID, True)
    assert "--from" in found.detail


def test_the_trigger_decides_where_it_says_so():
    assert window(since=at("2026-01-01T00:00:00Z"), until=at("2026-01-02T00:30:00Z")) == Span(
        at("2026-01-01T00:00:00Z"), at("2026-01-02T01:00:00Z")
    )


def test_no_window_goes_past_now_minus_the_lag():
    assert window(until=at("2030-01-01T00:00:00Z")).end == at("2026-11-16T01:00:00Z")
    assert window(overrides={"window": {"overshoot": "REJECT"}}, until=at("2030-01-01T00:00:00Z")).refused


def test_nothing_new_is_nothing_to_do():
    found = window(watermark=at("2026-11-16T01:00:00Z"))
    assert (found.code, found.refused) == (Reason.WINDOW_EMPTY, False)


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z")],
)
def test_a_window_must_begin_before_it_ends(since, until):
    assert window(since=at(since), until=at(until)).code is Reason.WINDOW_INVALID


def test_a_backfill_goes_up_to_the_watermark():
    found = window(Operation.BACKFILL, at("2026-11-10T00:00:00Z"), since=at("2026-11-01T00:00:00Z"))
    assert found == Span(at("2026-11-01T00:00:00Z"), at("2026-11-10T00:00:00Z"))
    assert window(Operation.BACKFILL).refused


def test_a_backfill_of_the_last_days_ends_now_whatever_a_harvest_has_read():
    found = window(Operation.BACKFILL, at("2026-11-10T00:00:00Z"), since=NOW - 30 * DAY, last=30 * DAY)
    assert found.end == at("2026-11-16T01:00:00Z")
    late = window(Operation.BACKFILL, at("2026-01-01T00:00:00Z"), since=NOW - DAY, last=DAY)
    assert late == Span(at("2026-11-15T01:00:00Z"), at("2026-11-16T01:00:00Z"))


@pytest.mark.parametrize("operation", [Operation.HARVEST, Operation.BACKFILL])
@pytest.mark.parametrize("last", [MINUTE, HOUR])
def test_the_last_so_much_of_time_is_never_empty_however_short(operation, last):
    """The lag of this pack is an hour, and so is the step of its grid."""
    found = window(operation, since=NOW - last, last=last)
    assert found == Span(at("2026-11-16T00:00:00Z"), at("2026-11-16T01:00:00Z"))
