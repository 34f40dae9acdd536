"""JSONPath and XPath, compiled once, safe on hostile documents."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath_rfc9535 import find
from lxml import etree

from patra.ingest.expressions.paths import compile_path, items_at, json_path, parse_xml
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.kernel.errors import Invalid

DOC = {
    "message": {
        "next-cursor": "k",
        "items": [{"DOI": "1", "a": [{"n": "x"}, {"n": None}]}, {"DOI": "2"}],
        "total": "12",
    }
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.message['next-cursor']", ["k"]),
        ("$.message.items[0].DOI", ["1"]),
        ("$.message.items[-1].DOI", ["2"]),
        ("$.message.items[*].DOI", ["1", "2"]),
        ("$.message.items[0].a[*].n", ["x"]),
        ("$.message.items[?@.DOI=='2'].DOI", ["2"]),
        ("$..DOI", ["1", "2"]),
        ("$.nothing.at.all", []),
        ("$.message.total[0]", []),
        ("$.message.items[?match(@.DOI, '[12]')].DOI", ["1", "2"]),
        ("$", [DOC]),
    ],
)
def test_a_json_path_finds(path, expected):
    assert json_path(path).find(DOC) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=2),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from("ab"), x, max_size=2),
    max_leaves=10,
)
STEPS = st.lists(st.sampled_from([".a", ".b", "['a']", "[0]", "[-1]", "[*]"]), max_size=4).map("".join)


@given(JSON, STEPS)
def test_our_short_way_finds_what_the_library_finds(document, steps):
    theirs = [value for value in find(f"${steps}", document).values() if value is not None]
    assert [value for value in json_path(f"${steps}").find(document) if value is not None] == theirs


@pytest.mark.parametrize("path", ["", "a.b", "$.a[", "$[?@.a", "$.a..b..c..d..e", "$" + ".a" * 400, "$[?nope(@.a)]"])
def test_broken_json_paths_are_refused(path):
    with pytest.raises(Invalid) as raised:
        json_path(path)
    assert raised.value.code == "path_invalid"


def test_a_regex_bomb_in_a_filter_ends():
    document = [{"a": "a" * 10_000 + "b"}]
    begun = time.process_time()
    assert json_path("$[?match(@.a, '(a+)+')]").find(document) == []
    assert json_path("$[?search(@.a, @.a)]").find(document) == []  # a pattern from the document, refused for its length
    assert time.process_time() - begun < 20


NS = {"o": "http://www.openarchives.org/OAI/2.0/"}
OAI = b"""<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>
<record><header status="deleted"><identifier>a</identifier><datestamp>2015</datestamp></header></record>
<record><header><identifier> b </identifier></header></record>
<resumptionToken completeListSize="2"></resumptionToken></ListRecords></OAI-PMH>"""


def test_an_xpath_finds_elements_attributes_and_texts():
    root = parse_xml(OAI)
    records = items_at(compile_path("//o:record", ResponseFormat.XML, NS), root)
    assert len(records) == 2
    assert compile_path("o:header/o:identifier", ResponseFormat.XML, NS).text(records[1]) == "b"
    assert compile_path("o:header/@status", ResponseFormat.XML, NS).text(records[0]) == "deleted"
    assert compile_path("//o:resumptionToken/@completeListSize", ResponseFormat.XML, NS).text(root) == "2"
    assert compile_path("//o:resumptionToken[normalize-space()]", ResponseFormat.XML, NS).first(root) is None
    assert compile_path("string(o:header/o:nothing)", ResponseFormat.XML, NS).first(records[0]) is None
    assert compile_path("count(//o:record)", ResponseFormat.XML, NS).text(root) == "2"


@pytest.mark.parametrize(
    "path", ["//x:record", "//[", "re:test('a', 'b')", "document('file:///etc/passwd')", "//a//b//c//d", ""]
)
def test_broken_or_costly_xpaths_are_refused(path):
    with pytest.raises(Invalid):
        compile_path(path, ResponseFormat.XML, NS)


def test_entities_are_not_expanded_and_files_are_not_read():
    bomb = b'<!DOCTYPE a [<!ENTITY x "aaaaaaaaaa"><!ENTITY y "&x;&x;&x;">]><a>&y;</a>'
    assert "aaaa" not in "".join(parse_xml(bomb).itertext())
    stolen = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
    assert "root" not in etree.tostring(parse_xml(stolen)).decode()


@pytest.mark.parametrize(
    ("document", "path", "items"),
    [
        ({"a": [1, 2]}, "$.a", [1, 2]),
        ({"a": [1, 2]}, "$.a[*]", [1, 2]),
        ({"a": {"id": 1}}, "$.a", [{"id": 1}]),
        ([{"id": 1}, None], "$", [{"id": 1}, None]),
        ({"a": []}, "$.a", []),
        ({"a": None}, "$.a", None),
        ({}, "$.a", None),
    ],
)
def test_items_are_a_list_an_object_or_missing(document, path, items):
    assert items_at(json_path(path), document) == items


def test_a_formula_is_read_without_its_layout_and_with_its_scripts_in_order() -> None:
    """As PubMed writes it: `inhaled 129Xe MRI of V.O2max`."""
    body = b"""<t>inhaled <m:math xmlns:m="http://www.w3.org/1998/Math/MathML">
      <m:mmultiscripts>
        <m:mi>Xe</m:mi> <m:mprescripts/> <m:none/> <m:mn>129</m:mn>
      </m:mmultiscripts>
      <m:mtext> </m:mtext> <m:mi>MRI</m:mi>
    </m:math> of <m:math xmlns:m="http://www.w3.org/1998/Math/MathML">
      <m:mrow><m:mi>V</m:mi> <m:mo>.</m:mo></m:mrow> <m:msub><m:mi>O</m:mi> <m:mn>2</m:mn></m:msub>
    </m:math> in <i>men</i> and women</t>"""
    assert compile_path(".", ResponseFormat.XML).text(parse_xml(body)) == "inhaled 129Xe MRI of V.O2 in men and women"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("with-id(x/@rid, a)", ["second", "first"]),
        ("with-id('two', a)", ["second"]),
        ("with-id(x/@rid, 'a')", []),
        ("with-id('nobody', a)", []),
        ("with-id('', a)", []),
    ],
)
def test_an_xpath_follows_ids_within_a_document(path: str, found: list[str]) -> None:
    root = etree.fromstring('<r><a id="one">first</a><a id="two">second</a><a>none</a><x rid="two  one gone"/></r>')
    assert sorted(one.text for one in compile_path(path, ResponseFormat.XML, {}).find(root)) == sorted(found)
