"""The decisions on one item of the log go in, one compressed row comes out; and back again.

A hundred decisions of one batch share most of their text, so together they take a tenth of the space and one row in
place of a hundred: what is written for an event decides how many fit into a second.
"""

import threading
from collections.abc import Iterable, Sequence

import msgspec
import zstandard

from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision
from patra.attribution.intake import shown

_PLACES = (1 << ITEM_BITS) - 1
_LEVEL = 1
_encode = msgspec.json.Encoder(enc_hook=shown).encode
_decode = msgspec.json.Decoder(list[tuple[int, Decision]]).decode


class _Compressors(threading.local):
    """One of each a thread: making them costs more than using them, and no two threads may share one."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_own = _Compressors()


def compressed(body: bytes) -> bytes:
    return _own.compress(body)


def decompressed(body: bytes) -> bytes:
    """What `compressed` made; the frame says how long it was."""
    return _own.decompress(body)


def packed(decisions: Sequence[tuple[int, Decision]]) -> bytes:
    """Decisions of one item with their places, as one value."""
    return _own.compress(_encode(decisions))


def packs(decisions: Iterable[tuple[int, Decision]]) -> dict[int, list[tuple[int, Decision]]]:
    """Decisions with their numbers, by item, each with its place."""
    found: dict[int, list[tuple[int, Decision]]] = {}
    item, some = -1, []
    for number, decision in decisions:
        if number >> ITEM_BITS != item:
            item = number >> ITEM_BITS
            some = found.setdefault(item, [])
        some.append((number & _PLACES, decision))
    return found


def unpacked(item: int, body: bytes) -> list[tuple[int, Decision]]:
    """The decisions of an item with their numbers, in their order."""
    first = item << ITEM_BITS
    return [(first | place, decision) for place, decision in sorted(_decode(_own.decompress(body)), key=_place)]


def _place(one: tuple[int, Decision]) -> int:
    return one[0]
