"""Decides from the recent health of a partition how to adapt: the matrix of ch. 12.2, row by row.

`HealthCounts` counts the last minutes of one (source, endpoint, operation). Each row of the table says when it applies
and what it does; the executor carries the acts out and writes them into the batch and the run. `Circuit` is the
breaker of a source's endpoint: failures in a row open it for a while, a single try closes it or opens it again.
"""

import threading
from collections import deque
from collections.abc import Callable
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.machine import Machine

HEALTH_WINDOW = 5 * MINUTE
HEALTH_BUCKET = 15 * SECOND


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of 12.2 and 5.7; shares in thousandths."""

    throttled: int = 50
    latency: int = 3 * SECOND
    refused: int = 100
    failures: int = 3
    depth: int = 3  # times the estimated pages
    fewest: int = 20  # requests, or commits, below which a share or a mean says nothing
    database: int = 200_000  # microseconds that the transaction of a batch takes on average
    circuit: int = 60 * SECOND  # shortest pause; jitter adds up to as much again


class HealthCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the last five minutes, and of the batch at hand."""

    requests: int = 0
    throttled: int = 0
    refused: int = 0
    batches: int = 0
    latency: int = 0
    database: int = 0
    """Time in transactions of these batches."""
    failures_in_row: int = 0
    retry_after: bool = False
    polluted: int = 0
    pages: int = 0
    pages_expected: int | None = None
    body_bytes: int = 0
    body_bytes_most: int = 0
    run_requests: int = 0
    run_throttled: int = 0
    """Of the current run: smaller slices start counting at zero, so that one is not cut for what another met."""
    throttled_most: float = 1.0
    splittable: bool = False
    page_can_shrink: bool = False
    fatal: bool = False


class Heal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is done, and for which row of the table."""

    act: RunReason
    row: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    when: Callable[[HealthCounts, Thresholds], bool]
    acts: Callable[[HealthCounts], tuple[RunReason, ...]]


def _share(part: int, whole: int, t: Thresholds) -> int:
    return part * 1000 // whole if whole >= t.fewest else 0


def _slow(v: HealthCounts) -> tuple[RunReason, ...]:
    return (RunReason.CONCURRENCY_DOWN, RunReason.PAGE_SHRINK) if v.page_can_shrink else (RunReason.CONCURRENCY_DOWN,)


def _always(*acts: RunReason) -> Callable[[HealthCounts], tuple[RunReason, ...]]:
    return lambda _: acts


def _deep(v: HealthCounts) -> tuple[RunReason, ...]:
    return (RunReason.RESLICE,) if v.splittable else ()


MATRIX: tuple[Row, ...] = (
    Row(
        name="throttled",
        when=lambda v, t: v.retry_after or _share(v.throttled, v.requests, t) > t.throttled,
        acts=_always(RunReason.QPS_DOWNSHIFT),
    ),
    Row(
        name="slow",
        when=lambda v, t: v.batches > 0 and v.latency // v.batches > t.latency,
        acts=_slow,
    ),
    Row(
        name="database_slow",
        when=lambda v, t: v.batches >= t.fewest and v.database // v.batches > t.database,
        acts=_always(RunReason.CONCURRENCY_DOWN),
    ),
    Row(
        name="deeper_than_estimated",
        when=lambda v, t: v.pages_expected is not None and v.pages > max(v.pages_expected, 1) * t.depth,
        acts=_deep,
    ),
    Row(
        name="too_large",
        when=lambda v, _: v.body_bytes > v.body_bytes_most > 0,
        acts=lambda v: (RunReason.PAGE_SHRINK,) if v.page_can_shrink else _deep(v),
    ),
    Row(
        name="throttled_slice",
        when=lambda v, t: _share(v.run_throttled, v.run_requests, t) > v.throttled_most * 1000,
        acts=_deep,
    ),
    Row(
        name="failures_in_row",
        when=lambda v, t: v.failures_in_row >= t.failures,
        acts=_always(RunReason.CIRCUIT_OPEN),
    ),
    Row(
        name="refused",
        when=lambda v, t: _share(v.refused, v.requests, t) > t.refused,
        acts=_always(RunReason.TASK_STOPPED),
    ),
    Row(name="polluted", when=lambda v, _: v.polluted > 0, acts=_always()),  # each record is set aside by itself
    Row(name="fatal", when=lambda v, _: v.fatal, acts=_always(RunReason.HALTED)),
)


def heal(vitals: HealthCounts, thresholds: Thresholds | None = None) -> list[Heal]:
    """What the matrix says, in its order."""
    t = thresholds or Thresholds()
    return [Heal(act=act, row=row.name) for row in MATRIX if row.when(vitals, t) for act in row.acts(vitals)]


class HealthWindow:
    """Counts over a sliding window, in buckets: what `HealthCounts` is taken from."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: deque[tuple[int, list[int]]] = deque()
        self._failures = 0

    def request(self, now: int, *, throttled: bool = False, refused: bool = False, failed: bool = False) -> None:
        with self._lock:
            self._add(now, (1, int(throttled), int(refused), 0, 0, 0))
            self._failures = self._failures + 1 if failed else 0

    def batch(self, now: int, latency: int, database: int = 0) -> None:
        """A batch that landed; `database`: what its transaction took."""
        with self._lock:
            self._add(now, (0, 0, 0, 1, latency, database))

    def vitals(self, now: int) -> HealthCounts:
        with self._lock:
            self._forget(now)
            sums = [sum(column) for column in zip(*(counts for _, counts in self._buckets), strict=True)] or [0] * 6
        return HealthCounts(
            requests=sums[0],
            throttled=sums[1],
            refused=sums[2],
            batches=sums[3],
            latency=sums[4],
            database=sums[5],
            failures_in_row=self._failures,
        )

    def _add(self, now: int, counts: tuple[int, ...]) -> None:
        self._forget(now)
        start = now // HEALTH_BUCKET
        if not self._buckets or self._buckets[-1][0] != start:
            self._buckets.append((start, [0] * 6))
        last = self._buckets[-1][1]
        for index, count in enumerate(counts):
            last[index] += count

    def _forget(self, now: int) -> None:
        while self._buckets and self._buckets[0][0] < (now - HEALTH_WINDOW) // HEALTH_BUCKET:
            self._buckets.popleft()


# --- how many at the same time ---------------------------------------------------------------------------------------


class ConcurrencyLimiter(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks of a partition may run at the same time: at most `most`, fewer while batches take too long."""

    most: int
    bound: int
    at: int = 0
    """When the bound was last changed."""


def fewer(limiter: ConcurrencyLimiter, now: int) -> ConcurrencyLimiter:
    """Half as many, never none; not again before the first half has had time to help."""
    if limiter.bound <= 1 or (limiter.bound < limiter.most and now - limiter.at < MINUTE):
        return limiter
    return replace(limiter, bound=max(limiter.bound // 2, 1), at=now)


def more(limiter: ConcurrencyLimiter, now: int) -> ConcurrencyLimiter:
    """One more for every calm window, up to all of them."""
    if limiter.bound >= limiter.most or now - limiter.at < HEALTH_WINDOW:
        return limiter
    return replace(limiter, bound=limiter.bound + 1, at=now)


# --- the circuit breaker ---------------------------------------------------------------------------------------------


class CircuitState(StrEnum):
    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class CircuitTransition(StrEnum):
    TRIP = "trip"
    COOL = "cool"
    SUCCEED = "succeed"
    FAIL = "fail"


CIRCUIT: Machine[CircuitState, CircuitTransition] = Machine(
    "ing_circuit",
    initial=CircuitState.CLOSED,
    edges={
        (CircuitState.CLOSED, CircuitTransition.TRIP): CircuitState.OPEN,
        (CircuitState.OPEN, CircuitTransition.COOL): CircuitState.HALF_OPEN,
        (CircuitState.HALF_OPEN, CircuitTransition.SUCCEED): CircuitState.CLOSED,
        (CircuitState.HALF_OPEN, CircuitTransition.FAIL): CircuitState.OPEN,
    },
)


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """The breaker of one source and endpoint. An L4 is not one: it halts the source until an operator lifts it."""

    state: CircuitState = CircuitState.CLOSED
    failures: int = 0
    until: int = 0
    trying: int = 0
    """HALF_OPEN: until when the one request that may try is waited for."""


def admit(circuit: Circuit, now: int, patience: int = 2 * MINUTE) -> tuple[bool, Circuit]:
    """Whether a request may go out; when the pause is over, one may, and the others wait for what becomes of it."""
    match circuit.state:
        case CircuitState.CLOSED:
            return True, circuit
        case CircuitState.OPEN:
            if now < circuit.until:
                return False, circuit
            state = CIRCUIT.target(circuit.state, CircuitTransition.COOL)
            return True, replace(circuit, state=state, trying=now + patience)
        case CircuitState.HALF_OPEN:
            if now < circuit.trying:
                return False, circuit
            return True, replace(circuit, trying=now + patience)  # the one that tried was never heard of again


def withdraw(circuit: Circuit, trying: int, now: int) -> Circuit:
    """The breaker after the request that was to try did not go out: the next one may try at once."""
    if circuit.state is not CircuitState.HALF_OPEN or circuit.trying != trying:
        return circuit
    return replace(circuit, trying=now)


def settle(circuit: Circuit, *, failed: bool, now: int, jitter: float, thresholds: Thresholds | None = None) -> Circuit:
    """The breaker after a request: 5xx and network failures count, everything else is a success."""
    t = thresholds or Thresholds()
    pause = now + t.circuit + int(t.circuit * jitter)
    match circuit.state:
        case CircuitState.CLOSED:
            failures = circuit.failures + 1 if failed else 0
            if failures < t.failures:
                return replace(circuit, failures=failures)
            return Circuit(state=CIRCUIT.target(circuit.state, CircuitTransition.TRIP), failures=failures, until=pause)
        case CircuitState.HALF_OPEN:
            if failed:
                state = CIRCUIT.target(circuit.state, CircuitTransition.FAIL)
                return Circuit(state=state, failures=circuit.failures + 1, until=pause)
            return Circuit(state=CIRCUIT.target(circuit.state, CircuitTransition.SUCCEED))
        case CircuitState.OPEN:  # sent before it opened
            return circuit
