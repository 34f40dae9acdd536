"""Which window a trigger means (ch. 6.1, 6.2, 8.1)."""

import pytest

from patra.ingest.codes import Operation
from patra.ingest.compiler import Overrides, compile_spec
from patra.ingest.intent import Idle, window_of
from patra.ingest.reasons import R
from patra.ingest.slicing import Span
from patra.ingest.trigger import Trigger
from patra.kernel.clock import parse_instant
from tests.unit.ingest.packs import loaded

NOW = parse_instant("2026-11-16T02:03:04Z")


def at(text):
    return parse_instant(text)


def window(operation=Operation.HARVEST, watermark=None, overrides=None, **said):
    spec = compile_spec(loaded("page"), "articles", operation, Overrides(sections=overrides or {})).spec
    return window_of(spec, Trigger(source="pagelike", endpoint="articles", operation=operation, **said), watermark, NOW)


def test_a_harvest_goes_from_the_watermark_to_now_minus_the_lag_on_the_grid():
    assert window(watermark=at("2026-11-15T10:30:00Z")) == Span(at("2026-11-15T10:00:00Z"), at("2026-11-16T01:00:00Z"))


def test_the_first_harvest_begins_where_the_pack_says():
    assert window().start == at("2024-01-01T00:00:00Z")
    assert window(overrides={"window": {"initial": "P1D"}}).start == at("2026-11-15T02:00:00Z")


def test_a_harvest_without_a_beginning_is_refused_with_advice():
    found = window(overrides={"window": {"initial": None}})
    assert isinstance(found, Idle)
    assert (found.code, found.refused) == (R.WINDOW_INVALID, True)
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
    assert (found.code, found.refused) == (R.WINDOW_EMPTY, False)


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z")],
)
def test_a_window_must_begin_before_it_ends(since, until):
    assert window(since=at(since), until=at(until)).code is R.WINDOW_INVALID


def test_a_backfill_goes_up_to_the_watermark():
    found = window(Operation.BACKFILL, at("2026-11-10T00:00:00Z"), since=at("2026-11-01T00:00:00Z"))
    assert found == Span(at("2026-11-01T00:00:00Z"), at("2026-11-10T00:00:00Z"))
    assert window(Operation.BACKFILL).refused
