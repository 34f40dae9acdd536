"""A generated mapping gives what the rules give, field by field: the same values in the same order, the same flaws."""

from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from patra.ingest.expressions.cleaners import CLEANERS
from patra.ingest.extraction.mapping import Flaw, Mapper
from patra.ingest.extraction.projection import wants_of
from patra.ingest.packs import bundled
from patra.ingest.packs.sections import Expr, Output, Response
from patra.ingest.vocabulary.codes import FieldType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from tests.contract.ingest.recordings.shelf import leg_of
from tests.property.ingest.interpreted_mapping import InterpretedMapping

NOW = 1_767_225_600_000_000
PLAN = {"source": "s", "endpoint": "e", "operation": "HARVEST"}
KEYS = ["a", "b", "it's", 'q"\n']
SCALARS = st.sampled_from(
    [None, True, 0, 7, 1.5, "", " ", "a", "x <i>y</i>", "10.1234/A", "2024-03", "2024-03-05T06:07:08Z", "1234-5678"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=10,
)


def same(mapper: Any, model: Any, record: Any) -> None:
    """Both give the same fields in the same order (bytes), the same flaw, or stop with the same error."""
    expected, found = outcome(model, record), outcome(mapper, record)
    if isinstance(expected, Flaw) and expected.code is RunReason.FIELD_INVALID:  # the model does not word it
        assert isinstance(found, Flaw)
        assert (found.code, found.place) == (expected.code, expected.place)
        assert " is not " in found.detail
    else:
        assert found == expected


def outcome(mapping: Any, record: Any) -> Any:
    try:
        found = mapping(record, NOW, PLAN)
    except Exception as error:  # noqa: BLE001  whatever it is, both must do it
        return type(error), str(error)
    if isinstance(found, Flaw):
        return found
    try:
        return msgspec.json.encode(found)
    except UnicodeEncodeError:  # a name with half a character
        return repr(found)


# --- random mappings on random records

SEGMENTS = st.sampled_from(
    ["['a']", "['b']", "['it\\'s']", "['q\"\\n']", "[0]", "[-1]", "[1]", "[*]", "[?@.a == 'a']", "..a"]
)
JSON_PATHS = st.lists(SEGMENTS, max_size=3).map(lambda steps: "$" + "".join(steps))
WRITTEN = [
    "${value == 'a' ? 'is a' : value != null && !(record.a == null) ? record.b : fields.above}",
    "${value == true || record.a == 7 || 'a' == value || null == value ? 1 : value < 3 ? -1 : 2.5}",
    "${coalesce(record.a.b, jsonPath(record, '$.b[-1].a'), trim(concat(fields.above, ' ', value, '.')), false)}",
    "${jsonPath(record, '$.a[?@.a == \\'a\\'].b')}",
    "${jsonPath(value, '$.a[*]')}",
    "${jsonPath(record, '$[1].a') != null}",
    "${matches(lower(value), '[a-y ]+') && startsWith(value, 'x')}",
    "${lists(fields.above, record.a, value)}",
    "${lists(fields.above, record.b)}",
    "${text(value.a.b)}",
    "${concat(text(value), upper(record.a), number(record.b), endsWith(value, 'a'))}",
    "${jsonPaths(record, '$.a[*]')}",
    "${!value}",
]
"""Expressions that become text, or of which a part does not."""
EXPRESSIONS = st.sampled_from(
    [
        "${value}",
        "x${value}",
        "${lower(value)}",
        "${jsonPath(record, '$.a[0]')}",
        "${coalesce(value, record.b)}",
        "${now()}",
        "${fields.above}",
        "${length(value) > 1 ? value : null}",
        "${jsonPaths(record, '$..a')}",
        "plain",
        *WRITTEN,
    ]
)
RULES = {
    "apply": st.lists(st.sampled_from(sorted(CLEANERS)), max_size=2),
    "type": st.sampled_from(FieldType).map(lambda kind: kind.value),
    "map": st.dictionaries(st.sampled_from(["a", "7", "true"]), st.sampled_from(["b", ""]), max_size=2),
    "enum": st.lists(st.sampled_from(["a", "b", "7"]), max_size=2),
    "default": st.none() | st.just("by default") | st.just(["d"]),
    "required": st.booleans(),
    "all": st.booleans(),
}


NAMES = st.sampled_from(["one", "_two", "three", "None"])
HOSTILE_NAMES = st.sampled_from(["_one", "it's", "x'); y = ('", "two\n    return", "\ud800"])
"""Only the names of the outermost fields are held to letters."""


def fields_of(paths: st.SearchStrategy[str], deeper: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    more: dict[str, Any] = {**RULES, "path": paths, "expr": EXPRESSIONS}
    if deeper is not None:
        more |= {"fields": groups_of(deeper, HOSTILE_NAMES), "each": paths}
    return paths | st.fixed_dictionaries({}, optional=more)


def groups_of(fields: st.SearchStrategy[Any], names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Fields below one without an expression, which the expressions of the others may read."""
    first = fields.map(lambda one: {k: v for k, v in one.items() if k != "expr"} if isinstance(one, dict) else one)
    return st.tuples(first, st.dictionaries(names, fields, max_size=3)).map(
        lambda parts: {"above": parts[0], **parts[1]}
    )


JSON_OUTPUTS = groups_of(fields_of(JSON_PATHS, fields_of(JSON_PATHS)), NAMES)


@given(JSON_OUTPUTS, st.lists(VALUES, min_size=1, max_size=3))
def test_a_random_mapping_of_json_gives_what_its_rules_give(fields: dict[str, Any], records: list[Any]) -> None:
    output = msgspec.convert({"fields": fields}, Output)
    given_params = (output, Response(), Expr(), {"p": 1})
    mapper, model = Mapper(*given_params), InterpretedMapping(*given_params)
    for record in records:
        same(mapper, model, record)
    if not any(isinstance(outcome(model, record), tuple) for record in records):  # an error ends all of them
        assert repr(mapper.all(records, NOW, PLAN)) == repr([mapper(record, NOW, PLAN) for record in records])


XPATHS = st.sampled_from(
    ["a", "a/b", "a[1]", "@k", "a/@k", ".", "text()", "a | b", "a/b | b/a", "a[@k='1']", "string(a)", "count(a)", "*/a"]
)
XML_OUTPUTS = groups_of(fields_of(XPATHS, fields_of(XPATHS)), NAMES)


def element(tag: str, key: str | None, text: str, inside: list[Any], tail: str) -> Any:
    made = etree.Element(tag, {} if key is None else {"k": key})
    made.text, made.tail = text, tail
    made.extend(inside)
    return made


def elements(inside: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[Any]:
    texts = st.sampled_from(["", " ", "x", "10.1234/A", "2024-03"])
    return st.builds(element, st.sampled_from(["a", "b"]), st.sampled_from([None, "1", "2"]), texts, inside, texts)


ELEMENTS = elements(st.lists(elements(st.lists(elements(st.just([])), max_size=2)), max_size=3))


@given(XML_OUTPUTS, ELEMENTS)
def test_a_random_mapping_of_xml_gives_what_its_rules_give(fields: dict[str, Any], record: Any) -> None:
    output = msgspec.convert({"fields": fields}, Output)
    given_params = (output, Response(format=ResponseFormat.XML), Expr(), {"p": 1})
    same(Mapper(*given_params), InterpretedMapping(*given_params), record)


# --- the shipped mappings on random records that have what they look for

LEAVES = SCALARS | st.sampled_from(["https://orcid.org/0000-0002-1825-0097", "journal-article", "vor", "DOI"])


def shaped(wants: Any) -> st.SearchStrategy[Any]:
    """JSON in which some of what a pack looks for is there, and some of it is not what the pack expects."""
    if not wants:
        return LEAVES | VALUES
    names = {name: shaped(below) for name, below in wants.items() if name is not None}
    found: st.SearchStrategy[Any] = st.fixed_dictionaries({}, optional=names)
    if None in wants:
        found = st.lists(shaped(wants[None]), max_size=2) | found
    return found | LEAVES


@cache
def shipped(source: str) -> list[tuple[Mapper, InterpretedMapping, st.SearchStrategy[Any]]]:
    """The mappings of a pack that read JSON, each with records for it."""
    found: list[tuple[Mapper, InterpretedMapping, st.SearchStrategy[Any]]] = []
    for endpoint in bundled.pack(source).pack.endpoints:
        leg = leg_of(source, endpoint)
        if leg.response.format is ResponseFormat.JSON:
            parts = (leg.mapping.output, leg.response, leg.expr, leg.params)
            mapper = Mapper(*parts)
            found.append((mapper, InterpretedMapping(*parts), shaped(wants_of(mapper.needs))))
    return found


@pytest.mark.parametrize("source", bundled.names())
@settings(max_examples=5)
@given(data=st.data())
def test_a_shipped_mapping_gives_what_its_rules_give_on_random_records(source: str, data: st.DataObject) -> None:
    for mapper, model, records in shipped(source):
        same(mapper, model, data.draw(records))
