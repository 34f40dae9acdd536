"""The judge of payloads: what it accepts is what it finds nothing wrong with, and what a second implementation accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from patra.bus.catalogue import catalogue as contracts
from patra.bus.catalogue.schema import compile_schema, defects, violations
from tests.unit.bus.making import closed


def test_every_contract_of_the_catalogue_has_a_sound_schema():
    for kind in contracts.load().types.values():
        for contract in kind.contracts.values():
            assert defects(contract.schema) == [], kind.name


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object"}, "/additionalProperties"),
        (closed({"a": {"unevaluatedProperties": False}}), "/properties/a/unevaluatedProperties"),
        (closed({"a": {"enum": [1, True]}}), "/properties/a/enum"),
        (closed({"a": {"enum": []}}), "/properties/a/enum"),
        (closed({"a": {"const": 1}}), "/properties/a/const"),
        (closed({"a": {"format": "e-mail"}}), "/properties/a/format"),
        (closed({"a": {"pattern": "("}}), "/properties/a/pattern"),
        (closed({"a": {"pattern": "^(?!b)"}}), "/properties/a/pattern"),
        (closed({"a": {"pattern": r"(a)\1"}}), "/properties/a/pattern"),
        (closed({"a": {"pattern": 3}}), "/properties/a/pattern"),
        (closed({"a": {"pattern": "a", "patternProperties": {"(": True}}}), "/properties/a/patternProperties"),
        (closed({"a": {"type": "text"}}), "/properties/a/type"),
        (closed({"a": {"minLength": -1}}), "/properties/a/minLength"),
        (closed({"a": {"minimum": "1"}}), "/properties/a/minimum"),
        (closed({"a": {"multipleOf": 0.1}}), "/properties/a/multipleOf"),
        (closed({"a": {"uniqueItems": 1}}), "/properties/a/uniqueItems"),
        (closed({}, ["a"]), "/required"),
        (closed({"a": {"$ref": "#/$defs/b"}}), "/properties/a/$ref"),
        (closed({"a": {"$ref": "https://example.org/b"}}), "/properties/a/$ref"),
        (closed({"a": {"$ref": "#/$defs/b", "maxLength": 1}}, **{"$defs": {"b": {}}}), "/properties/a/$ref"),
        (closed({"a": {"oneOf": []}}), "/properties/a/oneOf"),
        (closed({"a": {"properties": []}}), "/properties/a/properties"),
        (closed({"a": 3}), "/properties/a"),
    ],
)
def test_a_schema_that_a_validator_could_read_in_two_ways_is_refused_with_its_place(schema, place):
    assert place in [d.place for d in defects(schema)]


SCHEMA = closed(
    {
        "text": {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[ab]+$"},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "maybe": {"type": ["string", "null"], "maxLength": 2},
        "count": {"type": "integer", "minimum": 0, "maximum": 3},
        "part": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2},
        "even": {"type": "integer", "multipleOf": 2},
        "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1, "maxItems": 2, "uniqueItems": True},
        "any": {"type": "array", "contains": {"type": "null"}},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 1},
        "one": {"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 1}, {"type": "null"}]},
        "some": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "not": {"not": {"type": "string"}},
        "if": {"if": {"type": "integer"}, "then": {"minimum": 1}, "else": {"type": "string"}},
        "when": {"type": "string", "format": "date-time"},
        "names": {"type": "object", "additionalProperties": True, "propertyNames": {"maxLength": 1}},
        "patterns": {"type": "object", "additionalProperties": False, "patternProperties": {"^x": {"type": "integer"}}},
    },
    **{"$defs": {"item": closed({"id": {"type": "string"}}, ["id"])}},
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 4),
    st.sampled_from([0.5, 1.0, 2.0, -1.5]),
    st.sampled_from(["", "a", "ab", "abab", "c", "a\n", "2026-01-02T03:04:05Z"]),
)
values = st.one_of(
    scalars,
    st.lists(st.one_of(scalars, st.fixed_dictionaries({}, optional={"id": scalars, "x": scalars})), max_size=3),
    st.dictionaries(st.sampled_from(["a", "x1", "id"]), scalars, max_size=2),
)
payloads = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "unknown"]), values, max_size=4)


@given(payloads)
def test_the_judge_agrees_with_its_explanation_and_with_another_implementation(payload):
    fast = compile_schema(SCHEMA)(payload)
    assert fast == (violations(SCHEMA, payload) == [])
    if "when" not in payload and payload.get("text") != "a\n":  # formats are ours; the other one's `$` is Python's
        assert fast == Draft202012Validator(SCHEMA).is_valid(payload)


def test_a_violation_names_the_place_and_the_rule():
    found = violations(SCHEMA, {"list": [{"id": 3}], "count": 7, "extra": 1}, "/payload")
    assert {(v.place, v.rule) for v in found} == {
        ("/payload/list/0/id", "type"),
        ("/payload/count", "maximum"),
        ("/payload/extra", "additionalProperties"),
    }


def test_a_violation_carries_the_message_of_the_validator_and_none_of_the_payload():
    (found,) = violations(SCHEMA, {"text": "c" * 2_000_000})[:1]
    assert (found.place, found.rule) == ("/text", "maxLength")
    assert found.detail == "the value is longer than 3 characters"


def test_what_json_cannot_say_keeps_no_schema():
    for payload in ({"text": "\ud800"}, {3: 1}):
        assert not compile_schema(SCHEMA)(payload)
        assert [v.rule for v in violations(SCHEMA, payload)] == ["json"]


SLOW = ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "^[a-z]+$", r"^(\w+\s?)*$"]


@pytest.mark.parametrize("slow", SLOW)
def test_no_pattern_holds_a_publisher_up(slow):
    """A backtracking engine would need years for the first."""
    hostile = "a" * 200_000 + "!"
    schema = closed({"a": {"type": "string", "pattern": slow}})
    named = closed({"a": {"type": "object", "additionalProperties": False, "patternProperties": {slow: True}}})
    for judged, payload in ((schema, {"a": hostile}), (named, {"a": {hostile: 1}})):
        assert defects(judged) == []
        assert not compile_schema(judged)(payload)
        assert violations(judged, payload)


@pytest.mark.parametrize(
    ("source", "text", "whole"),
    [
        ("^x$", "x", True),
        ("^x$", "x\n", False),  # `$` is the end, not also the place before a last line break
        ("^[$a]+$", "a$", True),  # and in a class the character
        ("^\\\\$", "\\", True),
        (r"^\d$", "1", True),
        (r"^\d$", "\u0663", False),  # digits of ASCII, as ECMA 262 has it
        (r"^\w$", "_", True),
        (r"^\w$", "\u00e9", False),
        (r"^\s$", "\u3000", True),  # spaces of every script, as ECMA 262 has it
        (r"^\p{L}$", "\u00e9", True),
        (r"^\p{Nd}$", "\u0663", True),
    ],
)
def test_a_pattern_means_what_ecma_262_says(source, text, whole):
    value, named = closed({"a": {"type": "string", "pattern": source}}), closed({}, patternProperties={source: True})
    for schema, payload in ((value, {"a": text}), (named, {text: 1})):
        assert defects(schema) == []
        assert compile_schema(schema)(payload) is whole
        assert (violations(schema, payload) == []) is whole


def test_every_example_of_the_catalogue_keeps_its_contract():
    for kind in contracts.load().types.values():
        for contract in kind.contracts.values():
            assert [contract.violations(example) for example in contract.examples] == [[]] * len(contract.examples)
            assert all(map(contract.accepts, contract.examples))
