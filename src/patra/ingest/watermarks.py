"""What a batch confirmed goes in; its cursor event and, where that moves it, the present value are written (ch. 10.3).

Event first, present value second, both in the batch's transaction. The present value is read under a lock and never
moves against its direction, nor over a hole (ruling I2).
"""

import msgspec

from patra.ingest import measures, running_store
from patra.ingest.codes import CursorType, Direction, NamespaceScope, Operation
from patra.ingest.cursor import Advance, Frontier, finish, later_id, ordered_id
from patra.ingest.reasons_running import X
from patra.ingest.running_store import TaskRow
from patra.ingest.slicing import Span
from patra.ingest.spec import Spec
from patra.kernel.canonical import sha256_hex
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx

Q = running_store.Q


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


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The values before and after, and what became of the event."""

    code: X
    before: str | None
    after: str | None
    before_instant: int | None
    after_instant: int | None
    write: bool


def advance_cursor(tx: Tx, here: Here, seen: Observed) -> X | None:
    """Write the event of a batch and move the cursor; gives what became of it, None where there is no cursor."""
    spec = here.spec
    if spec.operation is Operation.UPDATE:
        turn = _progress(tx, here, seen)
    elif spec.cursor.type is CursorType.TIME:
        turn = _time(tx, here, seen)
    else:
        return None
    _event(tx, here, seen, turn)
    if turn.write:
        _set(tx, here, seen, turn)
    return turn.code


def _time(tx: Tx, here: Here, seen: Observed) -> Turn:
    direction, task = here.spec.cursor.direction, here.task
    backward = direction is Direction.BACKFILL
    row = tx.fetch_one(Q["cursor_for_update" if seen.window else "cursor_value"], here.mark)
    present: int | None = row[1] if row else None
    base = _base(tx, task, backward=backward) if present is None else present
    frontier = Frontier(present=base)
    step = Advance(before=frontier, after=frontier, code=X.NOT_FORWARD)
    if seen.window is not None:
        step = finish(running_store.frontier(tx, task.whose, base, backward=backward), seen.window, direction)
    after = step.after.present
    return Turn(
        code=step.code,
        before=None if present is None else format_instant(present),
        after=format_instant(after),
        before_instant=present,
        after_instant=after,
        write=seen.window is not None and (step.moved or present is None),
    )


def _progress(tx: Tx, here: Here, seen: Observed) -> Turn:
    """UPDATE: the last id that was looked at, or the instant of the last look."""
    row = tx.fetch_one(Q["cursor_for_update"], here.mark)
    before, was = row or (None, None)
    if here.spec.cursor.type is CursorType.TIME:
        instant = max(here.now, was or 0)
        after: str | None = format_instant(instant)
    else:
        instant = None
        after = later_id(before, seen.ids)
    moved = after is not None and after != before
    return Turn(
        code=X.ADVANCED if moved else X.NOT_FORWARD,
        before=before,
        after=after,
        before_instant=was,
        after_instant=instant,
        write=moved,
    )


def _base(tx: Tx, task: TaskRow, *, backward: bool) -> int:
    """Where a cursor without a value starts: the edge of what the namespace's tasks cover."""
    found = tx.fetch_one(Q["cursor_base"], task.whose)
    low, high = found or (None, None)
    edge = high if backward else low
    own = task.window_to if backward else task.window_from
    return edge if edge is not None else own or 0


def _observed(here: Here, seen: Observed) -> str | None:
    if seen.newest is not None:
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
        _observed(here, seen),
        seen.window.start if seen.window else None,
        seen.window.end if seen.window else None,
        turn.code.value,
        *here.lineage,
        sha256_hex(f"{here.run_id}|{here.batch_no}|{turn.after}"),
        msgspec.json.encode(remarks).decode(),
        here.now,
    )
    tx.execute(Q["cursor_event_add"], rows=[row])
    measures.CURSOR_EVENTS.labels(direction=cursor.direction.value).inc()


def _set(tx: Tx, here: Here, seen: Observed, turn: Turn) -> None:
    kind = here.spec.cursor.type
    value = turn.after or ""
    numeric = (
        int(value) if kind is CursorType.ID and value.isascii() and value.isdecimal() and len(value) < 19 else None
    )
    row = (
        *here.mark.values(),
        kind.value,
        value,
        turn.after_instant,
        numeric,
        _observed(here, seen),
        *here.lineage,
        here.now,
        here.now,
    )
    tx.execute(Q["cursor_set"], rows=[row])
