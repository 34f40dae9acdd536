"""An executor's wish for smaller slices goes in; the rest of its slice, cut in two or more, comes out (ch. 8.4, I4).

The executor asks in the transaction that ends its task as PARTIAL; the planner answers in one of its own. Until then
the old task keeps answering for the whole window, so that nobody plans it a second time.
"""

import msgspec

from patra.ingest import plans, store
from patra.ingest.cutting import Group, Rest, smaller
from patra.ingest.machines import SLICE, PlanStatus, SliceOn, SliceStatus
from patra.ingest.reasons import R
from patra.ingest.slices import Sliced, Slicer
from patra.ingest.spec import decode_spec
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx
from patra.kernel.machine import advance


def request_reslice(tx: Tx, task_id: str, rest: Rest, total: int | None, reason: str, now: int) -> bool:
    """Ask for it, in the executor's own transaction. Asking twice adds nothing."""
    place = tx.fetch_one(store.Q["task_place"], {"task_id": task_id})
    if place is None:
        return False
    text = msgspec.json.encode(rest).decode()
    return tx.execute(store.Q["reslice_request"], rows=[(task_id, *place, text, total, reason, now)]) > 0


def answer_reslices(db: Database, clock: Clock, limit: int = 100) -> tuple[int, int]:
    """Answer the requests that are open; gives how many there were and how many slices came of them."""
    requests = db.read(lambda tx: tx.fetch(store.Q["reslice_open"], {"limit": limit}))
    added = 0
    for request in requests:
        now = clock.now()
        added += db.run(lambda tx, r=request, at=now: _answer(tx, *r, now=at))
    return len(requests), added


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
        parts = smaller(spec, Slicer(spec, key), rest, total)
        if parts is not None:
            plans.write_slices(tx, plan, spec, parts, plan.next_slice_no, [now] * len(parts), now, parent=slice_id)
            group = Group(slices=parts, progress=plan.progress, estimated=None)
            plans.note_progress(tx, plan_id, [group], plan.next_slice_no + len(parts), now)
    status = "DONE" if parts is not None else "REFUSED"
    remarks = f"{len(parts)} smaller slices ({reason})" if parts is not None else f"as small as it may be ({reason})"
    tx.execute(store.Q["reslice_settle"], {"task_id": task_id, "status": status, "remarks": remarks, "now": now})
    if rest.window is not None:  # the old task answers only for what it finished; the rest is the new ones'
        tx.execute(store.Q["cut_task_window"], {"task_id": task_id, "window_to": rest.window.start, "now": now})
    on, why = (SliceOn.RESLICE, R.RESLICED) if parts is not None else (SliceOn.REFUSE, R.RESLICE_REFUSED)
    moves = [SLICE.move(slice_id, SliceStatus.READY, on, reason=why, at=now)]
    advance(tx, SLICE, table="ing_plan_slice", key="slice_id", column="status_code", moves=moves)
    return len(parts or ())
