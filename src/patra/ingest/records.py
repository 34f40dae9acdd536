"""Records as they came and what is stored of them go in; what is new, newer, equal and older comes out (ch. 4.9, 11.1).

The business key is (source, endpoint, provider id). A record is written over by one that was updated later, or at the
same time in a higher version; an equal one changes nothing, an older one is dropped and counted. An UPDATE may write an
equal record again if another mapping made the stored one: that is what it was sent for (ch. 6.3). The rule is applied
to rows that are locked, so that two executors with one record cannot undo each other.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
import zstandard
from msgspec import Raw

from patra.ingest.cursor import ordered_id
from patra.ingest.reasons_running import X

PACKED = b"\x28\xb5\x2f\xfd"  # the magic number of zstd
PACK_FROM = 400  # smaller contents are not worth packing
MAX_CONTENT = 16 * 1024 * 1024
SAMPLE = 1024

_encode = msgspec.json.Encoder().encode
_local = threading.local()


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """A record that passed every check, ready to be stored."""

    id: str
    updated_at: int
    version: str | None
    deleted: bool
    content: bytes
    content_hash: str


class Stored(msgspec.Struct, frozen=True):
    """What the store knows of a record."""

    updated_at: int
    version: str | None
    expr_hash: str
    content_hash: str


class Bad(msgspec.Struct, frozen=True, kw_only=True):
    """A record that goes to the quarantine (L3)."""

    key: str
    id: str | None
    code: X
    path: str
    detail: str
    sample: bytes
    sample_hash: str


class Sorted(msgspec.Struct, frozen=True, kw_only=True):
    """The records of a batch by what becomes of them; `repeated` counts those that stood twice on one page."""

    new: list[Incoming]
    newer: list[tuple[Incoming, Stored]]
    equal: list[str]
    older: list[str]
    repeated: int = 0


def newest(records: Iterable[Incoming]) -> tuple[list[Incoming], int]:
    """One record for each id, the latest version of it, in the order of the ids; and how many were left out."""
    best: dict[str, Incoming] = {}
    count = 0
    for record in records:
        count += 1
        other = best.get(record.id)
        if other is None or _rank(record) > _rank(other):
            best[record.id] = record
    return [best[key] for key in sorted(best)], count - len(best)


def sort_out(records: Iterable[Incoming], stored: Mapping[str, Stored], expr_hash: str, *, remap: bool) -> Sorted:
    """What is to be done with each record."""
    kept, repeated = newest(records)
    out = Sorted(new=[], newer=[], equal=[], older=[], repeated=repeated)
    for record in kept:
        known = stored.get(record.id)
        if known is None:
            out.new.append(record)
            continue
        there, here = (known.updated_at, _version(known.version)), _rank(record)
        if here > there or (here == there and remap and known.expr_hash != expr_hash):
            out.newer.append((record, known))
        elif here == there:
            out.equal.append(record.id)
        else:
            out.older.append(record.id)
    return out


def incoming(
    identifier: str, updated_at: int, version: str | None, fields: Mapping[str, Any], raw: Any, *, deleted: bool
) -> Incoming | None:
    """A record with its content packed; None where it is larger than a row may be. `raw` None is left out."""
    parts = [b'{"fields":', _encode({} if deleted else fields)]
    if raw is not None:
        parts += (b',"raw":', raw if type(raw) is Raw else _encode(raw))
    body = b"".join((*parts, b"}"))
    if len(body) > MAX_CONTENT:
        return None
    return Incoming(
        id=identifier,
        updated_at=updated_at,
        version=version,
        deleted=deleted,
        content=packed(body),
        content_hash=sha256(body).hexdigest(),
    )


def packed(body: bytes) -> bytes:
    """The bytes, smaller where that pays."""
    if len(body) < PACK_FROM:
        return body
    compressor = getattr(_local, "compressor", None)
    if compressor is None:  # one a thread: they must not be shared
        compressor = _local.compressor = zstandard.ZstdCompressor(level=1, write_content_size=True)
    return compressor.compress(body)


def content_of(stored: bytes) -> bytes:
    """The JSON of a stored record: `{"fields": {…}, "raw": …}`."""
    if not stored.startswith(PACKED):
        return bytes(stored)
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:  # as above; making one costs more than most records
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    return decompressor.decompress(stored, max_output_size=4 * MAX_CONTENT)


def bad(item: Any, identifier: str | None, code: X, path: str, detail: str) -> Bad:
    """A record for the quarantine, with a sample of it and a key that finds it again."""
    try:
        body = item.encode() if isinstance(item, str) else _encode(item)
    except (TypeError, UnicodeEncodeError):
        body = repr(item).encode("utf-8", "replace")
    digest = sha256(body).hexdigest()
    return Bad(
        key=identifier if identifier is not None else f"sha256:{digest}",
        id=identifier,
        code=code,
        path=path,
        detail=detail,
        sample=body[:SAMPLE],
        sample_hash=digest,
    )


def unique_bad(found: Sequence[Bad]) -> list[Bad]:
    """One for each key, sorted: a statement touches a row once."""
    return [one for _, one in sorted({one.key: one for one in found}.items())]


def _rank(record: Incoming) -> tuple[int, tuple[int, int, str]]:
    return record.updated_at, _version(record.version)


def _version(version: str | None) -> tuple[int, int, str]:
    return (-1, 0, "") if version is None else ordered_id(version)
