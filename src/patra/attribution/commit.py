"""Items of the log go in; when they are durable, their answers come out: one transaction, whatever their number.

The shell around `decide`: load and lock what the items touch, number them, decide, write. It is done again from the
start when another process was first with something (STYLE, "thin shells").
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from patra.attribution.batch import Batch, Item, instant
from patra.attribution.decide import Answer, Changes, Superseded, Ticked, decide
from patra.attribution.event import told
from patra.attribution.facts import Decision, decision_of
from patra.attribution.keystore import Keys
from patra.attribution.store import append_log, due_closures, enter, load_closures, write, write_drops
from patra.kernel.db import Database, Tx

Hand = Callable[[Tx, Sequence[tuple[int, Decision]], Sequence[Superseded]], None]
"""What hands new decisions to an archive outside the store, in the same transaction."""

EVERYTHING = 2**31


def commit(
    db: Database, items: Sequence[Item], *, due: int = 0, hand: Hand | None = None, keys: Keys | None = None
) -> list[Answer]:
    """Decide the items in their order and make it durable; `due` is how many overdue closures to take along.

    Without `hand` the store itself is the archive: a decision is archived when it is committed. `keys` are the keys
    of the store as the process has them; who commits more than once keeps them.
    """
    known = keys or Keys()
    dedup_keys = {event.key for item in items if isinstance(item, Batch) for event in item.events}
    closure_keys = {key for item in items if isinstance(item, Batch) for key in item.closure_keys}
    latest = max(map(instant, items))

    tries = count()

    def work(tx: Tx) -> list[Answer]:
        enter(tx, alone=next(tries) > 0)
        known.refresh(tx)
        overdue = due_closures(tx, latest, due) if due else []
        closures = load_closures(tx, closure_keys.union(overdue), known.closures)
        # a tick that finds nothing to do leaves no trace
        logged = [item for item in items if isinstance(item, Batch) or overdue]
        numbered = dict(zip(append_log(tx, logged), logged, strict=True))
        answers, changes = decide(known.load(tx, dedup_keys), closures, numbered)
        write_drops(tx, changes)
        with tx.flow():  # from here on nothing is asked
            known.write(tx, changes.ledger, latest)
            write(tx, changes, numbered, known.closures, archived=hand is None)
        if hand is not None:
            hand(tx, whole(changes, numbered), changes.superseded)
        found = iter(answers)
        return [next(found) if isinstance(item, Batch) or overdue else Ticked(0) for item in items]

    return db.run(work)


def whole(changes: Changes, items: Mapping[int, Item]) -> list[tuple[int, Decision]]:
    """What was decided, in its order, with its numbers."""
    found: list[tuple[int, Decision]] = []
    for number, some in changes.decisions.items():
        item = items[number]
        events = {event.index: event for event in item.events} if isinstance(item, Batch) else {}
        found += [
            (one.number, decision_of(one, None if one.event is None else told(events[one.event]))) for one in some
        ]
    return found
