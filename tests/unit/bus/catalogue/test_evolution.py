"""B4: a new optional field is a minor version, anything else a new major one, published along with the old."""

from copy import deepcopy

import msgspec
import pytest

from patra.bus.catalogue.evolution import changes, decode_release, encode_release, objections, release
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import parse_range
from tests.unit.bus.making import THING, THING_2, catalogue, closed, event_type, version

OLD = closed(
    {
        "id": {"type": "string", "minLength": 1, "maxLength": 10, "pattern": "^a", "description": "words"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "either": {"type": ["string", "null"]},
        "when": {"type": "string", "format": "date-time"},
        "fixed": {"type": "string", "const": "x"},
        "inner": closed({"a": {"type": "string"}, "b": {"type": "string"}}, ["a"]),
        "list": {"type": "array", "items": closed({"a": {"type": "string"}}), "minItems": 1, "maxItems": 5},
        "map": {"type": "object", "additionalProperties": closed({"a": {"type": "string"}})},
        "open": {"type": "object", "additionalProperties": True, "properties": {"a": {"type": "string"}}},
        "shared": {"$ref": "#/$defs/shared"},
        "one": {"oneOf": [closed({"a": {"type": "string"}}), {"type": "null"}]},
        "ref_in_one": {"anyOf": [{"$ref": "#/$defs/other"}, {"type": "null"}]},
        "patterned": {"type": "object", "additionalProperties": False, "patternProperties": {"^x": {"type": "string"}}},
        "cond": {"if": {"type": "string"}, "then": {"minLength": 1}},
    },
    ["id", "kind"],
    **{
        "$defs": {
            "shared": closed({"a": {"type": "string"}}),
            "other": closed({"a": {"type": "string"}}),
            "tree": closed({"left": {"$ref": "#/$defs/tree"}}),
        }
    },
)
FIELD = {"type": "string"}


def changed(path: str, value: object = None, *, remove: bool = False) -> dict:
    new = deepcopy(OLD)
    *way, last = path.split("/")
    here: object = new
    for step in way:
        here = here[int(step) if isinstance(here, list) else step]
    if remove:
        del here[last]
    elif isinstance(here, list):
        here[int(last)] = value
    else:
        here[last] = value
    return new


@pytest.mark.parametrize(
    "path",
    [
        "properties/new",
        "properties/inner/properties/new",
        "properties/list/items/properties/new",
        "properties/map/additionalProperties/properties/new",
        "$defs/shared/properties/new",
    ],
)
def test_a_new_optional_field_of_a_closed_object_is_minor_at_any_depth(path):
    found = changes(OLD, changed(path, FIELD))
    assert [c.added for c in found] == [True]


def closed_with(**rules):
    return {"type": "object", "additionalProperties": False, "properties": {"a": FIELD}, **rules}


@pytest.mark.parametrize(
    "old",
    [
        closed_with(anyOf=[{"required": ["a"]}, {"required": ["new"]}]),
        closed_with(oneOf=[{"required": ["a"]}, {"properties": {"new": FIELD}, "required": ["new"]}]),
        closed_with(**{"not": {"not": {"required": ["new"]}}}),
        closed_with(
            **{"if": {"$ref": "#/$defs/has"}, "else": {"required": ["a"]}, "$defs": {"has": {"required": ["new"]}}}
        ),
        closed_with(anyOf=[{"required": ["a"]}, {"maxProperties": 1}]),
        closed_with(minProperties=1),
    ],
)
def test_a_new_field_that_a_rule_beside_it_looks_at_is_breaking(old):
    """Each of these takes `{"new": …}` from now on, which a consumer of before has never seen without `a`."""
    new = {**old, "properties": {**old["properties"], "new": FIELD}}
    assert [(c.place, c.added) for c in changes(old, new)] == [("/properties/new", False)]


def test_a_new_field_is_breaking_where_a_rule_around_its_object_looks_at_it():
    inner = closed_with()
    wider = {**inner, "properties": {**inner["properties"], "new": FIELD}}
    for rules in (
        {"anyOf": [{"required": ["b"]}, {"properties": {"in": {"required": ["new"]}}}]},
        {"minProperties": 1},
    ):
        old, new = ({**closed_with(**rules), "properties": {"in": one, "b": FIELD}} for one in (inner, wider))
        assert [c.added for c in changes(old, new)] == [False]
    old, new = ({"type": "array", "uniqueItems": True, "items": one} for one in (inner, wider))
    assert [c.added for c in changes(old, new)] == [False]


def test_a_new_field_that_no_alternative_names_stays_minor():
    old = closed_with(anyOf=[{"required": ["a"]}, {"properties": {"a": {"minLength": 1}}}], uniqueItems=False)
    new = {**old, "properties": {**old["properties"], "new": FIELD}}
    assert [c.added for c in changes(old, new)] == [True]


@pytest.mark.parametrize(
    ("what", "new"),
    [
        ("a field is removed", changed("properties/count", remove=True)),
        (
            "a field is renamed",
            {**OLD, "properties": {("counts" if k == "count" else k): v for k, v in OLD["properties"].items()}},
        ),
        ("a new field is required", {**changed("properties/new", FIELD), "required": ["id", "kind", "new"]}),
        ("a field becomes required", changed("required", ["id", "kind", "count"])),
        ("a field becomes optional", changed("required", ["id"])),
        ("a nested field becomes required", changed("properties/inner/required", ["a", "b"])),
        ("a type changes", changed("properties/count/type", "number")),
        ("a type is widened", changed("properties/id/type", ["string", "null"])),
        ("a type is narrowed", changed("properties/either/type", "string")),
        ("a type is lost", changed("properties/id/type", remove=True)),
        ("an enum gains a value", changed("properties/kind/enum", ["a", "b", "c"])),
        ("an enum loses a value", changed("properties/kind/enum", ["a"])),
        ("an enum is dropped", changed("properties/kind/enum", remove=True)),
        ("null becomes the text None", changed("properties/kind/enum", ["a", "b", None])),
        ("a constant changes", changed("properties/fixed/const", "y")),
        ("a format changes", changed("properties/when/format", "date")),
        ("a format is added", changed("properties/id/format", "uuid")),
        ("a format is dropped", changed("properties/when/format", remove=True)),
        ("a pattern changes", changed("properties/id/pattern", "^b")),
        ("a pattern is dropped", changed("properties/id/pattern", remove=True)),
        ("a minimum rises", changed("properties/count/minimum", 1)),
        ("a minimum falls", changed("properties/count/minimum", -1)),
        ("a maximum is dropped", changed("properties/count/maximum", remove=True)),
        ("a bound is added", changed("properties/count/multipleOf", 2)),
        ("a length changes", changed("properties/id/maxLength", 11)),
        ("a list's length changes", changed("properties/list/maxItems", 6)),
        ("items must be unique", changed("properties/list/uniqueItems", True)),
        ("items change", changed("properties/list/items", FIELD)),
        ("items are no longer described", changed("properties/list/items", remove=True)),
        ("an object opens", changed("additionalProperties", True)),
        ("an open object closes", changed("properties/open/additionalProperties", False)),
        ("a map becomes closed", changed("properties/map/additionalProperties", False)),
        ("a map's values change", changed("properties/map/additionalProperties", FIELD)),
        ("an open object describes a name", changed("properties/open/properties/new", FIELD)),
        ("a patterned object describes a name", changed("properties/patterned/properties", {"x1": FIELD})),
        ("a name is forbidden", changed("properties/new", False)),
        ("a definition changes", changed("$defs/shared/properties/a/type", "integer")),
        ("a reference goes elsewhere", changed("properties/shared", {"$ref": "#/$defs/tree"})),
        ("a reference is added", changed("properties/id", {"$ref": "#/$defs/shared"})),
        ("an alternative is added", changed("properties/one/oneOf", [*OLD["properties"]["one"]["oneOf"], FIELD])),
        ("an alternative is dropped", changed("properties/one/oneOf", OLD["properties"]["one"]["oneOf"][:1])),
        ("alternatives are swapped", changed("properties/one/oneOf", OLD["properties"]["one"]["oneOf"][::-1])),
        ("a field is added inside an alternative", changed("properties/one/oneOf/0/properties/new", FIELD)),
        ("a definition used in an alternative gains a field", changed("$defs/other/properties/new", FIELD)),
        ("oneOf becomes anyOf", changed("properties/one", {"anyOf": OLD["properties"]["one"]["oneOf"]})),
        ("a pattern of names changes", changed("properties/patterned/patternProperties", {"^y": FIELD})),
        (
            "what a pattern of names asks changes",
            changed("properties/patterned/patternProperties/^x", {"type": "integer"}),
        ),
        ("a condition changes", changed("properties/cond/then", {"minLength": 2})),
        ("an else is added", changed("properties/cond/else", False)),
        ("names are bounded", changed("propertyNames", {"maxLength": 5})),
        ("an allOf is added", changed("allOf", [{"required": ["count"]}])),
        ("a not is added", changed("properties/id/not", {"const": "a"})),
        ("the whole becomes another thing", {"type": "object", "additionalProperties": True}),
    ],
)
def test_anything_else_is_breaking(what, new):
    assert any(not c.added for c in changes(OLD, new)), what


@pytest.mark.parametrize(
    "new",
    [
        changed("properties/id/description", "other words"),
        changed("description", "words"),
        changed("examples", [1]),
        changed("required", ["kind", "id"]),
        changed("properties/kind/enum", ["b", "a"]),
        changed("properties/either/type", ["null", "string"]),
        changed("properties/id/type", ["string"]),
        changed("$defs/unused", {"type": "string"}),
        changed("properties/shared", closed({"a": {"type": "string"}})),  # a reference written out
    ],
)
def test_what_changes_no_meaning_is_no_change(new):
    assert changes(OLD, new) == []


def test_recursive_schemas_are_compared_without_end():
    old = closed({"tree": {"$ref": "#/$defs/tree"}}, **{"$defs": {"tree": closed({"left": {"$ref": "#/$defs/tree"}})}})
    new = deepcopy(old)
    assert changes(old, new) == []
    new["$defs"]["tree"]["properties"]["right"] = {"$ref": "#/$defs/tree"}
    assert [c.added for c in changes(old, new)] == [True]


WITH_FIELD = closed({**THING["properties"], "extra": {"type": "string", "since": "1.1"}}, ["key"])
UNMARKED = closed({**THING["properties"], "extra": {"type": "string"}}, ["key"])


def codes(before, after, in_use=None):
    return [o.code for o in objections(release(catalogue(before)), catalogue(*after), in_use)]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([version("1.0")], []),
        ([version("1.1", WITH_FIELD)], []),
        ([version("1.1", UNMARKED)], [Reason.EVOLUTION_MINOR]),
        ([version("1.0", WITH_FIELD)], [Reason.EVOLUTION_MINOR]),
        ([version("1.2", WITH_FIELD)], [Reason.EVOLUTION_ORDER]),
        ([version("1.1", THING_2)], [Reason.EVOLUTION_MAJOR] * 3),
        ([version("1.0", THING_2)], [Reason.EVOLUTION_MAJOR] * 3),
        ([version("1.0", status="retiring"), version("2.0", THING_2)], []),
        ([version("2.0", THING_2)], [Reason.EVOLUTION_REMOVED]),
        ([version("1.0", status="retiring"), version("2.1", THING_2)], [Reason.EVOLUTION_ORDER]),
        ([version("1.0", status="retiring"), version("3.0", THING_2)], [Reason.EVOLUTION_ORDER]),
        (
            [version("1.0", status="retiring"), version("2.0", status="retiring"), version("3.0", THING_2)],
            [Reason.EVOLUTION_ORDER],
        ),
    ],
)
def test_b4_the_version_says_how_far_the_schema_went(versions, expected):
    assert codes(event_type(), [event_type(versions=versions)]) == expected


def test_b4_minor_versions_are_not_taken_back():
    assert codes(event_type(versions=[version("1.1", WITH_FIELD)]), [event_type()]) == [Reason.EVOLUTION_ORDER]


def test_b4_a_released_type_is_retired_before_it_goes():
    other = event_type("other.happened")
    assert codes(event_type(), [other]) == [Reason.EVOLUTION_REMOVED]
    assert codes(event_type(versions=[version(status="retired")]), [other]) == []


def test_b4_another_producer_or_order_is_breaking():
    assert codes(event_type(), [event_type(producer="Other")]) == [Reason.EVOLUTION_MAJOR]
    assert codes(event_type(), [event_type(ordering={"key": ["/payload/key"]})]) == [Reason.EVOLUTION_MAJOR]


@pytest.mark.parametrize(("was", "now"), [("block", "continue"), ("continue", "block")])
def test_b4_another_policy_on_dead_letters_is_another_order(was, now):
    before, after = (event_type(ordering={"key": ["/payload/key"], "on_dead_letter": policy}) for policy in (was, now))
    found = objections(release(catalogue(before)), catalogue(after))
    assert [(o.code, o.place) for o in found] == [(Reason.EVOLUTION_MAJOR, " ordering.on_dead_letter")]
    with_major = event_type(versions=BOTH, ordering={"key": ["/payload/key"], "on_dead_letter": now})
    assert objections(release(catalogue(before)), catalogue(with_major)) == []


def test_a_release_from_before_the_policy_was_kept_objects_to_none():
    ordered = event_type(ordering={"key": ["/payload/key"], "on_dead_letter": "block"})
    old = msgspec.to_builtins(release(catalogue(ordered)))
    del old["types"]["thing.happened"]["on_dead_letter"]
    assert objections(decode_release(msgspec.json.encode(old)), catalogue(ordered)) == []


BOTH = [version("1.0", status="retiring"), version("2.0", THING_2)]
MOVED = [version("1.0", status="retired"), version("2.0", THING_2)]


@pytest.mark.parametrize(
    ("reads", "expected"),
    [(">=1,<2", [Reason.EVOLUTION_IN_USE]), (">=1,<3", []), (">=2", []), ("==1.0", [Reason.EVOLUTION_IN_USE])],
)
def test_b4_the_old_major_stays_until_every_consumer_has_moved(reads, expected):
    consumers = [{"group": "reader", "versions": reads}]
    assert codes(event_type(versions=BOTH), [event_type(versions=MOVED, consumers=consumers)]) == expected
    assert (
        codes(event_type(versions=BOTH), [event_type(versions=MOVED)], {"thing.happened": [parse_range(reads)]})
        == expected
    )


def test_b4_a_retired_major_does_not_come_back():
    assert codes(event_type(versions=MOVED), [event_type(versions=BOTH)]) == [Reason.EVOLUTION_REVIVED]


def test_operational_settings_may_change_freely():
    after = event_type(dead_letter_threshold=5, retention="P1D", retry={"max_retries": 1}, description="Other words.")
    assert codes(event_type(), [after]) == []


def test_a_release_survives_its_file():
    made = release(catalogue())
    assert decode_release(encode_release(made)) == made
    assert made.digest == release(catalogue()).digest


def test_an_objection_names_type_version_and_place():
    found = objections(release(catalogue(event_type())), catalogue(event_type(versions=[version("1.0", WITH_FIELD)])))
    assert str(found[0]) == (
        "thing.happened 1.0/properties/extra: b_evolution_needs_minor: an optional field was added: "
        'make the version "1.1" and mark the field with `since: "1.1"`'
    )
