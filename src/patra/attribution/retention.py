"""What is older than it is kept for goes, in bounded bites; facts stay unless one asks otherwise.

| what | kept for | by default |
|---|---|---|
| ledger keys | their window (3 or 14 days) | then forgotten, but for how many cycles they had |
| the log (batches as received) | `log` | 30 days |
| rejected and quarantined events | `rejects` | 90 days |
| audits of dropped events | `audits` | for ever |
| facts, with their audits and records | `facts` | for ever |

Closures and billing keys are never purged: they are what keeps a late event from being billed twice. A fact is purged
only once the archive has its record, and where the store itself is the archive, only into a file that takes its place.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import zstandard

from patra.attribution.archive import as_sent
from patra.attribution.closure import Action, Status
from patra.attribution.decide import ITEM_BITS
from patra.attribution.dedup import SCOPE
from patra.attribution.facts import audit_key_of
from patra.attribution.keys import half
from patra.attribution.keystore import PURGED
from patra.attribution.locate import INDEXED
from patra.attribution.pack import packed, packs, unpacked
from patra.attribution.reading import Archived, decisions_after
from patra.attribution.records import Record
from patra.attribution.store import Q, mark, set_mark
from patra.kernel.db import Database, Row, Tx

BITE = 1000

Keep = Callable[[Sequence[Record]], None]
"""Where the records of purged facts go; it has them durably when it returns."""

SCANNED = "purge_scanned"


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long to keep what, in microseconds; None keeps it for ever."""

    log: int | None = None
    rejects: int | None = None
    audits: int | None = None
    facts: int | None = None


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: how many rows of each kind went."""

    ledger: int = 0
    log: int = 0
    rejects: int = 0
    audits: int = 0
    facts: int = 0


def purge_once(db: Database, now: int, retention: Retention, *, keep: Keep | None = None) -> Purged:
    """Take one bite of everything that is past its time."""
    decisions = _purge_decisions(db, now, retention, keep) if retention.audits or retention.facts else (0, 0)
    return Purged(
        ledger=db.run(lambda tx: _purge_ledger(tx, now)),
        log=db.run(lambda tx: _purge_log(tx, now, retention.log)),
        rejects=db.run(lambda tx: _purge_rejects(tx, now, retention.rejects)),
        audits=decisions[0],
        facts=decisions[1],
    )


def _purge_ledger(tx: Tx, now: int) -> int:
    """Forget keys past their window; what is kept of them is how many cycles they had (F9)."""
    gone = tx.fetch(Q["forget_keys"], {"scope": SCOPE, "before": now, "limit": BITE})
    tx.execute(Q["remember_keys"], rows=sorted((bytes(key), cycle) for key, cycle in gone))
    if gone and not mark(tx, PURGED):
        set_mark(tx, PURGED, 1)
    return len(gone)


def _purge_log(tx: Tx, now: int, kept: int | None) -> int:
    """Batches as received, but never the newest: numbers go on from it."""
    return tx.execute(Q["purge_log"], {"before": now - kept, "limit": BITE}) if kept else 0


def _purge_rejects(tx: Tx, now: int, kept: int | None) -> int:
    return tx.execute(Q["purge_rejects"], {"before": now - kept, "limit": BITE}) if kept else 0


def _purge_decisions(db: Database, now: int, retention: Retention, keep: Keep | None) -> tuple[int, int]:
    """Look at the oldest decisions that were not looked at yet; gives how many audits and facts went."""
    page = db.read(lambda tx: decisions_after(tx, mark(tx, SCANNED), BITE))
    stop = next((i for i, one in enumerate(page) if _waits(one, now, retention)), len(page))
    gone = [one for one in page[:stop] if _kept_for(one, retention)]
    if keep is not None:
        keep([record for one in gone for record in one.records])

    def work(tx: Tx) -> None:
        _rewrite(tx, {one.id for one in gone})
        tx.execute(Q["purge_statuses"], rows=[(one.id,) for one in gone])
        tx.execute(Q["purge_drops"], rows=[(half(audit_key_of(one.decision)),) for one in gone])
        facts = [one.decision.subject.dedup for one in gone if one.decision.action != Action.DROP.value]
        tx.execute(Q["purge_past"], rows=[(half(dedup),) for dedup in facts if dedup is not None])
        oldest = tx.fetch(Q["oldest_item"])[0][0]
        tx.execute(Q["purge_runs"], {"oldest": mark(tx, INDEXED) + 1 if oldest is None else oldest})
        set_mark(tx, SCANNED, page[stop - 1].id)

    if stop:
        db.run(work)
    facts = [one for one in gone if one.decision.action != Action.DROP.value]
    return len(gone) - len(facts), len(facts)


def _rewrite(tx: Tx, gone: set[int]) -> None:
    """Take decisions out of the rows of their items; a row that holds no other goes."""
    items = sorted({number >> ITEM_BITS for number in gone})
    left: list[Row] = []
    empty: list[Row] = []
    for item, _, body in tx.fetch(Q["packs_of_items"], rows=[(item,) for item in items]):
        kept = [(number, decision) for number, decision in unpacked(item, bytes(body)) if number not in gone]
        if kept:
            left.append((item, packed(packs(kept)[item])))
        else:
            empty.append((item,))
    tx.execute(Q["rewrite_items"], rows=left)
    tx.execute(Q["purge_items"], rows=empty)


def _kept_for(one: Archived, retention: Retention) -> int | None:
    return retention.audits if one.decision.action == Action.DROP.value else retention.facts


def _waits(one: Archived, now: int, retention: Retention) -> bool:
    """Whether a decision will be purged one day, but not yet: the scan stops there and comes back to it."""
    kept = _kept_for(one, retention)
    if not kept:
        return False
    return one.decision.at >= now - kept or any(record.status is Status.NEW for record in one.records)


def into_files(folder: Path) -> Keep:
    """Keep the records of purged facts as JSON lines, compressed: one file a bite, durable before they go."""

    def keep(records: Sequence[Record]) -> None:
        if not records:
            return
        folder.mkdir(parents=True, exist_ok=True)
        lines = msgspec.json.Encoder().encode_lines([as_sent(record) for record in records])
        path = folder / f"records-{records[0].at}-{records[0].key[:16]}.jsonl.zst"
        with path.open("wb") as file:
            file.write(zstandard.ZstdCompressor(level=6).compress(lines))
            file.flush()
            os.fsync(file.fileno())

    return keep
