"""Closures by key or in pages, and how far the records of one have come in the archive."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.windows import WAIT_WINDOW
from patra.attribution.decision.closure_rules import BILLABLE_IMPRESSION, Status
from patra.attribution.decision.closure_state import Closure, ClosureState
from patra.attribution.decision.output_records import RecordType
from patra.attribution.queries.decision_steps import transition_of
from patra.attribution.storage.key_search import Found, find
from patra.attribution.storage.read import (
    Archived,
    closures_after,
    deadline_place,
    place_of,
    succeeded_closures_after,
    untold_decisions,
)
from patra.attribution.storage.read import closures_by_deadline as read_by_deadline
from patra.attribution.storage.sql import Q
from patra.attribution.storage.write import closure_of
from patra.kernel.canonical import key16
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Tx

DEADLINE_STEP = 5 * SECOND
MAX_DEADLINES = 50_000
MAX_PARTS = 2 * WAIT_WINDOW // DEADLINE_STEP
"""Parts of the time to come, twice those of the wait; deadlines lie further ahead only where a clock was ahead."""
LATEST_DEADLINE = 2**62


class Aggregate(StrEnum):
    """How far the records of one closure have come in the archive (§3.8.29.4)."""

    COMMITTED = "consistent_committed"
    NON_BILLABLE = "consistent_non_billable"
    PENDING = "partial_pending"
    TIMEOUT = "partial_timeout"


class ClosureView(msgspec.Struct, frozen=True, kw_only=True):
    """A closure for people: where it stands, what ended it, its click, its records as a whole."""

    closureKey: str  # noqa: N815  names of the specification
    appId: str  # noqa: N815
    state: str
    terminalSource: str | None  # noqa: N815
    openedAt: str  # noqa: N815
    nextDeadline: str | None  # noqa: N815
    click: str | None
    aggregate: str | msgspec.UnsetType | None = msgspec.UNSET
    """Of one closure, not of a list; None once what was decided about it has been purged."""
    way: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Of one closure: the transitions of its machine that it took, as far as the store has their decisions."""


class DueClosures(msgspec.Struct, frozen=True, kw_only=True):
    """How many closures have their deadline in a part of the time to come."""

    at: str
    """The first instant of the part."""
    count: int


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """When closures that wait have their deadlines: `overdue` lie in the past, the timer takes them next.

    `later` are due after the last part, since the clock was ahead when they were opened. `complete` is false where more
    wait than are counted; those counted are the ones that are due first.
    """

    step_seconds: int
    overdue: int
    due: list[DueClosures]
    later: int
    complete: bool


def closure_by_key(tx: Tx, closure_key: str) -> ClosureView | None:
    """One closure with its aggregate state, as far as that can be known; None where there is no closure."""
    rows = tx.fetch(Q["closure_by_key"], {"key": key16(closure_key)})
    if not rows:
        return None
    closure, found = closure_of(rows[0]), _of_closure(tx, closure_key)
    underway = bool(untold_decisions(tx, [one.archived for one in found]))
    complete = bool(found) if closure.state is not ClosureState.CLOSED_SUCCESS else _billing(found)
    way = [step.value for one in found if (step := transition_of(one.archived.decision)) is not None]
    state = aggregate(found, underway) if complete else None
    return msgspec.structs.replace(_closure_view(closure), aggregate=state, way=way)


def closures_by_key(tx: Tx, closure_keys: Iterable[str]) -> list[ClosureView]:
    """Closures as a list shows them, without their aggregate states, by their keys."""
    keys = [key16(key) for key in closure_keys]
    found = {bytes(row[0]): row for row in tx.fetch(Q["closures_of_keys"], rows=[(key,) for key in sorted(keys)])}
    return [_closure_view(closure_of(found[key])) for key in keys if key in found]


def _billing(found: Sequence[Found]) -> bool:
    """Whether the impression is among the decisions: if a closure has succeeded without one, it was purged."""
    return any(one.archived.decision.billable == BILLABLE_IMPRESSION for one in found)


def _of_closure(tx: Tx, closure_key: str) -> list[Found]:
    """Every decision on a closure; another key that happens to be the same text is not asked for."""
    found: list[Found] = []
    after: int | None = -1
    while after is not None:
        page = find(tx, closure_key, after=after)
        found += [one for one in page.found if one.archived.decision.subject.closure == closure_key]
        after = page.next
    return found


class ClosurePage(msgspec.Struct, frozen=True, kw_only=True):
    """Closures, and the place where the next page begins; None where there is none. A page may be short, or empty."""

    closures: list[ClosureView]
    next: bytes | None


def closures(tx: Tx, *, state: str | None, after: bytes, limit: int) -> ClosurePage:
    """Closures that follow a place, of one state or of any; those that succeeded among so many that follow."""
    end: bytes | None = None
    if state == ClosureState.CLOSED_SUCCESS.value:
        found, end = succeeded_closures_after(tx, after, limit)
    else:
        found = closures_after(tx, after, limit, state or "")
    following = place_of(found[-1]) if len(found) == limit else end
    return ClosurePage(closures=[_closure_view(one) for one in found], next=following)


def closures_by_deadline(
    tx: Tx, *, after: bytes, until: int = LATEST_DEADLINE, app: str = "", limit: int
) -> list[tuple[bytes, ClosureView]]:
    """Closures that wait, of an app or of all, due before an instant, the next first; each with its place."""
    found = read_by_deadline(tx, after, until, app, limit)
    return [(deadline_place(one), _closure_view(one)) for one in found]


def deadlines(tx: Tx, now: int) -> Deadlines:
    """How many closures are due in each part of the wait that a closure has at most, up to a bound."""
    asked = {"now": now, "step": DEADLINE_STEP, "end": now + MAX_PARTS * DEADLINE_STEP, "limit": MAX_DEADLINES}
    counts = dict(tx.fetch(Q["deadlines"], asked))
    overdue, later = counts.pop(-1, 0), counts.pop(-2, 0)
    slots = range(max([WAIT_WINDOW // DEADLINE_STEP - 1, *counts]) + 1)
    due = [DueClosures(at=format_instant(now + slot * DEADLINE_STEP), count=counts.get(slot, 0)) for slot in slots]
    complete = overdue + sum(counts.values()) + later < MAX_DEADLINES
    return Deadlines(step_seconds=DEADLINE_STEP // SECOND, overdue=overdue, due=due, later=later, complete=complete)


def aggregate(found: Sequence[Found], underway: bool = False) -> Aggregate:
    """The aggregate state of all records of one closure; `underway`: the archive lacks a supersession."""
    records = [record for one in found for record in one.archived.records]
    if any(_is_unwritten(one.archived, underway) for one in found):
        return Aggregate.TIMEOUT
    if underway or any(record.status is Status.NEW for record in records):
        return Aggregate.PENDING
    billed = any(one.archived.last_status(RecordType.BILLABLE) is Status.COMMITTED for one in found)
    return Aggregate.COMMITTED if billed else Aggregate.NON_BILLABLE


def _is_unwritten(one: Archived, underway: bool) -> bool:
    """Whether the archive still lacks a record, or the news that it was superseded, after the time for it ran out."""
    exhausted = one.settled_code == Reason.COMPENSATION_EXHAUSTED.value
    return exhausted and (bool(one.not_taken) or (one.is_superseded_untold and not underway))


def _closure_view(closure: Closure) -> ClosureView:
    due = closure.next_due
    return ClosureView(
        closureKey=closure.closure,
        appId=closure.app,
        state=closure.state.value,
        terminalSource=closure.source.value if closure.source else None,
        openedAt=format_instant(closure.opened_at),
        nextDeadline=format_instant(due) if due is not None else None,
        click=closure.click.value if closure.click else None,
    )
