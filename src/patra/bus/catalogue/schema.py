"""Turns a JSON Schema of the catalogue into a judge of payloads, which also explains (B3, B4).

The judge is jsonschema-rs. The dialect is draft 2020-12, and only the keywords below: a keyword that the evolution
check does not know would be a breaking change that nobody sees.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError, ValidationErrorKind

from patra.kernel.clock import parse_duration, parse_instant
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern

Schema: TypeAlias = Mapping[str, Any] | bool

ANNOTATIONS = frozenset({"$schema", "$comment", "title", "description", "examples", "deprecated", "since"})
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
_VERSION = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}\Z")


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
                wrong("$ref", "a reference stands alone: readers of draft 7 ignore what stands beside it")
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
        if "since" in node and not (isinstance(node["since"], str) and _VERSION.match(node["since"])):
            wrong("since", "the version that added the field, such as `1.1`, as a text")
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


def compile_schema(schema: Schema) -> Callable[[Any], bool]:
    """Whether a payload keeps the schema, as one call."""
    is_valid = _validator(schema).is_valid

    def keeps(payload: Any) -> bool:
        try:
            return is_valid(payload)
        except ValueError:  # what JSON cannot say: half a surrogate pair, a key that is not text
            return False

    return keeps


def violations(schema: Schema, payload: Any, place: str = "") -> list[Violation]:
    """Every rule that a payload breaks, and where, in the validator's words. Empty exactly when `compiled` accepts."""
    try:
        return [one for error in _validator(schema).iter_errors(payload) for one in _violations(error, place)]
    except ValueError as error:
        return [Violation(place, "json", f"cannot be written as JSON: {error}")]


def _violations(error: ValidationError, place: str) -> Iterator[Violation]:
    """One violation an error, except that each field that has no place here is named by a place of its own."""
    here = place + "".join(f"/{_token(str(part))}" for part in error.instance_path)
    match error.kind:
        case ValidationErrorKind.AdditionalProperties(unexpected):
            for name in unexpected:
                yield Violation(
                    f"{here}/{_token(name)}", "additionalProperties", "is not a field of this type and version"
                )
        case ValidationErrorKind.Required(name):
            yield Violation(f"{here}/{_token(name)}", "required", "is missing")
        case ValidationErrorKind.PropertyNames(inner):
            yield Violation(f"{here}/{_token(str(inner.instance))}", "propertyNames", inner.message)
        case kind:
            yield Violation(here, kind.name, error.message)


def _validator(schema: Schema) -> Draft202012Validator:
    """The one judge. Its patterns run in linear time; its messages do not repeat the payload, which may be large."""
    return Draft202012Validator(
        cast("dict[str, Any] | bool", schema),
        formats=FORMATS,
        validate_formats=True,
        mask="the value",
        pattern_options=RegexOptions(),
        offline=True,
    )


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds: Any = schema.get("type", ())
    if isinstance(kinds, str):
        return {kinds}
    return {str(kind) for kind in cast("list[Any]", kinds)} if isinstance(kinds, list) else set()


def _text_or_null(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _no_pattern(source: Any) -> str:
    if not isinstance(source, str):
        return "a pattern is a text"
    try:
        pattern(source)
        Draft202012Validator({"pattern": source}, pattern_options=RegexOptions(), offline=True)
    except Invalid as error:
        return f"no pattern of the catalogue: {error.detail}"
    except ValidationError as error:
        return f"no pattern of the catalogue: {error.message}"
    return ""


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
