"""A JSON Schema goes in; a msgspec type that accepts nothing the schema refuses comes out (a tenth of the time).

The type may refuse what the schema accepts (`1.0` as an integer, a field with a `format`): whoever is refused goes on
to the full validator. So a keyword that is not translated becomes a type that nothing fits, never one too wide.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Optional, Union, cast

import msgspec

from patra.bus.schema import ANNOTATIONS, Schema, resolve, standard

NOTHING = Annotated[int, msgspec.Meta(gt=0, lt=0)]
DEEPEST = 12

_TEXT = {"minLength": "min_length", "maxLength": "max_length"}
_NUMBER = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_LIST = {"minItems": "min_length", "maxItems": "max_length"}


def shape(schema: Schema) -> Any:
    """The type of a whole schema."""
    return _Shape(schema).of(schema, 0)


class _Shape:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def of(self, schema: Schema, depth: int) -> Any:
        if isinstance(schema, bool):
            return Any if schema else NOTHING
        if depth > DEEPEST:
            return NOTHING
        if "$ref" in schema:
            target = resolve(self._root, schema["$ref"])
            return NOTHING if target is None else self.of(target, depth + 1)
        rules = {name: value for name, value in schema.items() if name not in ANNOTATIONS and name != "$defs"}
        if "enum" in rules or "const" in rules:
            return _literal(rules)
        kinds = rules.pop("type", None)
        if kinds is None:
            return Any if not rules else NOTHING
        if isinstance(kinds, str):
            return self._kind(kinds, rules, depth)
        return _either([self._kind(kind, rules if kind != "null" else {}, depth) for kind in cast("list[str]", kinds)])

    def _kind(self, kind: str, rules: dict[str, Any], depth: int) -> Any:
        match kind:
            case "null":
                return None if not rules else NOTHING
            case "boolean":
                return bool if not rules else NOTHING
            case "string":
                return _string(rules)
            case "integer":
                return _limited(int, rules, _NUMBER)
            case "number":
                return _limited(float, rules, _NUMBER)
            case "array":
                return self._array(rules, depth)
            case "object":
                return self._object(rules, depth)
            case _:
                return NOTHING

    def _array(self, rules: dict[str, Any], depth: int) -> Any:
        items = self.of(rules.pop("items", True), depth + 1)
        return _limited(list[items], rules, _LIST)

    def _object(self, rules: dict[str, Any], depth: int) -> Any:
        properties: Mapping[str, Schema] = rules.pop("properties", {})
        required: list[str] = rules.pop("required", [])
        additional: Schema = rules.pop("additionalProperties", True)
        if rules:
            return NOTHING
        if not properties and not required:
            return dict[str, self.of(additional, depth + 1)] if additional is not False else NOTHING
        if additional is not False or not set(required) <= set(properties):
            return NOTHING
        fields: list[Any] = []
        names: dict[str, str] = {}
        for index, (name, part) in enumerate(properties.items()):
            field, kind = f"f{index}", self.of(part, depth + 1)
            names[field] = name
            optional = name not in required
            fields.append((field, Union[kind, msgspec.UnsetType], msgspec.UNSET) if optional else (field, kind))  # noqa: UP007
        return msgspec.defstruct("Payload", fields, kw_only=True, forbid_unknown_fields=True, rename=names, gc=False)


def _string(rules: dict[str, Any]) -> Any:
    pattern = rules.pop("pattern", None)
    if pattern is not None:
        if (quick := standard(pattern)) is None:
            return NOTHING
        rules = {**rules, "pattern": quick}
    return _limited(str, rules, {**_TEXT, "pattern": "pattern"})


def _limited(kind: Any, rules: dict[str, Any], known: Mapping[str, str]) -> Any:
    if not rules:
        return kind
    if not set(rules) <= set(known):
        return NOTHING
    return Annotated[kind, msgspec.Meta(**{known[name]: value for name, value in rules.items()})]


def _literal(rules: dict[str, Any]) -> Any:
    values = rules.pop("enum", None) or [rules.pop("const", None)]
    kinds = rules.pop("type", None)
    texts = [v for v in cast("list[Any]", values) if isinstance(v, str)]
    if rules or kinds not in {None, "string"} or not texts:
        return NOTHING
    choice = Literal[tuple(texts)]
    return choice if len(texts) == len(values) or kinds == "string" else Optional[choice]  # noqa: UP045


def _either(kinds: list[Any]) -> Any:
    return Union[tuple(kinds)]  # noqa: UP007
