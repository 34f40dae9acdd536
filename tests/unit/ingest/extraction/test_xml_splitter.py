"""Large pages of XML: items as texts of their own, and never anything else than the whole would have given."""

import pytest
from lxml import etree

from patra.ingest.expressions.paths import parse_xml
from patra.ingest.extraction.body_parser import Document, Unreadable, parse, read_item
from patra.ingest.extraction.list_outline import list_split
from patra.ingest.extraction.mapping import raw_of
from patra.ingest.extraction.response import Reader
from patra.ingest.extraction.xml_splitter import Split, split, split_of
from patra.ingest.packs.sections import NamedRule, Pagination, Response
from patra.ingest.vocabulary.codes import Outcome, PaginationType, ResponseFormat
from tests.unit.ingest.sample_legs import leg

OAI = {"o": "urn:oai"}


def how(items: str, *outside: str, inside: tuple[str, ...] = ()) -> Split | None:
    return split_of(items, outside, inside, OAI)


def parts(body: bytes, items: str = "//item", *outside: str) -> list[bytes] | None:
    plan = how(items, *outside)
    assert plan is not None
    found = split(body, plan)
    return None if found is None else found[1]


def test_items_come_as_they_would_be_written_from_the_whole() -> None:
    body = b"""<?xml version="1.0"?><o:set xmlns:o="urn:oai" xmlns="urn:d"><n>2</n>
      <!-- a remark --><item a="1">t<b/>&amp;<!-- another --></item> tail <item><c>\xc3\xa9</c></item><end/></o:set>"""
    plan = split_of("/o:set/d:item", [], [], OAI | {"d": "urn:d"})
    assert plan is not None
    found = split(body, plan)
    assert found is not None
    root, items = found
    whole = parse_xml(body).findall("{urn:d}item")
    assert [item.decode() for item in items] == [raw_of(one) for one in whole]
    assert [raw_of(read_item(item)) for item in items] == [raw_of(one) for one in whole]
    assert [etree.QName(one).localname for one in root] in (["n", "item", "end"], ["n", "item", "item", "end"])


def test_a_union_keeps_the_order_of_the_document() -> None:
    assert parts(b"<s><a>1</a><b>2</b><a>3</a></s>", "//a | //b") == [b"<a>1</a>", b"<b>2</b>", b"<a>3</a>"]


@pytest.mark.parametrize(
    ("body", "outside"),
    [
        (b"<s><item><item/></item></s>", ()),  # one inside the other
        (b"<s><item><error/></item></s>", ("//error",)),  # something that is looked for in the whole
        (b"<s><item/></s>", ("/s",)),  # the text of what holds the items
        (b"<s><item/></s>", ("//item/@count",)),
        (b'<!DOCTYPE s [<!ENTITY x "y">]><s><item>&x;</item></s>', ()),
    ],
)
def test_what_could_be_found_otherwise_is_read_as_one(body: bytes, outside: tuple[str, ...]) -> None:
    assert parts(body, "//item", *outside) is None


@pytest.mark.parametrize("items", ["//item[1]", "//a/b", "//*", "item", "/a/b[@c]", "(//a)", "/a/text()", "//@a"])
def test_places_that_are_more_than_names_are_not_split(items: str) -> None:
    assert how(items) is None


@pytest.mark.parametrize("path", ["count(//item)", "//*[@next]", "//a[b]", "//a/following::b", "//a/.."])
def test_documents_are_not_split_under_paths_that_are_more_than_names(path: str) -> None:
    assert how("//item", path) is None


@pytest.mark.parametrize("path", ["../x", "/s/x", "a | /s/x", "ancestor::s", "concat(/s/x, a)", "a[/s/x]"])
def test_items_that_look_around_themselves_stay_in_their_document(path: str) -> None:
    assert how("//item", inside=(path,)) is None


def test_paths_of_real_packs_are_split() -> None:
    assert how("//o:record", "//o:resumptionToken[normalize-space()]", "//o:resumptionToken/@size", "//o:error/@code")
    assert how("/o:set/o:item", "/o:set/o:total", inside=("o:id", ".//o:x", "a[@b='c'] | d"))


def test_a_page_that_was_set_apart_reads_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    response = Response(
        format=ResponseFormat.XML, items_path="/s/i", id_path="id", updated_at_path="u", total_path="/s/total"
    )
    token = Pagination(type=PaginationType.TOKEN, page_size=2, next_token_path="//next")
    rule = NamedRule(path="//error", outcome=Outcome.L2)
    given = leg(response=response, pagination=token, errors=[rule])
    body = b"<s><total>7</total><i><id>1</id></i><i><id>2</id></i><next>n</next></s>"
    whole = parse(body, ResponseFormat.XML, apart=list_split(given))
    monkeypatch.setattr("patra.ingest.extraction.body_parser.SPLIT_FROM_BYTES", 0)
    apart = parse(body, ResponseFormat.XML, apart=list_split(given))
    assert isinstance(whole, Document)
    assert isinstance(apart, Document)
    assert apart.items == [b"<i><id>1</id></i>", b"<i><id>2</id></i>"]
    one, other = (Reader(given).page(found, {}, "") for found in (whole, apart))
    assert (
        (one.total, one.token, len(one.items or []))
        == (other.total, other.token, len(other.items or []))
        == (7, "n", 2)
    )
    assert (
        Reader(given).page(parse(b"<s><total>0</total></s>", ResponseFormat.XML, apart=list_split(given)), {}, "").items
        == []
    )  # type: ignore[arg-type]
    cut = parse(body[:60], ResponseFormat.XML, apart=list_split(given))
    assert isinstance(cut, Unreadable)
    assert cut.truncated
