"""Turns an executor's wish for smaller slices into the rest of its slice, cut in two or more (ch. 8.4, I4).

The executor asks in the transaction that ends its task as PARTIAL; the planner answers in one of its own. Until then
the old task keeps answering for the whole window, so that nobody plans it a second time.
"""

from functools import lru_cache

import msgspec

from patra.ingest.packs.spec import decode_spec, of_newer_version
from patra.ingest.planning import plan_rows, store
from patra.ingest.planning.limits.rate_budget import rate_budget
from patra.ingest.planning.slicing.slice_groups import Group, Rest, smaller
from patra.ingest.planning.slicing.slice_spec import Sliced, Slicer
from patra.ingest.planning.states import SLICE, PlanStatus, SliceStatus, SliceTransition
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx
from patra.kernel.machine import advance
from patra.kernel.telemetry import get_logger

log = get_logger()


def request_reslice(tx: Tx, task_id: str, rest: Rest, total: int | None, reason: str, now: int) -> bool:
    """Ask for it, in the executor's own transaction. Asking twice adds nothing."""
    place = tx.fetch_one(store.Q["task_place"], {"task_id": task_id})
    if place is None:
        return False
    text = msgspec.json.encode(rest).decode()
    return tx.execute(store.Q["reslice_request"], rows=[(task_id, *place, text, total, reason, now)]) > 0


def answer_reslices(db: Database, clock: Clock, limit: int = 100) -> tuple[int, int]:
    """Answer the requests that are open; gives how many were answered and how many slices resulted.

    One of a plan that a newer version of this program has written stays open for a planner of that version.
    """
    requests = db.read(lambda tx: tx.fetch(store.Q["reslice_open"], {"limit": limit}))
    answered = added = 0
    for request in requests:
        now = clock.now()
        try:
            added += db.run(lambda tx, r=request, at=now: _answer(tx, *r, now=at))
        except msgspec.ValidationError as error:
            if not of_newer_version(error):
                raise
            _log_newer_version(request[1], str(error))
            continue
        answered += 1
    return answered, added


@lru_cache(maxsize=1000)
def _log_newer_version(plan_id: str, error: str) -> None:
    """Once for each plan."""
    log.warning("plan_of_newer_version", plan=plan_id, error=error)


def _answer(
    tx: Tx, task_id: str, plan_id: str, slice_id: str, text: str, total: int | None, reason: str, *, now: int
) -> int:
    tx.fetch_one(store.Q["plan_for_update"], {"plan_id": plan_id})  # one planner at a time
    if not tx.fetch(store.Q["reslice_is_open"], {"task_id": task_id}):
        return 0
    plan = store.plan_row(tx, plan_id)
    rest = msgspec.json.decode(text, type=Rest)
    parts: list[Sliced] | None = None
    if plan is not None and plan.status_code != PlanStatus.CANCELLED:
        spec = decode_spec(plan.expr_proto_snapshot)
        key, _, _ = store.trigger_of_plan(tx, plan_id)
        parts = smaller(spec, Slicer(spec, key, rate_budget(tx, spec, now)), rest, total, plan.window)
        if parts is not None:
            plan_rows.write_slices(tx, plan, spec, parts, plan.next_slice_no, [now] * len(parts), now, parent=slice_id)
            group = Group(slices=parts, progress=plan.progress, estimated=None)
            plan_rows.note_progress(tx, plan_id, [group], plan.next_slice_no + len(parts), now)
            plan_rows.note_reslice(tx, plan, slice_id, len(parts), reason, now)
    status = "DONE" if parts is not None else "REFUSED"
    remarks = f"{len(parts)} smaller slices ({reason})" if parts is not None else f"as small as it may be ({reason})"
    tx.execute(store.Q["reslice_settle"], {"task_id": task_id, "status": status, "remarks": remarks, "now": now})
    if rest.window is not None:  # the old task answers only for what it finished; the rest is the new ones'
        tx.execute(store.Q["cut_task_window"], {"task_id": task_id, "window_to": rest.window.start, "now": now})
    on, why = (
        (SliceTransition.RESLICE, Reason.RESLICED)
        if parts is not None
        else (SliceTransition.REFUSE, Reason.RESLICE_REFUSED)
    )
    moves = [SLICE.move(slice_id, SliceStatus.READY, on, reason=why, at=now)]
    advance(tx, SLICE, table="ing_plan_slice", key="slice_id", column="status_code", moves=moves)
    return len(parts or ())
