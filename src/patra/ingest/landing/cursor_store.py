"""Writes the cursor event of a batch and, where that moves it, the present value (ch. 10.3).

Event first, present value second, both in the batch's transaction. The present value is read under a lock and never
moves against its direction, nor over a hole (ruling I2).
"""

import msgspec

from patra.ingest.landing import store
from patra.ingest.landing.page_records import GrowingKey
from patra.ingest.landing.store import TaskRow
from patra.ingest.landing.watermark import Advance, Frontier, finish, later_id, ordered_id
from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.vocabulary.codes import CursorType, Direction, NamespaceScope, Operation
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import format_instant
from patra.kernel.db import Row, Tx

Q = store.Q


class Here(msgspec.Struct, frozen=True, kw_only=True):
    """Which batch speaks."""

    spec: Spec
    task: TaskRow
    run_id: str
    batch_no: int
    now: int

    @property
    def lineage(self) -> tuple[str, str, str, str, str, int, str]:
        t = self.task
        return t.schedule_instance_id, t.plan_id, t.slice_id, t.task_id, self.run_id, self.batch_no, t.expr_hash

    @property
    def namespace(self) -> str:
        """A CUSTOM namespace takes its key from the plan."""
        cursor = self.spec.cursor
        own = cursor.scope is NamespaceScope.CUSTOM or not cursor.namespace_key
        return self.task.namespace_key if own else cursor.namespace_key

    @property
    def mark(self) -> dict[str, str]:
        """The cursor's key, as the statements name its parts."""
        return {
            "source": self.spec.provenance_code,
            "operation": self.spec.operation.value,
            "key": self.spec.cursor.key,
            "scope": self.spec.cursor.scope.value,
            "namespace": self.namespace,
        }


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch says to its cursor: the part of the window it confirms, the ids it looked at, the latest it saw."""

    window: Span | None
    ids: tuple[str, ...]
    newest: int | None
    late: int = 0
    highest: int | None = None
    """HARVEST by key: the largest key of a list that is read to its end."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The values before and after, and what became of the event."""

    code: RunReason
    before: str | None
    after: str | None
    before_instant: int | None
    after_instant: int | None
    write: bool
    there: bool = False
    """The cursor has a row, whose latest observed value is `observed`."""
    observed: str | None = None


def advance_cursor(tx: Tx, here: Here, seen: Observed) -> RunReason | None:
    """Write the event of a batch and move the cursor; gives what became of it, None where there is no cursor."""
    spec = here.spec
    if spec.operation is Operation.UPDATE:
        turn = _progress(tx, here, seen)
    elif spec.cursor.type is CursorType.TIME:
        turn = _time(tx, here, seen)
    elif spec.by_key:
        turn = _key(tx, here, seen)
    else:
        return None
    _event(tx, here, seen, turn)
    observed = _observe_value(here, seen)
    if turn.write:
        _set(tx, here, seen, turn)
    elif turn.there and _latest(here, observed, turn.observed) != turn.observed:
        row = tx.fetch_one(Q["cursor_for_update"], here.mark)  # another executor may have seen a later one meanwhile
        latest = _latest(here, observed, row[2] if row else None)
        tx.execute(Q["cursor_observe"], {**here.mark, "observed": latest})
    return turn.code


def _latest(here: Here, one: str | None, other: str | None) -> str | None:
    """The later of two observed values: whole seconds are written without a fraction, ids by their order."""
    both = [value for value in (one, other) if value is not None]
    by_time = here.spec.cursor.type is CursorType.TIME
    return max(both, key=(lambda value: value.removesuffix("Z")) if by_time else ordered_id, default=None)


def _time(tx: Tx, here: Here, seen: Observed) -> Turn:
    direction, task = here.spec.cursor.direction, here.task
    backward = direction is Direction.BACKFILL
    row = _lock_cursor(tx, here) if seen.window else tx.fetch_one(Q["cursor_value"], here.mark)
    present: int | None = row[1] if row else None
    base = _base(tx, task, backward=backward) if present is None else present
    frontier = Frontier(present=base)
    step = Advance(before=frontier, after=frontier, code=RunReason.NOT_FORWARD)
    if seen.window is not None:
        step = finish(store.frontier(tx, task.whose, base, seen.window, backward=backward), seen.window, direction)
    after = step.after.present
    return Turn(
        code=step.code,
        before=None if present is None else format_instant(present),
        after=format_instant(after),
        before_instant=present,
        after_instant=after,
        write=seen.window is not None and (step.has_moved or present is None),
        there=row is not None,
        observed=row[2] if row else None,
    )


def _lock_cursor(tx: Tx, here: Here) -> Row | None:
    """The cursor, held until the commit. A row that is not there cannot be held: two would overwrite each other."""
    row = tx.fetch_one(Q["cursor_for_update"], here.mark)
    if row is None:
        tx.fetch_one(Q["cursor_first_lock"], here.mark)
        row = tx.fetch_one(Q["cursor_for_update"], here.mark)
    return row


def _key(tx: Tx, here: Here, seen: Observed) -> Turn:
    """HARVEST by key: the largest key, once the list with it is read to its end; never a smaller one."""
    row = _lock_cursor(tx, here)
    before, _, observed = row or (None, None, None)
    after = later_id(before, [str(seen.highest)] if seen.highest is not None else [])
    return _forward(before, after, there=row is not None, observed=observed)


def _progress(tx: Tx, here: Here, seen: Observed) -> Turn:
    """UPDATE: the last id that was looked at, or the instant of the last look."""
    row = _lock_cursor(tx, here)
    before, was, observed = row or (None, None, None)
    if here.spec.cursor.type is CursorType.TIME:
        instant = max(here.now, was or 0)
        after: str | None = format_instant(instant)
    else:
        instant = None
        after = later_id(before, seen.ids)
    return _forward(before, after, before_instant=was, after_instant=instant, there=row is not None, observed=observed)


def _forward(
    before: str | None,
    after: str | None,
    *,
    before_instant: int | None = None,
    after_instant: int | None = None,
    there: bool,
    observed: str | None,
) -> Turn:
    """The turn of a cursor that moves to any other value that was found."""
    moved = after is not None and after != before
    return Turn(
        code=RunReason.ADVANCED if moved else RunReason.NOT_FORWARD,
        before=before,
        after=after,
        before_instant=before_instant,
        after_instant=after_instant,
        write=moved,
        there=there,
        observed=observed,
    )


def _base(tx: Tx, task: TaskRow, *, backward: bool) -> int:
    """Where a cursor without a value starts: the edge of what the namespace's tasks cover."""
    found = tx.fetch_one(Q["cursor_base"], task.whose)
    low, high = found or (None, None)
    edge = high if backward else low
    own = task.window_to if backward else task.window_from
    return edge if edge is not None else own or 0


def _observe_value(here: Here, seen: Observed) -> str | None:
    if seen.newest is not None and not here.spec.by_key:
        return format_instant(seen.newest)
    return max(seen.ids, key=ordered_id) if seen.ids and here.spec.cursor.type is CursorType.ID else None


def _event(tx: Tx, here: Here, seen: Observed, turn: Turn) -> None:
    cursor = here.spec.cursor
    remarks = {"reason": here.spec.operation.value, "batchNo": here.batch_no, "lateArrival": seen.late}
    row = (
        *here.mark.values(),
        cursor.type.value,
        cursor.direction.value,
        turn.before,
        turn.after,
        turn.before_instant,
        turn.after_instant,
        _observe_value(here, seen),
        seen.window.start if seen.window else None,
        seen.window.end if seen.window else None,
        turn.code.value,
        *here.lineage,
        sha256_hex(f"{here.run_id}|{here.batch_no}|{turn.after}"),
        msgspec.json.encode(remarks).decode(),
        here.now,
    )
    tx.execute(Q["cursor_event_add"], rows=[row])


def _set(tx: Tx, here: Here, seen: Observed, turn: Turn) -> None:
    kind = here.spec.cursor.type
    value = turn.after or ""
    observed = _latest(here, _observe_value(here, seen), turn.observed)
    if here.spec.by_key:  # the largest key came with an earlier page, where it comes first
        observed = _latest(here, observed, value)
    if not turn.there and kind is CursorType.TIME:  # what was seen before there was a row is in the events
        found = tx.fetch_one(Q["cursor_observed_before"], here.mark)
        before = f"{found[0]}Z" if found and found[0] else None
        observed = _latest(here, observed, before)
    numeric = GrowingKey(field=None).of(value, {}) if kind is CursorType.ID else None
    row = (
        *here.mark.values(),
        kind.value,
        value,
        turn.after_instant,
        numeric,
        observed,
        *here.lineage,
        here.now,
        here.now,
    )
    tx.execute(Q["cursor_set"], rows=[row])
