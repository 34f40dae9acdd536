"""Commits items of the log and gives their answers: one transaction, whatever their number.

The shell around `decide`: load and lock what the items touch, number them, decide, write. It is done again from the
start when another process was first with something.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from patra.attribution.contract.rules import LIVE_RULES, Rules
from patra.attribution.decision.decide import Answer, Changes, Ticked, decide
from patra.attribution.decision.decisions import Decision, decision_of
from patra.attribution.delivery.port import EnqueueForArchive
from patra.attribution.intake.batch import Batch, Item, Tick, instant
from patra.attribution.intake.checked_event import stored_event
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.record_key_check import check_record_keys
from patra.attribution.storage.write import (
    append_log,
    due_closures,
    due_until,
    enter,
    load_closures,
    write,
    write_drops,
)
from patra.kernel.db import Database, Tx, claim_taken


def commit(
    db: Database,
    items: Sequence[Item],
    *,
    due: int = 0,
    hand: EnqueueForArchive | None = None,
    keys: Keys | None = None,
    rules: Rules = LIVE_RULES,
    seconds: float | None = None,
) -> list[Answer]:
    """Decide the items in their order and make it durable; `due` is how many overdue closures a tick takes.

    A tick that finds more goes no further than the deadline of the last one it takes, and the log says so: a replay
    of it applies the same (F24). Closures of one deadline go together, however many.

    Without `hand` the store itself is the archive: a decision is archived when it is committed. `keys` are the keys
    of the store as the process has them; who commits more than once keeps them. Other `rules` than the live ones
    are for a replay. `seconds` bounds the transaction.
    """
    known = keys or Keys()
    dedup_keys = {event.key for item in items if isinstance(item, Batch) for event in item.events}
    closure_keys = {key for item in items if isinstance(item, Batch) for key in item.closure_keys}
    latest = max(map(instant, items))
    ticks = [item.at for item in items if isinstance(item, Tick)]
    tries = count()

    def work(tx: Tx) -> list[Answer]:
        enter(tx, alone=(alone := next(tries) > 0))
        known.refresh(tx)
        reached = due_until(tx, max(ticks), due) if ticks and due else None
        overdue = [] if reached is None else due_closures(tx, reached)
        closures = load_closures(tx, closure_keys.union(overdue), known.closures)
        logged = list(_log_items(items, reached))
        numbered = dict(zip(append_log(tx, logged), logged, strict=True))
        answers, changes = decide(known.load(tx, dedup_keys), closures, numbered, rules)
        if changes.absent and not alone and tx.dialect == "postgres":
            raise claim_taken()  # another writer may be about to open one of them under an earlier number: decide alone
        write_drops(tx, changes)
        with tx.flow():  # from here on nothing is asked
            known.write(tx, changes.ledger, latest)
            write(tx, changes, numbered, known.closures, archived=hand is None)
        if hand is None and changes.ambiguous:
            check_record_keys(tx, changes.ambiguous)
        if hand is not None:
            hand(tx, whole(changes, numbered), changes.superseded)
        found = iter(answers)
        return [next(found) if isinstance(item, Batch) or reached is not None else Ticked(0) for item in items]

    return db.run(work, seconds=seconds)


def _log_items(items: Sequence[Item], reached: int | None) -> Iterator[Item]:
    """The items as the log has them; a tick that finds nothing to do leaves no trace."""
    for item in items:
        if isinstance(item, Batch):
            yield item
        elif reached is not None:
            yield Tick(at=min(item.at, reached))


def whole(changes: Changes, items: Mapping[int, Item]) -> list[tuple[int, Decision]]:
    """What was decided, in its order, with its numbers."""
    found: list[tuple[int, Decision]] = []
    for number, some in changes.decisions.items():
        item = items[number]
        events = {event.index: event for event in item.events} if isinstance(item, Batch) else {}
        found += [
            (one.number, decision_of(one, stored_event(events[one.event]) if isinstance(one.event, int) else None))
            for one in some
        ]
    return found
