"""A JSON Schema of the catalogue goes in; a fast judge of payloads, and a slow one that explains, come out (B3, B4).

The dialect is draft 7 with `$defs`, and only the keywords below: a keyword that one validator ignores would be a rule
that nobody keeps, and one that the evolution check does not know would be a breaking change that nobody sees.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit
from uuid import UUID

import fastjsonschema
import msgspec

from patra.kernel.clock import parse_duration, parse_instant
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern

Schema: TypeAlias = Mapping[str, Any] | bool

ANNOTATIONS = frozenset({"$schema", "$comment", "title", "description", "examples", "deprecated"})
TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
SUBSCHEMAS = frozenset({"additionalProperties", "propertyNames", "items", "contains", "not", "if", "then", "else"})
SUBSCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf"})
SUBSCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs"})
ASSERTIONS = frozenset(
    [
        "type",
        "enum",
        "const",
        "format",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "required",
        "minProperties",
        "maxProperties",
        "minItems",
        "maxItems",
        "uniqueItems",
        "$ref",
    ]
)
KEYWORDS = ANNOTATIONS | ASSERTIONS | SUBSCHEMAS | SUBSCHEMA_LISTS | SUBSCHEMA_MAPS

_COUNTS = ("minLength", "maxLength", "minProperties", "maxProperties", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_DOLLAR = re.compile(r"(?<!\\)\$")


class Violation(msgspec.Struct, frozen=True):
    """Where in the payload (a JSON pointer), which rule, and what about it."""

    place: str
    rule: str
    detail: str


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) and bool(parts.netloc or parts.path) and not re.search(r"[\s<>\"{}|\\^`]", text)


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except Invalid:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": lambda text: parse_instant(text) is not None,
    "date": _is_date,
    "uuid": _is_uuid,
    "uri": _is_uri,
    "duration": _is_duration,
}


def defects(schema: Any, place: str = "") -> list[Violation]:
    """What is wrong with a schema itself, as the catalogue demands it."""
    return _Defects(schema).find(schema, place)


class _Defects:
    def __init__(self, root: Any) -> None:
        self._root = root

    def find(self, schema: Any, place: str) -> list[Violation]:
        if isinstance(schema, bool):
            return []
        if not isinstance(schema, Mapping):
            return [Violation(place, "schema", "a schema is an object or a boolean")]
        node = cast("Mapping[str, Any]", schema)
        found = [
            Violation(f"{place}/{keyword}", "keyword", f"{keyword!r} is not a keyword that the catalogue takes")
            for keyword in node
            if keyword not in KEYWORDS
        ]
        found += self._values(node, place)
        for keyword in SUBSCHEMAS & node.keys():
            found += self.find(node[keyword], f"{place}/{keyword}")
        for keyword in SUBSCHEMA_LISTS & node.keys():
            parts = node[keyword]
            if not isinstance(parts, list) or not parts:
                found.append(Violation(f"{place}/{keyword}", keyword, "a list of at least one schema"))
                continue
            for index, part in enumerate(cast("list[Any]", parts)):
                found += self.find(part, f"{place}/{keyword}/{index}")
        for keyword in SUBSCHEMA_MAPS & node.keys():
            if not isinstance(node[keyword], Mapping):
                found.append(Violation(f"{place}/{keyword}", keyword, "an object of schemas"))
                continue
            for name, part in node[keyword].items():
                found += self.find(part, f"{place}/{keyword}/{_token(name)}")
        return found

    def _values(self, node: Mapping[str, Any], place: str) -> list[Violation]:
        found: list[Violation] = []

        def wrong(keyword: str, detail: str) -> None:
            found.append(Violation(f"{place}/{keyword}", keyword, detail))

        if "$ref" in node:
            if set(node) - ANNOTATIONS - {"$ref", "$defs"}:
                wrong("$ref", "a reference stands alone: draft 7 ignores what stands beside it")
            if (target := resolve(self._root, node["$ref"])) is None:
                wrong("$ref", "refers to `#` or `#/$defs/NAME` of this schema")
            elif target is node:
                wrong("$ref", "refers to itself")
        if "type" in node and (not (kinds := _kinds(node)) or not kinds <= TYPES):
            wrong("type", f"one or more of {', '.join(sorted(TYPES))}")
        for keyword in ("enum", "const"):
            if keyword in node:
                values = node[keyword] if keyword == "enum" else [node[keyword]]
                if (
                    not isinstance(values, list)
                    or not values
                    or not all(_text_or_null(v) for v in cast("list[Any]", values))
                ):
                    wrong(keyword, "texts or null: validators disagree on whether 1, 1.0 and true are equal")
        if "format" in node and node["format"] not in FORMATS:
            wrong("format", f"one of {', '.join(FORMATS)}")
        if "pattern" in node and (detail := _no_pattern(node["pattern"])):
            wrong("pattern", detail)
        if isinstance(named := node.get("patternProperties"), Mapping):
            for name in cast("Mapping[Any, Any]", named):
                if detail := _no_pattern(name):
                    wrong("patternProperties", detail)
        for keyword in _COUNTS:
            if keyword in node and (type(node[keyword]) is not int or node[keyword] < 0):
                wrong(keyword, "a whole number from zero")
        for keyword in _BOUNDS:
            if keyword in node and type(node[keyword]) not in {int, float}:
                wrong(keyword, "a number")
        if "multipleOf" in node and (type(node["multipleOf"]) is not int or node["multipleOf"] < 1):
            wrong("multipleOf", "a whole number from one: fractions of floats cannot be compared")
        if "uniqueItems" in node and type(node["uniqueItems"]) is not bool:
            wrong("uniqueItems", "true or false")
        required = node.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
            wrong("required", "a list of names")
        elif isinstance(node.get("properties"), Mapping):
            for name in cast("list[str]", required):
                if name not in node["properties"]:
                    wrong("required", f"{name!r} is required but not described")
        if "object" in _kinds(node) and "additionalProperties" not in node:
            wrong("additionalProperties", "an object says whether it is closed (false) or a map (a schema, or true)")
        return found


def resolve(root: Any, reference: Any) -> Schema | None:
    """The schema a local reference points to; None when it points nowhere or elsewhere."""
    if reference == "#":
        return cast("Schema", root)
    if not isinstance(reference, str) or not reference.startswith("#/$defs/") or not isinstance(root, Mapping):
        return None
    name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
    defs = cast("Mapping[str, Any]", root).get("$defs")
    return cast("Mapping[str, Schema]", defs).get(name) if isinstance(defs, Mapping) else None


def compiled(schema: Schema) -> Callable[[Any], bool]:
    """The fast judge: whether a payload keeps the schema. Where a pattern could hold it up, the slow one's word."""
    try:
        plain = _plain(schema)
    except _Ambiguous:
        return lambda payload: not violations(schema, payload)
    validate = cast(
        "Callable[[Any], Any]",
        fastjsonschema.compile(  # pyright: ignore[reportUnknownMemberType]
            {**plain, "$schema": "http://json-schema.org/draft-07/schema"} if isinstance(plain, Mapping) else plain,
            formats=cast("Any", FORMATS),
            use_default=False,
        ),
    )

    def keeps(payload: Any) -> bool:
        try:
            validate(payload)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return keeps


def violations(schema: Schema, payload: Any, place: str = "") -> list[Violation]:
    """The slow judge: every rule that a payload breaks, and where. Empty exactly when `compiled` accepts."""
    return _Judge(schema).find(schema, payload, place)


class _Judge:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def find(self, schema: Schema, value: Any, place: str) -> list[Violation]:
        if isinstance(schema, bool):
            return [] if schema else [Violation(place, "false", "nothing may stand here")]
        if "$ref" in schema:
            target = resolve(self._root, schema["$ref"])
            return [] if target is None else self.find(target, value, place)
        found: list[Violation] = []
        if "type" in schema and not any(_is_type(value, kind) for kind in _kinds(schema)):
            found.append(Violation(place, "type", f"is {_type_name(value)}, not {' or '.join(sorted(_kinds(schema)))}"))
        if "enum" in schema and not any(value is v or (isinstance(value, str) and value == v) for v in schema["enum"]):
            found.append(Violation(place, "enum", f"is none of {', '.join(map(str, schema['enum']))}"))
        if "const" in schema and not (
            value is schema["const"] or (isinstance(value, str) and value == schema["const"])
        ):
            found.append(Violation(place, "const", f"is not {schema['const']}"))
        if isinstance(value, str):
            found += self._text(schema, value, place)
        elif isinstance(value, Mapping):
            found += self._object(schema, cast("Mapping[str, Any]", value), place)
        elif isinstance(value, list):
            found += self._array(schema, cast("list[Any]", value), place)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found += _number(schema, value, place)
        return found + self._combined(schema, value, place)

    def _text(self, schema: Mapping[str, Any], value: str, place: str) -> list[Violation]:
        found: list[Violation] = []
        if len(value) < schema.get("minLength", 0):
            found.append(
                Violation(place, "minLength", f"has {len(value)} characters, fewer than {schema['minLength']}")
            )
        if len(value) > schema.get("maxLength", len(value)):
            found.append(Violation(place, "maxLength", f"has {len(value)} characters, more than {schema['maxLength']}"))
        if "pattern" in schema and not _search(schema["pattern"], value):
            found.append(Violation(place, "pattern", f"does not match {schema['pattern']}"))
        if "format" in schema and not FORMATS[schema["format"]](value):
            found.append(Violation(place, "format", f"is no {schema['format']}"))
        return found

    def _object(self, schema: Mapping[str, Any], value: Mapping[str, Any], place: str) -> list[Violation]:
        found = [
            Violation(f"{place}/{_token(name)}", "required", "is missing")
            for name in schema.get("required", ())
            if name not in value
        ]
        if len(value) < schema.get("minProperties", 0):
            found.append(Violation(place, "minProperties", f"has fewer than {schema['minProperties']} fields"))
        if len(value) > schema.get("maxProperties", len(value)):
            found.append(Violation(place, "maxProperties", f"has more than {schema['maxProperties']} fields"))
        properties: Mapping[str, Schema] = schema.get("properties", {})
        patterns: Mapping[str, Schema] = schema.get("patternProperties", {})
        for name, item in value.items():
            here = f"{place}/{_token(name)}"
            matching = [part for pattern, part in patterns.items() if _search(pattern, name)]
            if name in properties:
                matching.append(properties[name])
            if not matching and "additionalProperties" in schema:
                if schema["additionalProperties"] is False:
                    found.append(Violation(here, "additionalProperties", "is no field of this type and version"))
                else:
                    matching.append(schema["additionalProperties"])
            for part in matching:
                found += self.find(part, item, here)
            if "propertyNames" in schema and self.find(schema["propertyNames"], name, here):
                found.append(Violation(here, "propertyNames", "is no name that may stand here"))
        return found

    def _array(self, schema: Mapping[str, Any], value: Sequence[Any], place: str) -> list[Violation]:
        found: list[Violation] = []
        if len(value) < schema.get("minItems", 0):
            found.append(Violation(place, "minItems", f"has {len(value)} items, fewer than {schema['minItems']}"))
        if len(value) > schema.get("maxItems", len(value)):
            found.append(Violation(place, "maxItems", f"has {len(value)} items, more than {schema['maxItems']}"))
        if schema.get("uniqueItems") and len({msgspec.json.encode(i, order="sorted") for i in value}) < len(value):
            found.append(Violation(place, "uniqueItems", "has an item twice"))
        if "items" in schema:
            for index, item in enumerate(value):
                found += self.find(schema["items"], item, f"{place}/{index}")
        if "contains" in schema and all(self.find(schema["contains"], item, place) for item in value):
            found.append(Violation(place, "contains", "has no item of the kind it must contain"))
        return found

    def _combined(self, schema: Mapping[str, Any], value: Any, place: str) -> list[Violation]:
        found: list[Violation] = []
        for part in schema.get("allOf", ()):
            found += self.find(part, value, place)
        if "anyOf" in schema and all(self.find(part, value, place) for part in schema["anyOf"]):
            found.append(Violation(place, "anyOf", "keeps none of the alternatives"))
        if "oneOf" in schema:
            kept = sum(not self.find(part, value, place) for part in schema["oneOf"])
            if kept != 1:
                found.append(Violation(place, "oneOf", f"keeps {kept} of the alternatives instead of one"))
        if "not" in schema and not self.find(schema["not"], value, place):
            found.append(Violation(place, "not", "is what it must not be"))
        if "if" in schema:
            branch = "else" if self.find(schema["if"], value, place) else "then"
            if branch in schema:
                found += self.find(schema[branch], value, place)
        return found


def _number(schema: Mapping[str, Any], value: float, place: str) -> list[Violation]:
    rules = (
        ("minimum", value < schema.get("minimum", value), "less than"),
        ("maximum", value > schema.get("maximum", value), "more than"),
        ("exclusiveMinimum", "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"], "not more than"),
        ("exclusiveMaximum", "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"], "not less than"),
        ("multipleOf", "multipleOf" in schema and value % schema["multipleOf"] != 0, "no multiple of"),
    )
    return [Violation(place, rule, f"is {value}, {what} {schema[rule]}") for rule, broken, what in rules if broken]


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds: Any = schema.get("type", ())
    if isinstance(kinds, str):
        return {kinds}
    return {str(kind) for kind in cast("list[Any]", kinds)} if isinstance(kinds, list) else set()


def _is_type(value: Any, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, Mapping)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
        case _:
            return isinstance(value, (int, float)) and not isinstance(value, bool)


def _type_name(value: Any) -> str:
    order = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next((kind for kind in order if _is_type(value, kind)), type(value).__name__)


def _text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _no_pattern(source: Any) -> str:
    try:
        pattern(source, unicode=True)
    except Invalid as error:
        return f"no pattern of the catalogue: {error.detail}"
    except TypeError:
        return "a pattern is a text"
    return ""


@lru_cache(maxsize=1024)
def standard(source: str) -> str | None:
    """The pattern for the standard engine, or None where that one could come back again and again (`(a+)+$`).

    `$` is as JSON Schema means it: the end, not also the place before a last line break.
    """
    known = pattern(source, unicode=True)
    if not known.unambiguous:
        return None
    inside = _DOLLAR.sub(r"\\$", source[:-1] if known.to_end else source)  # in a class: the character
    return inside + (r"\Z" if known.to_end else "")


def _search(source: str, text: str) -> bool:
    quick = standard(source)
    return pattern(source, unicode=True).found(text) if quick is None else re.search(quick, text) is not None


class _Ambiguous(Exception):  # noqa: N818  a way out of a walk
    pass


def _plain(schema: Schema) -> Schema:
    """The schema with every pattern as the standard engine takes it."""
    if isinstance(schema, bool):
        return schema
    plain = dict(schema)
    for keyword in SUBSCHEMAS & schema.keys():
        plain[keyword] = _plain(schema[keyword])
    for keyword in SUBSCHEMA_LISTS & schema.keys():
        plain[keyword] = [_plain(part) for part in schema[keyword]]
    for keyword in SUBSCHEMA_MAPS & schema.keys():
        named: Mapping[str, Schema] = schema[keyword]
        quick = _quick if keyword == "patternProperties" else str
        plain[keyword] = {quick(name): _plain(part) for name, part in named.items()}
    if "pattern" in schema:
        plain["pattern"] = _quick(schema["pattern"])
    return plain


def _quick(source: str) -> str:
    if (quick := standard(source)) is None:
        raise _Ambiguous
    return quick


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
