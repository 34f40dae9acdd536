"""Steps go in together, a suspect's trial goes in alone: if the process dies then, nobody else can be the cause."""

import threading
from collections.abc import Generator
from contextlib import contextmanager


class Solitude:
    """A door that many may pass at once, or one alone; whoever wants to be alone keeps newcomers waiting."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = False
        self.waiting = 0  # to be alone

    @contextmanager
    def together(self) -> Generator[None]:
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
    def alone(self) -> Generator[None]:
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
