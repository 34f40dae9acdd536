"""Keeps which records each page of a list brought until the list is over, for the run that goes on with it.

Without them a record that comes again after a restart would count as another one, and stand for one that never came.
"""

from collections.abc import Collection
from struct import pack, unpack

import msgspec

from patra.ingest.landing.store import Q
from patra.kernel.db import Tx

KEY_BYTES = 8


class PageKeys(msgspec.Struct, frozen=True):
    """The hashes of a page's records, and those of its items without an id, as often as they stood there."""

    keys: tuple[int, ...]
    nameless: tuple[int, ...] = ()


def keep(tx: Tx, task_id: str, page: int, keys: Collection[int], nameless: Collection[int]) -> None:
    """A page that has landed, in place of the one with its number in an earlier reading of the list."""
    tx.execute(Q["list_keys_keep"], rows=[(task_id, page, _pack_keys(keys), _pack_keys(nameless))])


def pages_before(tx: Tx, task_id: str, page: int) -> list[PageKeys]:
    """The pages of a reading that stands before this one; fewer than `page` where an earlier release read them."""
    found = tx.fetch(Q["list_keys_before"], {"task_id": task_id, "page": page})
    return [PageKeys(_unpack_keys(keys), _unpack_keys(nameless)) for keys, nameless in found]


def forget(tx: Tx, task_id: str) -> None:
    """The list is over, or is read from its beginning."""
    tx.execute(Q["list_keys_forget"], {"task_id": task_id})


def _pack_keys(keys: Collection[int]) -> bytes:
    return pack(f"<{len(keys)}Q", *keys)


def _unpack_keys(content: bytes) -> tuple[int, ...]:
    return unpack(f"<{len(content) // KEY_BYTES}Q", content)
