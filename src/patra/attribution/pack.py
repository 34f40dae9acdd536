"""The decisions on one item of the log go in, one compressed row comes out; and back again.

A hundred decisions of one batch share most of their text, so together they take a tenth of the space and one row in
place of a hundred: what is written for an event decides how many fit into a second.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter

import msgspec
import zstandard

from patra.attribution.decide import ITEM_BITS
from patra.attribution.facts import Decision
from patra.attribution.intake import shown

_LEVEL = 1
_encode = msgspec.json.Encoder(enc_hook=shown).encode
_decode = msgspec.json.Decoder(list[tuple[int, Decision]]).decode


class _Compressors(threading.local):
    """One of each a thread: making them costs more than using them, and no two threads may share one."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_own = _Compressors()
_packer = ThreadPoolExecutor(1, thread_name_prefix="attribution packer")


def compressed(body: bytes) -> bytes:
    return _own.compress(body)


def decompressed(body: bytes) -> bytes:
    """What `compressed` made; the frame says how long it was."""
    return _own.decompress(body)


def packed(decisions: Sequence[tuple[int, Decision]]) -> bytes:
    """Decisions of one item with their numbers, as one value."""
    return _own.compress(_encode(decisions))


def packing(decisions: Mapping[int, Sequence[tuple[int, Decision]]], *, apart: bool) -> Callable[[], dict[int, bytes]]:
    """The same for each of several items, when it is asked for.

    `apart`: another thread begins now, while this one has the store at work. Where the store works by itself, as
    PostgreSQL does, handing it to a thread costs more than it gains.
    """

    def made() -> dict[int, bytes]:
        return {item: packed(some) for item, some in decisions.items()}

    return _packer.submit(made).result if apart else made


def unpacked(item: int, body: bytes) -> list[tuple[int, Decision]]:
    """The decisions of an item with their numbers, in their order; older rows have only the places in the item."""
    first, found = item << ITEM_BITS, _decode(_own.decompress(body))
    return [(first | number, decision) for number, decision in sorted(found, key=itemgetter(0))]
