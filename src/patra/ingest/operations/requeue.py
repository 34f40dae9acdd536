"""Failed tasks that a filter finds, tried again together, with a count of them before it is done (ch. 5.9, 14.7)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from patra.ingest.operations.reads.listing import MAX_PAGE_ROWS, page
from patra.ingest.operations.reads.read_models import TASKS
from patra.ingest.planning import store
from patra.ingest.planning.operations import Act, requeue_task
from patra.ingest.planning.states import TASK, TaskStatus, TaskTransition
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.db import Row, Tx
from patra.kernel.errors import Invalid
from patra.kernel.machine import advance

MAX_TASKS_PER_ACT = 10_000
SAMPLE_TASKS = 20


class TaskFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which failed tasks; an empty field stands for any, and at least one is needed."""

    source: str = ""
    endpoint: str = ""
    operation: str = ""
    plan: str = ""

    def wanted_fields(self) -> dict[str, Any]:
        """As the list of tasks takes it. Raises Invalid where no field is given: nothing is done to everything."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value}
        if not given:
            advice = "name a source, an endpoint, an operation or a plan"
            raise Invalid(Reason.PARAM_INVALID, "all failed tasks of all sources", place="source", advice=advice)
        return {**given, "status": TaskStatus.FAILED.value}


class RequeuePreview(msgspec.Struct, frozen=True, kw_only=True):
    """What a requeue of many would touch. `more`: there are further ones, which a second requeue takes.

    `left_out`: failed tasks of plans that were cancelled or failed; a requeue takes them where their plan is named.
    """

    tasks: int
    more: bool
    by_reason: dict[str, int]
    by_source: dict[str, int]
    sample: list[str]
    left_out: int = 0


def preview(tx: Tx, wanted: TaskFilter) -> RequeuePreview:
    """The failed tasks that a requeue would take, counted by reason and by source."""
    found, more, left_out = _failed_tasks(tx, wanted)
    return RequeuePreview(
        tasks=len(found),
        more=more,
        by_reason=_count_names(row["reason_code"] or "" for row in found),
        by_source=_count_names(f"{row['provenance_code']}/{row['endpoint_name']}" for row in found),
        sample=[row["task_id"] for row in found[:SAMPLE_TASKS]],
        left_out=left_out,
    )


def requeue_failed(tx: Tx, wanted: TaskFilter, *, why: str, now: int) -> Act:
    """Let the failed tasks that a filter finds be tried again, now; at most `MAX_TASKS_PER_ACT` of them.

    Those of plans that were cancelled or failed are left out, unless their plan is named.
    """
    found, more, left_out = _failed_tasks(tx, wanted)
    moves = [
        TASK.move(row["task_id"], TaskStatus.FAILED, TaskTransition.REQUEUE, reason=Reason.OPERATOR, at=now)
        for row in found
    ]
    also = {"lease_owner": None, "leased_until": None}
    moved = sorted(advance(tx, TASK, table="ing_task", key="task_id", column="status_code", moves=moves, also=also))
    tx.execute(store.Q["all_due_now"], {"now": now}, rows=[(task,) for task in moved])
    store.retake_signals(tx, moved)
    given = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value}
    subject = wanted.plan or "/".join(part for part in (wanted.source, wanted.endpoint, wanted.operation) if part)
    detail = {"why": why, "filter": given, "more": more, "left_out": left_out}
    return Act(act="ingest.requeue_failed", subject=subject, changed=len(moved), detail=detail)


def requeue_tasks(tx: Tx, tasks: Sequence[str], *, why: str, now: int) -> Act:
    """Let some tasks that failed be tried again, now. Raises Invalid where one of them is unknown."""
    chosen = sorted(set(tasks))
    changed = sum(requeue_task(tx, task, why=why, now=now).changed for task in chosen)
    detail = {"why": why, "tasks": chosen}
    return Act(act="ingest.requeue_tasks", subject=_subject(chosen), changed=changed, detail=detail)


def _subject(tasks: Sequence[str]) -> str:
    """The task, or the plan that all of them are of."""
    plans = {task.partition(".")[0] for task in tasks}
    return tasks[0] if len(tasks) == 1 else plans.pop() if len(plans) == 1 else f"{len(plans)} plans"


def _failed_tasks(tx: Tx, wanted: TaskFilter) -> tuple[list[dict[str, Any]], bool, int]:
    """The failed tasks in the order of their names, whether there are more than are taken, how many are left out."""
    found: list[dict[str, Any]] = []
    left_out = 0
    for rows, following in _pages(tx, wanted.wanted_fields()):
        given_up = set[str]() if wanted.plan else _given_up(tx, {row["plan_id"] for row in rows})
        kept = [row for row in rows if row["plan_id"] not in given_up]
        left_out += len(rows) - len(kept)
        found += kept
        if len(found) >= MAX_TASKS_PER_ACT:
            return found[:MAX_TASKS_PER_ACT], following or len(found) > MAX_TASKS_PER_ACT, left_out
    return found, False, left_out


def _given_up(tx: Tx, plans: set[str]) -> set[str]:
    """Those plans that were cancelled or failed: what is left of them is not wanted, or planned again."""
    rows: list[Row] = [(plan,) for plan in sorted(plans)]
    return {plan for (plan,) in tx.fetch(store.Q["plans_given_up"], rows=rows)} if rows else set()


def _pages(tx: Tx, wanted: dict[str, Any]) -> Iterator[tuple[list[dict[str, Any]], bool]]:
    after = ""
    while True:
        one = page(tx, TASKS, wanted, limit=MAX_PAGE_ROWS, after=after)
        yield one.rows, one.next is not None
        if one.next is None:
            return
        after = one.next


def _count_names(names: Iterator[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())
