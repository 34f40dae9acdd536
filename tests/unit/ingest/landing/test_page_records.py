"""Items of an answer become records, or go to the quarantine with the code of what is wrong."""

import msgspec
import pytest

from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.landing import page_records
from patra.ingest.landing.page_records import (
    STAGE_RECORDS,
    ReadingTally,
    ids_of,
    nothing,
    records_of,
    with_missing,
)
from patra.ingest.packs.sections import Field, Output
from patra.ingest.packs.spec import Mapping
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.vocabulary.codes import FieldType, MissingIds, OnEqual, UpdateTime
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import parse_instant
from tests.unit.ingest.execution.scopes import spec_of
from tests.unit.ingest.sample_legs import leg

FIELDS = {
    "title": Field(path="$.title", required=True),
    "year": Field(path="$.year", type=FieldType.INT),
    "share": Field(expr="${1 / record.parts}"),
}
LINE = EndpointClient(spec_of(), leg(mapping=Mapping(output=Output(fields=FIELDS))))
GOOD = {"id": "a", "updated": "2026-01-01T00:00:00Z", "title": "T", "year": 2026, "parts": 2}
AT = parse_instant("2026-01-01T00:00:00Z")


def test_a_good_item_is_a_record_and_a_flaw_has_the_code_of_its_kind():
    items = [
        GOOD,
        {**GOOD, "id": "b", "title": None},
        {**GOOD, "id": "c", "year": "required"},
        {**GOOD, "id": "d", "parts": 0},
        {**GOOD, "id": None},
        {**GOOD, "id": "f", "updated": "never"},
    ]
    found = records_of(LINE, items, AT, {})
    assert [record.id for record in found.records] == ["a"]
    assert [(bad.id, bad.code) for bad in found.bad] == [
        ("b", RunReason.FIELD_MISSING),
        ("c", RunReason.FIELD_INVALID),
        ("d", RunReason.FIELD_FAILED),
        (None, RunReason.NO_ID),
        ("f", RunReason.NO_UPDATED_AT),
    ]
    assert (found.ids, found.without_id, found.newest) == (["a", "b", "c", "d", "f"], 1, AT)


def test_a_page_of_several_stages_is_what_its_items_are_one_by_one():
    kinds = [{}, {"title": None}, {"year": "x"}, {"id": None}, {"updated": "never"}, {"parts": 0}, {"updated": "1999"}]
    items = [
        {**GOOD, "id": f"r{n}", "year": n, "text": "long " * n, **kinds[n % len(kinds)]}
        for n in range(2 * STAGE_RECORDS + 3)
    ]
    whole = records_of(LINE, items, AT, {}, Span(AT, AT + 1))
    alone = [records_of(LINE, [one], AT, {}, Span(AT, AT + 1)) for one in items]
    assert whole.records == [record for one in alone for record in one.records]
    assert whole.bad == [bad for one in alone for bad in one.bad]
    assert whole.ids == [identifier for one in alone for identifier in one.ids]
    assert whole.outside == sum(one.outside for one in alone) > 0
    assert len(whole.records) > STAGE_RECORDS // len(kinds)


def test_a_filter_of_our_own_drops_what_lies_outside_the_window_and_counts_it():
    items = [GOOD, {**GOOD, "id": "b", "updated": "2025-01-01T00:00:00Z"}]
    found = records_of(LINE, items, AT, {}, Span(AT, AT + 1))
    assert ([record.id for record in found.records], found.outside, found.bad) == (["a"], 1, [])


def test_a_record_that_tells_no_time_lies_outside_no_window():
    """Dropped, it would be lost without a word: the task succeeds, and no count is wrong."""
    response = msgspec.structs.replace(
        leg().response, updated_at_path="", update_time=UpdateTime.NONE, on_equal=OnEqual.CONTENT
    )
    line = EndpointClient(spec_of(), leg(mapping=Mapping(output=Output(fields=FIELDS)), response=response))
    found = records_of(line, [GOOD, {**GOOD, "id": "b"}], AT, {}, Span(AT, AT + 1))
    assert ([record.id for record in found.records], found.outside, found.bad) == (["a", "b"], 0, [])


def test_the_same_records_have_the_same_digest_and_one_key():
    one, two = records_of(LINE, [GOOD], AT, {}), records_of(LINE, [GOOD, GOOD], AT, {})
    assert one.keys == two.keys
    assert one.digest != two.digest
    assert one.digest == records_of(LINE, [{**GOOD, "title": "other"}], AT, {}).digest


def test_a_list_of_ids_gives_each_id_once():
    found = ids_of(LINE, [GOOD, GOOD, {"id": "b"}, {}])
    assert (found.ids, found.without_id, [bad.code for bad in found.bad]) == (["a", "b"], 1, [RunReason.NO_ID])


def test_ids_without_a_record_are_kept_with_a_reason_unless_the_pack_ignores_them():
    landing = records_of(LINE, [GOOD], AT, {})
    kept = with_missing(landing, ["a", "b"], MissingIds.QUARANTINE)
    assert [(bad.id, bad.code) for bad in kept.bad] == [("b", RunReason.ID_MISSING_DETAIL)]
    assert with_missing(landing, ["a", "b"], MissingIds.IGNORE) == landing
    assert nothing().ids == []


def tally_of(*pages: list[str]) -> int:
    reading, total = ReadingTally(), 0
    for ids in pages:
        page = msgspec.structs.replace(nothing(), ids=ids)
        total += reading.of(page)
        reading.add(page)
    return total


def test_two_readings_of_the_same_records_agree_however_they_lay_on_pages():
    assert tally_of(["a", "b", "c"], ["d"]) == tally_of(["d", "c"], ["c", "b"], ["a"])
    assert tally_of(["a", "b", "c"]) != tally_of(["a", "b", "d"])


def test_a_reading_of_a_very_long_list_remembers_no_more_and_does_not_agree_by_mistake(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_records, "MAX_TRACKED_KEYS", 2)
    whole = tally_of(["a"], ["b"], ["c"], ["d"])
    assert tally_of(["d"], ["c"], ["b"], ["a"]) == whole
    assert tally_of(["a"], ["b"], ["c"], ["d"], ["d"]) != whole
