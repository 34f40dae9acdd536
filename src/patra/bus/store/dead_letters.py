"""Dead letters and frozen types: records of C§6, moved along their machine; the backlog that freezes a type (B5)."""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import DEAD_LETTER, DeadLetter, DeadLetterState, DeadLetterTransition, Filter
from patra.bus.consuming.freeze import Freeze, FreezeState
from patra.kernel.db import Queries, Tx
from patra.kernel.machine import Move, advance, forget, journal

Q = Queries.load("patra.bus")
SETTLED = (DeadLetterState.REPLAYED, DeadLetterState.DISCARDED)
MAX_COUNTED_LETTERS = 100_000
"""Of one state; where there are more, there are shown to be at least so many."""
ALL = 2**62


class NewDeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """What is written of an event that failed for the last time."""

    letter_id: str
    group_id: int
    group_name: str
    seq: int
    order_key: bytes | None
    event_id: str
    event_type: str
    event_version: str
    producer: str
    tenant_id: str
    trace_id: str
    correlation_id: str
    error_code: str
    error_detail: str
    reason: str
    attempts: int
    first_failed_at: int
    last_failed_at: int
    envelope: str
    traceback: str = ""
    error_shape: str = ""


class ErrorGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one cause: same group, type, code and error. `event_id` is that of one of them."""

    group: str
    event_type: str
    error_code: str
    error_shape: str
    letters: int
    first_failed_at: int
    last_failed_at: int
    event_id: str


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter and the state of its event."""

    letter: DeadLetter
    group_id: int
    seq: int
    order_key: bytes | None


def write(tx: Tx, burials: Sequence[NewDeadLetter]) -> None:
    """Write dead letters; one that was there, however it ended, is open again, with its history."""
    before = states(tx, [b.letter_id for b in burials])
    tx.execute(Q["letter_write"], rows=[msgspec.structs.astuple(b) for b in sorted(burials, key=lambda b: b.letter_id)])
    journal(
        tx,
        [
            DEAD_LETTER.move(b.letter_id, was, DeadLetterTransition.FAILED_AGAIN, reason=b.reason, at=b.last_failed_at)
            for b in burials
            if (was := before.get(b.letter_id, DeadLetterState.OPEN)) is not DeadLetterState.OPEN
        ],
    )


def states(tx: Tx, ids: Collection[str]) -> dict[str, DeadLetterState]:
    return {
        letter: DeadLetterState(state)
        for letter, state in tx.fetch(Q["letters_states"], rows=[(i,) for i in sorted(ids)])
    }


def mark_replayed(tx: Tx, ids: Collection[str], now: int) -> set[str]:
    """The replay of some dead letters succeeded."""
    moves = [
        DEAD_LETTER.move(
            i, DeadLetterState.REPLAYING, DeadLetterTransition.HANDLED, reason=Reason.REPLAY_SUCCEEDED, at=now
        )
        for i in sorted(ids)
    ]
    return move(tx, moves)


def move(tx: Tx, moves: Sequence[Move]) -> set[str]:
    return advance(tx, DEAD_LETTER, table="bus_dead_letter", key="letter_id", column="state", moves=moves)


def reopen(tx: Tx, group: str, now: int) -> int:
    """Dead letters whose replay waited for a group that is forgotten are open again; gives how many."""
    back = DeadLetterTransition.FAILED_AGAIN
    one = DEAD_LETTER.move(group, DeadLetterState.REPLAYING, back, reason=Reason.GROUP_UNKNOWN, at=now)
    params = {
        "group_name": group,
        "machine": one.machine,
        "was": one.was,
        "on_event": one.on,
        "became": one.to,
        "reason": one.reason,
        "now": one.at,
        "rule_version": one.rule_version,
    }
    if tx.dialect == "sqlite":  # where nobody else writes meanwhile; PostgreSQL moves and journals in one statement
        tx.execute(Q["letters_reopen_journal"], params)
    return tx.execute(Q["letters_reopen"], params)


def count_replay(tx: Tx, ids: Collection[str], by: str, now: int) -> None:
    """C§6.3: `replay_count` and `replayed_by`."""
    tx.execute(Q["letters_count_replay"], {"by": by, "now": now}, rows=[(i,) for i in sorted(ids)])


def close(tx: Tx, ids: Collection[str], by: str, reason: str, now: int) -> None:
    tx.execute(Q["letters_close"], {"by": by, "now": now, "reason": reason}, rows=[(i,) for i in sorted(ids)])


def by_id(tx: Tx, ids: Collection[str]) -> list[Located]:
    return [_located_letter(row) for row in tx.fetch_dicts(Q["letters_by_id"], rows=[(i,) for i in sorted(ids)])]


def of_events(tx: Tx, event_ids: Collection[str], limit: int = 1000) -> list[DeadLetter]:
    """The dead letters of some events, whatever their state."""
    rows = [(event_id,) for event_id in sorted(event_ids)]
    return [_located_letter(row).letter for row in tx.fetch_dicts(Q["letters_of_events"], {"limit": limit}, rows=rows)]


def find(tx: Tx, wanted: Filter, *, limit: int, before: DeadLetter | None = None) -> list[Located]:
    """The latest to fail first; `before` is the last one of the page before."""
    params = _params(wanted) | {
        "before_at": before.last_failed_at if before else 2**62,
        "before_id": before.letter_id if before else "",
        "limit": limit,
    }
    return [_located_letter(row) for row in tx.fetch_dicts(Q["letters"], params)]


def by_error(tx: Tx, wanted: Filter, *, limit: int) -> list[ErrorGroup]:
    """Dead letters grouped by their cause, the largest group first."""
    return [ErrorGroup(**row) for row in tx.fetch_dicts(Q["letters_by_error"], _params(wanted) | {"limit": limit})]


def reach(tx: Tx, wanted: Filter) -> tuple[int | None, int]:
    """When the first of the latest dead letters failed, and how many those are, up to a bound."""
    ((first, count),) = tx.fetch(Q["letters_reach"], _params(wanted) | {"most": MAX_COUNTED_LETTERS})
    return first, count


def over_time(tx: Tx, wanted: Filter, since: int, until: int, parts: int) -> list[int]:
    """How many failed last in each of so many equal parts of a span; of very many, the latest are counted."""
    bounds = {"failed_from": since, "failed_to": until, "most": MAX_COUNTED_LETTERS}
    step = max(-(-(until - since) // parts), 1)
    counts = [0] * parts
    for part, count in tx.fetch(Q["letters_over_time"], _params(wanted) | bounds | {"since": since, "step": step}):
        counts[part] += count
    return counts


def _params(wanted: Filter) -> dict[str, str | int]:
    return {
        "group_name": wanted.group or "",
        "event_type": wanted.event_type or "",
        "event_id": wanted.event_id or "",
        "error_code": wanted.error_code or "",
        "trace_id": wanted.trace_id or "",
        "tenant_id": wanted.tenant_id or "",
        "state": wanted.state or "",
        "failed_from": -(2**62) if wanted.failed_from is None else wanted.failed_from,
        "failed_to": 2**62 if wanted.failed_to is None else wanted.failed_to,
        "error_shape": wanted.error_shape or "",
    }


def backlog(tx: Tx, event_type: str, most: int = ALL) -> int:
    """Dead letters that need an operator: open, or on their way through a replay. Counted up to `most`."""
    return tx.fetch(Q["backlog"], {"event_type": event_type, "most": most})[0][0]


def backlogs(tx: Tx, most: int = MAX_COUNTED_LETTERS) -> dict[str, int]:
    """By type, those of endpoints among them: of each type and state at most so many are counted."""
    return {name: count for name, count in tx.fetch(Q["backlogs"], {"most": most}) if count}


def waiting(tx: Tx, most: int = MAX_COUNTED_LETTERS) -> dict[DeadLetterState, int]:
    """Dead letters that are open or being replayed, for pages that are read often: at most `most` of each state."""
    return {DeadLetterState(state): count for state, count in tx.fetch(Q["letters_waiting"], {"most": most})}


def freeze_of(tx: Tx, event_type: str) -> Freeze:
    """The state of a type, locked: changes of the backlog are counted one after the other."""
    tx.execute(Q["freeze_ensure"], {"event_type": event_type})
    return _freeze(event_type, *tx.fetch(Q["freeze_lock"], {"event_type": event_type})[0])


def set_freeze(tx: Tx, freeze: Freeze) -> None:
    params = {
        "event_type": freeze.event_type,
        "state": freeze.state.value,
        "since": freeze.since,
        "reason": freeze.reason,
        "done_by": freeze.by,
        "tolerated": freeze.tolerated,
    }
    tx.execute(Q["freeze_set"], params)


def freezes(tx: Tx) -> list[Freeze]:
    """Types that are frozen, here or on a store that shares the stream."""
    return [_freeze(*row) for row in tx.fetch(Q["freezes"])]


def freezes_ever(tx: Tx) -> list[Freeze]:
    """Types that this store froze, those that it thawed since included."""
    return [_freeze(*row) for row in tx.fetch(Q["freezes_ever"])]


def _freeze(event_type: str, state: str, since: int, reason: str, by: str, tolerated: int) -> Freeze:
    return Freeze(
        event_type=event_type, state=FreezeState(state), since=since, reason=reason, by=by, tolerated=tolerated
    )


def _located_letter(row: dict[str, Any]) -> Located:
    fields = {name: row[name] for name in DeadLetter.__struct_fields__ if name not in {"group", "state"}}
    letter = DeadLetter(**fields, group=row["group_name"], state=DeadLetterState(row["state"]))
    order_key = row["order_key"]
    return Located(
        letter=letter,
        group_id=row["group_id"],
        seq=row["seq"],
        order_key=None if order_key is None else bytes(order_key),
    )


def purge_settled(tx: Tx, *, before: int, limit: int) -> int:
    """Delete dead letters that were replayed or discarded before an instant, with the journal of each."""
    found: list[str] = []
    for state in SETTLED:
        asked = {"state": state, "before": before, "limit": limit - len(found)}
        found += [letter_id for (letter_id,) in tx.fetch(Q["letters_settled"], asked)]
    forget(tx, found, ALL)
    return tx.execute(Q["letters_delete"], rows=[(letter_id,) for letter_id in found]) if found else 0
