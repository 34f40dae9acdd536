"""Items that stay as they stand in the body until one is needed, and then only in the parts that a pack looks for."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.bits import ErrorRule, Expr, Output, Pagination, Response
from patra.ingest.codes import Outcome, PaginationType, ResponseFormat
from patra.ingest.items import both, item_reader
from patra.ingest.mapping import Mapper
from patra.ingest.reading import Document, Reader, Unreadable, first_names, list_place, parse, read_item
from patra.ingest.records import content_of, incoming
from patra.ingest.works_read import record_of
from tests.unit.ingest.running.legs import leg

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(["id", "u", "a", "b", "c"])


def read(body: bytes, *place: str) -> Any:
    found = parse(body, ResponseFormat.JSON, place=place)
    assert isinstance(found, Document), found
    return found.root


@given(
    items=st.lists(VALUES | st.dictionaries(NAMES, VALUES), max_size=5),
    beside=st.dictionaries(NAMES, VALUES, max_size=3),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_a_list_that_is_not_looked_into_holds_what_the_document_holds(items, beside, indent, ascii_only) -> None:
    tree = {"m": {**beside, "list": items}, **beside}
    body = json.dumps(tree, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    whole = parse(body, ResponseFormat.JSON)
    lazy = parse(body, ResponseFormat.JSON, place=("m", "list"))
    assert isinstance(whole, Document)
    assert isinstance(lazy, Document)
    lazy.root["m"]["list"] = [read_item(i) if type(i) is msgspec.Raw else i for i in lazy.root["m"]["list"]]
    assert lazy.root == whole.root


@given(record=st.dictionaries(NAMES, VALUES), wanted=st.sets(NAMES))
def test_an_item_is_read_in_the_parts_that_are_needed(record, wanted) -> None:
    found = item_reader(frozenset(wanted))(msgspec.Raw(msgspec.json.encode(record)))
    assert found == {
        name: value for name, value in msgspec.json.decode(msgspec.json.encode(record)).items() if name in wanted
    }


def test_an_item_that_is_no_object_is_read_as_it_is() -> None:
    reader = item_reader(frozenset({"id"}))
    assert reader(msgspec.Raw(b"[1, 2]")) == [1, 2]
    assert reader(msgspec.Raw(b"7")) == 7
    assert reader({"id": 1, "b": 2}) == {"id": 1, "b": 2}  # read already
    assert item_reader(None)(msgspec.Raw(b'{"id": 1, "b": 2}')) == {"id": 1, "b": 2}


def test_a_body_that_is_cut_is_seen_although_nobody_reads_its_items() -> None:
    body = b'{"list": [{"id": 1}, {"id": 2'
    assert parse(body, ResponseFormat.JSON, place=("list",)) == Unreadable(
        truncated=True, detail="Input data was truncated"
    )


@pytest.mark.parametrize("wrong", [b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\x01"', b"NaN"])
def test_a_body_with_a_flaw_inside_an_item_is_read_whole_and_mended(wrong: bytes) -> None:
    root = read(b'{"list": [{"id": 1, "x": ' + wrong + b"}]}", "list")
    assert root["list"][0]["id"] == 1  # values, no bytes


def test_nulls_of_a_list_are_no_records() -> None:
    found = Reader(leg()).page(
        Document(read(b'{"items": [null, {"id": 1}, null ]}', "items"), ResponseFormat.JSON), {}, ""
    )
    assert [read_item(item) for item in found.items or []] == [{"id": 1}]


@pytest.mark.parametrize(
    ("sections", "place"),
    [
        ({}, ("items",)),
        ({"items_path": "$.message.items"}, ("message", "items")),
        ({"items_path": "$.items[*]"}, ("items",)),
        ({"items_path": "$"}, ()),
        ({"items_path": "$[*]"}, ()),
        ({"items_path": "$.items[*].inner"}, ()),
        ({"items_path": "$..items"}, ()),
        ({"total_path": "$.message.total"}, ("items",)),
        ({"total_path": "$.items[0].total"}, ()),
        ({"total_path": "$..total"}, ()),
        ({"format": ResponseFormat.XML, "items_path": "/a/b", "id_path": "c"}, ()),
    ],
)
def test_items_stay_unread_only_where_nothing_is_looked_for_inside_the_list(sections, place) -> None:
    response = Response(**({"items_path": "$.items", "id_path": "$.id", "updated_at_path": "$.u"} | sections))
    assert list_place(leg(response=response)) == place


def test_a_rule_or_a_token_inside_the_list_has_it_read() -> None:
    rule = ErrorRule(path="$.items[0].error", outcome=Outcome.L2)
    assert list_place(leg(errors=[rule])) == ()
    token = Pagination(type=PaginationType.TOKEN, page_size=10, next_token_path="$.items[-1].id")
    assert list_place(leg(pagination=token)) == ()


def test_which_parts_a_mapping_needs() -> None:
    def needs(fields: dict[str, Any]) -> frozenset[str] | None:
        return Mapper(msgspec.convert({"fields": fields}, Output), Response(), Expr(), {}).needs

    inner = {"family": "$.family", "given": {"path": "$.given"}}
    assert needs({"t": "$.title[0]", "a": {"each": "$.author[*]", "fields": inner}}) == {"title", "author"}
    assert needs({"ids": {"fields": {"doi": "$.DOI", "x": {"path": "$.y.z"}}}}) == {"DOI", "y"}
    assert needs({"t": {"path": "$.title", "expr": "${upper(value)}"}, "u": "x${fields.t}"}) == {"title"}
    assert needs({"t": "${record.title}"}) is None
    assert needs({"t": "$..title"}) is None
    assert needs({"t": "$"}) is None
    assert both(frozenset({"a"}), frozenset({"b"})) == {"a", "b"}
    assert both(frozenset({"a"}), None) is None
    assert first_names([]) == frozenset()


def test_the_record_is_kept_as_it_came() -> None:
    raw = b'{"id": 1,  "n": 1e999, "m": 1.50}'
    assert item_reader(frozenset({"id"}))(msgspec.Raw(raw)) == {"id": 1}
    record = incoming("1", 0, None, {"a": "b"}, msgspec.Raw(raw), deleted=False)
    assert record is not None
    assert content_of(record.content) == b'{"fields":{"a":"b"},"raw":' + raw + b"}"
    stored = record_of(("s", "e", "1", 0, 0, record.content))
    assert stored.fields == {"a": "b"}
    assert stored.raw["id"] == 1
