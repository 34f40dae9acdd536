"""Records, works and joined works as pages of rows that fit a table; `file_writers.py` writes them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from patra.ingest.packs.work import Work
from patra.ingest.works.file_writers import Json, Progress, Table
from patra.ingest.works.join import join_works
from patra.ingest.works.merge import Merged
from patra.ingest.works.read import pages, record_of, stored_work
from patra.kernel.db import Database
from patra.kernel.pattern import pattern
from patra.kernel.safety.known_secrets import holds_secret
from patra.kernel.safety.redact import PUBLISHED_MARKS, redact_published

AUTHORS = (
    "STRUCT(name VARCHAR, given VARCHAR, family VARCHAR, suffix VARCHAR, orcid VARCHAR, affiliation VARCHAR[],"
    " ror VARCHAR[])[]"
)
_DESCRIBED = {
    "title": "VARCHAR",
    "abstract": "VARCHAR",
    "authors": AUTHORS,
    "authors_truncated": "BOOLEAN",
    "editors": AUTHORS,
    "container": "VARCHAR",
    "publisher": "VARCHAR",
    "type": "VARCHAR",
    "issued": "TIMESTAMP",
    "issued_precision": "VARCHAR",
    "updated": "TIMESTAMP",
    "language": "VARCHAR",
    "volume": "VARCHAR",
    "issue": "VARCHAR",
    "pages": "VARCHAR",
    "article_number": "VARCHAR",
    "issn": "VARCHAR[]",
    "isbn": "VARCHAR[]",
    "keywords": "VARCHAR[]",
    "mesh": "VARCHAR[]",
    "references": "VARCHAR[]",
    "citations": 'STRUCT("count" BIGINT, "at" VARCHAR)',
    "funders": "STRUCT(name VARCHAR, id VARCHAR, awards VARCHAR[])[]",
    "relations": "STRUCT(type VARCHAR, id VARCHAR)[]",
    "full_text": "STRUCT(url VARCHAR, type VARCHAR, version VARCHAR)[]",
    "notices": 'STRUCT(type VARCHAR, id VARCHAR, "at" VARCHAR)[]',
    "license": "VARCHAR",
    "oa_url": "VARCHAR",
    "url": "VARCHAR",
    "retracted": "BOOLEAN",
    "deleted": "BOOLEAN",
}
_IDENTIFIED = dict.fromkeys(("doi", "pmid", "pmcid", "arxiv", "openalex"), "VARCHAR")

PUBLISHED_TEXTS = ("title", "abstract", "authors", "editors", "container", "publisher", "keywords", "funders")
"""Columns of a work that hold what people wrote, and not identifiers or addresses of pages."""

_encode = msgspec.json.Encoder().encode
_marks = pattern(PUBLISHED_MARKS)

RECORDS = Table(
    "records",
    {
        "source": "VARCHAR",
        "endpoint": "VARCHAR",
        "id": "VARCHAR",
        "updated": "TIMESTAMP",
        "deleted": "BOOLEAN",
        "fields": "JSON",
        "raw": "JSON",
    },
)
WORKS = Table(
    "works",
    {
        "source": "VARCHAR",
        "endpoint": "VARCHAR",
        "id": "VARCHAR",
        **_IDENTIFIED,
        "ids": "MAP(VARCHAR, VARCHAR)",
        **_DESCRIBED,
    },
)
WORKS_RAW = Table("works", {**WORKS.columns, "raw": "JSON"})
JOINED = Table(
    "works",
    {
        "key": "VARCHAR",
        **_IDENTIFIED,
        "ids": "MAP(VARCHAR, VARCHAR[])",
        **_DESCRIBED,
        "sources": "VARCHAR[]",
        "joins": 'STRUCT("by" VARCHAR, records VARCHAR[], why VARCHAR)[]',
        "retractions": 'STRUCT(source VARCHAR, id VARCHAR, updated VARCHAR, notice VARCHAR, "at" VARCHAR)[]',
        "seen": "STRUCT(source VARCHAR, endpoint VARCHAR, id VARCHAR)[]",
        "given_by": "MAP(VARCHAR, VARCHAR)",
    },
)


def record_rows(
    db: Database, sources: Sequence[str] = (), *, since: int | None = None, topic: str = ""
) -> Iterator[list[Json]]:
    """Records as they are stored."""
    for rows in pages(db, sources, since=since, topic=topic):
        yield [msgspec.to_builtins(record_of(row)) for row in rows]


def work_rows(db: Database, sources: Sequence[str] = (), *, raw: bool = False, topic: str = "") -> Iterator[list[Json]]:
    """Works, one row a record; records that are not works are left out."""
    for rows in pages(db, sources, topic=topic):
        yield [row_of(work) for row in rows if (work := stored_work(row, raw=raw)) is not None]


def row_of(work: Work | Merged) -> dict[str, Any]:
    """A work as a flat row: the date and its precision in columns of their own."""
    row: dict[str, Any] = msgspec.to_builtins(work)
    row["retracted"], row["deleted"] = work.retracted, work.deleted
    row["authors_truncated"] = work.authors_truncated
    issued = work.issued
    if issued is not None:
        row["issued"], row["issued_precision"] = issued.at, issued.precision
    if isinstance(work, Merged):
        row["sources"] = list(dict.fromkeys(one.source for one in work.seen))
    texts = {name: row[name] for name in PUBLISHED_TEXTS if row.get(name)}
    encoded = _encode(texts)
    if _marks.found_in(encoded) or holds_secret(encoded):  # nearly always not: no text is looked at for itself
        row |= {name: _without_addresses(value) for name, value in texts.items()}
    return row


def _without_addresses(value: Any) -> Any:
    """Texts without e-mail addresses and keys (ch. 14.10); `patra ingest records` has them as they came."""
    match value:
        case str():
            return redact_published(value)
        case list():
            return [_without_addresses(one) for one in cast("list[Any]", value)]
        case dict():
            return {name: _without_addresses(one) for name, one in cast("dict[str, Any]", value).items()}
        case _:
            return value


def joined_rows(
    db: Database, folder: Path, sources: Sequence[str] = (), progress: Progress | None = None, *, topic: str = ""
) -> Iterator[list[Json]]:
    """Works joined over sources, one row per work; `progress` is called with how many records were read."""

    def shape_pages() -> Iterator[list[Work]]:
        for rows in pages(db, sources, topic=topic):
            yield [work for row in rows if (work := stored_work(row)) is not None]
            if progress is not None:
                progress(len(rows))

    for page in join_works(shape_pages(), folder):
        yield [row_of(work) for work in page]
