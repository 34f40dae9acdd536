import fcntl
import io
import json
import logging
import os
import re
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from errno import EMFILE
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import structlog
from prometheus_client import Gauge
from prometheus_client.core import GaugeMetricFamily

from patra.kernel.clock import parse_instant
from patra.kernel.errors import ConfigInvalid
from patra.kernel.telemetry import (
    LINEAGE,
    METRICS,
    REGISTRY,
    Metric,
    Sampler,
    bind_lineage,
    counter,
    gauge,
    get_logger,
    histogram,
    logs,
    metrics_text,
    sample_value,
    setup_logging,
    setup_tracing,
    span,
    trace_headers,
)
from patra.kernel.telemetry.console_lines import console_line

HANDLED = counter("patra_test_handled_total", "Things handled, by result.", "result")
WAITING = gauge("patra_test_waiting", "Things that wait.")
TOOK = histogram("patra_test_seconds", "How long it took.", buckets=(0.1, 1.0))
log = get_logger()


@pytest.fixture(autouse=True)
def plain_again() -> Iterator[None]:
    handlers = list(logging.getLogger().handlers)
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers = handlers


class Lines(io.StringIO):
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def lines() -> Lines:
    logging.getLogger().handlers = []
    out = Lines()
    setup_logging(format="json", stream=out)
    return out


def test_lines_of_a_program_that_configured_no_logging_leave_its_standard_output_alone(capsys) -> None:
    structlog.reset_defaults()
    get_logger().warning("something_happened")
    out, err = capsys.readouterr()
    assert (out, "something_happened" in err) == ("", True)


# --- metrics


def test_every_declared_metric_stands_in_the_contract() -> None:
    assert Metric(
        name="patra_test_handled_total", kind="counter", help="Things handled, by result.", labels=("result",)
    ) in METRICS  # fmt: skip
    assert {m.name for m in METRICS} >= {"patra_test_waiting", "patra_test_seconds"}


def test_metrics_are_shown_in_the_format_of_prometheus() -> None:
    HANDLED.labels("done").inc(2)
    WAITING.set(7)
    TOOK.observe(0.5)
    text = metrics_text().decode()
    assert 'patra_test_handled_total{result="done"} 2.0' in text
    assert "patra_test_waiting 7.0" in text
    assert 'patra_test_seconds_bucket{le="1.0"} 1.0' in text
    assert "# HELP patra_test_waiting Things that wait." in text


def test_a_metric_declared_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="declared twice"):
        gauge("patra_test_waiting", "Again.")


@pytest.mark.parametrize(("name", "text"), [("other_total", "x"), ("patra_test_count", "x"), ("patra_mute_total", "")])
def test_a_counter_is_named_by_the_rules_and_says_what_it_counts(name: str, text: str) -> None:
    with pytest.raises(ValueError):
        counter(name, text)
    assert name not in {m.name for m in METRICS}


def test_the_registry_holds_nothing_that_was_not_declared() -> None:
    exposed = {family.name for family in REGISTRY.collect()}
    assert exposed == {m.name.removesuffix("_total") for m in METRICS}


# --- logs


def test_a_line_says_when_how_grave_and_what_first(lines: Lines) -> None:
    log.info("batch_done", items=5)
    (line,) = lines.all()
    assert list(line) == ["at", "level", "event", "items"]
    assert (line["level"], line["event"], line["items"]) == ("info", "batch_done", 5)
    assert parse_instant(line["at"]) is not None


def test_lineage_stands_in_every_line_of_the_block(lines: Lines) -> None:
    with bind_lineage(run_id="r1", batch_no=3, trace_id=None):
        log.info("inside")
        with bind_lineage(batch_no=4):
            log.info("deeper")
        log.info("inside_again")
    log.info("outside")
    found = [(line["event"], line.get("run_id"), line.get("batch_no"), "trace_id" in line) for line in lines.all()]
    assert found == [
        ("inside", "r1", 3, False),
        ("deeper", "r1", 4, False),
        ("inside_again", "r1", 3, False),
        ("outside", None, None, False),
    ]


def test_lineage_has_known_names_only() -> None:
    with pytest.raises(ValueError, match="run_ID"), bind_lineage(run_ID="r"):
        pass
    assert all(LINEAGE.values())


def test_lines_are_redacted_tracebacks_included(lines: Lines) -> None:
    try:
        raise RuntimeError("password=hunter2")  # noqa: TRY301
    except RuntimeError:
        log.exception("failed", url="https://u:hunter2@h/?token=hunter2", api_key="hunter2", who=["ann@example.org"])
    text = lines.getvalue()
    assert "hunter2" not in text
    assert "ann@example.org" not in text
    assert "Traceback" in lines.all()[0]["exception"]


def test_events_below_the_level_are_not_written() -> None:
    out = Lines()
    setup_logging(level="warning", format="json", stream=out)
    log.info("quiet")
    log.warning("loud")
    assert [line["event"] for line in out.all()] == ["loud"]


@pytest.mark.parametrize("value", ["\ud800", 2**70, {1, 2}, object(), b"\xff", float("inf"), {1: 2}])
def test_no_value_stops_a_line(lines: Lines, value: Any) -> None:
    log.info("odd", value=value)
    assert lines.all()[0]["event"] == "odd"


def test_a_line_for_which_nothing_can_be_opened_is_lost_and_the_next_is_written(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """structlog is imported with the first line: without a descriptor that raises where a failure is to be told."""

    def no_descriptor(_: object) -> None:
        raise OSError(EMFILE, "Too many open files")

    log = get_logger()
    with monkeypatch.context() as patch:
        patch.setattr(logs._Structlog, "load", no_descriptor)
        for tell in (log.debug, log.info, log.warning, log.error, log.exception):
            tell("lost")
    log.warning("told")
    assert [line["event"] for line in lines.all()] == ["told"]


def test_logging_that_could_not_be_configured_is_configured_by_the_next_line() -> None:
    made = logs._Structlog()
    tries: list[str] = []

    def configure() -> None:
        tries.append("")
        if len(tries) == 1:
            raise OSError(EMFILE, "Too many open files")

    made._configure = configure
    with pytest.raises(OSError, match="Too many"):
        made.load()
    made.load()
    made.load()
    assert len(tries) == 2


def test_for_people_the_same_is_a_sentence_a_line() -> None:
    out = Lines()
    setup_logging(format="console", stream=out)
    with bind_lineage(run_id="r1"):
        log.warning("batch_done", items=5, token="hunter2")
    text = out.getvalue()
    assert "batch_done" in text
    assert "run_id=r1" in text
    assert "hunter2" not in text
    assert not text.startswith("{")


def test_for_people_what_strangers_sent_steers_no_terminal_and_begins_no_line() -> None:
    out = Lines()
    setup_logging(format="console", stream=out)
    log.warning("refused", path="\x1b[2J", detail="a\nforged", nested={"k": ["\x1b[2J\n"]})
    assert out.getvalue().count("\n") == 1
    log.error("failed", exc_info=ValueError("\x1b[2J"))
    assert "\nValueError: \\x1b[2J" in out.getvalue()
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().count("\\x1b[2J") == 3


def test_on_a_terminal_a_line_of_routine_work_is_short_and_a_warning_whole() -> None:
    head, tail = os.openpty()
    fcntl.ioctl(tail, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    with os.fdopen(head, "rb", 0) as reader, os.fdopen(tail, "w") as terminal:
        setup_logging(stream=terminal)
        with bind_lineage(source="crossref", endpoint="works", run_id="r1", plan_id="p1"):
            log.info("ingest_run_closed", outcome="succeed", inserted=7, holder="executor-1", loops=list("abcd"))
            log.info("exposure", api="x" * 100)
            log.warning("ingest_failed", reason="y " * 50)
        terminal.flush()
        seen = b""
        while seen.count(b"\n") < 3:
            seen += reader.read(4096)
    first, second, third = re.sub(r"\x1b\[\d*m", "", seen.decode()).splitlines()
    assert first[8:] == " info    ingest_run_closed crossref/works outcome=succeed inserted=7 loops=4"
    assert (len(second), second[-1]) == (100, "…")
    assert "y " * 49 in third
    assert "run_id=r1" in third


def test_a_warning_names_each_item_of_a_list_and_routine_work_how_many() -> None:
    event = {"at": "2026-11-18T10:00:00Z", "event": "refused", "codes": ["a", "b", "c", "d"], "source": 7}
    assert console_line(event | {"level": "warning"}) == "10:00:00 warning refused 7 codes=['a', 'b', 'c', 'd']"
    assert console_line(event | {"level": "info"}) == "10:00:00 info    refused 7 codes=4"


def test_without_a_terminal_auto_means_json() -> None:
    out = Lines()
    setup_logging(stream=out)
    log.info("batch_done")
    assert out.all()[0]["event"] == "batch_done"


def test_warnings_of_libraries_become_events(lines: Lines) -> None:
    logging.getLogger("some.library").warning("lost %s", "ann@example.org")
    broken = logging.LogRecord("some.library", logging.ERROR, "", 0, "bad %d", ("format",), None)
    logging.getLogger().handlers[0].emit(broken)
    first, second = lines.all()
    assert (first["event"], first["level"], first["logger"]) == ("library_log", "warning", "some.library")
    assert first["message"] == "lost ***"
    assert second["message"] == "bad %d"


def test_setting_up_twice_writes_once(lines: Lines) -> None:
    out = Lines()
    setup_logging(format="json", stream=out)
    logging.getLogger("some.library").warning("once")
    assert (len(out.all()), lines.all()) == (1, [])


# --- sampling


def passed(sampler: Sampler, events: list[dict[str, Any]], method: str = "info") -> list[int]:
    kept: list[int] = []
    for index, event in enumerate(events):
        try:
            sampler(None, method, event)
        except structlog.DropEvent:
            continue
        kept.append(index)
    return kept


def test_a_share_of_info_passes_the_first_included() -> None:
    assert passed(Sampler(0.25), [{"event": "e"} for _ in range(12)]) == [0, 4, 8]


def test_a_rare_event_is_not_crowded_out_by_a_frequent_one() -> None:
    events = [{"event": "frequent"} for _ in range(9)] + [{"event": "rare"}]
    assert passed(Sampler(0.01), events) == [0, 9]


@pytest.mark.parametrize("method", ["warning", "error", "critical", "exception"])
def test_warnings_and_errors_always_pass(method: str) -> None:
    assert len(passed(Sampler(0.0), [{"event": "e"} for _ in range(50)], method)) == 50


def test_nothing_of_info_passes_at_zero_and_all_at_one() -> None:
    assert passed(Sampler(0.0), [{"event": "e"} for _ in range(5)]) == []
    assert len(passed(Sampler(1.0), [{"event": "e"} for _ in range(5)])) == 5


def test_the_lines_of_one_trace_pass_together_or_not_at_all() -> None:
    sampler = Sampler(0.3)
    kept = 0
    for number in range(200):
        events = [{"event": name, "trace_id": f"t{number}"} for name in ("start", "step", "end")]
        found = passed(sampler, events)
        assert found in ([], [0, 1, 2])
        kept += bool(found)
    assert 30 <= kept <= 90


def test_a_sampled_line_says_its_rate() -> None:
    out = Lines()
    setup_logging(format="json", sample_info=0.5, stream=out)
    for _ in range(4):
        log.info("often")
    log.warning("always")
    assert [line.get("sample_rate") for line in out.all()] == [0.5, 0.5, None]


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_lies_between_zero_and_one(rate: float) -> None:
    with pytest.raises(ValueError):
        Sampler(rate)


# --- traces


class Collector(HTTPServer):
    """A real receiver of OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receive)
        self.bodies: list[tuple[str, bytes]] = []


class Receive(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_without_an_endpoint_a_span_is_nothing() -> None:
    setup_tracing(endpoint="")()
    with span("Batch", source="pubmed") as one, span("HTTP") as two:
        one.set(items=3)
        assert one is two
        assert trace_headers() == {}


def test_an_error_passes_through_a_span_that_is_nothing() -> None:
    with pytest.raises(ZeroDivisionError), span("Batch"):
        _ = 1 / 0


def test_spans_reach_the_collector_redacted_and_join_the_log_lines(collector: Collector, lines: Lines) -> None:
    stop = setup_tracing(endpoint=f"http://127.0.0.1:{collector.server_port}/v1/traces", service="patra-test")
    try:
        with span("Batch", source="pubmed", url="https://h/?token=hunter2", nothing=None) as batch:
            batch.set(items=42, api_key="hunter2")
            log.info("inside")
            headers = trace_headers()
        with pytest.raises(ZeroDivisionError), span("Broken"):
            _ = 1 / 0
        log.info("outside")
    finally:
        stop()
    inside, outside = lines.all()
    version, trace_id, span_id, _ = headers["traceparent"].split("-")
    assert version == "00"
    assert (inside["otel_trace_id"], inside["otel_span_id"]) == (trace_id, span_id)
    assert "otel_trace_id" not in outside
    sent = b"".join(body for _, body in collector.bodies)
    assert {path for path, _ in collector.bodies} == {"/v1/traces"}
    for word in (b"Batch", b"pubmed", b"items", b"patra-test", b"Broken", b"ZeroDivisionError"):
        assert word in sent
    assert b"hunter2" not in sent
    assert trace_headers() == {}


def test_a_missing_extra_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigInvalid) as refused:
        setup_tracing(endpoint="http://localhost:4318/v1/traces")
    assert refused.value.code == "tracing_extra_missing"
    assert "patra[otel]" in refused.value.advice


def test_a_log_that_cannot_be_written_does_not_end_the_work() -> None:
    out = io.StringIO()
    setup_logging(format="json", stream=out)
    get_logger().info("told")
    said = out.getvalue()
    out.close()
    get_logger().error("not_told")
    assert "told" in said


def test_importing_telemetry_configures_nothing() -> None:
    program = (
        "import sys, logging, structlog, patra.kernel.telemetry as t; t.get_logger();"
        "assert not structlog.is_configured(); assert not logging.getLogger().handlers;"
        "assert not any(m.startswith('opentelemetry') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


class CostlyCollector:
    """A metric that must not be collected."""

    def describe(self) -> list[GaugeMetricFamily]:
        return [GaugeMetricFamily("patra_test_costly", "Costs.")]

    def collect(self) -> list[GaugeMetricFamily]:
        raise AssertionError("collected")


def test_one_sample_is_read_without_collecting_any_other_metric() -> None:
    costly = CostlyCollector()
    REGISTRY.register(costly)
    wanted = Gauge("patra_test_wanted", "Wanted.", ["kind"], registry=REGISTRY)
    wanted.labels("a").set(3)
    try:
        assert sample_value("patra_test_wanted", {"kind": "a"}) == 3
        assert sample_value("patra_test_wanted", {"kind": "b"}) is None
        assert sample_value("patra_test_absent", {}) is None
    finally:
        REGISTRY.unregister(costly)
        REGISTRY.unregister(wanted)


def test_a_warning_names_an_id_once_and_not_again_in_a_longer_one() -> None:
    ids = {"plan_id": "p1", "slice_id": "p1.s2", "task_id": "p1.t2", "task": "p1.t2.r1", "run_id": "p1.t2.r1"}
    line = console_line({"at": "2026-11-18T10:00:00Z", "level": "warning", "event": "healed", **ids})
    assert line == "10:00:00 warning healed slice_id=p1.s2 run_id=p1.t2.r1"
    other = console_line({"at": "2026-11-18T10:00:00Z", "level": "warning", "event": "healed", "plan_id": "p1"})
    assert other == "10:00:00 warning healed plan_id=p1"
