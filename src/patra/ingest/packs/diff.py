"""Decides from two trees what changed from one to the other, path by path."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, cast

import msgspec

from patra.ingest.packs.merge import Tree
from patra.ingest.packs.problems import TreePath, dotted_path


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One place that differs; `before` and `after` are None where there is nothing."""

    kind: Kind
    path: str
    before: Any = None
    after: Any = None


def difference(before: Tree | None, after: Tree | None) -> list[Change]:
    """Every place that differs, in the order of the later tree, then what is gone."""
    return list(_compare(before or {}, after or {}, ()))


def _compare(before: Tree, after: Tree, path: TreePath) -> Iterator[Change]:
    for key, value in after.items():
        place = (*path, key)
        if key not in before:
            yield Change(kind=Kind.ADDED, path=dotted_path(place), after=value)
            continue
        was: Any = before[key]
        if isinstance(value, dict) and isinstance(was, dict):
            yield from _compare(cast("Tree", was), cast("Tree", value), place)
        elif value != was or isinstance(value, bool) is not isinstance(was, bool):
            yield Change(kind=Kind.CHANGED, path=dotted_path(place), before=was, after=value)
    for key, value in before.items():
        if key not in after:
            yield Change(kind=Kind.REMOVED, path=dotted_path((*path, key)), before=value)
