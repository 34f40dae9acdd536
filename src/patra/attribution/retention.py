"""What is older than it is kept for goes, in bounded bites; facts stay unless one asks otherwise.

| what | kept for | by default |
|---|---|---|
| ledger keys | their window (3 or 14 days) and an hour | then forgotten, but for how many cycles they had |
| the log (batches as received) | `log` | 30 days |
| rejected and quarantined events | `rejects` | 90 days |
| audits of dropped events | `audits` | for ever |
| facts, with their audits and records | `facts` | for ever |

Closures and what settlement counts are never purged: a closure is what keeps a late event from being billed twice. Nor
are the cycles of forgotten keys: a key that is used again must not get the `recordKey` of a purged fact (§3.8.29). A
fact is purged only once the archive has its record. Where the store is the only archive that has it, because it was
the archive then, or because the one outside did not take it, it is purged only into a file that takes its place.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
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
from patra.attribution.pack import packed_whole, unpacked
from patra.attribution.reading import Archived, decisions_after, untold
from patra.attribution.records import Record
from patra.attribution.statements import Q, mark, set_mark
from patra.kernel.clock import HOUR
from patra.kernel.db import Database, Row, Tx
from patra.kernel.files import write_whole

BITE = 1000

Keep = Callable[[Sequence[Record]], None]
"""Where the records of purged facts go; it has them durably when it returns."""

ON_THE_WAY = HOUR
"""How long after its arrival a batch may still be on its way to a writer, by whichever clock: keys past their window
are kept that much longer, so that no answer depends on when they were forgotten (A1)."""

AUDITS, FACTS = "purge_scanned_audits", "purge_scanned_facts"
"""The marks: the decisions that were looked at already. Each kind has its own, since it has its own time."""


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
    passed: int = 0
    """Decisions that were looked at and stay, for good."""


def purge_once(db: Database, now: int, retention: Retention, *, keep: Keep | None = None) -> Purged:
    """Take one bite of everything that is past its time; what needs no file goes first, lest a full disk keeps it."""
    ledger = db.run(lambda tx: _purge_ledger(tx, now))
    log = db.run(lambda tx: _purge_log(tx, now, retention.log))
    rejects = db.run(lambda tx: _purge_rejects(tx, now, retention.rejects))
    audits, passed_by = _purge_decisions(db, AUDITS, now, retention.audits, keep)
    facts, passed = _purge_decisions(db, FACTS, now, retention.facts, keep)
    return Purged(
        ledger=ledger,
        log=log,
        rejects=rejects,
        audits=audits,
        facts=facts,
        passed=passed_by + passed,
    )


def _purge_ledger(tx: Tx, now: int) -> int:
    """Forget keys past their window; what is kept of them is how many cycles they had (F9)."""
    gone = tx.fetch(Q["forget_keys"], {"scope": SCOPE, "before": now - ON_THE_WAY, "limit": BITE})
    tx.execute(Q["remember_keys"], rows=sorted((bytes(key), cycle) for key, cycle in gone))
    if gone and not mark(tx, PURGED):
        set_mark(tx, PURGED, 1)
    return len(gone)


def _purge_log(tx: Tx, now: int, kept: int | None) -> int:
    """Batches as received, but never the newest: numbers go on from it."""
    return tx.execute(Q["purge_log"], {"before": now - kept, "limit": BITE}) if kept else 0


def _purge_rejects(tx: Tx, now: int, kept: int | None) -> int:
    return tx.execute(Q["purge_rejects"], {"before": now - kept, "limit": BITE}) if kept else 0


def _purge_decisions(db: Database, scanned: str, now: int, kept: int | None, keep: Keep | None) -> tuple[int, int]:
    """Look at the oldest decisions that were not looked at yet; gives how many of the kind went, and how many stay.

    The scan stops at one that will go later and comes back to it; decisions of the other kind are passed over.
    """
    if not kept:
        return 0, 0
    page, superseding = db.read(lambda tx: _page(tx, scanned))
    own = [_is_fact(one) is (scanned == FACTS) and not (_only_here(one) and keep is None) for one in page]
    stop = next(
        (i for i, one in enumerate(page) if own[i] and (one.id in superseding or _waits(one, now - kept))), len(page)
    )
    gone = [one for i, one in enumerate(page[:stop]) if own[i]]
    if keep is not None:
        keep([record for one in gone for record in one.records])

    def work(tx: Tx) -> None:
        _rewrite(tx, {one.id for one in gone})
        tx.execute(Q["purge_statuses"], rows=[(one.id,) for one in gone])
        tx.execute(Q["purge_drops"], rows=[(half(audit_key_of(one.decision)),) for one in gone])
        oldest = tx.fetch(Q["oldest_item"])[0][0]
        tx.execute(Q["purge_runs"], {"oldest": mark(tx, INDEXED) + 1 if oldest is None else oldest})
        set_mark(tx, scanned, page[stop - 1].id)

    if stop:
        db.run(work)
    return len(gone), stop - len(gone)


def _page(tx: Tx, scanned: str) -> tuple[list[Archived], set[int]]:
    """The decisions that are next, and those of them that the archive is still to be told of as superseded."""
    page = decisions_after(tx, mark(tx, scanned), BITE)
    return page, untold(tx, page)


def _only_here(one: Archived) -> bool:
    """Whether no archive outside has all of a fact's records, nor ever will."""
    return _is_fact(one) and (one.in_store or one.settled_code is not None)


def _is_fact(one: Archived) -> bool:
    """Whether it is kept as facts are: a decision that emitted something."""
    return one.decision.action != Action.DROP.value


def _rewrite(tx: Tx, gone: set[int]) -> None:
    """Take decisions out of the rows of their items, which nobody else may do meanwhile; an empty row goes."""
    items = sorted({number >> ITEM_BITS for number in gone})
    left: list[Row] = []
    empty: list[Row] = []
    for item, body in tx.fetch(Q["packs_to_rewrite"], rows=[(item,) for item in items]):
        kept = [(number, decision) for number, decision in unpacked(item, bytes(body)) if number not in gone]
        if kept:
            left.append((item, packed_whole(kept)))
        else:
            empty.append((item,))
    tx.execute(Q["rewrite_items"], rows=left)
    tx.execute(Q["purge_items"], rows=empty)


def _waits(one: Archived, before: int) -> bool:
    """Whether a decision will be purged one day, but not yet: it is too young, or the archive has not all of it."""
    return one.decision.at >= before or any(record.status is Status.NEW for record in one.records)


def into_files(folder: Path) -> Keep:
    """Keep the records of purged facts as JSON lines, compressed: one file a bite, durable before they go.

    A file is named by what it holds and appears whole, so whoever purges the same at the same time, or again after a
    crash, replaces nothing else: at worst a record stands in two files.
    """

    def keep(records: Sequence[Record]) -> None:
        if not records:
            return
        lines = msgspec.json.Encoder().encode_lines([as_sent(record) for record in records])
        path = folder / f"records-{records[0].at}-{sha256(lines).hexdigest()[:16]}.jsonl.zst"
        write_whole(path, zstandard.ZstdCompressor(level=6).compress(lines))

    return keep
