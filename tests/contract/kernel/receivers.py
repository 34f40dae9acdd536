"""A receiver for relays: it keeps what arrives, and answers as a test tells it to."""

from collections.abc import Callable, Sequence

from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Tx
from patra.kernel.outbox import Delivered, Message, Pending, Policy, Refused, Relay, Retry, append, one_by_one
from patra.kernel.retry import DelayTable
from patra.kernel.testing import ManualClock

Answer = Delivered | Retry | Refused
POLICY = Policy(delays=DelayTable((10 * SECOND, 20 * SECOND)), window=60 * SECOND, hold=5 * SECOND)


class DeadError(Exception):
    """The process is gone: nothing after this happens."""


class Receiver:
    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.answers: dict[str, Answer] = {}
        self.before: Callable[[Pending], None] = lambda message: None

    def take(self, message: Pending) -> Answer:
        self.before(message)
        self.arrived.append(message.key)
        return self.answers.get(message.key, Delivered())

    def relay(
        self,
        store: Database,
        clock: ManualClock,
        *,
        policy: Policy = POLICY,
        channel: str = "c",
        on_settled: Callable | None = None,
    ) -> Relay:
        return Relay(store, channel, one_by_one(self.take), policy, clock, on_settled)

    def new(self) -> list[str]:
        """What arrived since this was asked last."""
        arrived, self.arrived = self.arrived, []
        return arrived


def messages(*keys: str) -> list[Message]:
    """`a1` is a message of the group `a`."""
    return [Message(group=key.rstrip("0123456789"), key=key, payload=key.encode()) for key in keys]


def send(store: Database, clock: ManualClock, *keys: str, channel: str = "c") -> None:
    def work(tx: Tx) -> None:
        append(tx, channel, messages(*keys), clock.now())

    store.run(work)


def drain(relay: Relay, most: int = 10_000) -> None:
    for _ in range(most):
        if relay.run_once().idle:
            return
    raise AssertionError("the relay finds no end")


def firsts(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(keys))


def lasts(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(reversed(keys)))[::-1]
