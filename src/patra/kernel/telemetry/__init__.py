"""Turns what happened into metrics, log lines and spans (ingest ch. 14.4-14.6).

- `metrics`: a metric is declared once, beside the code that counts:
  `N = counter("patra_…_total", "What it counts.", "code")`. Every declaration stands in `METRICS`.
- `logs`: a log event is a constant name with fields. The keys of the work at hand are bound once (`bind_lineage`) and
  stand in every line. Structlog is imported with the first line that is written.
- `console_lines`: the same for people at a terminal, short.
- `traces`: a span costs next to nothing until `setup_tracing` configures where to send it.

Importing this declares; nothing is opened or configured before the `setup_…` functions are called.
"""

from patra.kernel.telemetry.logs import (
    LEVELS,
    LINEAGE,
    Log,
    Sampler,
    bind_lineage,
    get_logger,
    render_json,
    setup_logging,
)
from patra.kernel.telemetry.metrics import (
    METRICS,
    METRICS_MEDIA,
    MILLISECONDS_BUCKETS,
    REGISTRY,
    SECONDS_BUCKETS,
    Metric,
    counter,
    gauge,
    histogram,
    metrics_text,
    sample_value,
)
from patra.kernel.telemetry.traces import (
    TRACING,
    Span,
    setup_tracing,
    span,
    trace_headers,
)

__all__ = [
    "LEVELS",
    "LINEAGE",
    "METRICS",
    "METRICS_MEDIA",
    "MILLISECONDS_BUCKETS",
    "REGISTRY",
    "SECONDS_BUCKETS",
    "TRACING",
    "Log",
    "Metric",
    "Sampler",
    "Span",
    "bind_lineage",
    "counter",
    "gauge",
    "get_logger",
    "histogram",
    "metrics_text",
    "render_json",
    "sample_value",
    "setup_logging",
    "setup_tracing",
    "span",
    "trace_headers",
]
