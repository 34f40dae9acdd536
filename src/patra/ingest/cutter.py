"""A plan goes in; its slices and tasks, as many as inventory and quota allow, come out of short transactions (ch. 8).

Each transaction writes whole groups and says how far the plan is cut after them. Whoever finds a plan half cut, be it
after a crash or when the queue has drained, goes on from there; of two planners at one plan the slower one notices.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from patra.ingest import plans, store
from patra.ingest.budget import Reservation, periods
from patra.ingest.codes import Dimension, Operation
from patra.ingest.cutting import Group, id_group, page_groups, time_groups
from patra.ingest.machines import PlanOn, PlanStatus
from patra.ingest.ratepolicy import rate_key
from patra.ingest.reasons import R
from patra.ingest.slices import Sliced, Slicer
from patra.ingest.slicing import Density, Span
from patra.ingest.spec import Spec, decode_spec
from patra.ingest.trigger import partition_of
from patra.kernel.clock import DAY, Clock, parse_duration
from patra.kernel.db import Database, Tx
from patra.kernel.telemetry import counter, span

SLICES = counter("patra_ingest_slices_total", "Slices that were added to plans.", "source", "endpoint", "op")

CHUNK = 500
"""Slices of one transaction."""

LARGE = 10_000
"""Slices added at once that change what the database should expect of its tables."""

HORIZON = 2 * DAY
"""Slices that a quota would put later than this wait with their plan instead."""


class Cutter:
    """Cuts plans of one store."""

    def __init__(self, db: Database, clock: Clock, *, chunk: int = CHUNK) -> None:
        self._db = db
        self._clock = clock
        self._chunk = chunk

    def advance(self, plan_id: str) -> tuple[str | None, int]:
        """Cut a plan as far as inventory and quota allow; gives its state and how many slices were added."""
        plan = self._db.read(lambda tx: store.plan_row(tx, plan_id))
        if plan is None or plan.status_code not in {PlanStatus.SLICING, PlanStatus.PARTIAL}:
            return (plan.status_code if plan else None), 0
        spec = decode_spec(plan.expr_proto_snapshot)
        window = None if plan.window_from is None or plan.window_to is None else Span(plan.window_from, plan.window_to)

        def prepare(tx: Tx) -> list[Group] | Iterator[Group]:
            key, said, _ = store.trigger_of_plan(tx, plan_id)
            slicer = Slicer(spec, key)
            return self.groups(tx, spec, slicer, window, plan.progress, plan.namespace_key, plan_id, said)

        groups = iter(self._db.read(prepare))
        added, progress = 0, plan.progress
        while batch := _batch(groups, self._chunk):
            with span("Slice", plan=plan_id, groups=len(batch)):
                written = self._db.run(lambda tx, b=batch, p=progress: self._write(tx, plan_id, spec, b, p))
            if written is None:
                return self._status(plan_id), added
            kept, new = written
            added += new
            SLICES.labels(plan.provenance_code, plan.endpoint_name, plan.operation_code).inc(new)
            if kept < len(batch):
                return self._status(plan_id), added
            progress = batch[-1].progress
        self._db.run(lambda tx: self._finish(tx, plan_id))
        if added >= LARGE:
            self._db.run(store.fresh_statistics)
        return self._status(plan_id), added

    def _status(self, plan_id: str) -> str | None:
        row = self._db.read(lambda tx: store.plan_row(tx, plan_id))
        return row.status_code if row else None

    def groups(
        self,
        tx: Tx,
        spec: Spec,
        slicer: Slicer,
        window: Span | None,
        progress: str,
        namespace: str,
        plan_id: str,
        said: dict[str, Any],
    ) -> Iterator[Group]:
        """What is left to cut. All that must be read is read before the first group is asked for."""
        if progress == "end":
            return iter(())
        if spec.operation is Operation.UPDATE:
            ids: list[str] = said.get("ids") or []
            if not ids:
                signalled, found = candidates(tx, spec, spec.update.max_candidates, self._clock.now())
                ids = [*signalled, *found]
            return iter([id_group(spec, slicer, ids)] if ids else [])
        if window is None:
            return iter(())
        density = Density(store.reports(tx, spec.selection_key, window))
        if spec.dimension is Dimension.PAGE:
            return page_groups(spec, slicer, progress, density(window))
        rest = store.rest_of(window, progress, backward=spec.operation is Operation.BACKFILL)
        covered = store.covered(tx, spec, namespace, rest, except_plan=plan_id)
        return time_groups(spec, slicer, rest, covered, density)

    def _write(self, tx: Tx, plan_id: str, spec: Spec, batch: list[Group], progress: str) -> tuple[int, int] | None:
        """As many groups of a batch as fit; None when another planner was faster."""
        now = self._clock.now()
        locked = tx.fetch_one(store.Q["plan_for_update"], {"plan_id": plan_id})
        plan = store.plan_row(tx, plan_id)
        if plan is None or locked is None or plan.progress != progress:
            return None
        if plan.status_code not in {PlanStatus.SLICING, PlanStatus.PARTIAL}:
            return None
        limit = spec.planning.inventory_limit
        room = limit - store.queued(tx, partition_of(plan.provenance_code, plan.endpoint_name, spec.operation), limit)
        key = rate_key(spec.provenance_code, spec, authenticated=False)
        kinds = periods(spec, spec.operation)
        taken = store.quota_taken(tx, key, now - DAY) if kinds else {}
        reservation = Reservation(kinds, taken, now)
        fitting = _fitting(batch, room)
        kept, due = plans.place(fitting, reservation, now + HORIZON)
        if kept and plan.status_code == PlanStatus.PARTIAL:
            plans.move_plan(tx, plan_id, plan.status_code, PlanOn.RESUME, R.RESUMED, now)
        new = 0
        if kept:
            slices = [one for group in kept for one in group.slices]
            new = plans.write_slices(tx, plan, spec, slices, plan.next_slice_no, due, now)
            plans.note_progress(tx, plan_id, kept, plan.next_slice_no + len(slices), now)
            store.reserve(tx, key, reservation.added, now)
            if spec.operation is Operation.UPDATE:
                ids = [one for group in kept for part in group.slices for one in _ids(part)]
                store.take_signals(tx, spec, ids, plan_id)
        if len(kept) < len(batch):
            reason = R.INVENTORY_FULL if len(fitting) < len(batch) else R.QUOTA_SHORT
            if kept or plan.status_code == PlanStatus.SLICING:
                plans.move_plan(tx, plan_id, PlanStatus.SLICING, PlanOn.HELD_BACK, reason, now)
            plans.note(tx, plan, {"heldBack": reason.value}, now)
        return len(kept), new

    def _finish(self, tx: Tx, plan_id: str) -> None:
        now = self._clock.now()
        plan = store.plan_row(tx, plan_id)
        if plan is None or plan.status_code not in {PlanStatus.SLICING, PlanStatus.PARTIAL}:
            return
        if plan.status_code == PlanStatus.PARTIAL:
            plans.move_plan(tx, plan_id, PlanStatus.PARTIAL, PlanOn.RESUME, R.RESUMED, now)
        plans.move_plan(tx, plan_id, PlanStatus.SLICING, PlanOn.SLICED, R.SLICED, now)
        counts = {"sliceCount": plan.next_slice_no - 1, "totalEstimated": plan.total_estimated}
        plans.note(tx, plan, {**counts, "expectedRequests": plan.expected_requests, "heldBack": None}, now)


def candidates(tx: Tx, spec: Spec, limit: int, now: int) -> tuple[list[str], list[str]]:
    """Ids that a refresh at `now` would take: signalled ones, and those found by hash or age."""
    stale = spec.update.stale_after
    before = now - parse_duration(stale) if stale is not None else None
    return store.candidates(tx, spec, before, limit)


def _batch(groups: Iterator[Group], chunk: int) -> list[Group]:
    """Groups with at least `chunk` slices together, or what is left."""
    found: list[Group] = []
    size = 0
    for group in groups:
        found.append(group)
        size += len(group.slices)
        if size >= chunk:
            break
    return found


def _fitting(batch: list[Group], room: int) -> list[Group]:
    """The groups that the inventory has room for; the last one may overfill it, because a group is not cut in two."""
    found: list[Group] = []
    for group in batch:
        if room <= 0:
            break
        found.append(group)
        room -= len(group.slices)
    return found


def _ids(part: Sliced) -> list[str]:
    return msgspec.json.decode(part.slice_spec)["bounds"]["id"]["ids"]
