"""Turns a plan into its slices and tasks, as many as inventory and quota allow, in short transactions (ch. 8).

Each transaction writes whole groups and says how far the plan is cut after them. After a crash, or when the queue has
drained, the next planner continues from there; of two planners at one plan the slower one notices.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from patra.ingest.packs.spec import Spec, decode_spec, of_newer_version
from patra.ingest.planning import plan_rows, store
from patra.ingest.planning.limits.leg_quotas import LegQuotas, taken_of
from patra.ingest.planning.limits.rate_budget import rate_budget
from patra.ingest.planning.operations import fail_plan
from patra.ingest.planning.slicing.slice_groups import Group, id_group, page_groups, time_groups
from patra.ingest.planning.slicing.slice_spec import Sliced, Slicer
from patra.ingest.planning.slicing.windows import Density, Span
from patra.ingest.planning.states import PlanStatus, PlanTransition
from patra.ingest.planning.trigger import partition_of
from patra.ingest.planning.update_candidates import update_candidates
from patra.ingest.ratelimit import quota_store
from patra.ingest.vocabulary.codes import Dimension, Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, SECOND, Clock
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid, NotCanonical
from patra.kernel.telemetry import counter, get_logger, span

log = get_logger()

SLICES = counter("patra_ingest_slices_total", "Slices that were added to plans.", "source", "endpoint", "op")

SLICES_PER_TRANSACTION = 500
"""Slices of one transaction."""

ANALYZE_FROM_SLICES = 10_000
"""Slices added at once that change what the database should expect of its tables."""

QUOTA_HORIZON = 2 * DAY
"""Slices that a quota would put later than this wait with their plan instead."""


class PlanSlicer:
    """Cuts plans of one store."""

    def __init__(self, db: Database, clock: Clock, *, chunk: int = SLICES_PER_TRANSACTION) -> None:
        self._db = db
        self._clock = clock
        self._chunk = chunk

    def advance(self, plan_id: str) -> tuple[str | None, int]:
        """Cut a plan as far as inventory and quota allow; gives its state and how many slices were added.

        A plan whose snapshot cannot be read or rendered ends FAILED, so that it does not keep others from theirs; one
        that a newer version of this program has written is left to a process of that version.
        """
        try:
            return self._advance(plan_id)
        except (Invalid, NotCanonical, msgspec.MsgspecError) as error:
            why, now = str(error), self._clock.now()
            if of_newer_version(error):
                log.warning("plan_of_newer_version", plan=plan_id, error=why)
                return self._status(plan_id), 0
            log.warning("plan_failed", plan=plan_id, error=why)
            self._db.run(lambda tx: fail_plan(tx, plan_id, why=why, now=now))
            return self._status(plan_id), 0

    def _advance(self, plan_id: str) -> tuple[str | None, int]:
        plan = self._db.read(lambda tx: store.plan_row(tx, plan_id))
        if plan is None or plan.status_code not in {PlanStatus.SLICING, PlanStatus.PARTIAL}:
            return (plan.status_code if plan else None), 0
        place = plan.provenance_code, plan.endpoint_name
        if plan.status_code == PlanStatus.PARTIAL and self._db.read(lambda tx: store.halts(tx, *place)):
            return plan.status_code, 0  # what stands still gets no more tasks until it is resumed (5.9)
        spec = decode_spec(plan.expr_proto_snapshot)

        def prepare(tx: Tx) -> list[Group] | Iterator[Group]:
            key, said, _ = store.trigger_of_plan(tx, plan_id)
            slicer = Slicer(spec, key, rate_budget(tx, spec, self._clock.now()))
            return self.groups(tx, spec, slicer, plan.window, plan.progress, plan.namespace_key, plan_id, said)

        groups = iter(self._db.read(prepare))
        added, progress = 0, plan.progress
        while batch := _batch(groups, self._chunk):
            written = self._db.run(lambda tx, b=batch, p=progress: self._write(tx, plan_id, spec, b, p))
            if written is None:
                return self._status(plan_id), added
            kept, new = written
            _trace_slices(plan_id, batch[:kept])
            added += new
            SLICES.labels(plan.provenance_code, plan.endpoint_name, plan.operation_code).inc(new)
            if kept < len(batch):
                return self._status(plan_id), added
            progress = batch[-1].progress
        self._db.run(lambda tx: self._finish(tx, plan_id))
        if added >= ANALYZE_FROM_SLICES:
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
                signalled, found = update_candidates(tx, spec, spec.update.max_candidates, self._clock.now())
                ids = [*signalled, *found]
            return iter([id_group(spec, slicer, ids)] if ids else [])
        if spec.by_key:
            slices = [slicer.of_new_keys(_floor(store.last_key(tx, spec), spec.cursor.overlap))]
            return iter([Group(slices=slices, progress="end", estimated=None)])
        if window is None:
            return iter(())
        if spec.dimension is Dimension.PAGE:
            return page_groups(spec, slicer, progress, window, store.last_total(tx, spec.selection_key))
        density = Density(store.reports(tx, spec.selection_key, window))
        rest = store.rest_of(window, progress, backward=spec.operation is Operation.BACKFILL)
        covered = store.covered_spans(tx, spec, namespace, rest, except_plan=plan_id)
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
        room = limit - store.count_queued(
            tx, partition_of(plan.provenance_code, plan.endpoint_name, spec.operation), limit
        )
        rest = rate_budget(tx, spec, now).blocked_until  # nothing is due while the provider rests
        quotas = LegQuotas(spec, taken_of(tx, spec, now), now, max(now, rest or now))
        fitting = _fitting(batch, room)
        kept, due = plan_rows.place(fitting, quotas, now + QUOTA_HORIZON)
        if kept and plan.status_code == PlanStatus.PARTIAL:
            plan_rows.move_plan(tx, plan_id, plan.status_code, PlanTransition.RESUME, Reason.RESUMED, now)
        new = 0
        if kept:
            slices = [one for group in kept for one in group.slices]
            new = plan_rows.write_slices(tx, plan, spec, slices, plan.next_slice_no, due, now)
            plan_rows.note_progress(tx, plan_id, kept, plan.next_slice_no + len(slices), now)
            for key, added in sorted(quotas.added_permits.items()):
                quota_store.reserve_quota(tx, key, added, now)
            if spec.operation is Operation.UPDATE:
                ids = [one for group in kept for part in group.slices for one in _ids(part)]
                store.take_signals(tx, spec, ids, plan_id)
        if len(kept) < len(batch):
            reason = Reason.INVENTORY_FULL if len(fitting) < len(batch) else Reason.QUOTA_SHORT
            if kept or plan.status_code == PlanStatus.SLICING:
                plan_rows.move_plan(tx, plan_id, PlanStatus.SLICING, PlanTransition.HELD_BACK, reason, now)
            plan_rows.note(tx, plan, {"heldBack": reason.value}, now)
        return len(kept), new

    def _finish(self, tx: Tx, plan_id: str) -> None:
        now = self._clock.now()
        plan = store.plan_row(tx, plan_id)
        if plan is None or plan.status_code not in {PlanStatus.SLICING, PlanStatus.PARTIAL}:
            return
        if plan.status_code == PlanStatus.PARTIAL:
            plan_rows.move_plan(tx, plan_id, PlanStatus.PARTIAL, PlanTransition.RESUME, Reason.RESUMED, now)
        plan_rows.move_plan(tx, plan_id, PlanStatus.SLICING, PlanTransition.SLICED, Reason.SLICED, now)
        counts: dict[str, Any] = {"sliceCount": plan.next_slice_no - 1, "totalEstimated": plan.total_estimated}
        if (width := tx.fetch_one(store.Q["mean_window"], {"plan_id": plan_id})) is not None and width[0] is not None:
            counts["avgWindow"] = f"PT{round(width[0] / SECOND)}S"
        plan_rows.note(tx, plan, {**counts, "expectedRequests": plan.expected_requests, "heldBack": None}, now)


def _floor(last: int | None, overlap: int) -> int | None:
    """The key after which a harvest reads: the largest one that was read, less the overlap; None: from the first on."""
    return None if last is None or last < overlap else last - overlap


def _trace_slices(plan_id: str, groups: list[Group]) -> None:
    """A span for each slice that was written (ch. 14.6)."""
    for group in groups:
        for one in group.slices:
            with span("Slice", plan=plan_id, signature=one.slice_signature_hash):
                pass


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
