"""What all tasks of one process share: clock, gate, transport, tokens, circuit breakers, pulses of partitions."""

import os
import random
import threading
from collections.abc import Callable, Mapping

import msgspec

from patra.ingest.credentials import Tokens
from patra.ingest.gates import Gate
from patra.ingest.healing import Circuit, CircuitState, Crowd, Pulse, Thresholds, admit, fewer, more, settle, withdraw
from patra.ingest.transport import Transport
from patra.kernel.clock import SECOND, Clock


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

    def settle(self, key: str, *, failed: bool, now: int, jitter: float, thresholds: Thresholds) -> bool:
        """Whether this request opened the circuit."""
        with self._lock:
            before = self._circuits.get(key, Circuit())
            after = settle(before, failed=failed, now=now, jitter=jitter, thresholds=thresholds)
            self._circuits[key] = after
            return after.state is CircuitState.OPEN and before.state is not CircuitState.OPEN


class Pulses:
    """The pulse of each source and endpoint of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulses: dict[str, Pulse] = {}

    def of(self, key: str) -> Pulse:
        with self._lock:
            return self._pulses.setdefault(key, Pulse())


class Crowds:
    """How many tasks of each partition this process lets run at the same time (ch. 5.6, 12.2)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._crowds: dict[str, Crowd] = {}

    def learn(self, partition: str, most: int) -> int:
        """The most that the installation and the pack allow; gives how many may run now."""
        with self._lock:
            known = self._crowds.get(partition)
            if known is None or known.most != most:
                bound = most if known is None else min(known.bound, most)
                known = self._crowds[partition] = Crowd(most=most, bound=bound, at=known.at if known else 0)
            return known.bound

    def lower(self, partition: str, now: int) -> None:
        with self._lock:
            if (known := self._crowds.get(partition)) is not None:
                self._crowds[partition] = fewer(known, now)

    def bounds(self, now: int) -> dict[str, int]:
        """What is known of each partition, as leases are bound by it."""
        with self._lock:
            self._crowds = {partition: more(crowd, now) for partition, crowd in self._crowds.items()}
            return {partition: crowd.bound for partition, crowd in self._crowds.items()}


class Services(msgspec.Struct, kw_only=True):
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
    circuits: Circuits = msgspec.field(default_factory=Circuits)
    pulses: Pulses = msgspec.field(default_factory=Pulses)
    crowds: Crowds = msgspec.field(default_factory=Crowds)
