"""Where things stand in an answer (ch. 4.7)."""

import pytest

from patra.ingest.extraction.body_parser import SCAN_BYTES, Document, Unreadable, parse
from patra.ingest.extraction.response import Identity, Polluted, Reader, link_target, page_digest
from patra.ingest.packs.sections import Pagination, Response
from patra.ingest.vocabulary.codes import PaginationType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import parse_instant
from tests.unit.ingest.sample_legs import leg


def reader(pagination: Pagination | None = None, **response) -> Reader:
    sections = {
        "response": Response(**({"items_path": "$.items", "id_path": "$.id", "updated_at_path": "$.u"} | response))
    }
    if pagination is not None:
        sections["pagination"] = pagination
    return Reader(leg(**sections))


def doc(root) -> Document:
    return Document(root, ResponseFormat.JSON)


def xml(text: str) -> Document:
    found = parse(text.encode(), ResponseFormat.XML)
    assert isinstance(found, Document)
    return found


@pytest.mark.parametrize(
    ("root", "items"),
    [
        ({"items": [1, 2]}, [1, 2]),
        ({"items": []}, []),
        ({"items": None}, None),
        ({}, None),
        ({"items": {"id": 1}}, [{"id": 1}]),
        ([], None),
    ],
)
def test_a_missing_list_is_not_an_empty_one(root, items) -> None:
    assert reader().page(doc(root), {}, "").items == items


def test_a_wildcard_path_tells_missing_from_empty_by_its_parent() -> None:
    wild = reader(items_path="$.a.items[*]")
    assert wild.page(doc({"a": {"items": [1, 2]}}), {}, "").items == [1, 2]
    assert wild.page(doc({"a": {"items": []}}), {}, "").items == []
    assert wild.page(doc({"a": {}}), {}, "").items is None


@pytest.mark.parametrize(
    ("path", "root", "items"),
    [
        ("$.group[*]['work-summary'][0]", {"group": []}, []),  # ORCID: nobody's works
        ("$.group[*]['work-summary'][0]", {"error": "x"}, None),
        ("$[?@.paperId]", [None, None], []),  # Semantic Scholar: none of the ids is known
        ("$[?@.paperId]", {"error": "x"}, None),
        ("$.a[0].items[*]", {"a": [{"items": []}]}, []),
        ("$.items[*]", {"items": {}}, []),
        ("$.items[*]", {"items": None}, None),
        ("$.items[*]", {"items": "none"}, None),
    ],
)
def test_a_list_is_empty_where_what_its_path_picks_from_is_there(path: str, root, items) -> None:
    assert reader(items_path=path).page(doc(root), {}, "").items == items


def test_xml_items_anywhere_have_their_place_in_their_namespace() -> None:
    names = {"o": "urn:oai"}
    found = reader(format=ResponseFormat.XML, items_path="//o:record", id_path="o:id", updated_at_path="u",
                   namespaces=names)  # fmt: skip
    page = found.page(xml('<r xmlns="urn:oai"><ListRecords/></r>'), {}, "")
    assert (page.items, page.untold) == ([], False)
    page = found.page(xml("<error>overloaded</error>"), {}, "")
    assert (page.items, page.untold) == (None, False)


def test_an_xml_path_may_not_tell_where_its_list_stands() -> None:
    found = reader(format=ResponseFormat.XML, items_path="//record", id_path="id", updated_at_path="u")
    page = found.page(xml("<set/>"), {}, "")
    assert (page.items, page.untold) == (None, True)


def test_an_xml_list_is_empty_where_its_parent_is_there() -> None:
    found = reader(format=ResponseFormat.XML, items_path="/set/article", id_path="id", updated_at_path="u")
    assert len(found.page(xml("<set><article/><article/></set>"), {}, "").items or []) == 2
    assert found.page(xml("<set/>"), {}, "").items == []
    assert found.page(xml("<error/>"), {}, "").items is None


@pytest.mark.parametrize(
    ("value", "total"), [(7, 7), ("1,234", 1234), ("12", 12), (None, None), ("many", None), ({}, None)]
)
def test_totals_may_be_text(value, total: int | None) -> None:
    assert reader(total_path="$.n").page(doc({"items": [], "n": value}), {}, "").total == total


@pytest.mark.parametrize(("value", "more"), [(True, True), (False, False), ("true", True), ("0", False), (None, None)])
def test_has_more_is_true_false_or_not_said(value, more: bool | None) -> None:
    assert reader(has_more_path="$.more").page(doc({"items": [], "more": value}), {}, "").has_more is more


def test_a_token_may_stand_in_a_url() -> None:
    plain = Pagination(type=PaginationType.TOKEN, next_token_path="$.next")
    inside = Pagination(type=PaginationType.TOKEN, next_token_path="$.next", next_token_param="page[cursor]")
    assert reader(plain).page(doc({"items": [], "next": 17}), {}, "").token == "17"
    assert reader(plain).page(doc({"items": [], "next": ""}), {}, "").token is None
    root = {"items": [], "next": "https://api.datacite.org/dois?page%5Bcursor%5D=MTIz&page%5Bsize%5D=5"}
    assert reader(inside).page(doc(root), {}, "").token == "MTIz"


def test_a_next_url_may_be_relative_or_stand_in_a_link_header() -> None:
    body = Pagination(type=PaginationType.URL, next_url_path="$.links.next")
    head = Pagination(type=PaginationType.URL, next_url_link="next")
    here = "https://api.example.org/v1/works?page=1"
    assert reader(body).page(doc({"items": [], "links": {"next": "/v1/works?page=2"}}), {}, here).url == (
        "https://api.example.org/v1/works?page=2"
    )
    assert reader(body).page(doc({"items": [], "links": {}}), {}, here).url is None
    headers = {"link": '<https://x/?p=2>; rel="next", <https://x/?p=9>; rel="last"'}
    assert reader(head).page(doc({"items": []}), headers, here).url == "https://x/?p=2"


@pytest.mark.parametrize(
    ("header", "url"),
    [
        ('<https://x/?a=1,2>; rel="next"', "https://x/?a=1,2"),
        ("<u>; rel=next", "u"),
        ("<p>; rel='prev', <n>; rel='last next'", "n"),
        ('<p>; rel="prev", <n>; title="a, b"; rel="next last"', "n"),
        ('<p>; rel="prev"', None),
        ("", None),
        ("rubbish; rel=next", None),
    ],
)
def test_link_headers(header: str, url: str | None) -> None:
    assert link_target(header, "next") == url


def test_an_identity_is_id_instant_version_and_deletion() -> None:
    found = reader(version_path="$.v", deleted_path="$.state", deleted_values=["gone"])
    item = {"id": " 10.1/x ", "u": "2019-03", "v": 3, "state": "gone"}
    assert found.identity(item) == Identity(
        id="10.1/x", updated_at=parse_instant("2019-03-01T00:00:00Z"), version="3", deleted=True
    )
    assert found.identity({"id": 1, "u": "2019", "state": "there"}) == Identity(
        id="1", updated_at=parse_instant("2019-01-01T00:00:00Z")
    )


@pytest.mark.parametrize(
    ("item", "code", "path"),
    [
        ({"u": "2019"}, RunReason.NO_ID, "$.id"),
        ({"id": "", "u": "2019"}, RunReason.NO_ID, "$.id"),
        ({"id": None, "u": "2019"}, RunReason.NO_ID, "$.id"),
        ({"id": "a\nb", "u": "2019"}, RunReason.FIELD_INVALID, "$.id"),
        ({"id": "a\0b", "u": "2019"}, RunReason.FIELD_INVALID, "$.id"),
        ({"id": "x" * 2000, "u": "2019"}, RunReason.FIELD_INVALID, "$.id"),
        ({"id": "a"}, RunReason.NO_UPDATED_AT, "$.u"),
        ({"id": "a", "u": [[None]]}, RunReason.NO_UPDATED_AT, "$.u"),
        ({"id": "a", "u": "n.d."}, RunReason.NO_UPDATED_AT, "$.u"),
        ("just text", RunReason.NO_ID, "$.id"),
    ],
)
def test_an_item_without_an_identity_is_pollution(item, code: RunReason, path: str) -> None:
    found = reader().identity(item)
    assert isinstance(found, Polluted)
    assert (found.code, found.path) == (code, path)


def test_ids_alone_need_no_update_time() -> None:
    ids = reader(id_path="$", updated_at_path="")
    assert ids.identity("123", dated=False) == Identity(id="123", updated_at=None)


@pytest.mark.parametrize(
    ("body", "root"),
    [
        (b'{"a": "\x01"}', {"a": "\x01"}),
        (b'{"a": NaN}', {"a": None}),
        (b'{"a": "\\ud800"}', {"a": "\ufffd"}),
        (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a": "é"}'.encode("latin-1"), {"a": "é"}),
    ],
)
def test_json_that_is_not_quite_json_is_read(body: bytes, root) -> None:
    found = parse(body, ResponseFormat.JSON, "latin-1" if b"\xe9" in body else "utf-8")
    assert isinstance(found, Document)
    assert found.root == root or isinstance(found.root["a"], float)


def test_bytes_that_are_no_text_are_replaced_and_counted() -> None:
    found = parse(b'{"a": "caf\xe9 \xef\xbf\xbd", "b": "\xff"}', ResponseFormat.JSON)
    assert isinstance(found, Document)
    assert (found.root, found.replaced) == ({"a": "caf\ufffd \ufffd", "b": "\ufffd"}, 2)
    latin = parse(b'{"a": "caf\xe9"}', ResponseFormat.JSON, "latin-1")
    assert isinstance(latin, Document)
    assert (latin.root, latin.replaced) == ({"a": "caf\xe9"}, 0)


def test_what_cannot_be_read_says_whether_it_only_lacks_its_end() -> None:
    for body, truncated in ((b'{"a": [1, 2', True), (b'{"a": x}', False), (b"plain", False)):
        found = parse(body, ResponseFormat.JSON)
        assert isinstance(found, Unreadable)
        assert found.truncated is truncated


def test_pages_are_told_apart_by_their_ids() -> None:
    assert page_digest(["a", "b"]) != page_digest(["b", "a"])
    assert page_digest(["ab"]) != page_digest(["a", "b"])


@pytest.mark.parametrize("shift", range(5))
def test_what_is_passed_over_is_checked_to_be_text_wherever_a_character_is_cut(shift: int) -> None:
    text = '{"items":[{"id":"' + "x" * (SCAN_BYTES - 20 + shift) + "\N{GRINNING FACE}" + "é" * SCAN_BYTES + '"}]}'
    found = parse(text.encode(), ResponseFormat.JSON, place=("items",))
    assert isinstance(found, Document)
    assert parse(text.encode()[:-5], ResponseFormat.JSON, place=("items",)).__class__ is Unreadable
    broken = text.encode().replace("é".encode(), b"\xc3", 1)
    lenient = parse(broken, ResponseFormat.JSON, place=("items",))
    assert isinstance(lenient, Document)
    assert "\ufffd" in lenient.root["items"][0]["id"]
