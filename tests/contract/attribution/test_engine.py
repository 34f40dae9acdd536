"""The writer, its queue and its timer, and several processes on one store: F9, F10, A1."""

import json
import random
import threading
from collections import Counter
from collections.abc import Collection
from concurrent.futures import Future
from typing import Any

import pytest

from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.ack import BatchAck
from patra.attribution.decision.dedup import Ledger
from patra.attribution.intake.batch import read_batch
from patra.attribution.intake.envelope import Refused
from patra.attribution.intake.parse_worker import batch_of
from patra.attribution.log_export import export_log
from patra.attribution.storage.dedup_keys import Keys
from patra.attribution.storage.read import every_closure, every_decision
from patra.attribution.writer import COMMIT_TIMEOUT, PROCESS_LOST_AFTER, Engine, Limits, NotTaken, Overloaded
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.db import Database, Tx, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreUnavailable
from patra.kernel.safety.threads import Threads
from patra.kernel.testing import ManualClock
from tests.support.faults import FaultyDatabase
from tests.unit.attribution.said import PACKAGES, T0, at, envelope, event, fresh


def body(*events: Any, **changes: Any) -> bytes:
    return json.dumps(envelope(*events, **changes)).encode()


def answer(found: "Future[Any] | Overloaded") -> Any:
    assert isinstance(found, Future)
    return found.result(30)


def codes(ack: Any) -> list[str]:
    return [item.ackReasonCode.value for item in ack.ackItems]


@pytest.fixture
def engine(database: Database):
    migrate(database, PACKAGES)
    found = Engine(database, ManualClock(T0), limits=Limits(writers=1, announce=0))
    yield found
    found.close()


def test_a_batch_is_answered_when_it_is_durable(engine: Engine):
    ack = answer(engine.submit(body(event("impression"))))
    assert isinstance(ack, BatchAck)
    assert codes(ack) == ["f_accepted"]
    assert len(list(every_decision(engine.db))) == 1
    assert isinstance(answer(engine.submit(b"{")), Refused)


def test_batches_that_wait_go_into_one_commit_and_are_answered_as_if_alone(engine: Engine):
    gate = threading.Lock()
    original = engine.db.run
    with gate:
        engine.db.run = lambda work, **more: (gate.acquire(), gate.release(), original(work, **more))[2]  # type: ignore[method-assign]
        first = engine.submit(body(event("ad_filled"), batch="first"))
        while engine._queue:
            pass
        commits: list[int] = []
        engine.db.run = lambda work, **more: (commits.append(1), original(work, **more))[1]  # type: ignore[method-assign]
        rest = [engine.submit(body(event("impression", "i"), batch="same")) for _ in range(5)]
    assert codes(answer(first)) == ["f_accepted"]
    assert [codes(answer(one))[0] for one in rest] == ["f_accepted"] + ["f_dedup_committed_duplicate"] * 4
    assert len(commits) == 1
    engine.db.run = original  # type: ignore[method-assign]


def test_when_too_many_wait_the_next_is_turned_away_unread(database: Database):
    migrate(database, PACKAGES)
    engine = Engine(database, ManualClock(T0), limits=Limits(waiting=2, writers=1))
    gate = threading.Lock()
    original = database.run
    with gate:
        database.run = lambda work, **more: (gate.acquire(), gate.release(), original(work, **more))[2]  # type: ignore[method-assign]
        taken = [engine.submit(body(event("click"), batch="b0"))]
        while engine._queue:
            pass
        taken += [engine.submit(body(event("click"), batch=f"b{n}")) for n in (1, 2)]
        assert engine.submit(b"not even read") == Overloaded()
    assert [type(answer(one)) for one in taken] == [BatchAck] * 3
    engine.close()
    assert engine.submit(body(event("click"))) == Overloaded()


def test_a_store_that_fails_takes_nothing_and_says_that_all_may_be_sent_again():
    db = fresh()
    engine = Engine(FaultyDatabase(db, fail_at=1), ManualClock(T0))
    failed = answer(engine.submit(body(event("click"), event("view", "v"))))
    assert isinstance(failed, NotTaken)
    assert failed.ack is not None
    assert {(i.ackReasonCode, i.retryable, i.ackStatus.value) for i in failed.ack.ackItems} == {
        (Reason.STORE_UNAVAILABLE, True, "rejected")
    }
    assert codes(answer(engine.submit(body(event("click"), event("view", "v"))))) == [
        "f_accepted",
        "f_event_type_unsupported",
    ]
    engine.close()


def test_a_commit_whose_outcome_is_lost_is_not_counted_twice_when_it_is_sent_again():
    counting = FaultyDatabase(fresh())
    engine = Engine(counting, ManualClock(T0))
    answer(engine.submit(body(event("impression"))))
    engine.close()
    for step in range(1, counting.steps + 1):
        db = fresh()
        engine = Engine(FaultyDatabase(db, fail_at=step), ManualClock(T0))
        failed = answer(engine.submit(body(event("impression"))))
        assert isinstance(failed, NotTaken)
        again = answer(engine.submit(body(event("impression"))))
        assert codes(again)[0] in {"f_accepted", "f_dedup_committed_duplicate"}
        billed = [one for one in every_decision(db) if one.decision.billable]
        assert len(billed) == 1
        engine.close()


def test_one_batch_that_cannot_be_written_does_not_take_its_commit_down(engine: Engine):
    original = engine.db.run

    def poisoned(work: Any, **more: Any) -> Any:
        result: Any = original(work, **more)
        if any(isinstance(a, BatchAck) and a.batchId == "poison" for a in result):
            raise ZeroDivisionError("a bug")
        return result

    engine.db.run = poisoned  # type: ignore[method-assign]
    found = [
        engine.submit(body(event("opportunity_created", f"e{n}"), batch=name))
        for n, name in enumerate(("b1", "poison", "b2"))
    ]
    outcomes = []
    for one in found:
        assert isinstance(one, Future)
        outcomes.append(one.exception(30))
    assert [type(outcome) for outcome in outcomes] == [type(None), ZeroDivisionError, type(None)]
    engine.db.run = original  # type: ignore[method-assign]


def test_nobody_waits_for_a_batch_that_is_still_being_read(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    read = threading.Event()
    gate = threading.Lock()

    class Slow:
        """A reader with one answer ready; what follows takes until it is let go."""

        alive = ready = True
        given = 0

        @property
        def has_answer(self) -> bool:
            return self.given == 0 or read.is_set()

        def send(self, body: bytes, received_at: int) -> None: ...

        def receive(self) -> bytes:
            if self.given:
                read.wait(30)
            self.given += 1
            with gate:  # until both wait
                return b""

        def close(self) -> None: ...

    monkeypatch.setattr(engine, "_reader", Slow())
    with gate:
        first, second = (engine.submit(body(event("impression", name), batch=name)) for name in ("b1", "b2"))
    assert codes(answer(first)) == ["f_accepted"]
    assert isinstance(second, Future)
    assert not second.done()
    read.set()
    assert codes(answer(second)) == ["f_billing_conflict_duplicate_impression"]


def test_one_batch_that_cannot_be_read_costs_no_other_its_turn(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    gate = threading.Lock()

    class Silent:
        """A reader that says nothing, so that the writer reads for itself."""

        alive = ready = has_answer = True

        def send(self, body: bytes, received_at: int) -> None: ...

        def receive(self) -> bytes:
            return b""

        def close(self) -> None: ...

    def held(said: bytes, text: bytes, received_at: int) -> Any:
        with gate:
            if b"poison" in text:
                raise ZeroDivisionError("a bug")
            return batch_of(said, text, received_at)

    monkeypatch.setattr(engine, "_reader", Silent())
    monkeypatch.setattr("patra.attribution.writer.batch_of", held)
    with gate:
        found = [
            engine.submit(body(event("opportunity_created", f"e{n}"), batch=name))
            for n, name in enumerate(("b1", "poison", "b2"))
        ]
    assert codes(answer(found[0])) == codes(answer(found[2])) == ["f_accepted"]
    with pytest.raises(StoreUnavailable):
        answer(found[1])
    engine.close()
    assert engine._deciding == []


def test_a_log_that_cannot_be_written_does_not_end_the_writer(monkeypatch: pytest.MonkeyPatch):
    class Closed:
        def warning(self, event: str, **fields: Any) -> None:
            raise ValueError("I/O operation on closed file")

    monkeypatch.setattr("patra.attribution.writer.log", Closed())
    engine = Engine(FaultyDatabase(fresh(), fail_at=1), ManualClock(T0))
    assert isinstance(answer(engine.submit(body(event("click")))), NotTaken)
    assert codes(answer(engine.submit(body(event("click"))))) == ["f_accepted"]
    engine.close()


def test_a_batch_whose_sender_went_away_before_its_turn_is_not_taken(engine: Engine):
    gate = threading.Lock()
    original = engine.db.run
    with gate:
        engine.db.run = lambda work, **more: (gate.acquire(), gate.release(), original(work, **more))[2]  # type: ignore[method-assign]
        engine.submit(body(event("ad_filled"), batch="first"))
        while engine._queue:
            pass
        gone = engine.submit(body(event("impression"), batch="gone"))
        assert isinstance(gone, Future)
        assert gone.cancel()
    engine.db.run = original  # type: ignore[method-assign]
    answer(engine.submit(body(event("interaction"), batch="last")))
    assert {one.decision.subject.event_type for one in every_decision(engine.db)} == {"ad_filled", "interaction"}


def test_received_at_never_goes_back_within_a_process(engine: Engine):
    clock: Any = engine._clock.source
    first = answer(engine.submit(body(event("click"))))
    clock.advance(-10 * SECOND)
    assert answer(engine.submit(body(event("ad_filled")))).receivedAt == first.receivedAt


def test_the_timer_applies_deadlines_as_of_their_instant_behind_the_clock(engine: Engine):
    clock: Any = engine._clock.source
    answer(engine.submit(body(*[event("ad_filled", f"e{n}", renderAttemptId=f"r{n}") for n in range(30)])))
    clock.advance(121 * SECOND)
    assert engine.sweep().applied == 0
    clock.advance(SECOND)
    assert engine.sweep().applied == 30
    assert engine.sweep().applied == 0
    failed = [one.decision for one in every_decision(engine.db) if one.decision.reason == Reason.TIMEOUT]
    assert {decision.at for decision in failed} == {T0 + 120 * SECOND}


def test_the_timer_leaves_deadlines_that_are_younger_than_its_lag(engine: Engine):
    clock: Any = engine._clock.source
    answer(engine.submit(body(event("ad_filled", "one", renderAttemptId="one"))))
    clock.advance(SECOND)
    answer(engine.submit(body(event("ad_filled", "two", renderAttemptId="two"), batch="b2")))
    clock.advance(121 * SECOND)
    assert engine.sweep().applied == 1
    clock.advance(SECOND)
    assert engine.sweep().applied == 1


def test_the_timer_works_in_bounded_bites(database: Database):
    migrate(database, PACKAGES)
    clock = ManualClock(T0)
    engine = Engine(database, clock, limits=Limits(overdue=10))
    for n in range(25):
        answer(engine.submit(body(event("ad_filled", f"e{n}", renderAttemptId=f"r{n}"))))
        clock.advance(1)
    clock.advance(MINUTE * 10)
    assert [engine.sweep().applied for _ in range(4)] == [10, 10, 5, 0]
    # of a turn that could not take all, the log says how far it went, so that a replay goes no further
    ticks = [json.loads(line)["tick"] for line in export_log(database, clock.now()) if b"tick" in line]
    assert ticks == [at(120.000009), at(120.000019), at(120.000024)]
    engine.close()
    assert engine.sweep().applied == 0


class Two:
    """Two processes on one PostgreSQL store and the same clock; the first decides only when the test says so."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock(T0)
        self.databases = [open_database(url) for _ in range(2)]
        migrate(self.databases[0], PACKAGES)
        limits = Limits(writers=1, announce=0)
        self.first, self.second = (Engine(db, self.clock, limits=limits) for db in self.databases)
        self.first._threads = Threads({"none": int})
        self.first._threads.begin()
        answer(self.second.submit(body(event("ad_filled"))))

    def waiting(self, seconds: int, *events: Any) -> "Future[Any]":
        self.clock.set(T0 + seconds * SECOND)
        found = self.first.submit(body(*events, batch="late"))
        assert isinstance(found, Future)
        return found

    def closed_by(self) -> str | None:
        (closure,) = every_closure(self.databases[0])
        return closure.source

    def close(self) -> None:
        for engine, db in zip((self.first, self.second), self.databases, strict=True):
            engine.close()
            db.close()


@pytest.fixture
def two(database_url: str):
    if database_url.startswith("sqlite"):
        pytest.skip("one process writes on SQLite")
    found = Two(database_url)
    yield found
    found.close()


def test_the_timer_of_one_process_does_not_overtake_a_batch_that_waits_in_another(two: Two):
    waiting = two.waiting(119, event("error", "t", errorClass="terminal"))
    two.clock.advance(COMMIT_TIMEOUT)
    two.first.announce()
    assert two.second.sweep().applied == 0
    two.first.run_once()
    assert codes(waiting.result(0)) == ["f_accepted"]
    assert two.closed_by() == "error"


def test_a_batch_that_is_being_decided_counts_as_waiting(two: Two):
    waiting = two.waiting(119, event("error", "t", errorClass="terminal"))
    applied: list[int] = []
    original = two.databases[0].run

    def meanwhile(work: Any, **more: Any) -> Any:
        two.databases[0].run = original  # type: ignore[method-assign]
        two.clock.advance(COMMIT_TIMEOUT)
        two.first.announce()
        applied.append(two.second.sweep().applied)
        return original(work, **more)

    two.databases[0].run = meanwhile  # type: ignore[method-assign]
    two.first.run_once()
    assert codes(waiting.result(0)) == ["f_accepted"]
    assert (applied, two.closed_by()) == ([0], "error")
    two.first.announce()
    two.clock.advance(10 * SECOND)
    assert two.second.sweep().applied == 0


def test_a_process_that_went_silent_holds_timers_up_for_a_while_and_its_batches_are_sent_again(two: Two):
    waiting = two.waiting(119, event("error", "t", errorClass="terminal"))
    two.first.announce()
    two.clock.advance(PROCESS_LOST_AFTER)
    assert two.second.sweep().applied == 0
    two.clock.advance(1)
    assert two.second.sweep().applied == 1
    two.first.run_once()
    refused = waiting.result(0)
    assert isinstance(refused, NotTaken)
    assert refused.ack is not None
    assert [(item.ackReasonCode, item.retryable) for item in refused.ack.ackItems] == [(Reason.STORE_UNAVAILABLE, True)]
    assert two.closed_by() == "system_timeout_synthesized"


def test_a_process_that_ended_holds_no_timer_up(two: Two):
    two.clock.advance(119 * SECOND)
    two.first.announce()
    two.clock.advance(10 * SECOND)
    assert two.second.sweep().applied == 0
    two.first.close()
    assert two.second.sweep().applied == 1


def test_processes_that_take_batches_announce_themselves(database_url: str):
    db = open_database(database_url)
    migrate(db, PACKAGES)
    engine = Engine(db, ManualClock(T0), limits=Limits(announce=0.001))
    answer(engine.submit(body(event("click"))))
    known: list[Any] = [(T0,)] if db.dialect == "postgres" else []
    while db.read(lambda tx: tx.fetch(statement("intakes", "SELECT oldest FROM att_intake"))) != known:
        pass
    engine.close()
    assert db.read(lambda tx: tx.fetch(statement("intakes", "SELECT oldest FROM att_intake"))) == []
    db.close()


def storm(seed: int) -> list[bytes]:
    """The same events in other batches and another order for every client."""
    dice = random.Random(seed)
    names = ["ad_filled", "impression", "click", "interaction", "postback", "error"]
    events = [
        event(
            name,
            f"{name}-{n}",
            idempotencyKey=f"{name}-{n}",
            renderAttemptId=f"r{n}",
            eventAt=at(0),
            errorClass="terminal",
        )
        for n in range(25)
        for name in names
    ]
    dice.shuffle(events)
    return [body(*events[i : i + 20], batch=f"c{seed}-{i}") for i in range(0, len(events), 20)]


@pytest.mark.parametrize("writers", [4])
def test_several_writers_on_one_store_accept_every_key_once_and_bill_every_closure_once(
    database_url: str, writers: int
):
    setup = open_database(database_url)
    migrate(setup, PACKAGES)
    databases = [open_database(database_url) for _ in range(writers)]
    engines = [Engine(db, ManualClock(T0), limits=Limits(waiting=1000)) for db in databases]
    accepted: Counter[str] = Counter()
    failures: list[Any] = []
    lock = threading.Lock()

    def client(seed: int) -> None:
        for n, batch in enumerate(storm(seed)):
            ack = answer(engines[(seed + n) % writers].submit(batch, T0))
            with lock:
                if not isinstance(ack, BatchAck):
                    failures.append(ack)
                    continue
                accepted.update(
                    i.serverEventKey
                    for i in ack.ackItems
                    if i.ackReasonCode not in {Reason.DEDUP_COMMITTED, Reason.DEDUP_INFLIGHT}
                )

    clients = [threading.Thread(target=client, args=(seed,)) for seed in range(8)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    for one in engines:
        one.close()
    assert failures == []
    assert set(accepted.values()) == {1}
    assert len(accepted) == 150
    decisions = list(every_decision(setup))
    billed = Counter(
        one.decision.subject.closure for one in decisions if one.decision.billable == "billable_impression"
    )
    closures = {closure.closure: closure.state.value for closure in every_closure(setup)}
    assert len(closures) == 25
    assert set(billed) == {key for key, state in closures.items() if state == "closed_success"}
    assert set(billed.values()) <= {1}
    for db in [*databases, setup]:
        db.close()


def test_a_key_that_another_process_takes_between_looking_and_writing_is_a_duplicate(two: Two):
    """Without a closure nothing but the key itself keeps two processes apart."""
    batch = read_batch(body(event("opportunity_created", idempotencyKey="k")), T0)
    said: list[Any] = []

    class Overtaken(Keys):
        def load(self, tx: Tx, keys: Collection[bytes]) -> Ledger:
            found = super().load(tx, keys)
            if not said:
                said.extend(commit(two.databases[1], [batch]))
            return found

    said.extend(commit(two.databases[0], [batch], keys=Overtaken()))
    assert [codes(one) for one in said] == [["f_accepted"], ["f_dedup_committed_duplicate"]]


def test_however_many_writers_there_are_each_key_counts_once(database: Database):
    migrate(database, PACKAGES)
    engine = Engine(database, ManualClock(T0), limits=Limits(group=2, writers=1 if database.dialect == "sqlite" else 3))
    sent = [body(event("impression", "i"), event("click", f"c{n}"), batch="b") for n in range(30)]
    answers = [answer(one) for one in [engine.submit(one) for one in sent]]
    engine.close()
    told = [codes(one) for one in answers if isinstance(one, BatchAck)]
    assert (
        sorted(told)
        == [["f_accepted", "f_accepted"]] + [["f_dedup_committed_duplicate", "f_billing_conflict_duplicate_click"]] * 29
    )
    billed = sorted(one.decision.billable or "" for one in every_decision(database) if one.decision.billable)
    assert billed == ["billable_click", "billable_impression"]


def test_a_commit_that_stands_still_keeps_the_second_writer_from_nothing(database: Database):
    if database.dialect == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    migrate(database, PACKAGES)
    inside, go_on = threading.Event(), threading.Event()

    def hand(tx: Tx, decisions: Any, superseded: Any) -> None:
        if not inside.is_set():
            inside.set()
            assert go_on.wait(60)

    engine = Engine(database, ManualClock(T0), limits=Limits(announce=0), hand=hand)
    stuck = engine.submit(body(event("interaction", "i1"), batch="b1"))
    assert inside.wait(30)
    try:
        single = answer(engine.submit(body(event("opportunity_created", "o1"), batch="b2")))
    finally:
        go_on.set()
    assert (codes(single), codes(answer(stuck))) == (["f_accepted"], ["f_accepted"])
    engine.close()


def test_a_process_that_stands_still_in_a_commit_is_fenced_and_its_batch_is_taken_by_another(two: Two):
    sent = body(event("impression", "i1"), batch="b1")
    taken: list[Any] = []

    def hand(tx: Tx, decisions: Any, superseded: Any) -> None:
        if not taken:  # the client sends it again, elsewhere, while this one holds all of its locks
            taken.append(answer(two.second.submit(sent)))

    stopped = Engine(two.databases[0], two.clock, limits=Limits(writers=1, announce=0), hand=hand)
    assert stopped._bound == (PROCESS_LOST_AFTER - COMMIT_TIMEOUT) / SECOND
    stopped._bound = 0.3
    assert isinstance(answer(stopped.submit(sent)), NotTaken)
    assert codes(taken[0]) == ["f_accepted"]
    assert codes(answer(stopped.submit(sent))) == ["f_dedup_committed_duplicate"]
    stopped.close()


def test_one_wild_reading_of_the_clock_turns_batches_away_and_leaves_no_trace(database: Database):
    """F27: it used to make every good event stale, not retryable, until the process was started again."""
    migrate(database, PACKAGES)
    clock = ManualClock(T0)
    engine = Engine(database, clock, limits=Limits(writers=1, announce=0))
    answer(engine.submit(body(event("ad_filled", "f1"))))
    clock.jump(20 * DAY)
    turned_away = engine.submit(body(event("impression", "i1")))
    assert isinstance(turned_away, Overloaded)
    assert turned_away.retry_after == 30
    assert "clock" in turned_away.why
    assert engine.sweep().applied == 0  # no deadline passes by such an instant
    clock.advance(SECOND)
    clock.jump(-20 * DAY)
    ack = answer(engine.submit(body(event("impression", "i1"))))
    assert (codes(ack), ack.receivedAt) == (["f_accepted"], at(1))
    engine.close()


def test_a_clock_that_was_ahead_for_long_and_is_set_right_does_not_hold_the_intake_in_the_future(database: Database):
    migrate(database, PACKAGES)
    clock = ManualClock(T0)
    engine = Engine(database, clock, limits=Limits(writers=1, announce=0))
    clock.jump(20 * DAY)
    assert isinstance(engine.submit(body(event("impression", "i1"))), Overloaded)
    clock.advance(31 * SECOND)
    assert codes(answer(engine.submit(body(event("impression", "i1"))))) == ["f_event_stale_outside_dedup_window"]
    clock.jump(-20 * DAY)
    answer(engine.submit(body(event("postback"))))
    clock.advance(31 * SECOND)
    assert codes(answer(engine.submit(body(event("impression", "i1"), batch="b2")))) == ["f_accepted"]
    engine.close()


def test_a_warm_process_has_the_recent_keys_before_its_first_batch():
    db = open_database("sqlite:///:memory:")
    migrate(db, PACKAGES)
    first = Engine(db, ManualClock(T0))
    answer(first.submit(body(event("impression"))))
    first.close()
    restarted = Engine(db, ManualClock(T0))
    assert restarted.keys.count == 0
    restarted.warm()
    assert restarted.keys.count == first.keys.count == 1
    db.close()
