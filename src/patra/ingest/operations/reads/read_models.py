"""What can be asked about the running side, one entry a list: HTTP and the command line offer the same set (ch. 14.7).

Lists of plans, tasks, runs, batches, records in quarantine, watermarks, cursor events, errors, signals and refused
triggers. What is not a list of rows (the queue, a plan's lineage, coverage, alerts, schedules) stands in `views`,
`coverage` and `monitor`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.landing.run_state import RunStatus
from patra.ingest.operations.reads.legible_rows import shown_row
from patra.ingest.operations.reads.listing import Domain, Listing, Page, Way, page
from patra.ingest.planning.states import PlanStatus, TaskStatus
from patra.ingest.planning.store import Q
from patra.kernel.db import Tx

QUARANTINE_STATES = ("OPEN", "RESOLVED", "DISMISSED")


def _states(names: Sequence[str]) -> Domain:
    return Domain(lambda _, given: [given["status"]] if "status" in given else names, ("status",))


def _partitions(tx: Tx, given: Mapping[str, Any]) -> list[str]:
    """Partitions that have tasks and fit the filters."""
    wanted = [given.get(name, "") for name in ("source", "endpoint", "operation")]
    found = [partition for (partition,) in tx.fetch(Q["partitions"])]
    return [
        one
        for one in found
        if all(not want or want == part for want, part in zip(wanted, one.split("/", 2), strict=True))
    ]


SOURCE = "provenance_code = :source"
ENDPOINT = "endpoint_name = :endpoint"
OPERATION = "operation_code = :operation"
STATUS = "status_code = :status"
PARTITION = "(provenance_code || '/' || endpoint_name || '/' || operation_code)"

PLANS = Listing(
    name="plans",
    table="ing_plan",
    columns=(
        "plan_id", "provenance_code", "endpoint_name", "operation_code", "plan_strategy", "status_code", "window_from",
        "window_to", "priority", "next_slice_no", "total_estimated", "expected_requests", "namespace_key",
        "created_at", "updated_at",
    ),
    order=("created_at", "plan_id"),
    falling=True,
    filters={"source": SOURCE, "endpoint": ENDPOINT, "operation": OPERATION, "status": STATUS},
    ways=(
        Way(needs=("source",), tries=("status_code",)),
        Way(needs=("status",), tries=("status_code",)),
        Way(),
    ),
    domains={"status_code": _states([one.value for one in PlanStatus])},
)  # fmt: skip

TASKS = Listing(
    name="tasks",
    table="ing_task",
    columns=(
        "task_id", "plan_id", "slice_id", "provenance_code", "endpoint_name", "operation_code", "status_code",
        "priority", "scheduled_at", "window_from", "window_to", "lease_owner", "leased_until", "lease_count",
        "reason_code", "started_at", "finished_at", "created_at",
    ),
    order=("task_id",),
    filters={
        "source": SOURCE, "endpoint": ENDPOINT, "operation": OPERATION, "status": STATUS, "plan": "plan_id = :plan",
    },
    ways=(
        Way(needs=("plan",), tries=("status_code",)),
        Way(needs=("source",), tries=("partition_key", "status_code")),
        Way(needs=("endpoint",), tries=("partition_key", "status_code")),
        Way(needs=("operation",), tries=("partition_key", "status_code")),
        Way(needs=("status",), tries=("status_code",)),
        Way(),
    ),
    domains={
        "partition_key": Domain(_partitions, ("source", "endpoint", "operation")),
        "status_code": _states([one.value for one in TaskStatus]),
    },
)  # fmt: skip

RUNS = Listing(
    name="runs",
    table="ing_task_run",
    columns=(
        "run_id", "task_id", "plan_id", "provenance_code", "endpoint_name", "operation_code", "attempt_no",
        "status_code", "reason_code", "error", "window_from", "window_to", "lease_owner", "stats", "started_at",
        "finished_at",
    ),
    order=("started_at", "run_id"),
    falling=True,
    filters={
        "source": SOURCE, "endpoint": ENDPOINT, "operation": OPERATION, "status": STATUS,
        "task": "run_id > :task || '.r' AND run_id < :task || '.s'",
        "plan": "run_id > :plan || '.t' AND run_id < :plan || '.u'",
    },
    ways=(
        Way(needs=("task",), order=("run_id",)),
        Way(needs=("plan",), order=("run_id",)),
        Way(needs=("source",), tries=("partition_key", "status_code")),
        Way(needs=("endpoint",), tries=("partition_key", "status_code")),
        Way(needs=("status",), tries=("status_code",)),
        Way(),
    ),
    domains={
        "partition_key": Domain(_partitions, ("source", "endpoint", "operation")),
        "status_code": _states([one.value for one in RunStatus]),
    },
    expressions={"partition_key": PARTITION},
)  # fmt: skip

BATCHES = Listing(
    name="batches",
    table="ing_task_run_batch",
    columns=(
        "batch_id", "run_id", "task_id", "plan_id", "provenance_code", "endpoint_name", "operation_code", "batch_no",
        "phase_code", "status_code", "error_level", "reason_code", "error", "page_no", "stats", "created_at",
    ),
    order=("created_at", "batch_id"),
    falling=True,
    filters={
        "run": "run_id = :run",
        "task": "run_id > :task || '.r' AND run_id < :task || '.s'",
        "plan": "run_id > :plan || '.t' AND run_id < :plan || '.u'",
        "status": STATUS,
        "level": "error_level = :level",
    },
    ways=(
        Way(needs=("run",), order=("run_id", "batch_no")),
        Way(needs=("task",), order=("run_id", "batch_no")),
        Way(needs=("plan",), order=("run_id", "batch_no")),
        Way(needs=("status",), tries=("status_code",), always="status_code <> 'SUCCEEDED'", unless=("SUCCEEDED",)),
        Way(),
    ),
    domains={"status_code": Domain(lambda _, given: [given["status"]], ("status",))},
)  # fmt: skip

ERRORS = Listing(
    name="errors",
    # a run may also fail by what its batches lead to, such as a circle of pages; its last batch is the one to look at
    table="""(SELECT batch_id AS error_id, run_id, batch_no, provenance_code, endpoint_name, operation_code,
      error_level, reason_code, error, created_at FROM ing_task_run_batch WHERE error_level IS NOT NULL
    ) AS failed_batches""",
    also=(
        """(SELECT r.run_id AS error_id, r.run_id,
      (SELECT max(l.batch_no) FROM ing_task_run_batch l WHERE l.run_id = r.run_id) AS batch_no, r.provenance_code,
      r.endpoint_name, r.operation_code, CAST(NULL AS TEXT) AS error_level, r.reason_code, r.error,
      r.finished_at AS created_at
    FROM ing_task_run r WHERE r.status_code = 'FAILED'
      AND NOT EXISTS (SELECT 1 FROM ing_task_run_batch f WHERE f.run_id = r.run_id AND f.status_code = 'FAILED')
    ) AS failed_runs""",
    ),
    columns=(
        "error_id", "run_id", "batch_no", "provenance_code", "endpoint_name", "operation_code", "error_level",
        "reason_code", "error", "created_at",
    ),
    order=("created_at", "error_id"),
    falling=True,
    filters={
        "source": SOURCE, "endpoint": ENDPOINT, "operation": OPERATION, "level": "error_level = :level",
        "since": "created_at >= :since", "until": "created_at < :until",
    },
    ways=(Way(needs=("endpoint",), tries=("partition_key",)), Way(needs=("source",)), Way()),
    domains={"partition_key": Domain(_partitions, ("source", "endpoint", "operation"))},
    expressions={"partition_key": PARTITION},
)  # fmt: skip
ERRORS_OF_A_LEVEL = msgspec.structs.replace(
    ERRORS,
    also=(),  # a run that failed without a failed batch has no class
    ways=(Way(needs=("level",), tries=("error_level",)),),
    domains={"error_level": Domain(lambda _, given: [given["level"]], ("level",))},
    expressions={},
)

QUARANTINE = Listing(
    name="quarantine",
    table="ing_quarantine",
    columns=(
        "provenance_code", "endpoint_name", "item_key", "provider_id", "status_code", "reason_code", "field_path",
        "detail", "seen_count", "first_seen_at", "last_seen_at", "run_id", "batch_no", "sample",
    ),
    order=("last_seen_at", "item_key", "endpoint_name", "provenance_code"),
    falling=True,
    filters={"source": SOURCE, "endpoint": ENDPOINT, "status": STATUS, "reason": "reason_code = :reason"},
    ways=(
        Way(needs=("source",), tries=("status_code",), order=("last_seen_at", "item_key", "endpoint_name")),
        Way(tries=("status_code",)),
    ),
    domains={"status_code": _states(QUARANTINE_STATES)},
)  # fmt: skip

CURSORS = Listing(
    name="cursors",
    table="ing_cursor",
    columns=(
        "provenance_code", "operation_code", "cursor_key", "namespace_scope_code", "namespace_key",
        "cursor_type_code", "cursor_value", "observed_max_value", "plan_id", "run_id", "updated_at",
    ),
    order=("provenance_code", "operation_code", "cursor_key", "namespace_scope_code", "namespace_key"),
    filters={"source": SOURCE, "operation": OPERATION, "namespace": "namespace_key = :namespace"},
    ways=(Way(needs=("namespace",)), Way(needs=("source",)), Way()),
)  # fmt: skip

CURSOR_TIMELINE = Listing(
    name="cursor-timeline",
    table="ing_cursor_event",
    columns=(
        "event_id", "event_time", "provenance_code", "operation_code", "namespace_key", "direction_code", "prev_value",
        "new_value", "observed_max_value", "reason_code", "task_id", "run_id", "batch_no", "record_remarks",
    ),
    order=("event_time", "event_id"),
    falling=True,
    filters={
        "source": SOURCE, "operation": OPERATION, "namespace": "namespace_key = :namespace",
        "since": "event_time >= :since", "until": "event_time < :until", "run": "run_id = :run",
    },
    ways=(
        Way(needs=("run",), order=("event_id",)),
        Way(needs=("source", "operation", "namespace"), tries=("namespace_scope_code",)),
    ),
    domains={"namespace_scope_code": Domain(lambda _, __: ("GLOBAL", "EXPR", "CUSTOM"))},
)  # fmt: skip

SIGNALS = Listing(
    name="signals",
    table="ing_signal",
    columns=(
        "provenance_code", "endpoint_name", "provider_id", "reason_code", "detail", "raised_by", "raised_at", "plan_id",
    ),
    order=("provenance_code", "endpoint_name", "provider_id"),
    filters={"source": SOURCE, "endpoint": ENDPOINT},
    ways=(Way(needs=("source",)), Way()),
    always="plan_id IS NULL",
)  # fmt: skip

REFUSED = Listing(
    name="refused",
    table="ing_schedule_instance",
    columns=(
        "schedule_instance_id", "provenance_code", "endpoint_name", "operation_code", "outcome_code", "record_remarks",
        "triggered_at",
    ),
    order=("triggered_at", "schedule_instance_id"),
    falling=True,
    filters={"source": SOURCE, "endpoint": ENDPOINT, "operation": OPERATION},
    ways=(Way(needs=("source",)), Way()),
    always=(
        "outcome_code NOT IN ('i_planned', 'i_window_empty', 'i_window_covered', 'i_no_candidates', 'i_tick_missed')"
    ),
)  # fmt: skip


FILTER_TEXTS = {
    "source": "Only this source.",
    "endpoint": "Only this endpoint.",
    "operation": "Only this operation.",
    "status": "Only this state.",
    "plan": "Only of this plan.",
    "task": "Only of this task.",
    "run": "Only of this run.",
    "level": "Only errors of this class: L1, L2, L3, L4.",
    "reason": "Only with this reason code.",
    "namespace": "Only of this namespace.",
    "since": "From this instant on, RFC 3339.",
    "until": "Before this instant, RFC 3339.",
}
"""What each filter of a list is, for the HTTP interface and the command line."""


class ReadModel(msgspec.Struct, frozen=True, kw_only=True):
    """A list as people see it: what it is called, what it shows, and the columns that the command line shows."""

    listing: Listing
    summary: str
    shown: tuple[str, ...]


READ_MODELS: dict[str, ReadModel] = {
    one.listing.name: one
    for one in (
        ReadModel(
            listing=PLANS,
            summary="List plans, the newest first.",
            shown=("plan_id", "provenance_code", "endpoint_name", "operation_code", "status_code", "created_at"),
        ),
        ReadModel(
            listing=TASKS,
            summary="List tasks in the order of their plans and slices.",
            shown=("task_id", "provenance_code", "endpoint_name", "status_code", "scheduled_at", "window_from",
                   "window_to", "reason_code"),
        ),
        ReadModel(
            listing=RUNS,
            summary="List runs of tasks, the newest first.",
            shown=("run_id", "provenance_code", "endpoint_name", "operation_code", "window_from", "window_to",
                   "status_code", "reason_code", "started_at", "finished_at", "error"),
        ),
        ReadModel(
            listing=BATCHES,
            summary="List batches, the newest first; those of a run, task or plan in their order.",
            shown=("batch_id", "phase_code", "status_code", "error_level", "reason_code", "created_at"),
        ),
        ReadModel(
            listing=ERRORS,
            summary="List failed batches, and runs that failed without one, the newest first.",
            shown=("run_id", "provenance_code", "endpoint_name", "batch_no", "error_level", "reason_code", "error",
                   "created_at"),
        ),
        ReadModel(
            listing=QUARANTINE,
            summary="List records that could not be taken in: where, why, and a sample.",
            shown=("provenance_code", "endpoint_name", "item_key", "status_code", "reason_code", "field_path", "detail",
                   "seen_count", "last_seen_at", "run_id", "batch_no", "sample"),
        ),
        ReadModel(
            listing=CURSORS,
            summary="List watermarks and the latest instant that was seen.",
            shown=("provenance_code", "operation_code", "namespace_key", "cursor_value", "observed_max_value",
                   "updated_at"),
        ),
        ReadModel(
            listing=CURSOR_TIMELINE,
            summary="List the events of a watermark, the newest first.",
            shown=("event_time", "prev_value", "new_value", "reason_code", "run_id", "batch_no"),
        ),
        ReadModel(
            listing=SIGNALS,
            summary="List records that are to be fetched again and that no plan has taken up.",
            shown=("provenance_code", "endpoint_name", "provider_id", "reason_code", "raised_by", "raised_at"),
        ),
        ReadModel(
            listing=REFUSED,
            summary="List triggers that made no plan, and what was missing.",
            shown=("provenance_code", "endpoint_name", "operation_code", "outcome_code", "triggered_at"),
        ),
    )
}  # fmt: skip


def listing_of(name: str, wanted: Mapping[str, Any]) -> Listing:
    """How a list is read with these filters."""
    return ERRORS_OF_A_LEVEL if name == "errors" and wanted.get("level") else READ_MODELS[name].listing


def read_list(tx: Tx, name: str, wanted: Mapping[str, Any], *, limit: int, after: str = "") -> Page:
    """A page of a list, legible: instants as text, stored JSON as values, samples as text."""
    found = page(tx, listing_of(name, wanted), wanted, limit=limit, after=after)
    return Page(rows=[legible(row) for row in found.rows], next=found.next)


def legible(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row for people: legible, and nothing secret or personal in what others wrote."""
    return shown_row(row)


def error_top(tx: Tx, wanted: Mapping[str, Any], *, since: int, until: int, limit: int) -> list[dict[str, Any]]:
    """`getErrorTopN` (ch. 14.7): errors of a span by source, endpoint, operation, class and reason, the most first."""
    params = {name: wanted.get(name) or "" for name in ("source", "operation", "level")}
    rows = tx.fetch_dicts(Q["error_top"], {**params, "since": since, "until": until, "limit": limit})
    return [legible(row) for row in rows]
