"""A form that is sent twice is one act: the result is remembered by the form's own token and what is in it.

A page that a browser kept may send its form again with something else in it: that is another act.
"""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Any

import msgspec

MAX_OUTCOMES = 500
WAIT_S = 30.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of an act that was done, and where it leads."""

    text: str
    target: str
    secret: tuple[str, str] | None = None
    report: Any = None
    """The answer, where a page of its own shows it."""


class Outcomes:
    """The latest outcomes of this process, by form."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[str, tuple[object, Future[Outcome]]] = OrderedDict()

    def once(self, form: str, work: Callable[[], Outcome], content: object = None) -> tuple[Outcome, bool]:
        """Do the work for a form and its content, unless it was done; the outcome, and whether it was done now."""
        with self._lock:
            known = self._known.get(form)
            done = known is not None and known[0] == content
            mine: Future[Outcome] = known[1] if known is not None and done else Future()
            if not done:
                self._known[form] = (content, mine)
                if len(self._known) > MAX_OUTCOMES:
                    self._known.popitem(last=False)
        if done:
            return mine.result(WAIT_S), False
        try:
            outcome = work()
        except BaseException as error:
            mine.set_exception(error)
            with self._lock:
                if self._known.get(form) == (content, mine):
                    del self._known[form]  # what was refused may be sent again
            raise
        mine.set_result(outcome)
        return outcome, True

    def text(self, form: str) -> str:
        """What is said of the act of a form; empty when this process does not know it."""
        with self._lock:
            _, known = self._known.get(form, (None, None))
        if known is None or not known.done() or known.exception() is not None:
            return ""
        return known.result().text
