"""Turns a store into its records, as they are or as works page by page in the order of their keys (ruling I6).

Each page is a read of its own, so a long export holds no transaction open; a record that changes meanwhile is seen
once, as it was when its page was read.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.landing.records import content_of
from patra.ingest.packs.work import Origin, Work, work_of
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Queries, Row, Tx

Q = Queries.load("patra.ingest")
PAGE_RECORDS = 2_000
EVER = -(2**62)  # before every instant that a record can have


class Content(msgspec.Struct, frozen=True):
    """What `ing_record.content` holds."""

    fields: dict[str, Any] = {}
    raw: Any = None


class StoredRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record as it was stored: the fields as its pack named them, and the record as it came."""

    source: str
    endpoint: str
    id: str
    updated: str
    deleted: bool
    fields: dict[str, Any]
    raw: Any = None


class RawContent(msgspec.Struct, frozen=True):
    """The content without a look into the record as it came, nor into the fields."""

    fields: msgspec.Raw = msgspec.Raw(b"{}")


_content = msgspec.json.Decoder(Content).decode
_fields = msgspec.json.Decoder(RawContent).decode
_loose = msgspec.json.Decoder(dict[str, Any]).decode
_work = msgspec.json.Decoder(Work).decode
_encode = msgspec.json.Encoder().encode


def topics(tx: Tx) -> list[str]:
    """The topics that searches are followed for."""
    return [topic for (topic,) in tx.fetch(Q["topics"])]


def pages(
    db: Database, sources: Sequence[str] = (), size: int = PAGE_RECORDS, *, since: int | None = None, topic: str = ""
) -> Iterator[list[Row]]:
    """Rows of `ing_record`, page by page; all sources where none is named, all times where there is no `since`, and
    what any search found where no topic is named.
    """
    fixed: dict[str, Any] = {"since": EVER if since is None else since, "limit": size}
    for source in sorted(set(sources)) or [None]:
        stmt = Q["works_page"] if source is None else Q["works_page_of_source"]
        if topic:
            stmt, fixed = Q["works_page_of_topic"], fixed | {"topic": topic, "only": source or ""}
        at: tuple[str, str, str] = (source or "", "", "")
        while True:
            params = {**fixed, "source": at[0], "endpoint": at[1], "id": at[2]}
            rows = db.read(lambda tx, params=params, stmt=stmt: tx.fetch(stmt, params))
            if rows:
                yield rows
            if len(rows) < size:
                break
            at = (str(rows[-1][0]), str(rows[-1][1]), str(rows[-1][2]))


def count(db: Database, sources: Sequence[str] = (), *, since: int | None = None, topic: str = "") -> int:
    """How many records there are, for a progress bar."""

    def count_works(source: str | None) -> int:
        stmt = Q["works_count"] if source is None else Q["works_count_of_source"]
        params: dict[str, Any] = {"since": EVER if since is None else since}
        if topic:
            stmt, params = Q["works_count_of_topic"], params | {"topic": topic, "only": source or ""}
        elif source is not None:
            params["source"] = source
        found = db.read(lambda tx: tx.fetch_one(stmt, params))
        return int(found[0]) if found else 0

    return sum(count_works(source) for source in sorted(set(sources)) or [None])


def _whole(body: bytes) -> Content:
    try:
        return _content(body)
    except msgspec.ValidationError:  # a number past every bound, in a part of the record that no field is made of
        return msgspec.convert(json.loads(body, parse_int=float), Content)


def record_of(row: Row) -> StoredRecord:
    """A row as a record."""
    source, endpoint, identifier, updated_at, deleted, content, _ = row
    found = _whole(content_of(content))
    return StoredRecord(
        source=source,
        endpoint=endpoint,
        id=identifier,
        updated=format_instant(updated_at),
        deleted=bool(deleted),
        fields=found.fields,
        raw=found.raw,
    )


def stored_work(row: Row, *, raw: bool = False) -> Work | None:
    """A row as a work; None where its fields are not those of one (packs of shape `raw`)."""
    source, endpoint, identifier, updated_at, deleted, content, changed_at = row
    origin = Origin(source=source, endpoint=endpoint, id=identifier, updated_at=updated_at, deleted=bool(deleted))
    body = content_of(content)
    try:
        if raw:
            found = _whole(body)
            return _date_count(work_of(found.fields, origin, found.raw), changed_at)
        return _date_count(_describe_work(bytes(_fields(body).fields), origin), changed_at)
    except msgspec.ValidationError:
        return None


def _date_count(work: Work, changed_at: int) -> Work:
    """A count of citations has an instant: where the source reports none, when this content was taken in."""
    if work.citations is None or work.citations.at is not None:
        return work
    return replace(work, citations=replace(work.citations, at=format_instant(changed_at)))


def _describe_work(fields: bytes, origin: Origin) -> Work:
    """`work_of` for fields as they are stored: nearly all are those of a work already, and are read as one at once."""
    head = {"source": origin.source, "endpoint": origin.endpoint, "id": origin.id, "deleted": origin.deleted}
    if origin.updated_at:  # 0: unknown
        head["updated"] = format_instant(origin.updated_at)
    # what stands last counts, and where a record came from is not for its fields to say
    first = b"{" if fields[1:].lstrip()[:1] == b"}" else fields.rstrip()[:-1] + b","
    try:
        return _work(first + _encode(head)[1:])
    except msgspec.ValidationError:  # numbers that stand for texts, authors that are texts or have no name
        return work_of(_loose(fields), origin)


def works(db: Database, sources: Sequence[str] = (), *, raw: bool = False) -> Iterator[list[Work | None]]:
    """Works page by page; None stands for a record that is none."""
    for rows in pages(db, sources):
        yield [stored_work(row, raw=raw) for row in rows]
