"""After a failure: the event is retried later, becomes a dead letter, or its endpoint is suspended (C§6, B5, B9).

More than `max_retries` failures make a dead letter. What the record of one contains stands in `dead_letter`; how often
and how late a type is retried is declared in its contract (`catalogue/retries`).
"""

from collections.abc import Sequence

import msgspec

from patra.bus.catalogue.catalogue import OnDeadLetter, Retry
from patra.bus.catalogue.reasons import Reason
from patra.kernel.clock import HOUR, SECOND

MAX_LOST_WORKERS = 5  # processes lost with only this event in progress: then it is a dead letter
FROZEN_PAUSE = 5 * SECOND  # until a handler is tried again that may not publish while a type is frozen
ENDPOINT_JITTER = 0.1  # share of a wait of the table that is added at random
MAX_RETRY_AFTER = 24 * HOUR  # the longest wait that an endpoint or a handler may ask for


class Comeback(msgspec.Struct, frozen=True):
    """A failed event comes back at an instant."""

    due_at: int


class GiveUp(msgspec.Struct, frozen=True):
    """A failed event becomes a dead letter; `keep` says whether it goes on blocking its key."""

    reason: Reason
    keep: bool


class Suspend(msgspec.Struct, frozen=True):
    """An endpoint is suspended; the event stays in its line until an operator resumes it (B9)."""


def after_endpoint_failure(
    schedule: Sequence[int], failures: int, now: int, jitter: float, *, wait: int, gone: bool, alive: bool
) -> Comeback | GiveUp | Suspend:
    """B9: an event comes back by a table of waits, or when the endpoint said (`Retry-After`).

    Past the table, an endpoint that took other events meanwhile (`alive`) has rejected this one, which becomes a dead
    letter. One that took none is suspended with its backlog, as is one that says that it is gone.
    """
    if gone:
        return Suspend()
    if failures > len(schedule):
        return GiveUp(Reason.RETRIES_EXHAUSTED, False) if alive else Suspend()
    delay = schedule[failures - 1]
    return Comeback(now + max(delay + int(delay * ENDPOINT_JITTER * jitter), min(wait, MAX_RETRY_AFTER)))


def dead_letter_by(retry: Retry, failures: int, due_at: int) -> int:
    """When an event that failed so often and comes back at `due_at` is a dead letter at the latest, if each of its
    attempts is made when it is due, and fails.
    """
    return due_at + sum(retry.backoff.ceiling(n) for n in range(failures + 1, retry.max_retries + 1))


def after_failure(
    retry: Retry,
    failures: int,
    now: int,
    jitter: float,
    *,
    poison: bool,
    ordered: OnDeadLetter | None,
    final: Reason | None = None,
    frozen: bool = False,
    wait: int = 0,
) -> Comeback | GiveUp:
    """B5: after the n-th failure, n up to `max_retries`, it comes back later each time; then it is a dead letter.

    A handler may ask for a longer `wait`. One that a freeze keeps from publishing waits until the thaw: it would only
    add to the dead letters of another type, and freeze that one as well.
    """
    keep = ordered is OnDeadLetter.BLOCK
    if final is not None:
        return GiveUp(final, keep)
    if frozen:
        return Comeback(now + FROZEN_PAUSE)
    if poison:
        return GiveUp(Reason.HANDLER_POISON, keep)
    if failures > retry.max_retries:
        return GiveUp(Reason.RETRIES_EXHAUSTED, keep)
    return Comeback(now + max(retry.backoff.delay(failures, jitter), min(wait, MAX_RETRY_AFTER)))
