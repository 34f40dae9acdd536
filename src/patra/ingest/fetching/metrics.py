"""The metrics of the running side by the names of ch. 14.4; each is declared here and counted where it happens."""

from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.telemetry import MILLISECONDS_BUCKETS, counter, gauge, histogram

BATCHES = counter("patra_ingest_batches_total", "Batches that were written.", "source", "endpoint", "op")
ITEMS = counter(
    "patra_ingest_items_total",
    "Records by what became of them: insert, update, skip, quarantine.",
    "source",
    "endpoint",
    "op",
    "action",
)
BATCH_LATENCY = histogram(
    "patra_ingest_batch_latency_ms",
    "A batch from its first request to its commit, waits for the rate gate included.",
    "source",
    "endpoint",
    "op",
    buckets=MILLISECONDS_BUCKETS,
)
HTTP_LATENCY = histogram(
    "patra_ingest_http_latency_ms",
    "One exchange with a provider.",
    "source",
    "endpoint",
    "op",
    buckets=MILLISECONDS_BUCKETS,
)
BOOKKEEPING = histogram(
    "patra_ingest_bookkeeping_ms",
    "The transaction of a batch: records, outbox, batch row, cursor event, cursor.",
    "source",
    "endpoint",
    "op",
    buckets=MILLISECONDS_BUCKETS,
)
ERRORS = counter("patra_ingest_errors_total", "Errors by class.", "level", "source", "endpoint", "op")
THROTTLED = counter("patra_ingest_429_total", "Answers with status 429.", "source", "endpoint", "op")
RETRIES = counter("patra_ingest_retries_total", "Second and later attempts of one request.", "source", "endpoint", "op")
SELF_HEAL = counter(
    "patra_ingest_self_heal_events_total",
    "What was done to heal: qpsDownshift, reslice, circuitOpen, circuitProbe, circuitClosed, concurrencyDown,"
    " pageSizeShrink, halt, taskStop.",
    "type",
)
QUEUED = gauge("patra_ingest_tasks_queued", "Tasks that wait.", "source", "endpoint", "op")
CONCURRENCY = gauge(
    "patra_ingest_executor_concurrency", "Tasks that this process works on.", "source", "endpoint", "op"
)
CURSOR_LAG = gauge("patra_ingest_cursor_lag_seconds", "Now minus the watermark.", "source", "endpoint", "op", "ns")
CURSOR_EVENTS = counter(
    "patra_ingest_cursor_advance_events_total", "Cursor events that moved a present value.", "direction"
)
IDEMPOTENCY_HITS = counter(
    "patra_ingest_idempotency_hits_total",
    "Batches that were committed before and changed nothing the second time.",
    "source",
    "endpoint",
    "op",
)
BUDGET = gauge("patra_ingest_budget_remaining", "Requests left in the quota at hand.", "source", "endpoint", "op")
QPS = gauge("patra_ingest_qps_effective", "The rate that the gate allows now.", "source", "endpoint", "op")
WAITS = counter(
    "patra_ingest_rate_wait_ms_total", "Milliseconds spent waiting for the rate gate.", "source", "endpoint", "op"
)

CIRCUIT_ACTS = {
    RunReason.CIRCUIT_OPEN: "circuitOpen",
    RunReason.CIRCUIT_PROBE: "circuitProbe",
    RunReason.CIRCUIT_CLOSED: "circuitClosed",
}
"""What a move of the circuit is called in `patra_ingest_self_heal_events_total`."""
