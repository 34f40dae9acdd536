"""Items that stay as they stand in the body until one is needed, and then only in the parts that a pack looks for."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.paths import json_path
from patra.ingest.extraction.body_parser import Document, Unreadable, parse, read_item
from patra.ingest.extraction.items import item_reader
from patra.ingest.extraction.list_outline import list_outline, list_place
from patra.ingest.extraction.mapping import Mapper
from patra.ingest.extraction.response import Reader
from patra.ingest.landing.records import content_of, incoming
from patra.ingest.packs.sections import ErrorRule, Expr, Output, Pagination, Response
from patra.ingest.vocabulary.codes import Outcome, PaginationType, ResponseFormat
from patra.ingest.works.read import record_of
from tests.unit.ingest.sample_legs import leg

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
    found = item_reader((name,) for name in wanted)(msgspec.Raw(msgspec.json.encode(record)))
    assert found == {
        name: value for name, value in msgspec.json.decode(msgspec.json.encode(record)).items() if name in wanted
    }


def test_an_item_that_is_no_object_is_read_as_it_is() -> None:
    reader = item_reader([("id",)])
    assert reader(msgspec.Raw(b"[1, 2]")) == [1, 2]
    assert reader(msgspec.Raw(b"7")) == 7
    assert reader({"id": 1, "b": 2}) == {"id": 1, "b": 2}  # read already
    assert item_reader([()])(msgspec.Raw(b'{"id": 1, "b": 2}')) == {"id": 1, "b": 2}


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


def mapper(fields: dict[str, Any]) -> Mapper:
    return Mapper(msgspec.convert({"fields": fields}, Output), Response(), Expr(), {})


def test_how_far_a_mapping_looks_into_the_record() -> None:
    def needs(fields: dict[str, Any]) -> set[Any]:
        return set(mapper(fields).needs)

    inner = {"family": "$.family", "given": {"path": "$.given"}}
    assert needs({"t": "$.title[0]", "a": {"each": "$.author[*]", "fields": inner}}) == {
        ("title", 0), ("author", None, "family"), ("author", None, "given"),
    }  # fmt: skip
    assert needs({"ids": {"fields": {"doi": "$.DOI", "x": {"path": "$.y.z"}}}}) == {("DOI",), ("y", "z")}
    assert needs({"t": {"path": "$.title", "expr": "${upper(value)}"}, "u": "x${fields.t}"}) == {("title",)}
    assert needs({"t": "${record.title.main}"}) == {("title", "main")}
    assert needs({"t": "${json(record)}"}) == {()}
    assert needs({"t": "${jsonPath(record, '$.a.b[0]')}"}) == {("a", "b", 0)}
    assert needs({"t": "${coalesce(jsonPath(record, '$.a'), record)}"}) == {("a",), ()}
    assert needs({"t": "$.a[?@.b == 1].c"}) == {("a",)}
    assert needs({"t": "$.a[?@.b == $.d].c"}) == {()}
    assert needs({"t": "$.a..b"}) == {("a",)}
    assert needs({"t": "$..title"}) == {()}
    assert needs({"t": "$"}) == {()}
    each = {"each": "$.a[*]", "fields": {"n": "${coalesce(item.name, jsonPath(item, '$.x[0]'))}"}}
    assert needs({"a": each}) == {("a", None, "name"), ("a", None, "x", 0)}
    assert needs({"a": {"path": "$.a", "fields": {"b": "${plan.source}"}}}) == {("a",)}
    assert needs({"a": {"each": "$.a[?@.b]", "fields": {"c": "$.c"}}}) == {("a",)}


FIELDS: list[dict[str, Any]] = [
    {"t": "$.a[0]"},
    {"t": "$.a.b", "u": "$.a.c"},
    {"t": "$.a.b", "u": "$.a[0]"},
    {"t": "$.a[*].b", "u": {"path": "$.b[*]", "all": True}},
    {"t": {"each": "$.a[*]", "fields": {"b": "$.b", "c": {"path": "$.c[0]", "apply": ["text"]}}}},
    {"t": {"path": "$.a", "fields": {"b": "$.b.c"}}},
    {"t": {"each": "$.a", "fields": {"b": "$.b", "n": "${item.c}"}}},
    {"t": "$.a[?@.b].c", "u": "${jsonPath(record, '$.b.c') == null ? record.a.b : 'x'}"},
    {"t": {"path": "$.a.*"}, "u": "$.b"},
    {"t": {"path": "$.a", "apply": ["text"], "default": "d"}, "u": {"path": "$.b", "map": {"x": "y"}}},
]


@given(record=st.dictionaries(NAMES, VALUES | st.lists(st.dictionaries(NAMES, VALUES))), fields=st.sampled_from(FIELDS))
def test_fields_of_the_parts_that_are_read_are_those_of_the_whole(record, fields) -> None:
    raw = msgspec.json.encode(record)
    one = mapper(fields)
    part = item_reader(one.needs)(msgspec.Raw(raw))
    assert one(part, 0) == one(read_item(msgspec.Raw(raw)), 0)


@given(
    tree=st.recursive(
        VALUES,
        lambda inner: (
            st.dictionaries(st.sampled_from(["message", "items", "total", "next"]), inner, max_size=3)
            | st.lists(inner, max_size=3)
        ),
    )
)
def test_a_page_that_is_read_in_outline_is_the_page(tree) -> None:
    rules = ["$.message.error.code", "$.message[0].next"]  # an object, and a list where it is an error
    one = leg(
        response=Response(
            items_path="$.message.items", id_path="$.id", updated_at_path="$.u", total_path="$.message.total"
        ),
        pagination=Pagination(type=PaginationType.TOKEN, page_size=10, next_token_path="$.message.next"),
        errors=[ErrorRule(path=path, outcome=Outcome.L2) for path in rules],
    )
    body, place, outline = msgspec.json.encode(tree), list_place(one), list_outline(one)
    assert place == ("message", "items")
    assert outline is not None
    whole, part = (
        parse(body, ResponseFormat.JSON, place=place),
        parse(body, ResponseFormat.JSON, place=place, outline=outline),
    )
    assert isinstance(whole, Document)
    assert isinstance(part, Document)
    assert Reader(one).page(part, {}, "") == Reader(one).page(whole, {}, "")
    for path in map(json_path, rules):
        assert path.find(part.root) == path.find(whole.root)


def test_an_error_that_stands_in_a_list_where_the_page_is_an_object_is_read_in_outline() -> None:
    rule = ErrorRule(path="$.message[0].type", outcome=Outcome.RESTART)
    response = Response(items_path="$.message.items", id_path="$.id", updated_at_path="$.u")
    outline = list_outline(leg(response=response, errors=[rule]))
    assert outline is not None
    assert outline(b'{"message": [{"type": "cursor-invalid", "x": 1}], "y": 2}') == {
        "message": [{"type": "cursor-invalid"}]
    }
    assert outline(b'{"message": {"items": [{"id": 1}], "x": 1}}') == {
        "message": {"items": [msgspec.Raw(b'{"id": 1}')]}
    }


def test_where_something_around_the_list_is_wanted_as_a_whole_there_is_no_outline() -> None:
    response = Response(items_path="$.message.items", id_path="$.id", updated_at_path="$.u", total_path="$.message")
    assert list_outline(leg(response=response)) is None
    assert list_outline(leg(response=Response(items_path="$[*]", id_path="$.id", updated_at_path="$.u"))) is None


def test_the_record_is_kept_as_it_came() -> None:
    raw = b'{"id": 1,  "n": 1e999, "m": 1.50}'
    assert item_reader([("id",)])(msgspec.Raw(raw)) == {"id": 1}
    record = incoming("1", 0, None, {"a": "b"}, msgspec.Raw(raw), deleted=False)
    assert record is not None
    assert content_of(record.content) == b'{"fields":{"a":"b"},"raw":' + raw + b"}"
    stored = record_of(("s", "e", "1", 0, 0, record.content, 0))
    assert stored.fields == {"a": "b"}
    assert stored.raw["id"] == 1
