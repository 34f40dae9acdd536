"""Log lines: constant names with fields, redacted, tied to their work; INFO may be sampled, warnings never are."""

import json
import logging
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, Literal, Protocol, TextIO, cast
from zlib import crc32

import msgspec

from patra.kernel.clock import SystemClock, format_instant
from patra.kernel.safety.redact import redact
from patra.kernel.safety.untrusted_text import without_controls
from patra.kernel.telemetry.console_lines import console_renderer
from patra.kernel.telemetry.traces import TRACING

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
EXHAUSTION = (OSError, ImportError, MemoryError)
"""What importing structlog, or a line, raises where no file can be opened or no memory is left."""


class Log(Protocol):
    """The part of structlog's logger that the code uses: an event's constant name, and fields."""

    def debug(self, event: str, **fields: Any) -> Any: ...
    def info(self, event: str, **fields: Any) -> Any: ...
    def warning(self, event: str, **fields: Any) -> Any: ...
    def error(self, event: str, **fields: Any) -> Any: ...
    def exception(self, event: str, **fields: Any) -> Any: ...
    def bind(self, **fields: Any) -> "Log": ...


class _Structlog:
    """Structlog, imported and configured with the first line that is written: a quiet command does not pay for it."""

    __slots__ = ("_configure", "_silent_below")

    def __init__(self) -> None:
        self._configure: Callable[[], None] | None = None
        self._silent_below = 0

    def configure_later(self, configure: Callable[[], None], level: int) -> None:
        """Configure at once where structlog is imported already, else with the first line."""
        self._configure, self._silent_below = configure, level
        if "structlog" in sys.modules:
            self.load()

    def drops(self, level: str) -> bool:
        return LEVELS[level] < self._silent_below

    def load(self) -> Any:
        import structlog  # noqa: PLC0415  (it imports rich, which costs a third of a second of CPU)

        if (configure := self._configure) is not None:
            configure()  # where it fails, the next line tries again
            self._configure, self._silent_below = None, 0
        return structlog


_structlog = _Structlog()


class _LazyLog:
    """A logger of structlog that is made when a line is to be written.

    A process without descriptors or memory loses the line, not the thread that wanted to report it.
    """

    __slots__ = ("_log",)

    def __init__(self) -> None:
        self._log: Log | None = None

    def _make_log(self) -> Log:
        if self._log is None:
            structlog = _structlog.load()
            if not structlog.is_configured():  # in a program of others, whose standard output is its own
                return cast("Log", structlog.wrap_logger(structlog.PrintLogger(sys.stderr)))
            self._log = cast("Log", structlog.get_logger())
        return self._log

    def debug(self, event: str, **fields: Any) -> Any:
        if not _structlog.drops("debug"):
            with suppress(*EXHAUSTION):
                self._make_log().debug(event, **fields)

    def info(self, event: str, **fields: Any) -> Any:
        if not _structlog.drops("info"):
            with suppress(*EXHAUSTION):
                self._make_log().info(event, **fields)

    def warning(self, event: str, **fields: Any) -> Any:
        if not _structlog.drops("warning"):
            with suppress(*EXHAUSTION):
                self._make_log().warning(event, **fields)

    def error(self, event: str, **fields: Any) -> Any:
        with suppress(*EXHAUSTION):
            self._make_log().error(event, **fields)

    def exception(self, event: str, **fields: Any) -> Any:
        with suppress(*EXHAUSTION):
            self._make_log().exception(event, **fields)

    def bind(self, **fields: Any) -> Log:
        return self._make_log().bind(**fields)


def get_logger() -> Log:
    """The logger of a module. Before `setup_logging`, lines are written as structlog does, to standard error."""
    return _LazyLog()


@contextmanager
def bind_lineage(**fields: str | int | None) -> Generator[None]:
    """Within the block, every log line of this thread carries these fields (those that are not None)."""
    unknown = fields.keys() - LINEAGE.keys()
    if unknown:
        raise ValueError(f"no lineage field: {', '.join(sorted(unknown))}")
    with _structlog.load().contextvars.bound_contextvars(**{k: v for k, v in fields.items() if v is not None}):
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
    threshold = LEVELS[level.lower()]
    _structlog.configure_later(lambda: _configure(out, threshold, sample_info, people=people), threshold)
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, _Forward)]
    root.addHandler(_Forward(logging.WARNING))


def _configure(out: TextIO, threshold: int, sample_info: float, *, people: bool) -> None:
    import structlog  # noqa: PLC0415

    chain: list[Any] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    if sample_info < 1:
        chain.append(Sampler(sample_info))
    chain += [structlog.processors.format_exc_info, _redact, _stamp]
    if people:
        chain.append(_write_out_controls)
        chain.append(console_renderer(out))
    else:
        chain.append(render_json)
    structlog.configure(
        processors=chain,
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        context_class=dict,
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Lines(out))),
        cache_logger_on_first_use=False,
    )


class _Lines:
    """A log that cannot be written (closed, gone, on a full disk) does not end the work that it reports."""

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
            raise _structlog.load().DropEvent
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
    if TRACING.ids is not None:
        event.update(TRACING.ids())
    return event


def _redact(_logger: Any, _method: str, event: Event) -> Event:
    return redact(event)


def _write_out_controls(_logger: Any, _method: str, event: Event) -> Event:
    """Untrusted text steers no terminal and begins no line of its own; in JSON it does not anyway."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = without_controls(value, keep="\n" if name == "exception" else "")
    return event


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
