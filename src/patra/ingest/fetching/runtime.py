"""What all tasks of one process share: clock, gate, transport, tokens, circuit breakers, pulses of partitions."""

import os
import random
import threading
from collections.abc import Callable, Mapping

import msgspec

from patra.ingest.fetching.resilience import (
    Circuit,
    CircuitState,
    ConcurrencyLimiter,
    HealthWindow,
    Thresholds,
    admit,
    fewer,
    more,
    settle,
    withdraw,
)
from patra.ingest.http.client import Transport
from patra.ingest.http.credentials import CredentialHealth, Tokens
from patra.ingest.ratelimit.limiter import Gate
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import MINUTE, SECOND, Clock


class Circuits:
    """The breakers of a process, by source and endpoint."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._circuits: dict[str, Circuit] = {}

    def admit(self, key: str, now: int) -> Circuit | None:
        """None lets the request pass; the circuit says why it does not."""
        with self._lock:
            allowed, circuit = admit(self._circuits.get(key, Circuit()), now)
            self._circuits[key] = circuit
            return None if allowed else circuit

    def turn(self, key: str) -> int:
        """What the request that was let through to try is known by; 0 where the circuit is closed."""
        with self._lock:
            circuit = self._circuits.get(key, Circuit())
            return circuit.trying if circuit.state is CircuitState.HALF_OPEN else 0

    def withdraw(self, key: str, turn: int, now: int) -> None:
        """The request of this turn did not go out."""
        with self._lock:
            self._circuits[key] = withdraw(self._circuits.get(key, Circuit()), turn, now)

    def settle(self, key: str, *, failed: bool, now: int, jitter: float, thresholds: Thresholds) -> RunReason | None:
        """What this request did to the circuit: opened or closed it; None where it did neither."""
        with self._lock:
            before = self._circuits.get(key, Circuit())
            after = settle(before, failed=failed, now=now, jitter=jitter, thresholds=thresholds)
            self._circuits[key] = after
        if after.state is before.state:
            return None
        return RunReason.CIRCUIT_OPEN if after.state is CircuitState.OPEN else RunReason.CIRCUIT_CLOSED


class HealthWindows:
    """The pulse of each source and endpoint of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulses: dict[str, HealthWindow] = {}

    def of(self, key: str) -> HealthWindow:
        with self._lock:
            return self._pulses.setdefault(key, HealthWindow())


class ConcurrencyLimiters:
    """How many tasks of each partition this process lets run at the same time (ch. 5.6, 12.2)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limiters: dict[str, ConcurrencyLimiter] = {}

    def learn(self, partition: str, most: int) -> int:
        """The most that the installation and the pack allow; gives how many may run now."""
        with self._lock:
            known = self._limiters.get(partition)
            if known is None or known.most != most:
                bound = most if known is None else min(known.bound, most)
                known = self._limiters[partition] = ConcurrencyLimiter(
                    most=most, bound=bound, at=known.at if known else 0
                )
            return known.bound

    def lower(self, partition: str, now: int) -> None:
        with self._lock:
            if (known := self._limiters.get(partition)) is not None:
                self._limiters[partition] = fewer(known, now)

    def bounds(self, now: int) -> dict[str, int]:
        """What is known of each partition, as leases are bound by it."""
        with self._lock:
            self._limiters = {partition: more(limiter, now) for partition, limiter in self._limiters.items()}
            return {partition: limiter.bound for partition, limiter in self._limiters.items()}


class PressureNotes:
    """When this process last reported a partition under pressure to the planner: once a minute is enough."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, int] = {}

    def due(self, partition: str, now: int) -> bool:
        with self._lock:
            if now - self._told.get(partition, -MINUTE) < MINUTE:
                return False
            self._told[partition] = now
            return True


class Runtime(msgspec.Struct, kw_only=True):
    """Built once a process; tests put a clock, a source of chance and an environment of their own in."""

    clock: Clock
    gate: Gate
    transport: Transport
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    deadline: int = 30 * SECOND
    """How long a request waits for its permit before its task goes back into the queue."""
    thresholds: Thresholds = Thresholds()
    jitter: Callable[[], float] = random.random
    tokens: Tokens = msgspec.field(default_factory=Tokens)
    credentials: CredentialHealth = msgspec.field(default_factory=CredentialHealth)
    circuits: Circuits = msgspec.field(default_factory=Circuits)
    pulses: HealthWindows = msgspec.field(default_factory=HealthWindows)
    limiters: ConcurrencyLimiters = msgspec.field(default_factory=ConcurrencyLimiters)
    pressures: PressureNotes = msgspec.field(default_factory=PressureNotes)
