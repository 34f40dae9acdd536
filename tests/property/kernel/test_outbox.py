"""Whatever fails and whichever process dies, each group arrives in order and nothing is lost."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from patra.kernel import outbox
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, migrate
from patra.kernel.outbox import Delivered, Message, Pending, Policy, Refused, Relay, Retry, next_attempt, one_by_one
from patra.kernel.retry import DelayTable
from patra.kernel.testing import ManualClock

_channels = itertools.count()


class DeadError(Exception):
    """The relay is gone before it could record what it delivered."""


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(0, 3), min_size=1, max_size=12)),
        st.tuples(st.just("turn"), st.integers(0, 1)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
    ),
    min_size=1,
    max_size=30,
)
answers = st.sampled_from(["ok"] * 6 + ["retry"] * 3 + ["refuse", "die before", "die after"])
policies = st.builds(
    Policy,
    delays=st.just(DelayTable((3 * SECOND, 7 * SECOND))),
    window=st.sampled_from([None, 20 * SECOND]),
    hold=st.just(5 * SECOND),
    groups=st.integers(1, 4),
    per_group=st.integers(1, 4),
)


class World:
    """Relays of one channel in front of a receiver whose answers are drawn."""

    def __init__(self, store: Database, policy: Policy, data: st.DataObject) -> None:
        self.channel = f"c{next(_channels)}"
        self.clock = ManualClock()
        self.data: st.DataObject | None = data
        self.store = store
        self.sent: dict[bytes, list[int]] = {}
        self.arrived: set[int] = set()
        self.relays = [Relay(store, self.channel, one_by_one(self.take), policy, self.clock) for _ in range(2)]
        self.appended: dict[int, list[int]] = {}
        self.count = 0

    def take(self, message: Pending) -> Delivered | Retry | Refused:
        answer = "ok" if self.data is None else self.data.draw(answers)
        if answer == "die before":
            raise DeadError
        self.sent.setdefault(message.group_key, []).append(int(message.key))
        match answer:
            case "retry":
                return Retry("down")
            case "refuse":
                return Refused("no")
        self.arrived.add(int(message.key))
        if answer == "die after":
            raise DeadError
        return Delivered()

    def append(self, groups: list[int]) -> None:
        found = []
        for group in groups:
            self.count += 1
            self.appended.setdefault(group, []).append(self.count)
            found.append(Message(group=f"{group}", key=f"{self.count}", payload=b""))
        self.store.run(lambda tx: outbox.append(tx, self.channel, found, self.clock.now()))

    def turn(self, number: int) -> bool:
        try:
            return self.relays[number].run_once().idle
        except DeadError:
            return False

    def dead(self) -> set[int]:
        found = self.store.read(lambda tx: outbox.undelivered_messages(tx, channel=self.channel, limit=1000))
        return {int(one.key) for one in found}


@given(steps, policies, st.data())
def test_groups_arrive_in_order_and_whole(database: Database, steps: list[tuple], policy: Policy, data: st.DataObject):
    migrate(database, ["patra.kernel"])
    world = World(database, policy, data)
    for step in steps:
        match step:
            case ("append", groups):
                world.append(groups)
            case ("turn", number):
                world.turn(number)
            case ("wait", seconds):
                world.clock.advance(seconds * SECOND)
    world.data = None  # from here on the receiver is well
    for _ in range(200):
        if world.turn(0):
            due = world.relays[0].next_due()
            if due is None:
                break
            assert due > world.clock.now()
            world.clock.set(due)
    assert world.relays[0].next_due() is None
    everything = {number for numbers in world.appended.values() for number in numbers}
    assert world.arrived | world.dead() == everything
    for sent in world.sent.values():
        in_order = sorted(set(sent))
        assert list(dict.fromkeys(sent)) == in_order  # first arrivals
        assert list(dict.fromkeys(reversed(sent)))[::-1] == in_order  # last arrivals: repetitions start at a head


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=5).map(tuple),
    st.booleans(),
    st.integers(0, 100),
    st.integers(0, 40),
)
def test_attempts_end_with_one_at_the_end_of_the_window(delays: tuple[int, ...], cycle: bool, window: int, late: int):
    policy = Policy(delays=DelayTable((*delays, 1), cycle=cycle), window=window)
    now, attempt, tries = 0, 1, [0]
    while (due := next_attempt(policy, attempt, 0, now)) is not None:
        assert now <= due <= max(window, now)
        now, attempt = due + (late if due < window else 0), attempt + 1
        tries.append(now)
    assert now >= window
    assert all(at <= window for at in tries[:-1])
