"""Metrics: each is declared once, beside the code that counts; the names are a contract, which the docs print."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest


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


def sample_value(name: str, labels: Mapping[str, str]) -> float | None:
    """The value of one sample; only its own metric is looked at, however many there are."""
    for family in REGISTRY.restricted_registry([name]).collect():
        for sample in family.samples:
            if sample.labels == labels:
                return sample.value
    return None


def metrics_text() -> bytes:
    """All metrics in the exposition format of Prometheus."""
    return generate_latest(REGISTRY)


def _declare(name: str, kind: Literal["counter", "gauge", "histogram"], text: str, labels: tuple[str, ...]) -> None:
    if not name.startswith("patra_") or not text:
        raise ValueError(f"the metric {name} starts with patra_ and says what it counts")
    if any(metric.name == name for metric in METRICS):
        raise ValueError(f"the metric {name} is declared twice")
    METRICS.append(Metric(name=name, kind=kind, help=text, labels=labels))
