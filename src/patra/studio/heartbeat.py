"""A lease is renewed from a thread of its own while its work is under way; the worker asks it when to stop."""

import threading
import time
from collections.abc import Callable
from typing import Self

from patra.kernel.safety.threads import no_thread
from patra.kernel.telemetry import get_logger

log = get_logger()

MAX_PAUSE_S = 1.0
BEATS_PER_LEASE = 4


class Heartbeat:
    """`renew` says whether the lease is still ours; a store that is away for a moment is waited for."""

    def __init__(
        self,
        subject: str,
        renew: Callable[[], bool],
        *,
        ttl: int,
        leaving: threading.Event,
        seconds: float | None = None,
    ) -> None:
        """`ttl`: how long the lease lasts, in microseconds. `seconds`: how long the work may take."""
        self._subject = subject
        self._renew = renew
        self._pause = min(MAX_PAUSE_S, ttl / BEATS_PER_LEASE / 1_000_000)
        self._leaving = leaving
        self._until = None if seconds is None else time.monotonic() + seconds
        self._lost = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat {subject}", daemon=True)

    @property
    def too_long(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def stop(self) -> bool:
        return self._lost.is_set() or self._leaving.is_set() or self.too_long

    def __enter__(self) -> Self:
        try:
            self._thread.start()
        except RuntimeError as error:
            raise no_thread(error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._pause):
            try:
                if not self._renew():
                    self._lost.set()
            except Exception:  # noqa: BLE001  the thread's edge: the lease decides
                log.warning("studio_heartbeat_failed", subject=self._subject)
