"""The states of runs and batches, the checkpoint of a run, and what it says of itself when it ends (ch. 7.9.2, 9.2)."""

from enum import StrEnum
from typing import Any

import msgspec

from patra.ingest.extraction.completeness import Ledger
from patra.ingest.extraction.key_ranges import KeyRanges
from patra.ingest.extraction.pagination import PagePosition
from patra.ingest.fetching.sender import Tally
from patra.ingest.planning.slicing.slice_groups import Rest
from patra.ingest.planning.states import TaskTransition
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.machine import Machine


class RunStatus(StrEnum):
    PLANNED = "PLANNED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class RunTransition(StrEnum):
    START = "start"
    SUCCEED = "succeed"
    PART = "part"  # the task goes on in another run, or smaller slices take the rest
    FAIL = "fail"
    CANCEL = "cancel"


RUN: Machine[RunStatus, RunTransition] = Machine(
    "ing_task_run",
    initial=RunStatus.PLANNED,
    edges={
        (RunStatus.PLANNED, RunTransition.START): RunStatus.RUNNING,
        (RunStatus.RUNNING, RunTransition.SUCCEED): RunStatus.SUCCEEDED,
        (RunStatus.RUNNING, RunTransition.PART): RunStatus.PARTIAL,
        (RunStatus.RUNNING, RunTransition.FAIL): RunStatus.FAILED,
        (RunStatus.RUNNING, RunTransition.CANCEL): RunStatus.CANCELLED,
    },
)


class BatchStatus(StrEnum):
    PLANNED = "PLANNED"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    SKIPPED = "SKIPPED"
    FAILED = "FAILED"


class BatchTransition(StrEnum):
    START = "start"
    LAND = "land"
    SKIP = "skip"  # its answer says to begin again elsewhere
    FAIL = "fail"


BATCH: Machine[BatchStatus, BatchTransition] = Machine(
    "ing_task_run_batch",
    initial=BatchStatus.PLANNED,
    edges={
        # A batch is written when it is over, in the transaction of its effects: it is never seen before that.
        (BatchStatus.PLANNED, BatchTransition.START): BatchStatus.RUNNING,
        (BatchStatus.RUNNING, BatchTransition.LAND): BatchStatus.SUCCEEDED,
        (BatchStatus.RUNNING, BatchTransition.SKIP): BatchStatus.SKIPPED,
        (BatchStatus.RUNNING, BatchTransition.FAIL): BatchStatus.FAILED,
    },
)


def correlation_id(run_id: str, batch_no: int) -> str:
    """What ties the requests of a batch, its log line and the provider's log together (14.5)."""
    return f"ing-{run_id}-{batch_no}"


class Phase(StrEnum):
    LIST = "LIST"
    DETAIL = "DETAIL"


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The last confirmed point of a task. The next run continues from here, however the last one ended."""

    place: PagePosition = PagePosition()
    pending: tuple[str, ...] = ()
    """Two phases: ids whose records are still to be fetched."""
    over: bool = False
    """The list has been read to its end."""
    group: int | None = None
    """Two phases: smaller groups of ids, while one of them makes the provider refuse the whole."""
    confirmed: int | None = None
    """Rising lists: everything of the window before this instant has landed."""
    restarts: int = 0
    fruitless: int = 0
    """Runs in a row that ended on transient failures without a single batch."""
    ledger: Ledger = Ledger()
    """What the window has promised, and the result so far."""
    counted_since: int = 1
    """The attempt in which the ledger began to count."""
    ranges: KeyRanges = KeyRanges()
    """Ranges of the key that are still to read, where the window is read in ranges."""
    highest: int | None = None
    """HARVEST by key: the largest key of the list so far."""
    last_key: int | None = None
    """HARVEST by key: the one that came last in this reading of the list."""
    size: int | None = None
    """A page size that was lowered on the way."""
    at: int = 0

    @property
    def is_finished(self) -> bool:
        return self.over and not self.pending


_decoder = msgspec.json.Decoder(Checkpoint)


def decode_checkpoint(text: str) -> Checkpoint:
    return _decoder.decode(text)


def encode_checkpoint(checkpoint: Checkpoint) -> str:
    return msgspec.json.encode(checkpoint).decode()


MAX_RUN_ERRORS = 10
MAX_ERROR_CHARS = 300


class RunError(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An error that batches of a run met: how often, in which batch last, and its words then."""

    code: str
    level: str
    count: int = 1
    last_batch: int
    detail: str = ""


class Stats(msgspec.Struct, kw_only=True, rename="camel"):
    """`ing_task_run.stats` (ch. 14.3.1); it grows with the run."""

    req_count: int = 0
    ret_count: int = 0
    inserted: int = 0
    updated: int = 0
    updated_same_time: int = 0
    """Of `updated`: those with the update time of the stored record and other content (ruling I14)."""
    skipped: int = 0
    failed: int = 0
    retry_count: int = 0
    throttled: int = msgspec.field(name="429Count", default=0)
    retry_after_hits: int = 0
    demote_events: int = 0
    wait_total_ms: int = 0
    permits_total: int = 0
    quota_soft_hits: int = 0
    quota_hard_hits: int = 0
    max_latency_ms: int = 0
    total_latency_ms: int = 0
    pages_visited: int = 0
    batches: int = 0
    has_next_last: bool = False
    rate_adjusted: bool = False
    circuit_open: bool = False
    late_arrivals: int = 0
    healed: dict[str, int] = {}
    errors: tuple[RunError, ...] = ()
    """The errors of its batches by code, the latest last; at most `MAX_RUN_ERRORS` codes."""
    rate: dict[str, str | int | float] = {}
    """What the rate gate said when it refused (4.10.7): such a request has no batch that could say it."""

    def add_fetch(self, tally: Tally) -> None:
        self.req_count += tally.requests
        self.retry_count += tally.retries
        self.throttled += tally.throttled
        self.retry_after_hits += tally.retry_after_hits
        self.wait_total_ms += tally.waited // 1000
        self.permits_total += tally.permits
        self.quota_soft_hits += tally.quota_soft
        self.quota_hard_hits += tally.quota_hard
        self.demote_events += tally.demoted
        self.rate_adjusted = self.rate_adjusted or tally.demoted > 0
        self.total_latency_ms += tally.latency // 1000
        self.max_latency_ms = max(self.max_latency_ms, tally.longest // 1000)
        self.circuit_open = self.circuit_open or tally.circuit_opened > 0
        if str(tally.view.get("rate.decision", "")).startswith("REJECT"):
            self.rate = tally.view

    def add_error(self, code: str, level: str, batch_no: int, detail: str, count: int = 1) -> None:
        """Count an error; those of one code are one entry."""
        before = next((one.count for one in self.errors if one.code == code), 0)
        others = tuple(one for one in self.errors if one.code != code)
        latest = RunError(
            code=code, level=level, count=before + count, last_batch=batch_no, detail=detail[:MAX_ERROR_CHARS]
        )
        self.errors = (*others, latest)[-MAX_RUN_ERRORS:]

    def to_json(self) -> str:
        tree: dict[str, Any] = msgspec.to_builtins(self)
        tree["remarks"] = f"online-reslice-suggested:{str('reslice' in self.healed).lower()}"
        tree["avgLatencyMs"] = self.total_latency_ms // self.req_count if self.req_count else 0
        return msgspec.json.encode(tree).decode()


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ends, and what becomes of its task."""

    run: RunTransition
    task: TaskTransition
    code: RunReason
    detail: str = ""
    advice: str = ""
    due: int | None = None
    """DEFER: when the task may be taken again."""
    rest: Rest | None = None
    """PART: what smaller slices are to do."""
    total: int | None = None
    halt: bool = False
    level: str | None = None


def defer_task(code: RunReason, due: int, detail: str) -> Closing:
    """The task goes back into the queue and on from its checkpoint."""
    return Closing(run=RunTransition.PART, task=TaskTransition.DEFER, code=code, due=due, detail=detail)


def fail_task(
    code: RunReason, detail: str, *, level: str | None = None, advice: str = "", halt: bool = False
) -> Closing:
    """The task is over and leaves a hole, which a later plan finds."""
    return Closing(
        run=RunTransition.FAIL,
        task=TaskTransition.FAIL,
        code=code,
        detail=detail,
        level=level,
        advice=advice,
        halt=halt,
    )


DONE = Closing(run=RunTransition.SUCCEED, task=TaskTransition.SUCCEED, code=RunReason.DONE)
