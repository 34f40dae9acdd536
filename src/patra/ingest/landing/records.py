"""Decides from records as they came and what is stored of them what is new, newer, equal and older (ch. 4.9, 11.1).

The business key is (source, endpoint, provider id). A record is written over by one that was updated later, or at the
same time in a higher version; an equal one changes nothing, an older one is dropped and counted. Where the source's
update time does not move with its records (`onEqual: CONTENT`, ruling I14), other content under the same time is newer,
in the order of fetching, and counted by itself. An UPDATE may write an equal record again if another mapping made the
stored one: that is what it was sent for (ch. 6.3). The rule is applied to rows that are locked, so that two executors
with one record cannot undo each other.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, cast

import msgspec
import zstandard
from msgspec import Raw
from msgspec.structs import replace

from patra.ingest.expressions.cleaners import clean
from patra.ingest.landing.watermark import ordered_id
from patra.ingest.vocabulary.identifiers import doi
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.errors import StoreCorrupt
from patra.kernel.safety.known_secrets import holds_secret, scrub_known

PACKED = b"\x28\xb5\x2f\xfd"  # the magic number of zstd
PACK_FROM_BYTES = 400  # smaller contents are not worth packing
MAX_CONTENT = 16 * 1024 * 1024
SAMPLE_BYTES = 1024
GONE_CONTENT = b'{"fields":{},"raw":"gone"}'
GONE_HASH = sha256(GONE_CONTENT).hexdigest()
"""What is kept of a record that the provider has no more; nothing that a provider sends is kept in this form."""

SHORT_IDS = ("pmid", "pmcid", "arxiv", "openalex")
MAX_KEY_BYTES = 2_300
"""Of an identifier and the id that it leads to: an index of PostgreSQL holds some 2,700 bytes a row."""

_encode = msgspec.json.Encoder().encode
_local = threading.local()


class Incoming(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A record that passed every check, ready to be stored."""

    id: str
    updated_at: int
    version: str | None
    deleted: bool
    content: bytes
    content_hash: str
    identifiers: tuple[str, ...] = ()
    """Under which it is found beside its id."""
    gone: bool = False
    """The provider no longer has it, and gives no time: it is deleted where it is known, and ignored otherwise."""


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
    code: RunReason
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
    absent: list[str] = []
    """The provider has them no more, and they were never stored: nothing landed for them."""
    same_time: int = 0
    """How many of the newer ones have the update time and version of the stored record, and other content."""


def newest(records: Iterable[Incoming], *, by_content: bool = False) -> tuple[list[Incoming], int]:
    """One record for each id, the latest version of it, in the order of the ids; and how many were left out."""
    given = list(records)
    best = {record.id: record for record in given}
    if len(best) == len(given):  # so it is with most pages
        return [best[key] for key in sorted(best)], 0
    best.clear()
    for record in given:
        other = best.get(record.id)
        if other is None or _rank(record) > _rank(other) or (by_content and _rank(record) == _rank(other)):
            best[record.id] = record
    return [best[key] for key in sorted(best)], len(given) - len(best)


def sort_out(
    records: Iterable[Incoming],
    stored: Mapping[str, Stored],
    expr_hash: str,
    *,
    remap: bool,
    by_content: bool = False,
) -> Sorted:
    """What is to be done with each record. `by_content`: the source declares `onEqual: CONTENT`."""
    kept, repeated = newest(records, by_content=by_content)
    same_time = 0
    out = Sorted(new=[], newer=[], equal=[], older=[], absent=[], repeated=repeated)
    for record in kept:
        known = stored.get(record.id)
        if record.gone:
            if known is None:
                out.absent.append(record.id)
            elif known.content_hash != GONE_HASH:
                same = replace(record, updated_at=known.updated_at, version=known.version)
                out.newer.append((same, known))
            else:
                out.equal.append(record.id)
            continue
        if known is None:
            out.new.append(record)
            continue
        there, here = (known.updated_at, _version(known.version)), _rank(record)
        back = known.content_hash == GONE_HASH
        other = (by_content or back) and here == there and known.content_hash != record.content_hash
        if here > there or other or (here == there and remap and known.expr_hash != expr_hash):
            out.newer.append((record, known))
            same_time += other
        elif here == there:
            out.equal.append(record.id)
        else:
            out.older.append(record.id)
    return msgspec.structs.replace(out, same_time=same_time)


class Draft(msgspec.Struct, frozen=True):
    """A record that passed every check; `raw` None is left out of what is stored."""

    id: str
    updated_at: int
    version: str | None
    fields: Mapping[str, Any]
    raw: Any
    deleted: bool


def incoming(
    identifier: str, updated_at: int, version: str | None, fields: Mapping[str, Any], raw: Any, *, deleted: bool
) -> Incoming | None:
    """One record alone, packed."""
    [found] = all_incoming([Draft(identifier, updated_at, version, fields, raw, deleted)])
    return found


def all_incoming(drafts: Sequence[Draft]) -> list[Incoming | None]:
    """Records with their content packed; None where one is larger than a row may be.

    One step for all of them before the next: hashing and packing push out of the processor's caches what the other
    steps work with.
    """
    bodies = [_body(one) for one in drafts]
    small = [len(body) <= MAX_CONTENT for body in bodies]
    identifiers = _all_identifiers(drafts)
    hashes = [sha256(body).hexdigest() for body in bodies]
    contents = [pack_body(body) if fits else b"" for body, fits in zip(bodies, small, strict=True)]
    return [
        Incoming(
            id=one.id,
            updated_at=one.updated_at,
            version=one.version,
            deleted=one.deleted,
            content=content,
            content_hash=content_hash,
            identifiers=found,
        )
        if fits
        else None
        for one, fits, content, content_hash, found in zip(drafts, small, contents, hashes, identifiers, strict=True)
    ]


def _body(one: Draft) -> bytes:
    fields = _encode({} if one.deleted else one.fields)
    if one.raw is None:
        body = b"".join((b'{"fields":', fields, b"}"))
    else:
        raw = one.raw if type(one.raw) is Raw else _encode(one.raw)
        body = b"".join((b'{"fields":', fields, b',"raw":', raw, b"}"))
    if holds_secret(body):  # a provider that repeats our key does not get it stored
        body = _encode(_scrub_value(msgspec.json.decode(body)))
    return body


def _all_identifiers(drafts: Sequence[Draft]) -> list[tuple[str, ...]]:
    """The identifiers of each record; secrets are looked for in all of them at once, since mostly there are none."""
    found = [() if one.deleted else _identifiers(one.id, one.fields) for one in drafts]
    if holds_secret("\n".join(chain.from_iterable(found)).encode()):
        found = [tuple(name for name in names if not holds_secret(name.encode())) for names in found]
    return found


def _identifiers(own: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The DOI of a record, and its own id without the address that some providers put around it."""
    value = fields.get("doi")
    own_doi = doi(value) if type(value) is str else None if value is None else clean(("doi",), value)
    found: tuple[str, ...] = (own_doi,) if isinstance(own_doi, str) and _fits_beside(own_doi, own) else ()
    if fields.keys().isdisjoint(SHORT_IDS):
        return found
    for name in SHORT_IDS:
        short = fields.get(name)
        if isinstance(short, str) and short in own and short not in (own, own_doi, *found) and _fits_beside(short, own):
            found = (*found, short)
    return found


def _fits_beside(identifier: str, own: str) -> bool:
    if not identifier.isprintable():  # nor has it bytes, where half a character stands in it
        return False
    size = len(identifier) if identifier.isascii() else len(identifier.encode())
    own_size = len(own) if own.isascii() else len(own.encode())
    return 0 < size <= MAX_KEY_BYTES - own_size


def alias(asked: str, record: Incoming) -> Incoming | None:
    """What is kept under an id that leads to a record with another one (a DOI that became an alias: Crossref's 301).

    None where the two are the same DOI in another case: then the record itself is the answer.
    """
    own, other = clean(("doi",), asked), clean(("doi",), record.id)
    if own is not None and own == other:
        return None
    same = {"type": "is-identical-to", "id": f"doi:{other}"}
    fields: dict[str, Any] = (
        {"alias_of": record.id} if own is None or other is None else {"doi": own, "relations": [same]}
    )
    return incoming(asked, record.updated_at, record.version, fields, None, deleted=False)


def gone_record(identifier: str) -> Incoming:
    """A record that the provider says it has no more: it takes the time of the stored one, which it deletes."""
    return Incoming(
        id=identifier, updated_at=0, version=None, deleted=True, content=GONE_CONTENT, content_hash=GONE_HASH, gone=True
    )


def _scrub_value(value: Any) -> Any:
    """The value with every known secret masked in its texts and names."""
    match value:
        case str():
            return scrub_known(value)
        case list():
            return [_scrub_value(item) for item in cast("list[Any]", value)]
        case dict():
            return {scrub_known(name): _scrub_value(item) for name, item in cast("dict[str, Any]", value).items()}
        case _:
            return value


def pack_body(body: bytes) -> bytes:
    """The bytes, smaller where that pays."""
    if len(body) < PACK_FROM_BYTES:
        return body
    compressor = getattr(_local, "compressor", None)
    if compressor is None:  # one a thread: they must not be shared
        compressor = _local.compressor = zstandard.ZstdCompressor(level=1, write_content_size=True, write_checksum=True)
    return compressor.compress(body)


def content_of(stored: bytes) -> bytes:
    """The JSON of a stored record: `{"fields": {…}, "raw": …}`."""
    if not stored.startswith(PACKED):
        return bytes(stored)
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:  # as above; making one costs more than most records
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    try:
        return decompressor.decompress(stored, max_output_size=4 * MAX_CONTENT)
    except zstandard.ZstdError as error:
        detail = f"a packed record or body was changed since it was written ({error}); `patra verify` says which"
        raise StoreCorrupt("store_corrupt", detail) from error


def bad(item: Any, identifier: str | None, code: RunReason, path: str, detail: str) -> Bad:
    """A record for the quarantine, with a sample of it and a key that finds it again."""
    try:
        body = item.encode() if isinstance(item, str) else _encode(item)
    except (TypeError, UnicodeEncodeError):
        body = repr(item).encode("utf-8", "replace")
    if holds_secret(body):
        body = scrub_known(body.decode("utf-8", "replace")).encode()
    digest = sha256(body).hexdigest()
    return Bad(
        key=identifier if identifier is not None else f"sha256:{digest}",
        id=identifier,
        code=code,
        path=path,
        detail=scrub_known(detail),
        sample=body[:SAMPLE_BYTES],
        sample_hash=digest,
    )


def unique_bad(found: Sequence[Bad]) -> list[Bad]:
    """One for each key, sorted: a statement touches a row once."""
    return [one for _, one in sorted({one.key: one for one in found}.items())]


def _rank(record: Incoming) -> tuple[int, tuple[int, int, str]]:
    return record.updated_at, _version(record.version)


def _version(version: str | None) -> tuple[int, int, str]:
    return (-1, 0, "") if version is None else ordered_id(version)
