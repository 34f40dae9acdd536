"""Runs `run_once` functions in supervised threads, again and again, and reports their state.

An error ends one turn, never the loop: it is logged, counted, kept for `/ready`, and the next turn waits longer. Here,
at the loop's edge, is the one place where any exception is caught.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

import msgspec

from patra.kernel.clock import MINUTE, SECOND, Clock, format_instant
from patra.kernel.errors import ConfigInvalid, PatraError
from patra.kernel.retry import Backoff
from patra.kernel.safety.redact import redact_text
from patra.kernel.telemetry import bind_lineage, counter, get_logger, histogram, span

log = get_logger()

BACKOFF = Backoff(base=SECOND // 2, factor=2.0, cap=MINUTE)
NOT_READY_AFTER = 3  # failed turns in a row; one may be a blink of the database

TURNS = counter(
    "patra_loop_turns_total", "Turns of a background loop, by result (busy, idle, failed).", "loop", "result"
)
TURN_SECONDS = histogram("patra_loop_turn_seconds", "How long one turn of a background loop took.", "loop")


def did_something(counts: object) -> bool:
    """Whether a turn's counts (a struct of integers) say that there may be more to do at once."""
    if isinstance(counts, msgspec.Struct):
        return any(isinstance(count, int) and count > 0 for count in msgspec.structs.astuple(counts))
    return bool(counts)


class LoopRole(StrEnum):
    """What a loop is for, so that processes can divide the loops of all engines among them (`patra work --role`)."""

    INTAKE = "intake"
    """Belongs to the process that takes requests: `patra web` runs these itself."""
    TIMERS = "timers"
    """Deadlines, schedules and alerts: what happens because time passes."""
    INDEXER = "indexer"
    """Indexes and running sums, just behind the writers."""
    RELAY = "relay"
    """Messages to and from other systems: archives, streams, webhooks, e-mail."""
    WORK = "work"
    """The work itself: harvests, handlers of events, films."""
    UPKEEP = "upkeep"
    """Retention and verification: nobody waits for them."""


class Loop(msgspec.Struct, frozen=True):
    """A background duty. `every` (µs) is the pause after a turn that found nothing to do.

    After a turn that did something the next one follows at once; `again` decides that from what `run_once` gave. A turn
    that takes longer than `patience` (µs), if there is one, makes the process not ready.
    """

    name: str
    run_once: Callable[[], object]
    every: int
    again: Callable[[object], bool] = did_something
    patience: int | None = None
    role: LoopRole = LoopRole.WORK


class LoopState(msgspec.Struct, frozen=True, kw_only=True):
    """How a loop fares."""

    name: str
    running: bool
    turns: int
    failures_in_a_row: int
    last_turn_at: str | None
    last_error: str | None
    in_turn_since: str | None = None
    overdue: bool = False

    @property
    def trouble(self) -> str | None:
        """Why this loop keeps the process from being ready, if it does."""
        if not self.running:
            return f"loop {self.name} is not running"
        if self.failures_in_a_row >= NOT_READY_AFTER:
            return f"loop {self.name} failed {self.failures_in_a_row} times in a row: {self.last_error}"
        if self.overdue:
            return f"loop {self.name} has been in one turn since {self.in_turn_since}"
        return None


class RunningLoop:
    """One loop in its thread."""

    def __init__(self, loop: Loop, clock: Clock, backoff: Backoff = BACKOFF) -> None:
        self.loop = loop
        self._clock = clock
        self._backoff = backoff
        self._wake = threading.Event()
        self._stopping = False
        self._turns = 0
        self._failures = 0
        self._last_turn: int | None = None
        self._since: int | None = None
        self._last_error: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"loop {loop.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Take the next turn now."""
        self._wake.set()

    def ask_to_stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def join(self, seconds: float) -> bool:
        """Wait for the current turn; gives whether the thread has ended."""
        self._thread.join(max(seconds, 0))
        return not self._thread.is_alive()

    def state(self) -> LoopState:
        since, patience = self._since, self.loop.patience
        return LoopState(
            name=self.loop.name,
            running=self._thread.is_alive(),
            turns=self._turns,
            failures_in_a_row=self._failures,
            last_turn_at=format_instant(self._last_turn) if self._last_turn is not None else None,
            last_error=self._last_error,
            in_turn_since=format_instant(since) if since is not None else None,
            overdue=since is not None and patience is not None and self._clock.now() - since > patience,
        )

    def turn(self) -> int:
        """Call `run_once` once; gives the pause until the next turn, in µs."""
        name = self.loop.name
        self._since = self._clock.now()
        began = time.perf_counter()
        try:
            with bind_lineage(loop=name), span("loop.turn", loop=name):
                again = self.loop.again(self.loop.run_once())
        except Exception as error:
            self._failures += 1
            self._last_error = describe(error)
            pause = self._backoff.delay(self._failures, random.random())
            TURNS.labels(name, "failed").inc()
            log.exception(
                "loop_turn_failed",
                loop=name,
                reason=self._last_error,
                failures_in_a_row=self._failures,
                pause_us=pause,
                exc_info=not isinstance(error, PatraError),
            )
        else:
            self._failures = 0
            self._last_error = None
            pause = 0 if again else self.loop.every
            TURNS.labels(name, "busy" if again else "idle").inc()
        TURN_SECONDS.labels(name).observe(time.perf_counter() - began)
        self._turns += 1
        self._last_turn, self._since = self._clock.now(), None
        return pause

    def _run(self) -> None:
        while not self._stopping:
            try:
                pause = self.turn()
            except Exception as error:  # noqa: BLE001  the edge of the thread: it lives as long as its process
                self._last_error = describe(error)
                pause = self._backoff.delay(max(self._failures, 1), random.random())
            if self._wake.wait(pause / SECOND) and not self._stopping:
                self._wake.clear()


class Supervisor:
    """All loops of a process."""

    def __init__(self, loops: Iterable[Loop], clock: Clock, backoff: Backoff = BACKOFF) -> None:
        self._running = {loop.name: RunningLoop(loop, clock, backoff) for loop in loops}
        self._started = False

    def start(self) -> None:
        self._started = True
        for running in self._running.values():
            running.start()

    def stop(self, seconds: float) -> list[str]:
        """Ask every loop to stop and wait for their turns, all within the bound; gives those that did not end."""
        if not self._started:
            return []
        until = time.monotonic() + seconds
        for running in self._running.values():
            running.ask_to_stop()
        late = [name for name, running in self._running.items() if not running.join(until - time.monotonic())]
        if late:
            log.warning("loops_left_behind", loops=late, bound_seconds=seconds)
        return late

    def wake(self, name: str) -> bool:
        """Let a loop take its next turn now; False when there is no such loop."""
        running = self._running.get(name)
        if running is not None:
            running.wake()
        return running is not None

    def states(self) -> list[LoopState]:
        return [running.state() for running in self._running.values()]


def select_loops(loops: Sequence[Loop], wanted: Iterable[str], roles: Iterable[str] = ()) -> list[Loop]:
    """The loops named, or of an engine named (`ingest` stands for `ingest.planner`, …), that have one of some roles.

    Where no name is given all loops are meant, where no role is given every role.
    """
    names, wanted_roles = tuple(wanted), {LoopRole(role) for role in roles}
    for name in names:
        if not any(_answers_to(loop, name) for loop in loops):
            known = ", ".join(loop.name for loop in loops) or "none"
            raise ConfigInvalid("loop_unknown", f"there is no loop {name!r}", advice=f"there are: {known}")
    return [
        loop
        for loop in loops
        if (not names or any(_answers_to(loop, name) for name in names))
        and (not wanted_roles or loop.role in wanted_roles)
    ]


def refuse_loops_of_no_engine(wanted: Iterable[str], engines: Sequence[str]) -> None:
    """Refuse a name that no engine can have a loop of, before the store is opened, and made where there is none."""
    for name in wanted:
        if name.partition(".")[0] not in engines:
            known = ", ".join(engines)
            raise ConfigInvalid("loop_unknown", f"there is no loop {name!r}", advice=f"loops are of an engine: {known}")


def _answers_to(loop: Loop, name: str) -> bool:
    return loop.name == name or loop.name.startswith(f"{name}.")


def describe(error: Exception) -> str:
    """An error in one line for people, without secrets."""
    return redact_text(str(error) if isinstance(error, PatraError) else f"{type(error).__name__}: {error}")
