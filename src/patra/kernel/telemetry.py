"""What happened goes in; metrics, log lines and spans come out (DESIGN: interfaces that stay; ingest ch. 14.4-14.6).

- A metric is declared once, beside the code that counts: `N = counter("patra_…_total", "What it counts.", "code")`.
  Every declaration stands in `METRICS`, which the docs print: the names are a contract.
- A log event is a constant name with fields. The keys of the work at hand are bound once (`bind_lineage`) and stand in
  every line. Lines are redacted, and INFO may be sampled; warnings and errors are always written.
- A span costs next to nothing until `setup_tracing` is told where to send it.

Importing this declares; nothing is opened or configured before the `setup_…` functions are called.
"""

import json
import logging
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TextIO, cast
from zlib import crc32

import msgspec
import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from patra.kernel.clock import SystemClock, format_instant
from patra.kernel.errors import ConfigInvalid
from patra.kernel.redact import redact

# --- metrics ---------------------------------------------------------------------------------------------------------


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A declared metric, for the docs."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]


METRICS: list[Metric] = []
"""Every metric of the modules imported so far. Their names, labels and meaning are a contract."""

REGISTRY = CollectorRegistry()
METRICS_MEDIA = CONTENT_TYPE_LATEST
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MILLISECONDS_BUCKETS = tuple(bound * 1000 for bound in SECONDS_BUCKETS)


def counter(name: str, help: str, *labels: str) -> Counter:  # noqa: A002  the word of the exposition format
    """Declare something that is counted; its name ends in `_total`."""
    if not name.endswith("_total"):
        raise ValueError(f"the counter {name} ends in _total")
    _declare(name, "counter", help, labels)
    return Counter(name, help, labels, registry=REGISTRY)


def gauge(name: str, help: str, *labels: str) -> Gauge:  # noqa: A002
    """Declare something that has a value now."""
    _declare(name, "gauge", help, labels)
    return Gauge(name, help, labels, registry=REGISTRY)


def histogram(name: str, help: str, *labels: str, buckets: Sequence[float] = SECONDS_BUCKETS) -> Histogram:  # noqa: A002
    """Declare a distribution; its name ends in its unit, `_seconds` unless the buckets say otherwise."""
    _declare(name, "histogram", help, labels)
    return Histogram(name, help, labels, registry=REGISTRY, buckets=buckets)


def metrics_text() -> bytes:
    """All metrics in the exposition format of Prometheus."""
    return generate_latest(REGISTRY)


def _declare(name: str, kind: Literal["counter", "gauge", "histogram"], text: str, labels: tuple[str, ...]) -> None:
    if not name.startswith("patra_") or not text:
        raise ValueError(f"the metric {name} starts with patra_ and says what it counts")
    if any(metric.name == name for metric in METRICS):
        raise ValueError(f"the metric {name} is declared twice")
    METRICS.append(Metric(name=name, kind=kind, help=text, labels=labels))


# --- logs ------------------------------------------------------------------------------------------------------------

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}

LINEAGE: Mapping[str, str] = {
    "correlation_id": "what belongs together across engines and processes",
    "trace_id": "the trace that an event or request carries",
    "source": "the provider that is harvested",
    "endpoint": "its endpoint",
    "op": "the operation: HARVEST, BACKFILL, UPDATE",
    "schedule_instance_id": "the triggering of a schedule",
    "plan_id": "the plan",
    "slice_id": "the slice of a plan",
    "task_id": "the task of a slice, or a studio job's task",
    "run_id": "the run of a task",
    "batch_no": "the batch of a run",
    "batch_id": "the batch that an SDK sent",
    "app_id": "the app that sent it",
    "event_id": "the event on the bus",
    "event_type": "its type",
    "consumer_group": "the group that consumes it",
    "loop": "the background loop at work",
    "request_id": "the HTTP request",
}
"""The fields that tie a log line to its work; `bind_lineage` takes these and no others."""

Event = MutableMapping[str, Any]


class Log(Protocol):
    """The part of structlog's logger that the code uses: an event's constant name, and fields."""

    def debug(self, event: str, **fields: Any) -> Any: ...
    def info(self, event: str, **fields: Any) -> Any: ...
    def warning(self, event: str, **fields: Any) -> Any: ...
    def error(self, event: str, **fields: Any) -> Any: ...
    def exception(self, event: str, **fields: Any) -> Any: ...
    def bind(self, **fields: Any) -> Self: ...


def get_logger() -> Log:
    """The logger of a module. Before `setup_logging` structlog's own defaults apply."""
    return structlog.get_logger()


@contextmanager
def bind_lineage(**fields: str | int | None) -> Generator[None]:
    """Within the block, every log line of this thread carries these fields (those that are not None)."""
    unknown = fields.keys() - LINEAGE.keys()
    if unknown:
        raise ValueError(f"no lineage field: {', '.join(sorted(unknown))}")
    with structlog.contextvars.bound_contextvars(**{k: v for k, v in fields.items() if v is not None}):
        yield


def setup_logging(
    *,
    level: str = "info",
    format: Literal["auto", "json", "console"] = "auto",  # noqa: A002
    sample_info: float = 1.0,
    stream: TextIO | None = None,
) -> None:
    """Write log lines to standard error, as JSON objects or for people (`auto`: for people if it is a terminal).

    Warnings of libraries that use the standard library's logging arrive as the event `library_log`.
    """
    out = stream or sys.stderr
    people = format == "console" or (format == "auto" and out.isatty())
    chain: list[Any] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    if sample_info < 1:
        chain.append(Sampler(sample_info))
    chain += [structlog.processors.format_exc_info, _redact, _stamp]
    if people:
        chain.append(structlog.dev.ConsoleRenderer(colors=out.isatty(), pad_event_to=0, timestamp_key="at"))
    else:
        chain.append(render_json)
    structlog.configure(
        processors=chain,
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level.lower()]),
        context_class=dict,
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Lines(out))),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _Forward)]
    root.addHandler(_Forward(logging.WARNING))


class _Lines:
    """A log that cannot be written (closed, gone, on a full disk) does not end the work that it tells of."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._out.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._out.flush()


class Sampler:
    """Lets a share of the INFO and DEBUG events pass, and every warning and error.

    Which ones is not left to chance: the lines of one trace or correlation pass together or not at all, by the hash of
    its id; of an event without one, every n-th passes, the first included. What passes says `sample_rate`.
    """

    def __init__(self, rate: float) -> None:
        if not 0 <= rate <= 1:
            raise ValueError(f"a rate of sampling lies between 0 and 1, not {rate}")
        self._rate = rate
        self._seen: dict[str, Iterator[int]] = {}

    def __call__(self, _logger: Any, method: str, event: Event) -> Event:
        if method not in {"info", "debug"} or self._rate >= 1:
            return event
        if not self._passes(event):
            raise structlog.DropEvent
        event["sample_rate"] = self._rate
        return event

    def _passes(self, event: Event) -> bool:
        lineage = event.get("trace_id") or event.get("correlation_id")
        if lineage is not None:
            return crc32(str(lineage).encode("utf-8", "replace")) < self._rate * 2**32
        seen = next(self._seen.setdefault(str(event.get("event")), count()))  # both steps are atomic
        return self._rate > 0 and (seen == 0 or int(seen * self._rate) != int((seen - 1) * self._rate))


_CLOCK = SystemClock()
_encode = msgspec.json.Encoder(enc_hook=str).encode


def _stamp(_logger: Any, _method: str, event: Event) -> Event:
    event["at"] = format_instant(_CLOCK.now())
    if _tracing.ids is not None:
        event.update(_tracing.ids())
    return event


def _redact(_logger: Any, _method: str, event: Event) -> Event:
    return redact(event)


def render_json(_logger: Any, _method: str, event: Event) -> str:
    """One line of JSON: when, how grave, what, then the fields."""
    line: dict[str, Any] = {key: event.get(key) for key in ("at", "level", "event")}
    line.update(event)
    try:
        return _encode(line).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):  # halves of surrogates, integers past 64 bits
        return json.dumps(line, default=str, skipkeys=True)


class _Forward(logging.Handler):
    """The standard library's log records as events of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001  a library's broken format string is not our failure
            message = str(record.msg)
        level = "error" if record.levelno >= logging.ERROR else "warning"
        getattr(get_logger(), level)("library_log", logger=record.name, message=message, exc_info=record.exc_info)


# --- traces ----------------------------------------------------------------------------------------------------------

Attribute = str | bool | int | float | None


class Span(Protocol):
    """A piece of work that is being timed."""

    def set(self, **attributes: Attribute) -> None:
        """Say more about it."""
        ...


class _Tracing:
    """Where spans go; nowhere until `setup_tracing` was told an endpoint."""

    __slots__ = ("ids", "inject", "start")

    def __init__(self) -> None:
        self.off()

    def off(self) -> None:
        self.start: Callable[[str, Mapping[str, Any]], AbstractContextManager[Any]] | None = None
        self.ids: Callable[[], Mapping[str, str]] | None = None
        self.inject: Callable[[dict[str, str]], None] | None = None


_tracing = _Tracing()


class _NoSpan:
    __slots__ = ()

    def set(self, **attributes: Attribute) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


_NO_SPAN = _NoSpan()


class _LiveSpan:
    __slots__ = ("_block", "_span")

    def __init__(self, block: AbstractContextManager[Any]) -> None:
        self._block = block

    def set(self, **attributes: Attribute) -> None:
        self._span.set_attributes(_attributes(attributes))

    def __enter__(self) -> Self:
        self._span = self._block.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._block.__exit__(kind, error, trace)


def span(name: str, /, **attributes: Attribute) -> AbstractContextManager[Span]:
    """Time the block as a piece of the current trace; what the block learns later, it says with `.set(…)`."""
    if _tracing.start is None:
        return _NO_SPAN
    return _LiveSpan(_tracing.start(name, _attributes(attributes)))


def trace_headers() -> dict[str, str]:
    """The W3C Trace Context headers that carry the current span to another service; none without tracing."""
    carrier: dict[str, str] = {}
    if _tracing.inject is not None:
        _tracing.inject(carrier)
    return carrier


def setup_tracing(*, endpoint: str, service: str = "patra") -> Callable[[], None]:
    """Send spans to an OpenTelemetry collector over OTLP/HTTP; an empty endpoint sends none. Gives the way to stop."""
    _tracing.off()
    if not endpoint:
        return lambda: None
    try:  # late: the SDK is an extra, and heavy
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise ConfigInvalid(
            "tracing_extra_missing",
            f"traces need the OpenTelemetry SDK, which is not installed ({error.name})",
            place="telemetry.otlp_endpoint",
            advice="pip install 'patra[otel]', or leave the endpoint empty",
        ) from error
    from opentelemetry import trace  # noqa: PLC0415
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    tracer = provider.get_tracer("patra")

    def ids() -> Mapping[str, str]:
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return {}
        return {"otel_trace_id": f"{context.trace_id:032x}", "otel_span_id": f"{context.span_id:016x}"}

    def stop() -> None:
        _tracing.off()
        provider.shutdown()

    _tracing.start = lambda name, attributes: tracer.start_as_current_span(name, attributes=attributes)
    _tracing.ids = ids
    _tracing.inject = TraceContextTextMapPropagator().inject
    return stop


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    return {key: value for key, value in redact(attributes).items() if value is not None}
