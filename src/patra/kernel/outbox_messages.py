"""Messages of the outbox, what a receiver answers to them, and the policy of retries."""

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from patra.kernel.clock import MINUTE, SECOND
from patra.kernel.retry import DelayTable


class State(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    REFUSED = "refused"
    GIVEN_UP = "given_up"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What to deliver: `key` is the same at every attempt, so that the receiver can recognise a repetition."""

    group: str
    key: str
    payload: bytes


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A message on its way; `attempt` counts the failures so far."""

    seq: int
    group_key: bytes
    key: str
    payload: bytes
    appended_at: int
    attempt: int
    failed_at: int | None


class Delivered(msgspec.Struct, frozen=True):
    """The receiver has it, durably."""


class Retry(msgspec.Struct, frozen=True):
    """The receiver could not take it now."""

    code: str


class Refused(msgspec.Struct, frozen=True):
    """The receiver will never take it."""

    code: str


class Untried(msgspec.Struct, frozen=True):
    """An earlier message of its group failed in the same call."""


Outcome = Delivered | Retry | Refused | Untried


Deliver = Callable[[Sequence[Pending]], Sequence[Outcome]]


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is over, and how: `reason` is the code of the refusal or of the last failure."""

    message: Pending
    state: State
    reason: str | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait after the n-th failure, when to give up, and how long a relay may hold a group.

    `group_window`: the window is the group's. It runs from the first failure of any message, and whatever of the group
    is pending when it ends is given up with the one that failed last.

    `durable=False` is for a receiver to whom a repetition costs nothing: taking and recording do not wait for the disk,
    and a message whose record is lost with the machine is sent once more.
    """

    delays: DelayTable
    window: int | None = 15 * MINUTE
    group_window: bool = False
    hold: int = 60 * SECOND
    groups: int = 256
    per_group: int = 64
    durable: bool = True


def next_attempt(policy: Policy, attempt: int, first_failure: int, now: int) -> int | None:
    """When to try again after the `attempt`-th failure; None once the window is over. The last try is at its end."""
    due = now + policy.delays.delay(attempt)
    if policy.window is None:
        return due
    end = first_failure + policy.window
    return None if now >= end else min(due, end)
