"""1,000,000 works to Parquet through Patra's export, beside DuckDB's own COPY of the same rows; memory and time of each.

    ./dev bench export                  a million works
    ./dev bench export 100000           fewer

Each part runs in a process of its own, so that its peak of memory is its own. The store is SQLite with records as the
executor writes them. `copy_json` and `copy_table` are DuckDB alone, with the same rows already before it: as JSON lines,
and as its own table. `dedupe` joins the works and writes Parquet.
"""

import argparse
import importlib.metadata
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

from bench.harness import BUILD, facts
from patra.ingest.landing.records import pack_body
from patra.ingest.works.export import JOINED, WORKS, joined_rows, work_rows
from patra.ingest.works.file_writers import DUCKDB_MEMORY, Format, export, sink
from patra.kernel.db import migrate, open_database

PARTS = ("jsonl", "copy_json", "duckdb", "copy_table", "parquet", "csv", "dedupe")
WORDS = [f"word{number}" for number in range(4000)]


class Figures(msgspec.Struct, kw_only=True):
    part: str
    rows: int
    seconds: float
    rate: int
    peak_mb: int


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
            "content": pack_body(msgspec.json.encode({"fields": fields})),
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


def measured(folder: Path, part: str) -> Figures:
    """One part, in this process."""
    start = time.perf_counter()
    count = copied(folder, part) if part.startswith("copy") else exported(folder, part)
    seconds = time.perf_counter() - start
    return Figures(
        part=part,
        rows=count,
        seconds=round(seconds, 1),
        rate=round(count / seconds),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    )


def copied(folder: Path, part: str) -> int:
    """DuckDB alone: the rows that Patra has exported, from JSON lines or from a table, to Parquet."""
    import duckdb

    target = folder / f"{part}.parquet"
    con = duckdb.connect(config={"memory_limit": DUCKDB_MEMORY, "temp_directory": str(folder)})
    if part == "copy_json":
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in WORKS.columns.items())
        rows = f"read_json('{folder / 'patra.jsonl'}', format = 'newline_delimited', columns = {{{columns}}})"
    else:
        con.execute(f"ATTACH '{folder / 'patra.duckdb'}' AS exported (READ_ONLY)")
        rows = "exported.works"
    con.execute(f"COPY (SELECT * FROM {rows}) TO '{target}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20000)")
    return int(con.execute(f"SELECT count(*) FROM '{target}'").fetchall()[0][0])


def exported(folder: Path, part: str) -> int:
    """Patra, from the store to a file."""
    db = open_database(f"sqlite:///{folder / 'bench.db'}")
    joining = part == "dedupe"
    fmt = Format.PARQUET if joining else Format(part)
    pages = joined_rows(db, folder) if joining else work_rows(db)
    path = folder / f"{'dedupe' if joining else 'patra'}.{fmt}"
    count = export(pages, sink(path, fmt, JOINED if joining else WORKS))
    db.close()
    return count


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench export", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="in the order in which they are needed")
    parser.add_argument("--folder", type=Path, help="keep the store and the files here, and use what is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patra-bench-") as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "filled").exists():
            fill(folder, options.count)
            (folder / "filled").touch()
        known = facts(duckdb=importlib.metadata.version("duckdb"))
        for key, value in known.items():
            print(f"{key:>10}  {value}", flush=True)
        print(f"{'part':>10}  {'rows':>9}  {'seconds':>8}  {'rows/s':>8}  {'peak MB':>8}")
        found: list[Figures] = []
        for part in options.only:
            run = [sys.executable, "-m", "bench.export", "--part", part, str(folder)]
            ran = subprocess.run(run, check=False, capture_output=True, text=True)
            if ran.returncode:  # DuckDB alone may need more memory than it is given: that is a finding, too
                print(f"{part:>10}  failed: {ran.stderr.strip().splitlines()[-1][:120]}", flush=True)
                continue
            one = msgspec.json.decode(ran.stdout, type=Figures)
            found.append(one)
            print(f"{one.part:>10}  {one.rows:>9}  {one.seconds:>8}  {one.rate:>8}  {one.peak_mb:>8}", flush=True)
        BUILD.mkdir(parents=True, exist_ok=True)
        target = BUILD / f"export-{'-'.join(options.only) if options.only != PARTS else 'all'}.json"
        target.write_bytes(msgspec.json.format(msgspec.json.encode({"facts": known, "results": found}), indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        sys.stdout.buffer.write(msgspec.json.encode(measured(Path(sys.argv[3]), sys.argv[2])))
    else:
        main()
