"""One task, run and batch over HTTP, and one batch done again without any effect (ch. 14.9)."""

import threading
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from patra.app.components.ingest import Ingest
from patra.ingest.operations.reads import blackbox, drilldown
from patra.ingest.operations.replay import replay
from patra.web.api.ingest_acts import NOT_THERE, TAG
from patra.web.endpoint import Endpoint, EndpointGroup, Reply, Request
from patra.web.problem import Problem

REPLAY_SECONDS = 120.0


class ReplayBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How: by asking the provider once more, or by reading the body that was kept."""

    kept: Annotated[bool, Meta(description="Read the kept body instead of asking the provider.")] = False
    why: Annotated[str, Meta(max_length=500)] = ""


class BatchesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which batches of the run to show."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="How many.")] = 100
    after: Annotated[int, Meta(ge=0, le=2**31, description="`next` of the last page.")] = 0


def routes() -> list[Endpoint]:
    get = EndpointGroup(TAG).get
    found = dict[str, Any]
    return [
        get("/ingest/tasks/{task}", _task, "A task with its runs, the latest first", found, problems=NOT_THERE),
        get("/ingest/runs/{run}", _run, "A run with its batches", found, BatchesQuery, problems=NOT_THERE),
        get(
            "/ingest/runs/{run}/batches/{batch}",
            _batch,
            "A batch: what was asked and answered, what it changed, what it said to the cursor",
            found,
            problems={404: "There is no such batch."},
        ),
        EndpointGroup(TAG).post(
            "/ingest/batches/{run}/{number}/replay",
            _replay,
            "ingest.replay",
            "Repeat one batch and compare; nothing is written, no cursor moves",
            description="One request to the provider, which passes the rate gate, or none with `kept`.",
            request=ReplayBatch,
            response=dict[str, Any],
            seconds=REPLAY_SECONDS,
            problems={404: "There is no such batch."},
        ),
    ]


def _task(request: Request) -> Reply | Problem:
    task = request.path["task"]
    found = request.patra.db.read(lambda tx: drilldown.task(tx, task))
    return Reply(found) if found is not None else _missing("task", task)


def _run(request: Request) -> Reply | Problem:
    run, query = request.path["run"], request.query
    found = request.patra.db.read(lambda tx: drilldown.run(tx, run, after=query.after, limit=query.limit))
    return Reply(found) if found is not None else _missing("run", run)


def _batch(request: Request) -> Reply | Problem:
    run, number = request.path["run"], request.path["batch"]
    found = (
        blackbox.display_batch(request.patra.db, run, int(number)) if number.isdecimal() and len(number) < 10 else None
    )
    return Reply(found) if found is not None else _missing("batch", f"{run}/{number}")


def _missing(kind: str, name: str) -> Problem:
    return Problem(404, f"i_{kind}_unknown", f"There is no such {kind}", f"{name}: it may have been purged.")


def _replay(request: Request) -> Reply | Problem:
    asked: ReplayBatch = request.body
    run_id, number = request.path["run"], request.path["number"]
    patra, stopping = request.patra, threading.Event()
    found = None
    if number.isdecimal() and len(number) < 10:
        found = replay(
            patra.db,
            patra.engine(Ingest).services,
            run_id,
            int(number),
            lambda microseconds: not stopping.wait(microseconds / 1_000_000),
            kept=asked.kept,
        )
    if found is None:
        return Problem(404, "batch_missing", "There is no such batch", f"run {run_id}, batch {number}")
    subject = f"{run_id}/{number}"
    request.act(lambda _: None, subject, how=found.how, conclusion=found.conclusion.value, why=asked.why)
    return Reply(msgspec.to_builtins(found))
