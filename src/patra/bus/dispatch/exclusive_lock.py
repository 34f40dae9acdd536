"""A readers-writer lock: steps share it, the trial of a suspect holds it alone, so that nothing else can crash it."""

import threading
from collections.abc import Generator
from contextlib import contextmanager


class SharedExclusiveLock:
    """A readers-writer lock that prefers writers: a waiting writer keeps new readers out."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = False
        self.waiting = 0  # to be alone

    @contextmanager
    def shared(self) -> Generator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone and not self.waiting)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Generator[None]:
        with self._condition:
            self.waiting += 1
            try:
                self._condition.wait_for(lambda: not self._alone and not self._inside)
            finally:
                self.waiting -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()
