"""The dedup ledger against the decisions (F9): who was accepted holds its key, and no key is held for nobody.

An accepted event of cycle n has an entry of that cycle, or one of a later cycle; past its window the ledger may have
forgotten it but for how many cycles the key had. On SQLite an entry stands in `att_recent` until it is carried into the
tree. Entries are looked at in the order in which they end, so that those of one batch come together.
"""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from patra.attribution.checks.finding import Finding, Page
from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.keys import half, in_cycle
from patra.attribution.decision.closure_rules import Action
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import Decision
from patra.attribution.decision.dedup import SCOPE
from patra.attribution.intake.identity import FAILURE
from patra.attribution.retention import FACTS, LOG_PURGED
from patra.attribution.storage.decision_codec import unpack_decisions
from patra.attribution.storage.dedup_keys import CARRY_FROM, CARRY_TO, PURGED
from patra.attribution.storage.read import Archived
from patra.attribution.storage.recent_keys import firsts_of, known_in
from patra.attribution.storage.sql import Q, mark
from patra.kernel.db import Row, Tx
from patra.kernel.ledger import Entry, entries

RECENT_ROWS = 100
"""Commits whose keys are read at a time."""

BEFORE_ALL, _AFTER_ALL = -(2**62), 2**62


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A key of the ledger: in which cycle, and since when."""

    key: bytes
    cycle: int
    first_at: int


def held_by(decision: Decision) -> Held | None:
    """The key that an event holds since a decision; None of drops, of deadlines, and of what follows from another."""
    subject = decision.subject
    own = decision.batch is None and subject.index is not None and decision.action != Action.DROP.value
    return Held(half(subject.dedup), subject.cycle, decision.at) if own and subject.dedup is not None else None


class RecentSearch:
    """Finds keys that SQLite has not carried into the tree yet.

    It begins where it found some last: pages of decisions follow each other as the commits did.
    """

    def __init__(self) -> None:
        self._place = 0

    def find_known(self, tx: Tx, keys: Collection[bytes]) -> dict[bytes, Entry]:
        """The entries of those keys that are there; it reads no further than it has to."""
        wanted, found, begin = set(keys), dict[bytes, Entry](), self._place
        if tx.dialect != "sqlite":
            return found
        for first, last in ((begin, _AFTER_ALL), (0, begin)):
            after = first
            while wanted and after < last and (rows := _recent_rows(tx, after)):
                for number, body in rows:
                    if some := known_in(bytes(body), wanted):
                        found |= some
                        wanted -= some.keys()
                        self._place = number - 1
                after = rows[-1][0]
        return found


def past_cycles(tx: Tx, keys: Collection[bytes]) -> dict[bytes, int]:
    """How many cycles some keys had when the ledger forgot them."""
    if not keys or not mark(tx, PURGED):
        return {}
    return {bytes(key): cycle for key, cycle in tx.fetch(Q["past_cycles"], rows=[(key,) for key in sorted(keys)])}


def cycles_of(tx: Tx, keys: Collection[bytes], recent: RecentSearch) -> dict[bytes, int]:
    """The last cycle of each of some keys that was ever held."""
    known = entries(tx, SCOPE, sorted(keys))
    known |= recent.find_known(tx, set(keys) - known.keys())
    return past_cycles(tx, keys) | {key: entry.cycle for key, entry in known.items()}


def key_findings(tx: Tx, page: Sequence[Archived], now: int, recent: RecentSearch) -> Iterator[Finding]:
    """Accepted events whose key the ledger does not hold, or holds otherwise than it was given."""
    held = [(one.decision, found) for one in page if (found := held_by(one.decision)) is not None]
    known = entries(tx, SCOPE, sorted({one.key for _, one in held}))
    absent = [(decision, one) for decision, one in held if one.key not in known]
    past = past_cycles(tx, {one.key for _, one in absent})
    forgotten = {
        one for decision, one in absent if past.get(one.key, 0) >= one.cycle and one.first_at + _window(decision) < now
    }
    known |= recent.find_known(tx, {one.key for _, one in absent if one not in forgotten})
    for decision, one in held:
        if one in forgotten:
            continue
        entry = known.get(one.key)
        if entry is None or entry.cycle < one.cycle:
            check = "ledger_lacks_key"
        elif entry.cycle == one.cycle and not _is_as_given(entry, one, _window(decision)):
            check = "ledger_entry_differs"
        else:
            continue
        yield Finding(check=check, key=in_cycle(decision.subject.dedup or "", one.cycle))


def _is_as_given(entry: Entry, one: Held, window: int) -> bool:
    return (entry.first_at, entry.expires_at) == (one.first_at, one.first_at + window)


def _window(decision: Decision) -> int:
    event_type = decision.subject.event_type
    return KINDS["error" if event_type == FAILURE else event_type].window


def ledger_page(tx: Tx, after: int, limit: int) -> Page:
    """The entries of the tree that end after an instant; those that end at one instant stay together."""
    rows = tx.fetch(Q["ledger_page"], {"scope": SCOPE, "after": after, "limit": limit})
    held = [Held(bytes(key), cycle, first_at) for key, cycle, first_at, _ in rows]
    last = rows[-1][3] if rows else after
    return Page(rows=len(rows), last=last, more=len(rows) >= limit, findings=list(_unfounded_keys(tx, held)))


def recent_page(tx: Tx, after: int, limit: int) -> Page:
    """The keys of the next commits that SQLite has not carried into the tree; at least one commit, if there is one."""
    carried_to, carried_from = mark(tx, CARRY_TO), mark(tx, CARRY_FROM)
    held: list[Held] = []
    rows = _recent_rows(tx, after)
    last = after
    for number, body in rows:
        if held and len(held) >= limit:
            return Page(rows=len(held), last=last, more=True, findings=list(_unfounded_keys(tx, held)))
        for key, _, first_at, _ in firsts_of(bytes(body)):
            if number > carried_to or (key[0] << 8 | key[1]) >= carried_from:  # else it is the tree's
                held.append(Held(key, 1, first_at))
        last = number
    return Page(rows=len(held), last=last, more=len(rows) == RECENT_ROWS, findings=list(_unfounded_keys(tx, held)))


def _unfounded_keys(tx: Tx, held: Sequence[Held]) -> Iterator[Finding]:
    """Keys that no decision accounts for; what was purged with the log or the facts is not asked for."""
    since, purged = mark(tx, LOG_PURGED), mark(tx, FACTS) >> ITEM_BITS
    asked = [one for one in held if not since or one.first_at >= since]
    instants: list[Row] = [(at,) for at in sorted({one.first_at for one in asked})]
    lines = tx.fetch(Q["lines_at"], rows=instants) if instants else []
    suspects = _not_in(tx, asked, [item for _, item in lines])
    gone = {at for at, item in lines if item <= purged}
    suspects = [one for one in suspects if one.first_at not in gone]
    if suspects:  # a decision may have lost its line, which another check tells
        items = tx.fetch(Q["items_received_at"], rows=[(at,) for at in sorted({one.first_at for one in suspects})])
        suspects = _not_in(tx, suspects, [item for (item,) in items])
    for one in suspects:
        yield Finding(check="ledger_key_without_a_decision", key=in_cycle(one.key.hex(), one.cycle))


def _not_in(tx: Tx, held: Sequence[Held], items: Collection[int]) -> list[Held]:
    """Those of some keys that no decision of some items holds."""
    rows = tx.fetch(Q["packs_of_items"], rows=[(item,) for item in sorted(set(items))]) if items else []
    decided = (decision for item, _, body in rows for _, decision in unpack_decisions(item, bytes(body)))
    known = {found for decision in decided if (found := held_by(decision)) is not None}
    return [one for one in held if one not in known]


def _recent_rows(tx: Tx, after: int) -> list[Row]:
    return tx.fetch(Q["recent_page"], {"after": after, "limit": RECENT_ROWS})
