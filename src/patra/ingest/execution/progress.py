"""Decides from a trigger which work is its own, how far that is, and what of it is left; nothing is written.

Its own are the tasks of its namespace that touch its window, or of its plan where it has no window, however they were
planned. So a window that failed before and is done now is not a failure, and the tasks of others do not count.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.landing.store import Q, done_within
from patra.ingest.packs.spec import Spec
from patra.ingest.planning import store
from patra.ingest.planning.earlier_watermark import watermark_of
from patra.ingest.planning.limits import back_pressure
from patra.ingest.planning.slicing.windows import Span, gaps
from patra.ingest.planning.trigger import Trigger, activity_key
from patra.ingest.planning.window_intent import Idle, window_of
from patra.ingest.vocabulary.codes import Dimension, Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant
from patra.kernel.db import Row, Tx
from patra.kernel.telemetry import sample_value


class Count(msgspec.Struct, frozen=True):
    """How many tasks are in a state, when the first is due, why one of them is there, when the first lease ends."""

    tasks: int = 0
    due: int | None = None
    code: str | None = None
    leased_until: int | None = None


Counts = Mapping[str, Count]
"""By state."""


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to a trigger."""

    source: str
    endpoint: str
    operation: str
    namespace: str
    window: Span | None
    plans: tuple[str, ...] = ()
    """Where there is no window: its plans."""

    @property
    def whose(self) -> dict[str, str]:
        return {
            "source": self.source,
            "endpoint": self.endpoint,
            "operation": self.operation,
            "namespace": self.namespace,
        }

    @property
    def params(self) -> dict[str, Any]:
        return {
            **self.whose,
            "since": self.window.start if self.window else 0,
            "until": self.window.end if self.window else 0,
        }


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is. Windows are counted in the store, everything else in this process."""

    elapsed: float = 0.0
    windows: int = 0
    done: int = 0
    working: int = 0
    waiting: int = 0
    failed: int = 0
    due: int | None = None
    """When the next window that waits may be taken; None where none waits."""
    why: str = ""
    """What it waits for, where it was put back."""
    held: int = 0
    """Windows at work that other processes hold; one that died holds its own until its lease ends."""
    held_until: int | None = None
    inserted: int = 0
    updated: int = 0
    skipped: int = 0
    quarantined: int = 0
    pages: int = 0
    requests: int = 0
    retries: int = 0
    throttled: int = 0
    waited: float = 0.0
    """Seconds that were spent waiting for the rate gate, by all executors together."""
    rate: float = 0.0
    """Requests a second that the gate allows now."""

    @property
    def records(self) -> int:
        return self.inserted + self.updated + self.skipped


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not done: which part, in which state, and why."""

    task_id: str
    part: str
    status: str
    why: str
    advice: str = ""


def window_wanted(tx: Tx, trigger: Trigger, spec: Spec, now: int) -> Span | None:
    """The window that a trigger is about; None where it is about pages, keys or records, or about nothing new."""
    if spec.operation is Operation.UPDATE or spec.dimension is Dimension.PAGE or spec.by_key:
        return None
    mark, _ = watermark_of(tx, spec, trigger, now)
    found = window_of(spec, trigger, mark, now, back_pressure.added_lag(tx, spec, now))
    return None if isinstance(found, Idle) else found


def unproven(tx: Tx, own: Own) -> int:
    """Its windows that are done although nothing counts them."""
    found = tx.fetch_one(Q["own_unproven"], own.params)
    return 0 if found is None else int(found[0])


def own_work(tx: Tx, trigger: Trigger, spec: Spec, window: Span | None, plan_id: str | None) -> Own:
    """What belongs to a trigger, once it has been planned."""
    update = spec.operation is Operation.UPDATE
    own = Own(
        source=trigger.source,
        endpoint=trigger.endpoint,
        operation=trigger.operation.value,
        namespace=(None if update else spec.cursor.namespace_key) or activity_key(trigger, spec.selection_key),
        window=window,
    )
    if window is not None:
        return own
    live = tuple(found for (found,) in tx.fetch(Q["own_plans"], own.params))
    return msgspec.structs.replace(own, plans=(plan_id,) if plan_id else live)


def count_tasks(tx: Tx, own: Own) -> Counts:
    if own.window is not None:
        rows = tx.fetch(Q["own_counts_timed"], own.params)
    else:
        rows = tx.fetch(Q["own_counts"], rows=_plans(own))
    return {status: Count(int(count), *rest) for status, count, *rest in rows}


def left_behind(tx: Tx, own: Own) -> list[Left]:
    """Everything of it that is not done, with why and what to do."""
    open_: list[tuple[Mapping[str, Any], Span | None]]
    if own.window is None:
        open_ = [(row, None) for row in tx.fetch_dicts(Q["own_left"], rows=_plans(own))]
    else:
        rows = tx.fetch_dicts(Q["own_left_timed"], own.params)
        holes = gaps(own.window, done_within(tx, own.whose, own.window))
        open_ = [(row, hole) for row in rows if (hole := _in(row, holes)) is not None]
        held = [Span(row["window_from"], row["window_to"]) for row, _ in open_]
        open_ += [({}, bare) for hole in holes for bare in gaps(hole, held)]
    halts = store.halts(tx, own.source, own.endpoint)
    return [_tell_left(row, hole, halts) for row, hole in open_]


def _plans(own: Own) -> list[Row]:
    return [(plan_id,) for plan_id in own.plans]


def _in(row: Mapping[str, Any], holes: Sequence[Span]) -> Span | None:
    start, end = row["window_from"], row["window_to"]
    return next((hole for hole in holes if start < hole.end and end > hole.start), None)


def _tell_left(row: Mapping[str, Any], hole: Span | None, halts: Sequence[store.Halt]) -> Left:
    if not row:
        part = f"{format_instant(hole.start)} … {format_instant(hole.end)}" if hole else ""
        return Left(task_id="", part=part, status="UNPLANNED", why="no task covers it", advice="run it again")
    timed = row["window_from"] is not None
    part = f"{format_instant(row['window_from'])} … {format_instant(row['window_to'])}" if timed else row["slice_id"]
    code = row["reason_code"] or ""
    why = row["error"] or _text(code)
    status, advice = row["status_code"], "run it again to try it again"
    if status == "QUEUED":
        why = why if row["error"] else f"it waits until {format_instant(row['scheduled_at'])}"
        advice = "run it again to go on"
    for halt in halts:
        act = "lift" if halt.kind == "BREAKER" else "resume"
        advice = f"{halt.detail}; then `patra ingest {act} {halt.source}{f' {halt.endpoint}' if halt.endpoint else ''}`"
    return Left(task_id=row["task_id"], part=part, status=status, why=why, advice=advice)


def _text(code: str | None) -> str:
    """What a code says."""
    return next((reason.text for reason in (*RunReason, *Reason) if reason.value == code), code or "")


class Meter:
    """The counters of this process for one source, endpoint and operation, from a moment on."""

    def __init__(self, trigger: Trigger) -> None:
        self._labels = {"source": trigger.source, "endpoint": trigger.endpoint, "op": trigger.operation.value}
        self._start = self._read()

    def since(self, counts: Counts, failed_before: int, elapsed: float) -> Progress:
        now = {name: value - self._start[name] for name, value in self._read().items()}
        number = {status: count.tasks for status, count in counts.items()}
        queued = counts.get("QUEUED", Count())
        done = number.get("SUCCEEDED", 0) + number.get("PARTIAL", 0)
        working = number.get("DISPATCHED", 0) + number.get("EXECUTING", 0)
        waiting = number.get("QUEUED", 0)
        failed = max(number.get("FAILED", 0) - failed_before, 0)
        rate = sample_value("patra_ingest_qps_effective", self._labels)
        mine = sample_value("patra_ingest_executor_concurrency", self._labels)
        held = max(working - int(mine or 0), 0)
        return Progress(
            elapsed=elapsed,
            windows=done + working + waiting + failed,
            done=done,
            working=working,
            waiting=waiting,
            failed=failed,
            due=queued.due,
            why=_text(queued.code),
            held=held,
            held_until=counts.get("EXECUTING", Count()).leased_until if held else None,
            rate=rate or 0.0,
            waited=now.pop("waited") / 1000,
            **{name: int(value) for name, value in now.items()},
        )

    def _read(self) -> dict[str, float]:
        def one(name: str, **more: str) -> float:
            return sample_value(name, {**self._labels, **more}) or 0.0

        items = {
            name: one("patra_ingest_items_total", action=action)
            for name, action in (
                ("inserted", "insert"),
                ("updated", "update"),
                ("skipped", "skip"),
                ("quarantined", "quarantine"),
            )
        }
        return {
            **items,
            "pages": one("patra_ingest_batches_total"),
            "requests": one("patra_ingest_http_latency_ms_count"),
            "retries": one("patra_ingest_retries_total"),
            "throttled": one("patra_ingest_429_total"),
            "waited": one("patra_ingest_rate_wait_ms_total"),
        }
