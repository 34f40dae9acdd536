"""Turns a pack's tree, an endpoint, an operation and overrides into one tree with the origin of each value.

Five levels, from the lowest (ch. 3.3.2, 4.1): the platform's defaults, the source's `defaults`, the endpoint's
`method`, `path` and `defaults`, the endpoint's sections (for all operations, then for one), the trigger. Mappings are
merged key by key, everything else is replaced; `null` for a key of a free mapping takes away what was set below.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

import msgspec
from msgspec import inspect as t

from patra.ingest.packs.problems import TreePath
from patra.ingest.packs.schema import Sections
from patra.ingest.packs.struct_types import plain, shape_of, type_at
from patra.ingest.vocabulary.codes import Operation

Tree = dict[str, Any]


class Level(StrEnum):
    """Where a value comes from; the later wins."""

    PLATFORM = "platform"
    SOURCE = "source"
    ENDPOINT = "endpoint"
    SECTION = "section"
    OPERATION = "operation"  # a section for one operation; ch. 3.3.2 counts it to the sections
    TRIGGER = "trigger"


class Origin(msgspec.Struct, frozen=True):
    """The level of a value, and its path in the pack (or in the trigger)."""

    level: Level
    path: TreePath


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The sections of one endpoint and operation, the tree of what was given, and the origin of each part of it."""

    sections: Sections
    tree: Tree
    origins: Mapping[TreePath, Origin]
    rules: tuple[str, ...]
    """Names of the error rules in the order in which they are asked: those of a higher level first."""

    def origin(self, path: TreePath) -> Origin:
        """The origin of a value; what was not given anywhere comes from the platform."""
        return origin_of(self.origins, self.tree, path)


def origin_of(origins: Mapping[TreePath, Origin], tree: Tree, path: TreePath) -> Origin:
    """Where a value of the merged sections comes from. A part of a list comes from where the list does."""
    at: Any = tree
    for end, part in enumerate(path, 1):
        if not isinstance(at, dict) or part not in at:
            return Origin(Level.PLATFORM, path)
        at = cast("Tree", at)[cast("str", part)]
        if (not isinstance(at, dict) or path[:end] in ATOMIC or end == len(path)) and path[:end] in origins:
            found = origins[path[:end]]
            return Origin(found.level, (*found.path, *path[end:]))
    return Origin(Level.PLATFORM, path)


ATOMIC: frozenset[TreePath] = frozenset({("http", "bodyTemplate", "json")})
"""Mappings that are replaced as a whole, because they are not ours."""

SECTIONS = tuple(field.encode_name for field in msgspec.structs.fields(Sections))


def merge(pack: Tree, endpoint: str, operation: Operation | None, overrides: Tree | None = None) -> Merged:
    """Merge the levels that there are. The pack must have the endpoint."""
    here: Tree = pack["endpoints"][endpoint]
    place: TreePath = ("endpoints", endpoint)
    levels: list[tuple[Level, Tree, TreePath]] = [(Level.SOURCE, pack.get("defaults", {}), ("defaults",))]
    levels += [
        (Level.ENDPOINT, {"http": {name: here[short]}}, (*place, short))
        for short, name in (("method", "method"), ("path", "pathTemplate"))
        if here.get(short) is not None
    ]
    levels.append((Level.ENDPOINT, here.get("defaults", {}), (*place, "defaults")))
    levels.append((Level.SECTION, {name: here[name] for name in SECTIONS if name in here}, place))
    if operation is not None and operation in here.get("operations", {}):
        levels.append((Level.OPERATION, here["operations"][operation], (*place, "operations", operation.value)))
    if overrides:
        levels.append((Level.TRIGGER, overrides, ("trigger",)))

    tree: Tree = {}
    origins: dict[TreePath, Origin] = {}
    rules: dict[str, None] = {}
    for level, values, prefix in levels:
        shorthand = prefix[-1] in {"method", "path"} and level is Level.ENDPOINT
        _into(tree, values, (), Origin(level, prefix), origins, shorthand=shorthand)
        rules = dict.fromkeys([*values.get("errors", {}), *rules])
    sections = msgspec.convert(tree, Sections)
    return Merged(
        sections=sections, tree=tree, origins=origins, rules=tuple(name for name in rules if name in sections.errors)
    )


def _into(
    tree: Tree, values: Tree, path: TreePath, origin: Origin, origins: dict[TreePath, Origin], *, shorthand: bool
) -> None:
    for key, value in values.items():
        place = (*path, key)
        source = Origin(origin.level, origin.path if shorthand else (*origin.path, *place))
        if value is None and _free(path):
            tree.pop(key, None)
            _forget(origins, place)
            continue
        below = tree.get(key)
        if isinstance(value, dict) and place not in ATOMIC:
            if not isinstance(below, dict):
                _forget(origins, place)
                below = tree[key] = {}
            if not shorthand:
                origins[place] = source  # a mapping stands where it was last added to
            _into(cast("Tree", below), cast("Tree", value), place, origin, origins, shorthand=shorthand)
        else:
            _forget(origins, place)
            tree[key] = value
            origins[place] = source


def _free(path: TreePath) -> bool:
    """Whether the mapping at a path has keys of the author's own choice."""
    found = type_at(shape_of(Sections), path)
    return found is not None and isinstance(plain(found), t.DictType)


def _forget(origins: dict[TreePath, Origin], place: TreePath) -> None:
    for known in [path for path in origins if path[: len(place)] == place]:
        del origins[known]
