"""The validators: the fast one, the one that explains, and the shape agree with each other and with a third party."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft7Validator

from patra.bus import catalogue as contracts
from patra.bus.schema import compiled, defects, violations
from patra.bus.shape import shape
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
        (closed({"a": {"pattern": "^a|b$"}}), "/properties/a/pattern"),
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
def test_all_validators_agree(payload):
    fast = compiled(SCHEMA)(payload)
    assert fast == (violations(SCHEMA, payload) == [])
    if "when" not in payload:  # formats are ours
        assert fast == Draft7Validator(SCHEMA).is_valid(payload)


@given(payloads)
def test_the_shape_never_accepts_what_the_schema_refuses(payload):
    try:
        msgspec.convert(payload, shape(SCHEMA))
    except msgspec.ValidationError:
        return
    assert violations(SCHEMA, payload) == []


@pytest.mark.parametrize(
    "name", ["job.succeeded", "plan.shot.generated", "ingest.record.changed", "attribution.record.emitted"]
)
def test_the_examples_of_the_catalogue_pass_by_their_shape(name):
    contract = contracts.load().types[name].contracts[1]
    parts = [e for e in contract.examples if "updated_at" not in e and "outputAt" not in e]
    assert all(msgspec.convert(example, shape(contract.schema)) for example in parts)


def test_a_violation_names_the_place_and_the_rule():
    found = violations(SCHEMA, {"list": [{"id": 3}], "count": 7, "extra": 1}, "/payload")
    assert {(v.place, v.rule) for v in found} == {
        ("/payload/list/0/id", "type"),
        ("/payload/count", "maximum"),
        ("/payload/extra", "additionalProperties"),
    }


SLOW = ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "[a-z]+$", r"^(\w+\s?)*$"]


@pytest.mark.parametrize("slow", SLOW)
def test_no_pattern_holds_a_publisher_up(slow):
    """The standard engine would need years for the first, and hours for the fourth."""
    hostile = "a" * 16_000 + "!"
    schema = closed({"a": {"type": "string", "pattern": slow}})
    named = closed({"a": {"type": "object", "additionalProperties": False, "patternProperties": {slow: True}}})
    for judged, payload in ((schema, {"a": hostile}), (named, {"a": {hostile: 1}})):
        assert defects(judged) == []
        assert not compiled(judged)(payload)
        assert violations(judged, payload)
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(payload, shape(judged))


@pytest.mark.parametrize("slow", SLOW)
def test_a_pattern_that_could_be_slow_still_judges(slow):
    schema = closed({"a": {"type": "string", "pattern": slow}})
    assert compiled(schema)({"a": "aab"}) is Draft7Validator(schema).is_valid({"a": "aab"})
    assert compiled(schema)({"a": "aa\n"}) is Draft7Validator(schema).is_valid({"a": "aa\n"})


@pytest.mark.parametrize("text", ["x", "x\n", "$", "a$", "é", "1", "٣"])
@pytest.mark.parametrize("source", ["^x$", "^[$a]+$", "^\\\\$", r"^\w$", r"^\d$"])
def test_a_dollar_is_the_end_for_every_judge_and_in_a_class_the_character(source, text):
    value, named = closed({"a": {"type": "string", "pattern": source}}), closed({}, patternProperties={source: True})
    whole = re.fullmatch(source[1:-1], text) is not None
    for schema, payload in ((value, {"a": text}), (named, {text: 1})):
        assert compiled(schema)(payload) is whole
        assert (violations(schema, payload) == []) is whole
