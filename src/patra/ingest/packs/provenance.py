"""Turns a compiled snapshot into each value of it with the level, file and line it comes from (ch. 3.3.2)."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from patra.ingest.packs.compiler import Compiled
from patra.ingest.packs.merge import Level, origin_of
from patra.ingest.packs.problems import Source, TreePath, dotted_path
from patra.ingest.packs.schema import Sections


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """One value of the merged sections."""

    path: str
    value: Any
    level: str
    place: str


def with_origins(compiled: Compiled, source: Source) -> list[Value]:
    """Every value of the sections, those of the platform included, in the order of the format."""
    sections = msgspec.convert(compiled.tree, Sections)
    tree: dict[str, Any] = msgspec.to_builtins(sections)
    return [_value(path, value, compiled, source) for path, value in _leaves(tree, ())]


def _value(path: TreePath, value: Any, compiled: Compiled, source: Source) -> Value:
    origin = origin_of(compiled.origins, compiled.tree, path)
    if origin.level is Level.PLATFORM:
        place = ""
    elif origin.level is Level.TRIGGER:
        place = dotted_path(origin.path)
    else:
        mark = source.mark(origin.path)
        place = f"{source.file}:{mark.line}" if mark.line else dotted_path(origin.path)
    return Value(path=dotted_path(path), value=value, level=origin.level.value, place=place)


def _leaves(value: Any, path: TreePath) -> Iterator[tuple[TreePath, Any]]:
    if isinstance(value, dict) and value:
        for key, item in cast("dict[str, Any]", value).items():
            yield from _leaves(item, (*path, key))
    elif path and value not in (None, {}, [], ""):
        yield path, value
