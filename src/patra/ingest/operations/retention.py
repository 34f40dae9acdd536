"""Deletes rows past their retention, in bounded batches; records and what they stand on stay (ch. 10.7, 14.11).

| what | kept for |
|---|---|
| batches, cursor events, settled quarantine rows, alerts that are over | `history` |
| runs of finished tasks, with the journal of both and the keys of lists that they left | `history` |
| kept bodies | `history`, and only as many bytes as `bodies`, the oldest going first |
| quotas, statistics of queues | forty days |
| records | `records`; by default for ever |
| plans, slices, tasks, watermarks, open quarantine rows | for ever: they say what need not be read again |

With a place for history, batches, runs, events and quarantine rows are written there first (`history`), durably.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from patra.ingest.landing.store import Q
from patra.ingest.operations.history import write_history
from patra.ingest.operations.history_place import HistoryPlace
from patra.kernel.clock import DAY
from patra.kernel.db import Database, Row, Tx
from patra.kernel.machine import forget

PURGE_BATCH_SIZE = 1000
SHORT = 40 * DAY

Keep = Callable[[str, Sequence[dict[str, Any]]], None]
"""Where purged rows go, by their kind; it has them durably when it returns."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long to keep what, in microseconds; None keeps it for ever. `bodies` is in bytes."""

    history: int | None = 90 * DAY
    records: int | None = None
    bodies: int = 1 << 30


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: how many rows of each kind went."""

    batches: int = 0
    runs: int = 0
    cursor_events: int = 0
    quarantined: int = 0
    bodies: int = 0
    records: int = 0


def purge_once(
    db: Database, now: int, retention: Retention, *, keep: Keep | None = None, limit: int = PURGE_BATCH_SIZE
) -> Purged:
    """Delete one batch of everything past its retention."""
    bodies = purge_bodies(db, now, retention, limit=limit)
    records = 0 if retention.records is None else _purge_records(db, now - retention.records, limit)
    if retention.history is None:
        return Purged(bodies=bodies, records=records)
    before = now - retention.history
    purged = Purged(
        batches=_purge_batch(db, "batches", ("batch_id",), now, before, keep, limit),
        cursor_events=_purge_batch(db, "cursor_events", ("event_id",), now, before, keep, limit, time="event_time"),
        runs=_purge_batch(db, "runs", ("run_id",), now, before, keep, limit),
        quarantined=_purge_batch(
            db, "quarantine", ("provenance_code", "endpoint_name", "item_key"), now, before, keep, limit
        ),
        bodies=bodies,
        records=records,
    )
    if not any(msgspec.structs.astuple(purged)):  # what is small goes when there is nothing larger to do
        _purge_small(db, now, before)
    return purged


def _purge_batch(
    db: Database, kind: str, key: tuple[str, ...], now: int, before: int, keep: Keep | None, limit: int, time: str = ""
) -> int:
    """The oldest rows of a kind; with `time`, up to the first that is young enough to stay."""
    found = db.read(lambda tx: tx.fetch_dicts(Q[f"old_{kind}"], {"before": before, "now": now, "limit": limit}))
    if time:
        found = found[: next((n for n, row in enumerate(found) if row[time] >= before), len(found))]
    if not found:
        return 0
    if keep is not None:
        keep(kind, found)
    rows: list[Row] = [tuple(row[name] for name in key) for row in found]
    moving = [row[name] for row in found for name in ("run_id", "task_id")] if kind == "runs" else []

    def work(tx: Tx) -> int:
        forget(tx, moving, before)
        if kind == "runs":
            tx.execute(Q["drop_list_keys"], rows=[(row["task_id"],) for row in found])
        return _drop(tx, kind, rows)

    return db.run(work)


def _drop(tx: Tx, kind: str, rows: Sequence[Row]) -> int:
    gone = tx.execute(Q[f"drop_{kind}"], rows=rows)
    if kind == "quarantine":
        tx.execute(Q["drop_topics_of_quarantine"], rows=rows)
    return gone


def purge_bodies(db: Database, now: int, retention: Retention, *, limit: int = PURGE_BATCH_SIZE) -> int:
    """Bodies past their time, and the oldest ones beyond the bound."""

    def over(tx: Tx) -> list[Row]:
        row = tx.fetch_one(Q["bodies_total"])
        total = int(row[0]) if row else 0
        before = -1 if retention.history is None else now - retention.history
        gone: list[Row] = []
        for digest, size, kept_at in tx.fetch(Q["oldest_bodies"], {"limit": limit}) if total else ():
            if total <= retention.bodies and kept_at >= before:
                break
            total -= size
            gone.append((digest,))
        return gone

    found = db.read(over)
    return db.run(lambda tx: tx.execute(Q["drop_bodies"], rows=found)) if found else 0


def _purge_records(db: Database, before: int, limit: int) -> int:
    gone = 0
    for source, endpoint in db.read(lambda tx: tx.fetch(Q["record_places"])):
        place = {"source": source, "endpoint": endpoint}
        asked = {**place, "before": before, "limit": limit - gone}
        found = db.read(lambda tx, asked=asked: tx.fetch(Q["old_records"], asked))
        if found:
            gone += db.run(lambda tx, place=place, found=found: _drop_records(tx, place, found))
        if gone >= limit:
            break
    return gone


def _drop_records(tx: Tx, place: dict[str, Any], found: Sequence[Row]) -> int:
    tx.execute(Q["drop_topic_records"], place, rows=found)
    tx.execute(Q["drop_identifiers"], place, rows=found)
    return tx.execute(Q["drop_records"], place, rows=found)


def _purge_small(db: Database, now: int, before: int) -> None:
    params = {"before": before, "day": (now - SHORT) // DAY, "short": now - SHORT, "now": now}

    def work(tx: Tx) -> None:
        for name in ("drop_alerts", "drop_queue_stats", "drop_quotas", "drop_history_holds"):
            tx.execute(Q[name], params)

    if db.read(lambda tx: tx.fetch(Q["old_small"], params)):
        db.run(work)


def into_files(place: HistoryPlace) -> Keep:
    """Keep purged rows as files: one and its index for each batch of rows, there durably before the rows go."""

    def keep(kind: str, rows: Sequence[dict[str, Any]]) -> None:
        write_history(place, kind, rows)

    return keep
