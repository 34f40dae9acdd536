"""The structs of the pack format as data: the type of any place in a tree, and what its declaration says about it."""

from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import inspect as t

from patra.ingest.packs.problems import TreePath


@lru_cache(maxsize=64)
def shape_of(struct: type[msgspec.Struct]) -> t.Type:
    return t.type_info(struct)


def type_at(shape: t.Type, path: TreePath) -> t.Type | None:
    """The type of a place in a tree, or None where the struct has no such place."""
    for part in path:
        shape = plain(shape)
        if isinstance(shape, t.UnionType):
            shape = next((one for one in shape.types if isinstance(plain(one), t.StructType | t.DictType)), shape)
            shape = plain(shape)
        match shape:
            case t.StructType():
                found = next((field.type for field in shape.fields if field.encode_name == part), None)
                if found is None:
                    return None
                shape = found
            case t.DictType():
                shape = shape.value_type
            case t.ListType() | t.VarTupleType():
                shape = shape.item_type
            case t.AnyType():
                return shape
            case _:
                return None
    return shape


def plain(shape: t.Type) -> t.Type:
    return shape.type if isinstance(shape, t.Metadata) else shape


def kind(shape: t.Type) -> str | None:
    """What a text stands for (`bits.base.Kind`)."""
    return _attribute_schema(shape, "extra").get("kind")


def description(shape: t.Type) -> str:
    """The text of a field."""
    return _attribute_schema(shape, "extra_json_schema").get("description", "")


def examples(shape: t.Type) -> list[Any]:
    """The examples of a field."""
    return _attribute_schema(shape, "extra_json_schema").get("examples") or []


def _attribute_schema(shape: t.Type, attribute: str) -> dict[str, Any]:
    return cast("dict[str, Any]", getattr(shape, attribute) or {}) if isinstance(shape, t.Metadata) else {}
