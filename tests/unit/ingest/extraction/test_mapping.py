"""Fields from records: found, computed, cleaned, translated, typed; or the one at fault and why."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.paths import parse_xml
from patra.ingest.extraction.mapping import Flaw, Mapper, raw_of
from patra.ingest.packs.sections import Expr, Output, Response
from patra.ingest.packs.work import Origin, check_shape, work_of
from patra.ingest.vocabulary.run_reasons import RunReason


def mapped(fields: dict[str, Any], record: Any, **response: Any) -> dict[str, Any] | Flaw:
    output = msgspec.convert({"fields": fields}, Output)
    reading = msgspec.convert(response, Response)
    return Mapper(output, reading, Expr(), {"server": "biorxiv"})(record, 0, {"source": "s"})


def test_a_path_a_template_and_a_constant() -> None:
    fields = {"doi": "$.DOI", "url": "https://doi.org/${fields.doi}", "type": {"default": "preprint"}}
    assert mapped(fields, {"DOI": "10.1/x"}) == {"doi": "10.1/x", "url": "https://doi.org/10.1/x", "type": "preprint"}


def test_what_is_not_there_is_left_out() -> None:
    assert mapped({"a": "$.a", "b": {"path": "$.b", "apply": ["text"]}, "c": "x${fields.a}"}, {"b": " "}) == {}


def test_a_private_field_serves_those_below_it() -> None:
    fields = {"_kinds": {"path": "$.kinds[*]", "all": True}, "review": {"expr": "${contains(fields._kinds, 'Review')}"}}
    assert mapped(fields, {"kinds": ["Review"]}) == {"review": True}


def test_a_private_field_of_an_item_is_not_kept() -> None:
    inner = {"_person": {"path": "$.n", "apply": ["person"]}, "name": "${jsonPath(fields._person, '$.name')}"}
    record = {"a": [{"n": "Lovelace, Ada"}, {"n": ""}]}
    assert mapped({"authors": {"each": "$.a[*]", "fields": inner}}, record) == {"authors": [{"name": "Ada Lovelace"}]}


def test_each_gives_a_list_of_objects() -> None:
    fields = {
        "authors": {
            "each": "$.author[*]",
            "fields": {
                "family": "$.family",
                "given": "$.given",
                "name": "${coalesce(item.name, trim(concat(fields.given, ' ', fields.family)))}",
            },
        }
    }
    record = {"author": [{"family": "Ada"}, {"name": "A Group"}, {"given": "B", "family": "C"}, {}]}
    assert mapped(fields, record) == {
        "authors": [{"family": "Ada", "name": "Ada"}, {"name": "A Group"}, {"family": "C", "given": "B", "name": "B C"}]
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([[2019]], {"at": "2019-01-01T00:00:00Z", "precision": "year"}),
        ("2019-03", {"at": "2019-03-01T00:00:00Z", "precision": "month"}),
        ("2013 Mar-Apr", {"at": "2013-03-01T00:00:00Z", "precision": "month"}),
        ({"year": {"value": "2012"}, "month": None}, {"at": "2012-01-01T00:00:00Z", "precision": "year"}),
    ],
    ids=["parts", "month", "words", "orcid"],
)
def test_a_partial_date_is_its_earliest_instant(value: Any, expected: dict[str, str]) -> None:
    assert mapped({"issued": {"path": "$.d", "type": "DATE"}}, {"d": value}) == {"issued": expected}


@given(
    st.lists(
        st.none() | st.booleans() | st.integers(-1, 32) | st.sampled_from([1999, 2024, 10_000, "2024", "3", 2.0]),
        max_size=4,
    )
)
def test_a_date_in_parts_is_read_alike_with_and_without_anything_beside_it(parts: list[Any]) -> None:
    fields = {"issued": {"path": "$.d", "type": "DATE"}}
    plain, beside = {"date-parts": [parts]}, {"date-parts": [parts], "date-time": None}
    found, other = mapped(fields, {"d": plain}), mapped(fields, {"d": beside})
    assert found == other or (isinstance(found, Flaw) and isinstance(other, Flaw) and found.code == other.code)


def test_dates_that_are_the_same_are_objects_of_their_own() -> None:
    record = {"a": {"date-parts": [[2019, 3]]}, "b": {"date-parts": [[2019, 3]]}}
    found = mapped({name: {"path": f"$.{name}", "type": "DATE"} for name in record}, record)
    assert isinstance(found, dict)
    assert found["a"] == found["b"] == {"at": "2019-03-01T00:00:00Z", "precision": "month"}
    assert found["a"] is not found["b"]


def test_a_date_that_means_nothing_is_a_flaw_unless_the_pack_says_otherwise() -> None:
    record = {"issued": {"date-parts": [[None]]}}
    found = mapped({"issued": {"path": "$.issued", "type": "DATE"}}, record)
    assert isinstance(found, Flaw)
    assert found.place == "fields.issued"
    assert "is not a date with its precision" in found.detail
    assert mapped({"issued": {"path": "$.issued", "apply": ["known_date"], "type": "DATE"}}, record) == {}


def test_a_date_that_is_known_but_not_as_the_pack_writes_dates_is_a_flaw() -> None:
    field = {"path": "$.d", "apply": ["known_date"], "type": "DATE", "format": ["yyyy/MM/dd"]}
    assert isinstance(mapped({"issued": field}, {"d": "2019-03-01"}), Flaw)
    assert mapped({"issued": field}, {"d": "n.d."}) == {}
    assert mapped({"issued": {**field, "default": "?"}}, {"d": "n.d."}) == {"issued": "?"}
    found = mapped({"issued": {**field, "format": ["AUTO"], "required": True}}, {"d": "n.d."})
    assert found == Flaw(RunReason.FIELD_MISSING, "fields.issued", "the record does not have it, and it is required")


def test_a_flaw_has_the_code_of_what_went_wrong_and_not_of_a_word_in_its_text() -> None:
    expected = {
        RunReason.FIELD_FAILED: {"expr": "${1 / record.zero}"},
        RunReason.FIELD_INVALID: {"path": "$.t", "type": "INT"},
        RunReason.FIELD_MISSING: {"path": "$.absent", "required": True},
    }
    for code, field in expected.items():
        found = mapped({"required": field}, {"t": "required", "zero": 0})
        assert isinstance(found, Flaw)
        assert (found.code, found.place) == (code, "fields.required")


def test_cleaners_of_several_kinds_follow_each_other() -> None:
    record = {"l": [" <b>B</b> ", None, "&amp;"], "x": {"a": 1}}
    assert mapped({"l": {"path": "$.l", "apply": ["text"]}}, record) == {"l": ["B", "&"]}
    assert mapped({"l": {"path": "$.l", "apply": ["text", "first", "lower"]}}, record) == {"l": "b"}
    assert mapped({"l": {"path": "$.x", "apply": ["text"]}}, record) == {}


def test_a_required_field_that_is_missing_is_named_with_its_place() -> None:
    fields = {"authors": {"each": "$.a[*]", "fields": {"name": {"path": "$.name", "required": True}}}}
    assert mapped(fields, {"a": [{}]}) == Flaw(
        RunReason.FIELD_MISSING, "fields.authors.name", "the record does not have it, and it is required"
    )


def test_types_and_translations() -> None:
    fields = {
        "n": {"path": "$.n", "type": "INT"},
        "b": {"path": "$.b", "type": "BOOL"},
        "t": {"path": "$.t", "map": {"journal-article": "article"}},
        "at": {"path": "$.at", "type": "INSTANT"},
    }
    record = {"n": "12", "b": "Y", "t": "journal-article", "at": 1437748178581}
    assert mapped(fields, record) == {"n": 12, "b": True, "t": "article", "at": "2015-07-24T14:29:38.581000Z"}
    assert isinstance(mapped(fields, {"n": "many"}), Flaw)


def test_xml_gives_the_text_of_an_element_with_all_below_it() -> None:
    record = parse_xml(b"<r><title>H<sub>2</sub>O in\n <i>vivo</i></title><a x='1'>one</a><a>two</a></r>")
    fields = {
        "title": {"path": "title", "apply": ["text"]},
        "all": {"path": "a", "all": True},
        "x": "a/@x",
        "joined": "normalize-space(concat(a[1], ' ', b))",
        "none": "b",
    }
    assert mapped(fields, record, format="XML") == {
        "title": "H2O in vivo",
        "all": ["one", "two"],
        "x": "1",
        "joined": "one",
    }
    assert raw_of(record.find("a")) == '<a x="1">one</a>'


def test_a_number_where_a_work_has_a_text_is_a_text() -> None:
    work = work_of({"pmid": 29456894, "ids": {"core": 7}}, Origin(source="s", endpoint="e", id="1"))
    assert (work.pmid, work.ids) == ("29456894", {"core": "7"})


@pytest.mark.parametrize(
    ("output", "path", "advice"),
    [
        ({"fields": {"titel": "$.t", "doi": "$.d"}}, ("fields", "titel"), "did you mean title?"),
        ({"fields": {"updated": "$.u", "doi": "$.d"}}, ("fields", "updated"), "updatedAtPath"),
        ({"fields": {"sponsor": "$.u", "doi": "$.d"}}, ("fields", "sponsor"), "go into ids"),
        ({"fields": {"issued": "$.y", "doi": "$.d"}}, ("fields", "issued"), "type: DATE"),
        ({"fields": {"abstract": "$.a"}}, ("fields",), "doi"),
        ({"shape": "wrok"}, ("shape",), "one of work, raw"),
    ],
)
def test_what_the_shape_has_no_place_for_is_named_with_advice(
    output: dict[str, Any], path: tuple[str, ...], advice: str
) -> None:
    [misfit] = check_shape(msgspec.convert({"shape": "work", **output}, Output))
    assert misfit.path == path
    assert advice in misfit.advice
