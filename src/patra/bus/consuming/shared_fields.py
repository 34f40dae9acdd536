"""What the dead letters of one cause have in common and no handled event has: where to look for what differs.

A field counts where all dead letters agree on it (it is missing, of one kind, or of one value) and none of the handled
events is like them; and where the handled events have a few values that come again and again, and no dead letter
has one of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

MAX_DEPTH = 5
MAX_VALUES = 3
MAX_VALUE_CHARS = 80
USES_OF_A_VALUE = 5
"""A value that handled events use so often each is one of a few (a currency, a country) and not an id."""
MISSING = "missing"
_KINDS: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "text", list: "list", dict: "object"}


class SharedField(msgspec.Struct, frozen=True, kw_only=True):
    """A field by its path in the payload: what every dead letter has there, and what the handled events have."""

    path: str
    letters: str
    handled: str


def shared_fields(letters: Sequence[Any], handled: Sequence[Any]) -> list[SharedField]:
    """In the order of the dead letters' fields; nothing where there is nothing to compare.

    A single dead letter has ids that no other event has: its values are only compared where those of the handled events
    are a few that come again and again.
    """
    if not letters or not handled:
        return []
    ours, theirs = [dict(_fields(one)) for one in letters], [dict(_fields(one)) for one in handled]
    paths = dict.fromkeys(path for found in (*ours, *theirs) for path in found)
    compared = (_compare_field(path, ours, theirs, alone=len(letters) == 1) for path in paths)
    return list(_outermost(compared))


def _compare_field(
    path: str, ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], *, alone: bool
) -> SharedField | None:
    kinds = {_kind(found, path) for found in ours}
    others = {_kind(found, path) for found in theirs}
    if len(kinds) == 1 and not kinds & others:
        return SharedField(path=path, letters=kinds.pop(), handled=" or ".join(sorted(others)))
    if len(kinds) != 1 or kinds & {MISSING, "list", "object"}:
        return None
    values = {_text(found[path]) for found in ours}
    used = [_text(found[path]) for found in theirs if path in found]
    known = set(used)
    agree, few = len(values) == 1 and not alone, len(known) * USES_OF_A_VALUE <= len(used)
    if values & known or not (agree or few):
        return None
    return SharedField(path=path, letters=_list_values(values, "values"), handled=_list_values(known, "other values"))


def _list_values(values: set[str], word: str) -> str:
    return ", ".join(sorted(values)) if len(values) <= MAX_VALUES else f"{len(values)} {word}"


def _outermost(found: Iterator[SharedField | None]) -> Iterator[SharedField]:
    """Without the fields inside an object that differs as a whole."""
    outer: list[str] = []
    for one in found:
        if one is None or any(one.path.startswith(f"{path}/") for path in outer):
            continue
        outer.append(one.path)
        yield one


def _fields(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict) and depth < MAX_DEPTH:
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _fields(inner, f"{path}/{name}", depth + 1)


def _kind(found: Mapping[str, Any], path: str) -> str:
    if path not in found:
        return MISSING
    value: object = found[path]
    return "null" if value is None else _KINDS.get(type(value), "other")


def _text(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
