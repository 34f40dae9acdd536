"""The outbox and its relay on both databases: in order within a group, at least once, never lost."""

import msgspec
import pytest

from patra.kernel import outbox
from patra.kernel.canonical import key16
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, Queries, Statement, Tx
from patra.kernel.db.queries import statement
from patra.kernel.outbox import (
    Ahead,
    Counts,
    Delivered,
    Message,
    Policy,
    Refused,
    Relay,
    Retry,
    Settled,
    State,
    Untried,
)
from patra.kernel.retry import DelayTable
from patra.kernel.testing import ManualClock
from tests.contract.kernel.receivers import POLICY, DeadError, Receiver, drain, firsts, send
from tests.support.faults import FaultyDatabase, InjectedFault

Q = Queries.load("patra.kernel")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def backlog(store: Database) -> dict[str, int]:
    return {state: count for (_, state), count in store.read(outbox.backlog).items()}


def dead(store: Database) -> list[tuple]:
    found = store.read(lambda tx: outbox.undelivered_messages(tx, channel="c"))
    return [(one.key, one.attempts, one.state, one.reason) for one in found]


def test_what_is_committed_is_delivered_and_leaves_the_table(store, clock, receiver):
    relay = receiver.relay(store, clock)
    assert relay.run_once() == Counts()
    send(store, clock, "a1", "b1", "a2")
    assert relay.run_once() == Counts(groups=2, delivered=3)
    assert receiver.arrived == ["a1", "b1", "a2"]
    assert relay.run_once().idle
    assert backlog(store) == {}


def test_what_is_rolled_back_is_never_delivered(store, clock, receiver):
    def work(tx: Tx) -> None:
        outbox.append(tx, "c", [Message(group="a", key="a1", payload=b"")], clock.now())
        raise LookupError

    with pytest.raises(LookupError):
        store.run(work)
    assert receiver.relay(store, clock).run_once().idle


def test_a_message_arrives_as_it_was_given(store, clock):
    odd = [b"", b"\0\xff\\x00'", bytes(range(256)) * 100, "🚀\u0000".encode()]
    given = [Message(group="组 'g' \\ \"", key=f"k {n} é ' \\", payload=payload) for n, payload in enumerate(odd)]
    arrived = []
    relay = Relay(store, "c", lambda found: [arrived.append(m) or Delivered() for m in found], POLICY, clock)
    store.run(lambda tx: outbox.append(tx, "c", given, clock.now()))
    relay.run_once()
    assert [(m.key, m.payload) for m in arrived] == [(m.key, m.payload) for m in given]
    assert {(m.group_key, m.appended_at, m.attempt, m.failed_at) for m in arrived} == {
        (key16("组 'g' \\ \""), clock.now(), 0, None)
    }


def test_a_group_is_delivered_in_order_over_several_turns(store, clock, receiver):
    relay = receiver.relay(store, clock, policy=msgspec.structs.replace(POLICY, per_group=3))
    keys = [f"a{n}" for n in range(10)]
    send(store, clock, *keys)
    assert relay.run_once().delivered == 3
    send(store, clock, "a10", "a11")
    drain(relay)
    assert receiver.arrived == [*keys, "a10", "a11"]


def test_a_turn_takes_a_bounded_number_of_groups_the_longest_due_first(store, clock, receiver):
    relay = receiver.relay(store, clock, policy=msgspec.structs.replace(POLICY, groups=2))
    for group in "abcde":
        send(store, clock, f"{group}1", f"{group}2")
        clock.advance(1)
    assert relay.run_once() == Counts(groups=2, delivered=4)
    assert receiver.new() == ["a1", "a2", "b1", "b2"]
    drain(relay)
    assert receiver.new() == ["c1", "c2", "d1", "d2", "e1", "e2"]


def test_a_head_that_fails_makes_its_own_group_wait(store, clock, receiver):
    receiver.answers["a1"] = Retry("down")
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "b1", "a2")
    assert relay.run_once() == Counts(groups=2, delivered=1, retried=1)
    assert receiver.new() == ["a1", "b1"]
    send(store, clock, "a3", "b2")
    clock.advance(9 * SECOND)
    relay.run_once()
    assert receiver.new() == ["b2"]
    clock.advance(1 * SECOND)
    receiver.answers.clear()
    drain(relay)
    assert receiver.new() == ["a1", "a2", "a3"]


def test_a_failure_in_the_middle_keeps_what_came_before_it(store, clock, receiver):
    receiver.answers["a2"] = Retry("down")
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "a2", "a3")
    assert relay.run_once() == Counts(groups=1, delivered=1, retried=1)
    clock.advance(10 * SECOND)
    receiver.answers.clear()
    drain(relay)
    assert receiver.new() == ["a1", "a2", "a2", "a3"]


def test_delays_follow_the_table_and_the_last_try_is_at_the_end_of_the_window(store, clock, receiver):
    receiver.answers["a1"] = Retry("down")
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "a2")
    start, tries = clock.now(), []
    while receiver.answers:
        due = relay.next_due()
        assert due is not None
        clock.set(due)
        counts = relay.run_once()
        if receiver.new()[:1] == ["a1"]:
            tries.append((clock.now() - start) // SECOND)
        if counts.given_up:
            receiver.answers.clear()
    assert tries == [0, 10, 30, 50, 60]
    assert dead(store) == [("a1", 5, "given_up", "down")]
    drain(relay)
    assert receiver.new() == ["a2"]
    assert backlog(store) == {"given_up": 1}


def test_without_a_window_it_never_gives_up(store, clock, receiver):
    receiver.answers["a1"] = Retry("down")
    relay = receiver.relay(store, clock, policy=Policy(delays=DelayTable((SECOND,)), window=None))
    send(store, clock, "a1")
    for _ in range(50):
        assert relay.run_once().retried == 1
        clock.advance(SECOND)


def test_a_refused_message_is_kept_with_its_reason_and_its_group_goes_on(store, clock, receiver):
    receiver.answers["a2"] = Refused("too_big")
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "a2", "a3")
    assert relay.run_once() == Counts(groups=1, delivered=2, refused=1)
    assert receiver.new() == ["a1", "a2", "a3"]
    assert dead(store) == [("a2", 1, "refused", "too_big")]


def test_an_operator_may_have_it_tried_again(store, clock, receiver):
    receiver.answers["a1"] = Refused("too_big")
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "a2")
    drain(relay)
    receiver.answers.clear()
    (one,) = store.read(outbox.undelivered_messages)
    seq = one.seq
    assert store.read(lambda tx: outbox.undelivered_messages(tx, channel="other")) == []
    assert store.read(lambda tx: outbox.undelivered_messages(tx, after=seq)) == []
    assert store.run(lambda tx: outbox.requeue(tx, "other", [seq], clock.now())) == 0
    assert store.run(lambda tx: outbox.requeue(tx, "c", [seq, seq + 1], clock.now())) == 1
    drain(relay)
    assert receiver.new() == ["a1", "a2", "a1"]
    assert backlog(store) == {}


def test_channels_do_not_meet(store, clock, receiver):
    other = Receiver()
    send(store, clock, "a1", channel="c")
    send(store, clock, "a2", channel="d")
    drain(receiver.relay(store, clock, channel="c"))
    drain(other.relay(store, clock, channel="d"))
    assert (receiver.arrived, other.arrived) == (["a1"], ["a2"])


def test_rows_of_an_engine_move_in_the_transaction_that_settles(store, clock, receiver):
    receiver.answers |= {"b1": Refused("no"), "d1": Retry("later")}
    seen: list[tuple[str, State, str | None]] = []

    def on_settled(tx: Tx, settled: list[Settled], now: int) -> None:
        seen.extend((s.message.key, s.state, s.reason) for s in settled)
        tx.insert("krn_outbox", [_row(f"echo of {s.message.key}", now) for s in settled])

    send(store, clock, "a1", "b1", "d1")
    receiver.relay(store, clock, on_settled=on_settled).run_once()
    assert seen == [("a1", State.DELIVERED, None), ("b1", State.REFUSED, "no")]
    echo = Receiver()
    drain(echo.relay(store, clock, channel="echo"))
    assert echo.arrived == ["echo of a1", "echo of b1"]


def test_when_the_engine_fails_to_settle_everything_is_delivered_again_with_the_same_keys(store, clock, receiver):
    def on_settled(tx: Tx, settled: list[Settled], now: int) -> None:
        raise DeadError

    send(store, clock, "a1", "b1", "a2")
    with pytest.raises(DeadError):
        receiver.relay(store, clock, on_settled=on_settled).run_once()
    relay = receiver.relay(store, clock)
    assert relay.run_once().idle
    clock.advance(POLICY.hold)
    drain(relay)
    assert receiver.arrived == ["a1", "b1", "a2", "a1", "b1", "a2"]


@pytest.mark.parametrize("fatal", ["a1", "a2", "b1", "b2"])
def test_a_relay_that_dies_leaves_its_groups_to_the_next_when_its_hold_ends(store, clock, receiver, fatal: str):
    def die(message) -> None:
        if message.key == fatal:
            raise DeadError

    send(store, clock, "a1", "b1", "a2", "b2")
    receiver.before = die
    with pytest.raises(DeadError):
        receiver.relay(store, clock).run_once()
    receiver.before = lambda message: None
    receiver.new()
    send(store, clock, "c1", "a3")
    relay = receiver.relay(store, clock)
    drain(relay)
    assert receiver.new() == ["c1"]
    assert relay.next_due() == clock.now() + POLICY.hold
    clock.advance(POLICY.hold)
    drain(relay)
    assert receiver.new() == ["a1", "b1", "a2", "b2", "a3"]


def test_two_relays_work_on_different_groups_at_the_same_time(store, clock, receiver):
    other = Receiver()
    second = other.relay(store, clock)
    first = receiver.relay(store, clock, policy=msgspec.structs.replace(POLICY, groups=2))
    receiver.before = lambda message: second.run_once()
    send(store, clock, "a1", "b1", "c1", "d1", "a2", "c2")
    first.run_once()
    assert receiver.arrived == ["a1", "b1", "a2"]
    assert other.arrived == ["c1", "d1", "c2"]


def test_what_is_appended_while_its_group_is_held_follows_it(store, clock, receiver):
    other = Receiver()
    second = other.relay(store, clock)

    def append_behind(message) -> None:
        send(store, clock, f"{message.key}0")
        assert second.run_once().idle

    receiver.before = append_behind
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "b1")
    relay.run_once()
    receiver.before = lambda message: None
    drain(relay)
    assert receiver.arrived == ["a1", "b1", "a10", "b10"]
    assert other.arrived == []


def test_a_relay_that_outlived_its_hold_changes_nothing(store, clock, receiver):
    other = Receiver()
    second = other.relay(store, clock)

    def be_slow(message) -> None:
        clock.advance(POLICY.hold)
        second.run_once()

    receiver.before = be_slow
    receiver.answers["a1"] = Refused("says the slow one")
    send(store, clock, "a1", "a2")
    assert receiver.relay(store, clock).run_once() == Counts(groups=1, fenced=1)
    assert other.arrived == ["a1", "a2"]
    assert backlog(store) == {}


@pytest.mark.parametrize("head_waits", [False, True])
def test_a_long_group_hides_no_other(store, clock, receiver, head_waits: bool):
    policy = msgspec.structs.replace(POLICY, groups=2, per_group=5)  # so that eight messages fill the window
    relay = receiver.relay(store, clock, policy=policy)
    long = [f"a{n}" for n in range(60)]
    if head_waits:
        receiver.answers["a0"] = Retry("down")
    send(store, clock, *long)
    send(store, clock, "b1")
    relay.run_once()
    relay.run_once()
    assert "b1" in receiver.arrived[:7]
    assert relay.run_once().idle is head_waits
    receiver.answers.clear()
    clock.advance(10 * SECOND)
    drain(relay)
    assert [key for key in firsts(receiver.arrived) if key != "b1"] == long
    assert backlog(store) == {}


def test_a_relay_that_waits_says_when_there_will_be_something_to_do(store, clock, receiver):
    relay = receiver.relay(store, clock)
    assert relay.next_due() is None
    receiver.answers["a1"] = Retry("down")
    send(store, clock, "a1", "a2", "a3")
    assert relay.next_due() == clock.now()
    drain(relay)
    assert relay.next_due() == clock.now() + 10 * SECOND


def test_a_message_committed_late_with_a_smaller_number_does_not_disturb_the_relay_at_work(store, clock, receiver):
    """Two transactions that append at once may commit against the order of their numbers."""
    other = Receiver()
    second = other.relay(store, clock)

    def earlier(message) -> None:
        if message.key == "a2":
            store.run(lambda tx: tx.insert("krn_outbox", [_row("a1", clock.now(), seq=1, channel="c", group="a")]))
            second.run_once()

    store.run(
        lambda tx: tx.insert("krn_outbox", [_row(f"a{n}", clock.now(), seq=n, channel="c", group="a") for n in (2, 3)])
    )
    receiver.before = earlier
    assert receiver.relay(store, clock).run_once() == Counts(groups=1, delivered=2)
    assert (receiver.arrived, other.arrived) == (["a2", "a3"], ["a1"])
    assert backlog(store) == {}


def test_untried_messages_are_due_again_at_once(store, clock):
    relay = Relay(store, "c", lambda found: [Untried() for _ in found], POLICY, clock)
    send(store, clock, "a1", "b1")
    for _ in range(3):
        assert relay.run_once() == Counts(groups=2)
    assert relay.next_due() == clock.now()


def test_an_answer_for_each_message_is_asked_for(store, clock):
    relay = Relay(store, "c", lambda found: [], POLICY, clock)
    send(store, clock, "a1")
    with pytest.raises(ValueError, match="1 messages were given, 0 answered"):
        relay.run_once()


def test_a_thousand_groups_of_ten(store, clock, receiver):
    keys = [f"g{n}-{i}x{n:03}" for i in range(10) for n in range(1000)]
    store.run(
        lambda tx: outbox.append(
            tx, "c", [Message(group=key.split("-")[0], key=key, payload=b"") for key in keys], clock.now()
        )
    )
    relay = receiver.relay(store, clock)
    turns = 0
    while not relay.run_once().idle:
        turns += 1
    assert sorted(receiver.arrived) == sorted(keys)
    by_group: dict[str, list[str]] = {}
    for key in receiver.arrived:
        by_group.setdefault(key.split("-")[0], []).append(key)
    assert all(found == sorted(found) for found in by_group.values())
    assert turns == 4


def _row(key: str, now: int, *, channel: str = "echo", group: str = "g", **more) -> dict:
    return {
        "channel": channel,
        "group_key": key16(group),
        "message_key": key,
        "payload": b"",
        "appended_at": now,
        "due_at": now,
        **more,
    }


def test_a_group_is_found_by_its_key_even_before_the_store_knows_what_it_holds(store, clock):
    """Else each look at a group reads the whole channel: a backlog of thousands would take its square."""
    send(store, clock, *[f"{group}{n}" for group in "abcdefgh" for n in range(40)])
    key = key16("a")
    params = {"channel": "c", "per_group": 8, "now": clock.now(), "holder": "h"}
    for name, row in (("outbox_heads", (key,)), ("outbox_messages", (key, 1)), ("outbox_call_up", (key,))):
        asked = explained(Q[name])
        for rows in ([row], [row, row]):
            plan = store.run(lambda tx, asked=asked, rows=rows: tx.fetch(asked, params, rows=rows))
            assert "krn_outbox_in_group" in str(plan), f"{name}: {plan}"


def test_what_waits_for_an_operator_is_found_without_reading_what_is_pending(store, clock):
    send(store, clock, *[f"a{n}" for n in range(40)])
    asked = {"outbox_dead": {"channel": "", "after": 0, "limit": 10}, "outbox_backlog_up_to": {"most": 10}}
    for name, params in asked.items():
        if store.dialect == "sqlite":
            asked_for = statement("plan", f"EXPLAIN QUERY PLAN {Q[name].text['sqlite']}")
            plan = str(store.read(lambda tx, s=asked_for, p=params: tx.fetch(s, p)))
            assert "krn_outbox_dead" in plan
            assert "PRIMARY KEY" not in plan


def test_a_backlog_is_counted_up_to_a_bound(store, clock, receiver):
    assert store.read(lambda tx: outbox.backlog_up_to(tx, 3)) == {}
    send(store, clock, "a1", "b1", "c1", "d1")
    assert store.read(lambda tx: outbox.backlog_up_to(tx, 3)) == {("c", "pending"): 3}
    assert store.read(lambda tx: outbox.backlog_up_to(tx, 30)) == store.read(outbox.backlog)


def test_what_waits_for_a_channel_is_counted_without_reading_what_waits_for_another(store, clock):
    """Statistics know only the channel that has everything: whatever they say of the other, no scan is cheaper."""
    send(store, clock, "b1", channel="later")
    send(store, clock, *[f"a{n}" for n in range(3000)], channel="busy")
    known, most = Q["outbox_backlog_up_to"], {"most": 10_000}
    if store.dialect == "sqlite":
        asked = statement("plan", f"EXPLAIN QUERY PLAN {known.text['sqlite']}")
    else:
        store.run(lambda tx: tx.script("ANALYZE krn_outbox"))
        asked = explained(known)
    plan = "\n".join(str(row[-1]) for row in store.read(lambda tx: tx.fetch(asked, most)))
    assert "krn_outbox_due" in plan
    assert not any(other in plan for other in ("Seq Scan on krn_outbox", "krn_outbox_in_group", "SCAN o")), plan
    assert store.read(lambda tx: outbox.backlog_up_to(tx, 10)) == {("busy", "pending"): 10, ("later", "pending"): 1}


def test_a_backlog_of_one_channel_does_not_hide_that_another_fails(store, clock):
    send(store, clock, *[f"a{n}" for n in range(1200)], channel="busy")
    assert store.read(outbox.failing_since) == {}
    send(store, clock, "b1", channel="later")
    since = clock.now()
    Relay(store, "later", outbox.one_by_one(lambda _: Retry("away")), POLICY, clock).run_once()
    assert store.read(outbox.failing_since) == {"later": since}
    if store.dialect == "sqlite":
        asked = statement("plan", f"EXPLAIN QUERY PLAN {Q['outbox_failing'].text['sqlite']}")
        plan = store.read(lambda tx: tx.fetch(asked))
        touched = [row[-1] for row in plan if "krn_outbox" in row[-1] or " o " in row[-1]]
        assert touched
        assert all("krn_outbox_failing" in one for one in touched), plan


def explained(known: Statement) -> Statement:
    """The same statement, which tells how it would be done."""
    asked = msgspec.structs.replace(known)
    before, after, names = known.sqlite
    asked.__dict__.update(
        sqlite=(f"EXPLAIN QUERY PLAN {before}", after, names),
        sqlite_texts={},
        postgres=f"EXPLAIN {known.postgres}",
        postgres_one=f"EXPLAIN {known.postgres_one}",
    )
    return asked


# ---- turns that run ahead of their records


def test_a_turn_that_runs_ahead_is_recorded_with_the_next_one_in_order(store, clock, receiver):
    relay = receiver.relay(store, clock)
    send(store, clock, "a1", "b1")
    assert relay.run_ahead() == Ahead(groups=2)
    assert relay.behind
    assert backlog(store) == {"pending": 2}
    send(store, clock, "a2")
    assert relay.run_ahead() == Ahead(groups=1)  # a2 follows a1 as soon as that is recorded, in the same transaction
    assert receiver.arrived == ["a1", "b1", "a2"]
    assert backlog(store) == {"pending": 1}
    assert relay.catch_up() == Counts(groups=1, delivered=1)
    assert relay.catch_up() == Counts()
    assert (relay.behind, backlog(store)) == (False, {})


def test_a_turn_that_meets_its_bounds_says_that_there_may_be_more(store, clock, receiver):
    relay = receiver.relay(store, clock, policy=msgspec.structs.replace(POLICY, groups=2, per_group=2))
    send(store, clock, "a1", "a2", "a3")
    assert relay.run_ahead() == Ahead(groups=1, full=True)
    assert relay.run_ahead() == Ahead(groups=1)
    send(store, clock, "b1", "c1")
    assert relay.run_ahead() == Ahead(groups=2, full=True)
    assert relay.run_ahead() == Ahead()
    assert receiver.arrived == ["a1", "a2", "a3", "b1", "c1"]


def test_what_was_not_recorded_is_delivered_again_when_the_hold_ends(store, clock, receiver):
    send(store, clock, "a1", "a2")
    receiver.relay(store, clock).run_ahead()  # and its process is killed
    send(store, clock, "a3")
    other = receiver.relay(store, clock)
    assert other.run_once().idle
    clock.advance(POLICY.hold + 1)
    drain(other)
    assert receiver.arrived == ["a1", "a2", "a1", "a2", "a3"]
    assert backlog(store) == {}


def test_a_record_that_comes_after_the_hold_changes_nothing(store, clock, receiver):
    late, other = receiver.relay(store, clock), receiver.relay(store, clock)
    send(store, clock, "a1")
    late.run_ahead()
    clock.advance(POLICY.hold + 1)
    receiver.answers["a1"] = Retry("away")
    assert other.run_once().retried == 1
    assert late.catch_up() == Counts(groups=1, fenced=1)
    assert backlog(store) == {"pending": 1}


def test_a_store_that_fails_while_a_turn_is_recorded_with_the_next_loses_neither(store, clock, receiver):
    send(store, clock, "a1")
    relay = receiver.relay(store, clock)
    relay.run_ahead()
    send(store, clock, "a2")
    working, relay._db = relay._db, FaultyDatabase(store, fail_at=2)
    with pytest.raises(InjectedFault):
        relay.run_ahead()
    relay._db = working
    drain(relay)
    assert receiver.arrived == ["a1", "a2"]
    assert backlog(store) == {}
