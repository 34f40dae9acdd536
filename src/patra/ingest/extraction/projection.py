"""Turns the paths that a pack looks along into a decoder of JSON that builds what they lead to and nothing else.

What nobody asks for is passed over, which costs a fraction of reading it. A value that is not what its paths expect (a
text where they go on below an object) is refused by the decoder; the caller then reads the whole.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypedDict

import msgspec

from patra.ingest.expressions.paths import Steps

Wants: TypeAlias = "dict[str | None, Wants] | None"
"""Names of an object's parts, and None for the items of a list, with what is wanted below; None alone: all of it."""

_typed: Any = TypedDict  # type checkers know only those that are written out


def wants_of(paths: Iterable[Steps]) -> Wants:
    """What has to be read so that each of these paths finds what it would find in the whole."""
    found: Wants = {}
    for steps in paths:
        found = _add_wants(found, steps)
    return found


def _add_wants(wants: Wants, steps: Steps) -> Wants:
    if wants is None or not steps:
        return None
    key = steps[0] if isinstance(steps[0], str) else None
    return {**wants, key: _add_wants(wants.get(key, {}), steps[1:])}


def decoder(wants: Wants, place: tuple[str, ...] | None = None) -> Callable[[Any], Any]:
    """Reads a JSON text. `place` names the list whose items stay as they stand (`msgspec.Raw`).

    Raises msgspec.DecodeError for what is not JSON, and for what is not as the paths expect.
    """
    return msgspec.json.Decoder(_type(wants, place, outer=True)).decode


def _type(wants: Wants, place: tuple[str, ...] | None = None, *, outer: bool = False) -> Any:
    if place == ():
        return list[msgspec.Raw] | None
    if wants is None:
        return Any
    fields = {
        name: _type(below, place[1:] if place and place[0] == name else None)
        for name, below in wants.items()
        if name is not None
    }
    found: Any = _typed("Part", fields, total=False) if fields or not wants else None
    if None in wants:  # an answer may be an object, and a list where it is an error
        items = list[_type(wants[None])]
        found = items if found is None else found | items
    return found if outer else found | None
