"""Leases of running tasks are renewed from a thread of their own: a slow answer costs no lease, a dead process does.

One thread a process, alive while a task runs. A run that shows no sign of life for ten minutes (no batch, no pause) is
not held on to any longer: its thread hangs, and another executor may have the task.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from patra.kernel.clock import SECOND
from patra.kernel.errors import Transient
from patra.kernel.safety.threads import start_thread
from patra.kernel.telemetry import get_logger

log = get_logger()

RENEWALS_PER_LEASE = 3
MAX_SILENCE_S = 600.0


class Held(msgspec.Struct, kw_only=True):
    """A lease that is renewed; `renew` leaves one that was lost to its run, which finds out at its next commit."""

    renew: Callable[[], object]
    pause_s: float
    due: float
    alive: float


class LeaseKeeper:
    """Holds on to leases that were handed to it, until they are handed back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._held: dict[str, Held] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, task_id: str, renew: Callable[[], object], ttl: int) -> Generator[None]:
        """Renew a lease three times in its life (`ttl`, microseconds) while the block runs."""
        now, pause = self._clock(), ttl / RENEWALS_PER_LEASE / SECOND
        with self._changed:
            self._held[task_id] = Held(renew=renew, pause_s=pause, due=now + pause, alive=now)
            try:
                self._thread = start_thread(self._thread, self._run, "ingest leases")
            except Transient:  # a lease that nobody renews is not worked under
                del self._held[task_id]
                raise
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._held.pop(task_id, None)
                self._changed.notify_all()

    def note_alive(self, task_id: str) -> None:
        """The run that holds it goes on."""
        if (known := self._held.get(task_id)) is not None:
            known.alive = self._clock()

    def renew_due(self) -> int:
        """Renew the leases that are due and whose runs are alive; gives how many."""
        now = self._clock()
        with self._changed:
            due = {task_id: one for task_id, one in self._held.items() if one.due <= now}
            for one in due.values():
                one.due = now + one.pause_s
            due = {task_id: one for task_id, one in due.items() if now - one.alive < MAX_SILENCE_S}
        for task_id, one in due.items():
            try:
                one.renew()
            except Exception:  # noqa: BLE001  the thread's edge: a store that is away for a moment; the lease decides
                log.warning("ingest_lease_renewal_failed", task_id=task_id)
        return len(due)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._held:
                    self._thread = None
                    return
                pause = min(one.due for one in self._held.values()) - self._clock()
                if pause > 0:
                    self._changed.wait(pause)
                    continue
            self.renew_due()
