"""Every metric, span, log event and field of ch. 14.3 to 14.6, by its name: they are a contract."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog

from patra.ingest.execution.run_recorder import is_sampled
from patra.ingest.fetching import metrics
from patra.ingest.operations.alerting.monitor import Watch
from patra.ingest.planning import planner
from patra.kernel import telemetry
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

PLACE = ("source", "endpoint", "op")
METRICS = {
    "patra_ingest_batches_total": ("counter", PLACE),
    "patra_ingest_items_total": ("counter", (*PLACE, "action")),
    "patra_ingest_batch_latency_ms": ("histogram", PLACE),
    "patra_ingest_http_latency_ms": ("histogram", PLACE),
    "patra_ingest_errors_total": ("counter", ("level", *PLACE)),
    "patra_ingest_429_total": ("counter", PLACE),
    "patra_ingest_retries_total": ("counter", PLACE),
    "patra_ingest_self_heal_events_total": ("counter", ("type",)),
    "patra_ingest_tasks_queued": ("gauge", PLACE),
    "patra_ingest_executor_concurrency": ("gauge", PLACE),
    "patra_ingest_cursor_lag_seconds": ("gauge", (*PLACE, "ns")),
    "patra_ingest_cursor_advance_events_total": ("counter", ("direction",)),
    "patra_ingest_budget_remaining": ("gauge", PLACE),
    "patra_ingest_qps_effective": ("gauge", PLACE),
}
RUN_STATS = {
    "reqCount",
    "retCount",
    "inserted",
    "updated",
    "skipped",
    "failed",
    "retryCount",
    "429Count",
    "avgLatencyMs",
    "maxLatencyMs",
    "pagesVisited",
    "hasNextLast",
    "rateAdjusted",
    "remarks",
    # 4.10.7
    "retryAfterHits",
    "demoteEvents",
    "waitTotalMs",
    "permitsTotal",
    "quotaSoftHits",
    "quotaHardHits",
}
BATCH_STATS = {
    "itemsCount",
    "inserted",
    "updated",
    "skipped",
    "failed",
    "latencyMs",
    "retryCount",
    "429Count",
    "hasNext",
    "nextHint",
    "http",
    "selfHealing",
}
REQUEST = {"method", "urlTemplate", "query", "headers", "bodyHash"}
RESPONSE = {"status", "headerHints", "itemsPath", "nextTokenPath", "sample", "bodyHash"}
RATE = {"rate.limitKey", "rate.permitCost", "rate.waitMs", "rate.decision", "rate.r", "rate.burst"}
TREE = {
    "PlannerTrigger": None,
    "CompileSpec": "PlannerTrigger",
    "Slice": "PlannerTrigger",
    "ExecutorTrigger": None,
    "PickTask": "ExecutorTrigger",
    "Run": "ExecutorTrigger",
    "Batch": "Run",
    "HTTP Call": "Batch",
}
LINEAGE = {"source", "endpoint", "op", "schedule_instance_id", "plan_id", "slice_id", "task_id", "run_id"}


class Spans:
    """Remembers spans with their parents, as an exporter would."""

    def __init__(self) -> None:
        self.parents: dict[str, set[str | None]] = {}
        self.tags: dict[str, set[str]] = {}
        self._open: list[str] = []

    @contextmanager
    def start(self, name: str, attributes: Any) -> Iterator[Any]:
        self.parents.setdefault(name, set()).add(self._open[-1] if self._open else None)
        tags = self.tags.setdefault(name, set())
        tags.update(attributes.keys())
        self._open.append(name)

        class Set:
            def set_attributes(self, more: Any) -> None:
                tags.update(more.keys())

        yield Set()
        self._open.pop()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    found = Spans()
    monkeypatch.setattr(telemetry.TRACING, "start", found.start)
    return found


def fail_first(w: World, count: int) -> None:
    serve, turn = w.provider._served, iter(range(1_000_000))
    w.provider._served = lambda *a: (  # type: ignore[method-assign]
        Reply(status=503, body=b"", kind="text/plain") if next(turn) < count else serve(*a)
    )


def harvested(w: World) -> None:
    w.load(pack(w.url, "PAGE"))
    w.trigger()
    watch = Watch(w.db, w.clock)
    watch.run_once()
    w.drain()
    watch.run_once()


def test_the_metrics_are_declared_by_their_names_and_labels() -> None:
    declared = {one.name: (one.kind, one.labels) for one in telemetry.METRICS}
    assert {name: declared.get(name) for name in METRICS} == METRICS
    assert metrics.BATCHES is not None
    assert planner.PLANS is not None


def test_a_harvest_counts_in_every_metric_that_it_concerns(database: Database) -> None:
    with world(database, crowded(60, T0, T1, crowd=False)) as w:
        fail_first(w, 2)
        harvested(w)
    text = telemetry.metrics_text().decode()
    here = ('endpoint="search"', 'op="HARVEST"', 'source="hostile"')
    for name in METRICS.keys() - {
        "patra_ingest_429_total",
        "patra_ingest_self_heal_events_total",
        "patra_ingest_cursor_advance_events_total",
        "patra_ingest_budget_remaining",
    }:
        lines = [line for line in text.splitlines() if line.startswith(name)]
        assert any(all(label in line for label in here) for line in lines), name
    assert 'patra_ingest_cursor_advance_events_total{direction="FORWARD"}' in text


def test_spans_stand_in_each_other_as_the_specification_says(database: Database, spans: Spans) -> None:
    with world(database, crowded(60, T0, T1, crowd=False)) as w:
        harvested(w)
    assert {name: spans.parents.get(name) for name in TREE} == {name: {parent} for name, parent in TREE.items()}
    assert {"source", "endpoint", "op", "page", "hasNext", "status", "http.status"} <= spans.tags["Batch"]
    assert {"source", "endpoint", "op", "priority", "status"} <= spans.tags["Run"]
    assert {"source", "endpoint", "op", "http.status"} <= spans.tags["HTTP Call"]


def test_rows_hold_the_fields_of_14_3(database: Database) -> None:
    with world(database, crowded(60, T0, T1, crowd=False)) as w:
        harvested(w)
        stats = json.loads(w.one("SELECT stats FROM ing_task_run LIMIT 1"))
        assert stats.keys() >= RUN_STATS
        batch, request, response = (
            json.loads(text)
            for text in w.rows("SELECT stats, request_digest, response_digest FROM ing_task_run_batch LIMIT 1")[0]
        )
        assert batch.keys() >= BATCH_STATS
        assert batch["nextHint"].keys() == {"token", "page", "url"}
        assert batch["http"].keys() == {"status", "bytes"}
        assert batch["selfHealing"].keys() >= {"qpsDownshift", "pageSizeShrink"}
        assert request.keys() >= REQUEST
        assert response.keys() >= RESPONSE | RATE
        remarks = json.loads(w.one("SELECT record_remarks FROM ing_cursor_event LIMIT 1"))
        assert remarks.keys() == {"reason", "batchNo", "lateArrival"}


@pytest.fixture
def every_level() -> Iterator[None]:
    """Whatever an earlier test has left out of the logs."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))
    yield
    structlog.configure(**before)


@pytest.mark.usefixtures("every_level")
def test_log_events_say_what_they_belong_to(database: Database) -> None:
    with (
        world(database, crowded(60, T0, T1, crowd=False)) as w,
        structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines,
    ):
        fail_first(w, 3)  # three in a row open the circuit
        harvested(w)
    by: dict[str, list[Any]] = {}
    for line in lines:
        by.setdefault(line["event"], []).append(line)
    assert {"ingest_task_taken", "ingest_batch", "ingest_run_closed", "ingest_self_heal"} <= by.keys()
    for name in ("ingest_task_taken", "ingest_batch", "ingest_run_closed", "ingest_self_heal"):
        for line in by[name]:
            assert line.keys() >= LINEAGE, (name, line)
    acts = [line["act"] for line in by["ingest_self_heal"]]
    assert [act for act in acts if "circuit" in act] == ["i_circuit_open", "i_circuit_probe", "i_circuit_closed"]
    (opened,) = [line for line in by["ingest_self_heal"] if line["act"] == "i_circuit_open"]
    assert opened["error"].startswith("HTTP 5")  # why, for whoever reads the warning
    assert by["ingest_task_taken"][0].keys() >= {"leased_until", "slot", "holder", "fence"}
    assert all(line["correlation_id"] == f"ing-{line['run_id']}-{line['batch_no']}" for line in by["ingest_batch"])
    levels = {(line["level"] is None, line["log_level"]) for line in by["ingest_batch"]}
    assert levels <= {(True, "info"), (True, "debug"), (False, "warning")}


def test_one_successful_batch_of_a_hundred_is_logged_at_info() -> None:
    picked = [is_sampled(f"p{n // 40}.t{n % 40:06}.r1", n) for n in range(20_000)]
    assert 120 < sum(picked) < 300
    assert picked == [is_sampled(f"p{n // 40}.t{n % 40:06}.r1", n) for n in range(20_000)]
