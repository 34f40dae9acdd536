"""History that is past its retention: JSON lines in files, each with an index, and the way back (ch. 14.11).

A file `batches-….jsonl.zst` has an index beside it, `batches-….index.json`: its kind, its rows, its span of time and
the lineage keys (plans, runs) that it holds. Both are kept durably, in a folder or in object storage
(`history_place`), before the rows leave the store. Runs that are brought back are held in the store for some days; then
retention takes them out again.
"""

from base64 import b64decode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import zstandard

from patra.ingest.landing.store import Q
from patra.ingest.operations.history_place import HistoryPlace
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid

MAX_FILE_BYTES = 1 << 30
INDEX_SUFFIX = ".index.json"
READ_THREADS = 16
TABLES = {
    "runs": ("ing_task_run", ("run_id",)),
    "batches": ("ing_task_run_batch", ("batch_id",)),
    "cursor_events": ("ing_cursor_event", ("idempotent_key",)),
    "quarantine": ("ing_quarantine", ("provenance_code", "endpoint_name", "item_key")),
}
TIMES = {
    "runs": "finished_at",
    "batches": "created_at",
    "cursor_events": "event_time",
    "quarantine": "last_seen_at",
}


class HistoryFile(msgspec.Struct, frozen=True, kw_only=True):
    """The index of one file: what is in it, so that it is opened only when it is asked for."""

    file: str
    kind: str
    rows: int
    sha256: str
    """Of the lines, uncompressed."""
    first: str
    last: str
    plans: list[str]
    runs: list[str]


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was brought back, in rows that were not there, and until when it is held."""

    runs: int
    rows: dict[str, int]
    until: str


def write_history(place: HistoryPlace, kind: str, rows: Sequence[dict[str, Any]]) -> HistoryFile:
    """Write rows durably, the index last: a file without an index was never finished, and its rows are in the store."""
    lines = msgspec.json.Encoder().encode_lines(rows)
    digest = sha256_hex(lines)
    name = f"{kind}-{digest[:16]}"  # the same rows again are the same file
    times = sorted(int(row[TIMES[kind]]) for row in rows)
    index = HistoryFile(
        file=f"{name}.jsonl.zst",
        kind=kind,
        rows=len(rows),
        sha256=digest,
        first=format_instant(times[0]),
        last=format_instant(times[-1]),
        plans=sorted({row["plan_id"] for row in rows}),
        runs=sorted({row["run_id"] for row in rows}),
    )
    place.put(index.file, zstandard.ZstdCompressor(level=6).compress(lines))
    place.put(f"{name}{INDEX_SUFFIX}", msgspec.json.encode(index))
    return index


def history_files(place: HistoryPlace, *, run_id: str = "", plan_id: str = "") -> list[HistoryFile]:
    """The files of a place by their indexes, those of a run or a plan if one is named; the oldest first."""
    names = [name for name in place.names() if name.endswith(INDEX_SUFFIX)]
    with ThreadPoolExecutor(READ_THREADS) as pool:
        found = list(pool.map(partial(_index, place), names))
    wanted = [one for one in found if (not run_id or run_id in one.runs) and (not plan_id or plan_id in one.plans)]
    return sorted(wanted, key=lambda one: (one.first, one.file))


def restore(db: Database, place: HistoryPlace, *, run_id: str = "", plan_id: str = "", now: int, hold: int) -> Restored:
    """Bring the rows of a run, or of all runs of a plan, back into the store and hold them there for `hold`.

    Doing it again adds nothing and holds them for longer. Raises Invalid where the place has nothing of them.
    """
    files = history_files(place, run_id=run_id, plan_id=plan_id)
    counts: dict[str, int] = {}
    runs: set[str] = set()
    for index in sorted(files, key=lambda one: list(TABLES).index(one.kind)):
        rows = [
            row
            for row in _rows(place, index)
            if (not run_id or row["run_id"] == run_id) and (not plan_id or row["plan_id"] == plan_id)
        ]
        if not rows:
            continue
        names = {row["run_id"] for row in rows}
        runs |= names

        def bring(tx: Tx, rows: list[dict[str, Any]] = rows, names: set[str] = names, kind: str = index.kind) -> int:
            tx.execute(Q["hold_history"], rows=[(name, now + hold) for name in sorted(names)])
            table, key = TABLES[kind]
            return len(tx.insert_absent(table, rows, key=key))

        counts[index.kind] = counts.get(index.kind, 0) + db.run(bring)
    if not runs:
        raise Invalid(
            "i_history_missing",
            f"{place.name} holds nothing of {run_id or plan_id}",
            advice="`patra ingest history list` shows what it holds",
        )
    return Restored(runs=len(runs), rows=counts, until=format_instant(now + hold))


def _index(place: HistoryPlace, name: str) -> HistoryFile:
    try:
        return msgspec.json.decode(place.read(name) or b"", type=HistoryFile)
    except msgspec.MsgspecError as error:
        raise Invalid("i_history_damaged", f"{name} is not an index: {error}") from error


def _rows(place: HistoryPlace, index: HistoryFile) -> Iterator[dict[str, Any]]:
    """The rows of a file; raises Invalid where it is not what its index says."""
    content = place.read(index.file)
    if content is None:
        raise Invalid("i_history_damaged", f"{index.file} is not there, and its index is")
    try:
        lines = zstandard.ZstdDecompressor().decompress(content, max_output_size=MAX_FILE_BYTES)
    except zstandard.ZstdError as error:
        raise Invalid("i_history_damaged", f"{index.file} cannot be read: {error}") from error
    if sha256_hex(lines) != index.sha256:
        raise Invalid("i_history_damaged", f"{index.file} is not what its index says")
    for line in lines.splitlines():
        row: dict[str, Any] = msgspec.json.decode(line)
        if isinstance(sample := row.get("sample"), str):
            row["sample"] = b64decode(sample)
        yield row
