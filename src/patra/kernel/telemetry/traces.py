"""Spans of OpenTelemetry; each costs next to nothing until `setup_tracing` configures where to send it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.redact import redact

Attribute = str | bool | int | float | None


class Span(Protocol):
    """A piece of work that is being timed."""

    def set(self, **attributes: Attribute) -> None:
        """Say more about it."""
        ...


class _Tracing:
    """Where spans go; nowhere until `setup_tracing` has set an endpoint."""

    __slots__ = ("ids", "inject", "start")

    def __init__(self) -> None:
        self.off()

    def off(self) -> None:
        self.start: Callable[[str, Mapping[str, Any]], AbstractContextManager[Any]] | None = None
        self.ids: Callable[[], Mapping[str, str]] | None = None
        self.inject: Callable[[dict[str, str]], None] | None = None


TRACING = _Tracing()


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
    if TRACING.start is None:
        return _NO_SPAN
    return _LiveSpan(TRACING.start(name, _attributes(attributes)))


def trace_headers() -> dict[str, str]:
    """The W3C Trace Context headers that carry the current span to another service; none without tracing."""
    carrier: dict[str, str] = {}
    if TRACING.inject is not None:
        TRACING.inject(carrier)
    return carrier


def setup_tracing(*, endpoint: str, service: str = "patra") -> Callable[[], None]:
    """Send spans to an OpenTelemetry collector over OTLP/HTTP; an empty endpoint sends none. Gives the way to stop."""
    TRACING.off()
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
        TRACING.off()
        provider.shutdown()

    TRACING.start = lambda name, attributes: tracer.start_as_current_span(name, attributes=attributes)
    TRACING.ids = ids
    TRACING.inject = TraceContextTextMapPropagator().inject
    return stop


def _attributes(attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    return {key: value for key, value in redact(attributes).items() if value is not None}
