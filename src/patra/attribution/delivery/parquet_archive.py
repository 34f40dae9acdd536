"""An archive of Parquet files in a folder: each call adds one file, and no record stands in two (F21).

Beside the files lies `index.db`, which names every record that was written, its status and the digest of its payload.
A file counts once the index names it: one that a crash left behind is removed by the next writer. A writer locks the
index, so that no other process, least of all one that only reads, takes an unfinished file for a leftover.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import Record
from patra.attribution.delivery.port import Outcome, Rejected, Retry, Written
from patra.kernel.errors import ConfigInvalid
from patra.kernel.files import sync
from patra.kernel.ids import new_id

_TABLES = (
    "CREATE TABLE IF NOT EXISTS file (name TEXT PRIMARY KEY, records INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS record (key BLOB, status TEXT, digest BLOB, PRIMARY KEY (key, status)) WITHOUT ROWID",
)
COLUMNS = (
    "record_key",
    "record_type",
    "record_status",
    "payload_type",
    "payload_key",
    "event_id",
    "source_event_id",
    "trace_key",
    "request_key",
    "attempt_key",
    "opportunity_key",
    "response_reference",
    "render_attempt_id",
    "closure_key",
    "billing_key",
    "attribution_key",
    "canonical_dedup_key",
    "decision_reason_code",
    "output_at",
    "payload_digest",
    "payload",
    "record",
)


class ParquetArchive:
    """One folder of files; one process at a time writes to it, and until it does, nothing in it is touched."""

    def __init__(self, folder: str) -> None:
        if not folder:
            raise ConfigInvalid("config_archive_folder", "parquet: names no folder", place="attribution.archive")
        try:
            import duckdb  # noqa: PLC0415  (an extra)
        except ModuleNotFoundError as error:
            raise ConfigInvalid(
                "config_extra_missing", "Parquet files need the extra: pip install 'patra[parquet]'"
            ) from error
        self._duckdb: Any = duckdb
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._index = sqlite3.connect(self._folder / "index.db", isolation_level=None, check_same_thread=False)
        self._index.execute("PRAGMA synchronous=FULL")
        for table in _TABLES:
            self._index.execute(table)
        self._tidy = False

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        try:
            self._index.execute("BEGIN IMMEDIATE")
            try:
                outcomes = self._write_new(records)
                self._index.execute("COMMIT")
            except BaseException:
                if self._index.in_transaction:
                    self._index.execute("ROLLBACK")
                raise
        except (OSError, sqlite3.Error, self._duckdb.Error):
            return [Retry(Reason.ARCHIVE_UNAVAILABLE)] * len(records)
        return outcomes

    def close(self) -> None:
        self._index.close()

    def _find_outcome(self, record: Record) -> Outcome | None:
        """Whether the archive has the record: under another payload it is a mismatch, in another status it is new."""
        found = dict(
            self._index.execute(
                "SELECT status, digest FROM record WHERE key = ?", (bytes.fromhex(record.key),)
            ).fetchall()
        )
        if any(digest != bytes.fromhex(record.digest) for digest in found.values()):
            return Rejected(Reason.RECORDKEY_MISMATCH.value)
        return Written() if record.status.value in found else None

    def _write_new(self, records: Sequence[Record]) -> list[Outcome]:
        """Add what is not there yet as one file, while the index is held."""
        if not self._tidy:
            self._remove_leftovers()
            self._tidy = True
        known = _in_turn(records, [self._find_outcome(record) for record in records])
        new = [record for record, outcome in zip(records, known, strict=True) if outcome is None]
        if new:
            name = f"records-{new_id()}.parquet"
            self._save(new, self._folder / name)
            self._index.execute("INSERT INTO file VALUES (?, ?)", (name, len(new)))
            self._index.executemany(
                "INSERT OR IGNORE INTO record VALUES (?, ?, ?)",
                [(bytes.fromhex(r.key), r.status.value, bytes.fromhex(r.digest)) for r in new],
            )
        return [outcome or Written() for outcome in known]

    def _save(self, records: Sequence[Record], path: Path) -> None:
        """Durable, and whole as soon as it has its name: others may read the folder at any moment."""
        columns = list(zip(*map(record_row, records), strict=True))
        part = path.with_name(f".{path.name}.part")
        db = self._duckdb.connect()
        try:
            names = ", ".join(f"unnest(?) AS {name}" for name in COLUMNS)
            typed = "* REPLACE (output_at::TIMESTAMP AS output_at)"
            db.execute(f"CREATE TABLE records AS SELECT {typed} FROM (SELECT {names})", [list(c) for c in columns])
            db.execute(
                f"COPY records TO '{str(part).replace(chr(39), chr(39) * 2)}' (FORMAT parquet, COMPRESSION zstd)"
            )
        finally:
            db.close()
        sync(part)
        part.replace(path)
        sync(path.parent)

    def _remove_leftovers(self) -> None:
        counted = {name for (name,) in self._index.execute("SELECT name FROM file")}
        for path in (*self._folder.glob("records-*.parquet"), *self._folder.glob(".records-*.part")):
            if path.name not in counted:
                path.unlink()


def _in_turn(records: Sequence[Record], known: Sequence[Outcome | None]) -> list[Outcome | None]:
    """What each would find if those before it had been written one by one: two records of a call may have one key."""
    digests: dict[str, str] = {}
    told: set[tuple[str, str]] = set()
    found: list[Outcome | None] = []
    for record, outcome in zip(records, known, strict=True):
        name = (record.key, record.status.value)
        if outcome is not None:
            found.append(outcome)
        elif digests.setdefault(record.key, record.digest) != record.digest:
            found.append(Rejected(Reason.RECORDKEY_MISMATCH.value))
        else:
            found.append(Written() if name in told else None)
            told.add(name)
    return found


def record_row(record: Record) -> tuple[Any, ...]:
    """A record as the archive's columns (`COLUMNS`) have it."""
    body = record.body
    return (
        record.key,
        record.type.value,
        record.status.value,
        *body["payloadRef"].values(),
        *body["sourceKeys"].values(),
        *body["relationKeys"].values(),
        str(body["decisionReasonCode"]),
        body["outputAt"],
        record.digest,
        msgspec.json.encode(record.payload).decode(),
        msgspec.json.encode(body).decode(),
    )
