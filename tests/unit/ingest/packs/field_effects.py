"""Which case, or which test, shows the effect of each field of the pack format (ruling I13)."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect as t

from patra.ingest.packs.schema import Pack, Sections
from patra.ingest.packs.sections import Bit
from patra.ingest.packs.struct_types import plain, shape_of
from tests.unit.ingest.packs.effects import flow, pack, paging, reading, transport
from tests.unit.ingest.packs.effects.observe import Case

CASES: dict[str, Case] = transport.CASES | paging.CASES | reading.CASES | flow.CASES | pack.CASES
"""`Struct.field` and a change of that field alone, with what is observed."""

TESTS: dict[str, str] = {
    "Auth.signingHook": "tests/contract/ingest/running/test_extensions.py::test_a_pack_that_names_them_uses_all_four",
    "Auth.tokenHook": "tests/contract/ingest/running/test_extensions.py::test_a_pack_that_names_them_uses_all_four",
    "Pagination.nextTokenHook": "tests/contract/ingest/running/test_extensions.py::test_a_pack_that_names_them_uses_all_four",
    "Response.decoder": "tests/contract/ingest/running/test_extensions.py::test_a_pack_that_names_them_uses_all_four",
    "Pack.semantics": "tests/unit/ingest/operations/test_live_checks.py::test_every_topic_has_what_is_declared_what_is_seen_and_what_to_ask",
    "Planning.keyBounds": "tests/contract/ingest/running/test_key_ranges.py::test_a_window_that_is_too_deep_is_read_in_ranges_of_its_key",
}
"""Fields whose effect needs more than one field to change: the test that fails when the field is not read."""


def pack_fields() -> dict[str, t.Field]:
    """Every field of the format that may be left out, by `Struct.field`.

    One that may not is refused when it is missing (`i_pack_missing_field`).
    """
    found: dict[str, t.Field] = {}
    _walk(shape_of(Pack), found)
    inherited = {field.encode_name for field in msgspec.structs.fields(Sections)}
    doubled = {key for key in found if key.startswith("Endpoint.") and key.split(".")[1] in inherited}
    return {key: field for key, field in found.items() if not field.required and key not in doubled}


def _walk(shape: t.Type, found: dict[str, t.Field]) -> None:
    match plain(shape):
        case t.StructType(cls=struct, fields=fields):
            for field in fields:
                key = f"{struct.__name__}.{field.encode_name}"
                if key not in found:
                    found[key] = field
                    _walk(field.type, found)
        case t.UnionType(types=types):
            for one in types:
                _walk(one, found)
        case t.DictType(value_type=value):
            _walk(value, found)
        case t.ListType(item_type=item) | t.VarTupleType(item_type=item):
            _walk(item, found)
        case _:
            pass


def section_of(field: t.Field) -> str | None:
    """The struct that a field holds, or holds by name: its effect is that of the struct's own fields."""
    shape = plain(field.type)
    if isinstance(shape, t.UnionType):
        shape = next((plain(one) for one in shape.types if isinstance(plain(one), t.StructType)), shape)
    if isinstance(shape, t.DictType):
        shape = plain(shape.value_type)
    return shape.cls.__name__ if isinstance(shape, t.StructType) else None


def changed_fields(before: Any, after: Any) -> Iterator[str]:
    """The fields in which two packs differ; a mapping that has other keys differs as a whole."""
    for name in before.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name)
        if old == new:
            continue
        if isinstance(old, msgspec.Struct) and type(old) is type(new):
            yield from changed_fields(old, new)
        elif _alike(old, new):
            for key in old:
                if old[key] != new[key]:
                    yield from changed_fields(old[key], new[key])
        else:
            owner = next(
                one for one in type(before).__mro__[::-1] if issubclass(one, Bit) and name in one.__struct_fields__
            )
            wire = {field.name: field.encode_name for field in msgspec.structs.fields(owner)}[name]
            yield f"{owner.__name__}.{wire}"


def _alike(old: Any, new: Any) -> bool:
    return (
        isinstance(old, dict)
        and isinstance(new, dict)
        and old.keys() == new.keys()
        and all(
            isinstance(new[key], msgspec.Struct) and type(old[key]) is type(new[key])
            for key in old
            if old[key] != new[key]
        )
    )
