"""Throughput without Prometheus: the counters of this process, looked at every five seconds, for the last hour."""

from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise
from threading import Event, Lock, Thread
from time import monotonic

from patra.kernel.safety.threads import start_thread
from patra.kernel.telemetry import REGISTRY, get_logger

INTERVAL_S = 5.0
MAX_LOOKS = 720
MAX_COLUMNS = 60
"""Of a bar chart: what an eye tells apart, and what a page may send every second."""
STOP_SECONDS = 5.0
log = get_logger()
COUNTERS: dict[str, tuple[str, dict[str, str]]] = {
    "events": ("patra_attribution_events_total", {}),
    "rejected": ("patra_attribution_events_total", {"status": "rejected"}),
    "records": ("patra_ingest_items_total", {}),
    "batches": ("patra_ingest_batches_total", {}),
    "batch_errors": ("patra_ingest_errors_total", {}),
    "published": ("patra_bus_published_total", {}),
    "consumed": ("patra_bus_consumed_total", {}),
    "turns": ("patra_loop_turns_total", {}),
}


class Series:
    """Rates of one server. Its thread begins with it, so that the first look finds what was before it.

    `stored` counts what no counter of this process sees, because other processes do it.
    """

    def __init__(self, stored: Mapping[str, Callable[[], float]]) -> None:
        self._lock = Lock()
        self._looks: deque[tuple[float, dict[str, float]]] = deque(maxlen=MAX_LOOKS + 1)
        self._thread: Thread | None = None
        self._stopping = Event()
        self._stored = stored
        self._last_stored = dict.fromkeys(stored, 0.0)

    def rate(self, name: str) -> float:
        """A second, over the last minute as far as it was looked at."""
        self.begin()
        now, counts = monotonic(), self._counts()
        with self._lock:
            older = [look for look in self._looks if now - look[0] <= 65 and now - look[0] >= 1]
        if not older:
            return 0.0
        at, before = older[0]
        return max(counts[name] - before[name], 0.0) / (now - at)

    def points(self, name: str) -> list[float]:
        """Rates for each look of the last hour, the oldest first."""
        self.begin()
        with self._lock:
            looks = list(self._looks)
        return [
            max(after[1][name] - before[1][name], 0.0) / max(after[0] - before[0], 0.001)
            for before, after in pairwise(looks)
        ]

    def columns(self, name: str) -> tuple[list[float], int]:
        """The same in at most so many columns of equal length, and how many seconds back the first of them begins."""
        points = self.points(name)
        size = max(-(-len(points) // MAX_COLUMNS), 1)
        parts = [points[max(end - size, 0) : end] for end in range(len(points), 0, -size)][::-1]
        values = [sum(part) / len(part) for part in parts]
        return [0.0] * (MAX_COLUMNS - len(values)) + values, round(MAX_COLUMNS * size * INTERVAL_S)

    def look(self) -> None:
        counts = self._counts()
        with self._lock:
            self._looks.append((monotonic(), counts))

    def _counts(self) -> dict[str, float]:
        found = read_counters()
        for name, total in self._stored.items():
            try:
                self._last_stored[name] = total()
            except Exception as error:  # noqa: BLE001  the store may answer the next look
                log.warning("console_count_failed", count=name, error=str(error))
            found[name] = self._last_stored[name]
        return found

    def close(self) -> None:
        """End the thread, waiting for the look that it is in: the store is closed next."""
        self._stopping.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(STOP_SECONDS)

    def begin(self) -> None:
        with self._lock:
            self._thread = start_thread(self._thread, self._run, "console series")

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except Exception as error:  # noqa: BLE001  the thread's edge: rates that stand still would mislead
                log.warning("console_counts_failed", error=str(error))
            self._stopping.wait(INTERVAL_S)


def read_counters() -> dict[str, float]:
    """The sums of the counters that are drawn, labels put together."""
    totals = dict.fromkeys(COUNTERS, 0.0)
    drawn = {metric for metric, _ in COUNTERS.values()}
    for family in REGISTRY.restricted_registry(drawn).collect():
        for name, (metric, labels) in COUNTERS.items():
            if family.name != metric.removesuffix("_total"):
                continue
            for sample in family.samples:
                if sample.name == metric and labels.items() <= sample.labels.items():
                    totals[name] += sample.value
    return totals
