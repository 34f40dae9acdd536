"""1,000,000 works to Parquet through Patra's export, beside DuckDB's own COPY of the same rows; memory and time of each.

    python -m bench.export              a million works
    python -m bench.export 100000       fewer

Each part runs in a process of its own, so that its peak of memory is its own. The store is SQLite with records as the
executor writes them; the limit is DuckDB reading the same rows from a JSON file that is already there.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from patra.ingest.export import Format, export, sink
from patra.ingest.records import packed
from patra.ingest.works_export import JOINED, WORKS, joined_rows, work_rows
from patra.kernel.db import migrate, open_database

WORDS = [f"word{number}" for number in range(4000)]


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Records of about 2 KB; every tenth is known to a second source."""
    chance = random.Random(7)
    for number in range(count):
        source, place = ("openalex", number - 1) if number % 10 == 9 else ("crossref", number)
        fields = {
            "doi": f"10.5555/{place}",
            "title": " ".join(chance.choices(WORDS, k=12)),
            "abstract": " ".join(chance.choices(WORDS, k=140)),
            "authors": [
                {"name": f"Given{n} Family{n}", "given": f"Given{n}", "family": f"Family{n}"} for n in range(4)
            ],
            "container": f"Journal {number % 500}",
            "type": "article",
            "issued": {"at": "2019-03-01T00:00:00Z", "precision": "month"},
        }
        yield {
            "provenance_code": source,
            "endpoint_name": "works",
            "provider_id": f"{number:09}",
            "updated_at": 1_700_000_000_000_000 + number,
            "deleted": 0,
            "expr_hash": "h",
            "content": packed(msgspec.json.encode({"fields": fields})),
            "content_hash": "c",
            "task_id": "t",
            "run_id": "r",
            "batch_no": 1,
            "first_seen_at": 1,
            "changed_at": 1,
            "refresh_checked_at": 1,
        }


def fill(folder: Path, count: int) -> None:
    db = open_database(f"sqlite:///{folder / 'bench.db'}")
    migrate(db, ["patra.kernel", "patra.ingest"])
    batch: list[dict[str, Any]] = []
    for row in rows(count):
        batch.append(row)
        if len(batch) == 10_000:
            db.run(lambda tx, batch=batch: tx.insert("ing_record", batch))
            batch = []
    if batch:
        db.run(lambda tx: tx.insert("ing_record", batch))
    db.close()


def measured(folder: Path, part: str) -> dict[str, Any]:
    """One part, in this process."""
    import duckdb

    start = time.perf_counter()
    count = 0
    if part == "copy":
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in WORKS.columns.items())
        source = f"read_json('{folder / 'patra.jsonl'}', format = 'newline_delimited', columns = {{{columns}}})"
        con = duckdb.connect(config={"memory_limit": "512MB", "temp_directory": str(folder)})
        con.execute(f"COPY (SELECT * FROM {source}) TO '{folder / 'copy.parquet'}' (FORMAT parquet, COMPRESSION zstd)")
        count = con.execute(f"SELECT count(*) FROM '{folder / 'copy.parquet'}'").fetchall()[0][0]
    else:
        db = open_database(f"sqlite:///{folder / 'bench.db'}")
        fmt = Format.PARQUET if part == "dedupe" else Format(part)
        path = folder / (f"dedupe.{fmt}" if part == "dedupe" else f"patra.{fmt}")
        pages = joined_rows(db, folder) if part == "dedupe" else work_rows(db)
        count = export(pages, sink(path, fmt, JOINED if part == "dedupe" else WORKS))
        db.close()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "part": part,
        "rows": count,
        "seconds": round(seconds, 1),
        "rows/s": round(count / seconds),
        "peak MB": peak,
    }


def main(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="patra-bench-") as name:
        folder = Path(name)
        fill(folder, count)
        print(f"{count} records in the store")
        for part in ("jsonl", "copy", "parquet", "duckdb", "csv", "dedupe"):
            run = [sys.executable, "-m", "bench.export", "--part", part, str(folder)]
            found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
            print("  ".join(f"{key} {value}" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(measured(Path(sys.argv[3]), sys.argv[2])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
