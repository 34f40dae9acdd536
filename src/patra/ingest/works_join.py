"""Works of any number go in page by page; the same ones joined, as pages of `Merged`, come out in bounded memory.

Which works belong together is found by DuckDB in a file beside the target: every work starts as its own group, then
takes the smallest group that it shares an identifier with, until nothing changes. `works_merge.grouped` is that rule
for works that fit into memory; a test holds one to the other.
"""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from patra.ingest.export import LEAST_OBJECT, connected
from patra.ingest.works import Work
from patra.ingest.works_merge import PRECEDENCE, Merged, keys_of, merged

BATCH = 20_000
PAGE = 1_000
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Work).decode


def joined(
    pages: Iterable[Sequence[Work]], folder: Path, precedence: Sequence[str] = PRECEDENCE
) -> Iterator[list[Merged]]:
    """The works, joined; `folder` is where the working file may grow."""
    scratch = Path(tempfile.mkdtemp(prefix=".patra-join-", dir=folder))
    con = connected(scratch / "join.duckdb", scratch)
    try:
        con.execute("CREATE TABLE work (no BIGINT, body VARCHAR); CREATE TABLE key (no BIGINT, key VARCHAR)")
        _gather(con, pages, scratch)
        _components(con)
        yield from _merged(con, precedence)
    finally:
        con.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _gather(con: Any, pages: Iterable[Sequence[Work]], scratch: Path) -> None:
    number = 0
    works: list[dict[str, Any]] = []
    keys: list[dict[str, Any]] = []
    for page in pages:
        for work in page:
            works.append({"no": number, "body": _encode(work).decode()})
            keys += [{"no": number, "key": key} for key in keys_of(work)]
            number += 1
        if len(works) >= BATCH:
            _insert(con, scratch, works, keys)
            works, keys = [], []
    _insert(con, scratch, works, keys)


def _insert(con: Any, scratch: Path, works: list[dict[str, Any]], keys: list[dict[str, Any]]) -> None:
    for table, rows, column in (("work", works, "body"), ("key", keys, "key")):
        if rows:
            file = scratch / f"{table}.jsonl"
            lines = msgspec.json.Encoder().encode_lines(rows)
            file.write_bytes(lines)
            longest = max(max(map(len, lines.splitlines())) + 1024, LEAST_OBJECT)
            con.execute(
                f"INSERT INTO {table} SELECT no, {column} FROM read_json(?, format = 'newline_delimited',"
                f" columns = {{no: 'BIGINT', {column}: 'VARCHAR'}}, maximum_object_size = ?)",
                [str(file), longest],
            )


def _components(con: Any) -> None:
    con.execute("CREATE TABLE member AS SELECT no, no AS label FROM work")
    while True:
        con.execute("""
            CREATE OR REPLACE TABLE following AS
            WITH best AS (SELECT key, min(label) AS label FROM key JOIN member USING (no) GROUP BY key),
                 near AS (SELECT no, min(label) AS label FROM key JOIN best USING (key) GROUP BY no)
            SELECT member.no, coalesce(least(near.label, member.label), member.label) AS label
            FROM member LEFT JOIN near USING (no)
        """)
        changed = con.execute(
            "SELECT count(*) FROM member JOIN following USING (no) WHERE member.label <> following.label"
        ).fetchone()[0]
        # a group takes the group of its first work, so that long chains need few rounds
        con.execute("""
            CREATE OR REPLACE TABLE member AS
            SELECT f.no, least(f.label, head.label) AS label FROM following f JOIN following head ON head.no = f.label
        """)
        if not changed:
            return


def _merged(con: Any, precedence: Sequence[str]) -> Iterator[list[Merged]]:
    found = con.execute("SELECT label, body FROM work JOIN member USING (no) ORDER BY label, no")
    label: int | None = None
    group: list[Work] = []
    page: list[Merged] = []
    while rows := cast("list[tuple[int, str]]", found.fetchmany(PAGE)):
        for one, body in rows:
            if one != label and group:
                page.append(merged(group, precedence))
                group = []
            label = one
            group.append(_decode(body))
        if len(page) >= PAGE:
            yield page
            page = []
    if group:
        page.append(merged(group, precedence))
    if page:
        yield page
