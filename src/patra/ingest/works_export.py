"""Records, works and joined works go in as pages of rows that fit a table; what `export.py` writes comes out of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from patra.ingest.export import Json, Progress, Table
from patra.ingest.works import Work
from patra.ingest.works_join import joined
from patra.ingest.works_merge import Merged
from patra.ingest.works_read import pages, record_of, stored_work
from patra.kernel.db import Database

AUTHORS = "STRUCT(name VARCHAR, given VARCHAR, family VARCHAR, orcid VARCHAR, affiliation VARCHAR[])[]"
_DESCRIBED = {
    "title": "VARCHAR",
    "abstract": "VARCHAR",
    "authors": AUTHORS,
    "container": "VARCHAR",
    "publisher": "VARCHAR",
    "type": "VARCHAR",
    "issued": "TIMESTAMP",
    "issued_precision": "VARCHAR",
    "updated": "TIMESTAMP",
    "language": "VARCHAR",
    "license": "VARCHAR",
    "oa_url": "VARCHAR",
    "url": "VARCHAR",
    "retracted": "BOOLEAN",
    "deleted": "BOOLEAN",
}
_IDENTIFIED = dict.fromkeys(("doi", "pmid", "pmcid", "arxiv", "openalex"), "VARCHAR")

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
        "seen": "STRUCT(source VARCHAR, endpoint VARCHAR, id VARCHAR)[]",
        "given_by": "MAP(VARCHAR, VARCHAR)",
    },
)


def record_rows(db: Database, sources: Sequence[str] = (), *, since: int | None = None) -> Iterator[list[Json]]:
    """Records as they are stored."""
    for rows in pages(db, sources, since=since):
        yield [msgspec.to_builtins(record_of(row)) for row in rows]


def work_rows(db: Database, sources: Sequence[str] = (), *, raw: bool = False) -> Iterator[list[Json]]:
    """Works, one row a record; records that are no works are left out."""
    for rows in pages(db, sources):
        yield [row_of(work) for row in rows if (work := stored_work(row, raw=raw)) is not None]


def row_of(work: Work | Merged) -> dict[str, Any]:
    """A work as a flat row: the date and its precision in columns of their own."""
    row: dict[str, Any] = msgspec.to_builtins(work)
    row["retracted"], row["deleted"] = work.retracted, work.deleted
    issued = work.issued
    if issued is not None:
        row["issued"], row["issued_precision"] = issued.at, issued.precision
    if isinstance(work, Merged):
        row["sources"] = list(dict.fromkeys(one.source for one in work.seen))
    return row


def joined_rows(
    db: Database, folder: Path, sources: Sequence[str] = (), progress: Progress | None = None
) -> Iterator[list[Json]]:
    """Works joined over sources, one row a work; `progress` is told how many records were read."""

    def shaped() -> Iterator[list[Work]]:
        for rows in pages(db, sources):
            yield [work for row in rows if (work := stored_work(row)) is not None]
            if progress is not None:
                progress(len(rows))

    for page in joined(shaped(), folder):
        yield [row_of(work) for work in page]
