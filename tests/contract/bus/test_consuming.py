"""Consuming on every store and transport: C§3, order per key, retries, isolation of groups, pause."""

import contextlib

import pytest

from patra.bus import operations
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.consumer import Poison
from patra.bus.consuming.delivery_order import QUIET_STEPS, Reach
from patra.bus.consuming.retry_or_dead_letter import MAX_LOST_WORKERS
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.publishing.envelope import Refused
from patra.bus.store import deliveries, events, groups
from patra.kernel.clock import SECOND
from patra.kernel.db.queries import statement
from patra.kernel.errors import ConfigInvalid, StoreBusy, StoreUnavailable
from tests.unit.bus.making import envelope

COUNT = statement("count", "SELECT count(*) FROM once")


def ordered(key, n):
    return envelope("ordered.happened", {"key": key, "n": n})


def test_c3_an_event_that_comes_again_has_no_second_effect(site):
    site.listen("one")
    made = envelope()
    site.publish(made)
    site.pump()
    again = site.db.read(lambda tx: events.by_id(tx, made.event_id))[0].seq
    group = site.db.read(lambda tx: groups.find(tx, "one"))
    site.db.run(lambda tx: events.deliver(tx, [(group.group_id, again, None)], site.clock.now()))
    assert site.pump()["duplicates"] == 1
    assert len(site.effects("one")) == 1


@pytest.mark.parametrize("batch", [False, True])
def test_c3_a_failure_leaves_nothing_of_itself_and_harms_nobody_else(site, batch):
    site.listen("one", batch=batch)
    site.fail = {"bad"}
    site.publish(*[envelope(payload={"key": key}) for key in ("a", "bad", "b")])
    counts = site.pump()
    assert (counts["handled"], counts["later"]) == (2, 1)
    assert sorted(key for _, key, _ in site.effects("one")) == ["a", "b"]
    assert site.step("one").busy is False


@pytest.mark.parametrize("swallows", [False, True])
def test_a_failure_that_shows_late_is_laid_at_the_door_of_its_own_event(site, swallows):
    """What a handler inserts is sent later and together: the error comes up in another's statement, or after all."""
    site.db.run(lambda tx: tx.script("CREATE TABLE once (key TEXT PRIMARY KEY)"))
    site.db.run(lambda tx: tx.insert("once", [{"key": "bad"}]))

    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        tx.insert("once", [{"key": event.payload["key"]}])
        if event.payload["key"] == "asks":
            try:
                tx.fetch(COUNT)
            except Exception:
                if not swallows:
                    raise

    site.join()
    made = [envelope(payload={"key": key}) for key in ("a", "bad", "asks", "b")]
    site.publish(*made)
    counts = site.pump()
    assert (counts["handled"], counts["later"]) == (3, 1)
    assert site.db.read(lambda tx: tx.fetch(COUNT)) == [(4,)]
    waiting = site.db.read(lambda tx: deliveries.of_event(tx, made[1].event_id))
    assert [(w["attempts"], w["error_code"]) for w in waiting] == [(1, "store_integrity")]


def test_b5_a_failed_event_comes_back_later_each_time_and_succeeds_once(site):
    site.listen("one")
    site.fail = {"bad"}
    made = envelope(payload={"key": "bad"})
    site.publish(made)
    assert site.pump()["later"] == 1
    site.clock.advance(SECOND)
    assert site.pump()["later"] == 1
    site.clock.advance(SECOND)
    assert site.pump() == {}  # the second wait is longer
    site.clock.advance(SECOND)
    site.fail = set()
    assert site.pump()["handled"] == 1
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]
    assert site.tries.count(("one", made.event_id)) >= 3


def test_a_poisonous_event_becomes_a_dead_letter_at_once_and_under_its_own_code(site):
    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        raise Poison("film_unreadable", "no frames")

    site.join()
    site.publish(envelope())
    assert site.pump()["dead"] == 1
    (letter,) = site.db.read(lambda tx: operations.find_letters(tx, operations.Filter(), limit=5))
    assert (letter.error_code, letter.error_detail, letter.reason, letter.attempts) == (
        "film_unreadable",
        "no frames",
        Reason.HANDLER_POISON,
        1,
    )


def test_events_of_a_key_are_handled_in_order(site):
    site.listen("one", "ordered.happened")
    for n in range(4):
        site.publish(*[ordered(key, n) for key in ("a", "b", "c")])
    site.pump(batch=2)
    for key in ("a", "b", "c"):
        assert [n for _, k, n in site.effects("one") if k == key] == [0, 1, 2, 3]


@pytest.mark.parametrize("batch", [False, True])
def test_a_failing_key_holds_back_its_followers_and_only_those(site, batch):
    site.listen("one", "ordered.happened", batch=batch)
    site.fail = {"bad"}
    site.publish(ordered("bad", 0), ordered("good", 0), ordered("bad", 1), ordered("good", 1))
    site.publish(ordered("bad", 2))
    site.pump()
    assert [(k, n) for _, k, n in site.effects("one")] == [("good", 0), ("good", 1)]
    site.publish(ordered("bad", 3), ordered("good", 2))
    site.pump()
    site.fail = set()
    for _ in range(5):
        site.clock.advance(2 * SECOND)
        site.pump()
    assert [n for _, k, n in site.effects("one") if k == "bad"] == [0, 1, 2, 3]
    assert [n for _, k, n in site.effects("one") if k == "good"] == [0, 1, 2]


def test_a_key_goes_on_when_its_event_became_a_dead_letter(site):
    site.listen("one", "ordered.happened")
    site.fail = {"bad"}
    site.publish(ordered("bad", 0))
    for _ in range(3):
        site.pump()
        site.clock.advance(10 * SECOND)
    site.fail = set()
    site.publish(ordered("bad", 1))
    site.pump()
    assert [n for _, _, n in site.effects("one")] == [1]


def test_a_type_may_ask_that_its_dead_letter_blocks_the_key_until_it_is_dealt_with(site):
    site.listen("one", "blocking.happened")
    site.fail = {"bad"}
    first = envelope("blocking.happened", {"key": "bad", "n": 0})
    site.publish(
        first, envelope("blocking.happened", {"key": "bad", "n": 1}), envelope("blocking.happened", {"key": "good"})
    )
    assert site.pump()["dead"] == 1
    site.fail = set()
    site.clock.advance(60 * SECOND)
    site.pump()
    assert [k for _, k, _ in site.effects("one")] == ["good"]
    site.run(operations.discard, "one", [first.event_id], by="ann", reason="test")
    site.pump()
    assert [(k, n) for _, k, n in site.effects("one")] == [("good", 0), ("bad", 1)]


def test_a_blocking_dead_letter_that_is_replayed_comes_before_its_followers(site):
    site.listen("one", "blocking.happened")
    site.fail = {"bad"}
    first = envelope("blocking.happened", {"key": "bad", "n": 0})
    site.publish(first, envelope("blocking.happened", {"key": "bad", "n": 1}))
    site.pump()
    (total,) = site.db.read(groups.totals)
    assert (total.waiting, total.failing, total.dead) == (2, 0, 1)  # nobody tries the dead one any more
    site.fail = set()
    site.run(operations.replay, "one", [first.event_id], by="ann", confirm="one")
    site.clock.advance(SECOND)
    site.pump()
    site.clock.advance(SECOND)
    site.pump()
    assert [n for _, _, n in site.effects("one")] == [0, 1]


def test_a_group_that_is_dead_or_fails_does_not_hold_back_another(site):
    site.listen("broken")
    site.listen("silent")
    site.listen("well")
    site.publish(*[envelope(payload={"key": str(n)}) for n in range(5)])
    site.fail = {str(n) for n in range(5)}
    site.pump("broken")
    site.fail = set()
    assert site.pump("well")["handled"] == 5
    totals = {g.name: g for g in site.db.read(groups.totals)}
    assert (totals["silent"].waiting, totals["broken"].failing, totals["well"].waiting) == (5, 5, 0)
    assert totals["silent"].oldest == site.clock.now()


def test_a_paused_group_gets_nothing_until_it_is_resumed(site):
    site.listen("one")
    assert site.run(operations.pause, "one", by="ann") is True
    site.publish(envelope())
    assert site.pump() == {}
    assert site.run(operations.resume, "one", by="ann") is True
    assert site.pump()["handled"] == 1
    acts = site.db.read(lambda tx: groups.acts(tx, subject="one"))
    assert [(a.done_by, a.act) for a in acts] == [("ann", "resume"), ("ann", "pause")]
    assert isinstance(site.run(operations.pause, "nobody", by="ann"), Refused)


def test_trouble_of_the_store_is_not_the_events_fault(site):
    calls = []

    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        calls.append(event)
        if len(calls) == 1:
            raise StoreBusy("store_busy", "a deadlock")

    site.join()
    site.publish(envelope())
    assert site.pump()["handled"] == 1  # the transaction was run again
    assert len(calls) == 2
    assert [c.attempt for c in calls] == [1, 1]


def test_an_event_that_no_handler_of_this_process_takes_waits_for_another(site, make_site):
    site.listen("one", "dual.happened", ">=1,<2")
    other = make_site()
    other.listen("one", "dual.happened", ">=2")
    one = envelope("dual.happened", {"key": "k", "n": 1})
    site.publish(
        one,
        envelope(
            "dual.happened",
            {"key": "k", "number": 2},
            event_version="2.0",
            event_id=one.event_id,
            idempotency_key=one.idempotency_key,
        ),
    )
    site.transport()
    assert site.step("one").put_off == 1
    other.clock.advance(10 * SECOND)
    assert other.pump("one")["handled"] == 1
    assert [n for _, _, n in other.effects("one")] == [2]


def test_a_subscriber_cannot_change_the_publishers_contract(site):
    for event_type, versions, code in (
        ("no.such_type", ">=1", Reason.TYPE_UNKNOWN),
        ("thing.happened", ">=7", Reason.VERSION_UNKNOWN),
        ("thing.happened", "newest", Reason.VERSION_UNKNOWN),
    ):
        with pytest.raises(ConfigInvalid) as refused:
            site.bus.consumer(event_type, group="one", versions=versions)(lambda tx, event: None)
        assert refused.value.code == code
    site.bus.consumer("thing.happened", group="one")(lambda tx, event: None)
    with pytest.raises(ConfigInvalid, match="same version"):
        site.bus.consumer("thing.happened", group="one", versions="==1.0")(lambda tx, event: None)
    with pytest.raises(ConfigInvalid, match="group"):
        site.bus.consumer("thing.happened", group="Big Group")(lambda tx, event: None)
    with pytest.raises(ConfigInvalid, match="concurrency"):
        site.bus.consumer("ordered.happened", group="one", concurrency=2)(lambda tx, event: None)


def test_joining_again_adds_nothing_and_unsubscribing_stops_new_events(site):
    site.listen("one")
    site.join()
    assert len(site.db.read(groups.subscriptions)) == 1
    assert site.run(operations.unsubscribe, "one", "thing.happened", by="ann") is True
    site.publish(envelope())
    assert site.pump() == {}


def test_a_group_is_forgotten_only_by_name(site):
    site.listen("one")
    site.publish(envelope())
    site.transport()
    assert site.run(operations.forget, "one", by="ann", confirm="two").code is Reason.REPLAY_UNCONFIRMED
    assert site.run(operations.forget, "one", by="ann", confirm="one") == 1
    assert site.db.read(groups.totals) == []


def test_a_process_whose_group_was_forgotten_says_so_and_goes_on_when_it_joins_again(site):
    site.listen("one")
    dispatcher = Dispatcher(site.db, site.bus, "one", slow_start=False)
    site.publish(envelope())
    site.transport()
    assert dispatcher.run_once().handled == 1
    site.run(operations.forget, "one", by="ann", confirm="one")
    for look in (dispatcher.run_once, dispatcher.next_due):
        with pytest.raises(groups.GroupGone, match="forgotten"):
            look()
    site.join()  # as another process would
    site.publish(envelope())
    site.transport()
    assert dispatcher.next_due() is not None
    assert dispatcher.run_once().handled == 1


def test_two_workers_of_a_group_share_its_line(site, make_site):
    site.listen("one", "ordered.happened")
    site.publish(*[ordered(str(n % 3), n) for n in range(30)])
    site.transport()
    other = make_site()
    other.listen("one", "ordered.happened")
    while site.step("one", batch=4).busy or other.step("one", batch=4).busy:
        pass
    assert len(site.effects("one")) == 30
    for key in "012":
        assert [n for _, k, n in site.effects("one") if k == key] == [n for n in range(30) if str(n % 3) == key]


def test_the_inbox_remembers_for_its_window(site):
    site.listen("one")
    made = envelope()
    site.publish(made)
    site.pump()
    waiting = deliveries.Waiting
    (row,) = site.db.read(lambda tx: events.by_id(tx, made.event_id))
    again = waiting(
        seq=row.seq,
        order_key=None,
        attempts=0,
        due_at=0,
        replay=False,
        first_failed_at=None,
        event_type=made.event_type,
        version=made.version,
        event_id=made.event_id,
        published_at=0,
        body=row.body,
    )
    assert site.db.run(lambda tx: deliveries.accept(tx, "one", [again], site.clock.now())) == set()
    assert site.db.run(lambda tx: deliveries.accept(tx, "two", [again], site.clock.now())) == {row.seq}


class Killed(BaseException):
    """As a crash would: the process never comes back from where it is."""


class Mortal:
    """A store whose process is killed before its n-th transaction."""

    def __init__(self, db, before: int) -> None:
        self.dialect, self.url = db.dialect, db.url
        self.read = db.read
        self._db, self._left = db, before

    def run(self, work):
        self._left -= 1
        if not self._left:
            raise Killed
        return self._db.run(work)


def lives_until_empty(site, most=30):
    """One process after the other, each until it is killed or has nothing to do; gives how many it took."""
    for life in range(1, most + 1):
        dispatcher = Dispatcher(site.db, site.bus, "one", jitter=lambda: 0.5)
        with contextlib.suppress(Killed):
            while dispatcher.run_once().busy:
                pass
        if not site.db.read(groups.totals)[0].waiting:
            return life
        site.clock.advance(60 * SECOND)
    raise AssertionError(f"still not empty after {most} lives")


def deadly_site(site, event_type, deadly):
    @site.bus.consumer(event_type, group="one")
    def _(tx, event):
        if event.payload["key"] == deadly:
            raise Killed
        site.handle(tx, "one", event)

    site.join()


def letters_of(site):
    return site.db.read(lambda tx: operations.find_letters(tx, operations.Filter(), limit=9))


def test_an_event_that_kills_every_process_ends_as_a_dead_letter(site):
    deadly_site(site, "thing.happened", "deadly")
    keys = [*(f"k{n}" for n in range(40)), "deadly", *(f"l{n}" for n in range(40))]
    site.publish(*[envelope(payload={"key": key}) for key in keys])
    site.transport()
    lives_until_empty(site)
    assert sorted(k for _, k, _ in site.effects("one")) == sorted(set(keys) - {"deadly"})
    (letter,) = letters_of(site)
    assert (letter.error_code, letter.reason) == (Reason.HANDLER_LOST, Reason.HANDLER_LOST)
    assert letter.attempts == MAX_LOST_WORKERS


def test_an_event_that_was_lost_once_never_takes_others_with_it_again(site):
    deadly_site(site, "thing.happened", "deadly")
    site.publish(envelope(payload={"key": "deadly"}))
    site.transport()
    with contextlib.suppress(Killed):
        Dispatcher(site.db, site.bus, "one", jitter=lambda: 0.5).run_once()
    site.publish(*[envelope(payload={"key": f"k{n}"}) for n in range(9)])
    site.transport()
    site.clock.advance(60 * SECOND)  # the killer is due, and older than the others
    step = site.step("one")
    assert (step.handled, step.suspect) == (9, 1)
    assert len(site.effects("one")) == 9


def test_followers_of_a_lost_event_wait_and_come_in_order(site):
    deadly_site(site, "ordered.happened", "deadly")
    site.publish(ordered("deadly", 0), ordered("deadly", 1), *[ordered("a", n) for n in range(3)])
    site.transport()
    lives_until_empty(site)
    assert [n for _, k, n in site.effects("one") if k == "a"] == [0, 1, 2]
    assert [site.db.read(groups.totals)[0].waiting, len(letters_of(site))] == [0, 2]


def test_processes_that_start_at_once_do_not_blame_one_event_together(site):
    """Each writes its loss ahead of another event; all are killed before they tried it, and nothing is given up."""
    site.listen("one")
    made = [envelope() for _ in range(12)]
    site.publish(*made)
    site.transport()
    for _ in range(12):
        with pytest.raises(Killed):
            Dispatcher(Mortal(site.db, 2), site.bus, "one", jitter=lambda: 0.5).run_once()
    site.clock.advance(60 * SECOND)
    assert lives_until_empty(site) == 1
    assert letters_of(site) == []
    assert sorted(e for e, _, _ in site.effects("one")) == sorted(e.event_id for e in made)


def test_processes_that_are_killed_outside_a_trial_blame_nobody(site):
    """Deploy after deploy: whatever transaction they are killed before, an innocent head of the line is handled."""
    site.listen("one")
    made = [envelope() for _ in range(40)]
    site.publish(*made)
    site.transport()
    for life in range(30):
        dispatcher = Dispatcher(Mortal(site.db, 3 + life % 3), site.bus, "one", jitter=lambda: 0.5)
        with contextlib.suppress(Killed):
            while dispatcher.run_once().busy:
                pass
    assert site.db.read(groups.totals)[0].waiting == 0
    assert letters_of(site) == []
    assert len(site.effects("one")) == 40


def test_a_trial_that_ends_takes_back_what_was_written_ahead(site):
    site.listen("one")
    site.fail = {"bad"}
    made = envelope(payload={"key": "bad"})
    site.publish(made)
    site.transport()
    assert Dispatcher(site.db, site.bus, "one", jitter=lambda: 0.5).run_once().later == 1
    (row,) = site.db.read(lambda tx: deliveries.of_event(tx, made.event_id))
    assert (row["attempts"], row["lost"], row["error_code"]) == (1, 0, Reason.HANDLER_FAILED)


def test_a_trial_that_the_store_interrupts_is_taken_up_again_and_counted_once(site):
    attempts = []

    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        attempts.append(event.attempt)
        if len(attempts) <= MAX_LOST_WORKERS + 3:
            raise StoreUnavailable("store_unavailable", "away")
        site.handle(tx, "one", event)

    site.join()
    site.publish(envelope())
    site.transport()
    dispatcher = Dispatcher(site.db, site.bus, "one", jitter=lambda: 0.5)
    for _ in range(MAX_LOST_WORKERS + 3):
        with pytest.raises(StoreUnavailable):
            dispatcher.run_once()
        site.clock.advance(60 * SECOND)
    assert dispatcher.run_once().handled == 1
    assert set(attempts) == {1}
    assert (len(site.effects("one")), letters_of(site)) == (1, [])


def test_no_more_handlers_at_once_than_the_group_allows(site, make_site):
    if site.db.dialect == "sqlite":
        pytest.skip("one writer at a time anyway")
    site.listen("one", concurrency=1)
    other = make_site()
    other.clock.set(site.clock.now())
    other.listen("one", concurrency=1)
    site.publish(envelope(), envelope())
    site.transport()
    group_id = site.db.read(lambda tx: groups.find(tx, "one")).group_id

    def while_one_works(tx):
        assert deliveries.slot(tx, group_id, 0)
        return other.step("one")

    assert not site.db.run(while_one_works).busy
    assert other.step("one").handled == 2


def test_a_suspect_is_tried_while_nobody_else_of_the_process_is_at_work(site, monkeypatch):
    """So that another group's crash is not laid at its door: five losses in company are nobody's guilt."""
    company = []

    class Door:
        def shared(self):
            company.append("together")
            return contextlib.nullcontext()

        def exclusive(self):
            company.append("alone")
            return contextlib.nullcontext()

    monkeypatch.setattr("patra.bus.dispatch.dispatcher._STEP_LOCK", Door())
    site.listen("one")
    site.publish(envelope())
    site.transport()
    with pytest.raises(Killed):
        Dispatcher(Mortal(site.db, 2), site.bus, "one", jitter=lambda: 0.5).run_once()
    site.clock.advance(60 * SECOND)
    company.clear()
    dispatcher = Dispatcher(site.db, site.bus, "one", jitter=lambda: 0.5)
    assert dispatcher.run_once().suspect == 1  # found in company, and left alone there
    assert (dispatcher.run_once().handled, company) == (1, ["together", "alone"])


def test_a_key_whose_earlier_event_came_late_to_the_line_does_not_stand_in_its_own_way(site):
    """A replay, or a copy that a transport brings again, has an early place in its key and a late one in the line."""
    site.listen("one", "ordered.happened")
    made = [ordered("a", n) for n in range(30)]
    site.publish(*made)
    site.transport()
    group_id = site.db.read(lambda tx: groups.find(tx, "one")).group_id
    first = min(w.seq for w in site.db.run(lambda tx: deliveries.due(tx, group_id, site.clock.now(), 30)))
    site.db.run(lambda tx: deliveries.put_off(tx, group_id, {first: site.clock.now() + SECOND}))
    site.clock.advance(2 * SECOND)
    steps = [site.step("one", batch=10) for _ in range(4)]
    assert [s.handled for s in steps] == [0, 10, 10, 10]  # the first calls the early one up
    assert [n for _, _, n in site.effects("one")] == list(range(30))


def test_workers_take_keys_that_are_in_nobodys_hands_and_put_nothing_off(site, make_site):
    if site.db.dialect == "sqlite":
        pytest.skip("one writer at a time anyway")
    site.listen("one", "ordered.happened")
    other = make_site()
    other.clock.set(site.clock.now())
    other.listen("one", "ordered.happened")
    site.publish(*[ordered(f"k{n % 40}", n // 40) for n in range(200)])
    site.transport()
    group_id = site.db.read(lambda tx: groups.find(tx, "one")).group_id

    def while_one_works(tx):
        mine, _ = deliveries.due_by_key(tx, group_id, site.clock.now(), 60, Reach(0, 16))
        step = other.step("one")
        return mine, step

    mine, step = site.db.run(while_one_works)
    assert mine
    assert step.put_off == 0
    assert step.handled == 200 - 5 * len({w.order_key for w in mine})
    assert other.pump("one")["put_off"] == 0
    assert len(other.effects("one")) == 200


def test_a_worker_looks_past_events_whose_key_is_in_other_hands(site, make_site):
    if site.db.dialect == "sqlite":
        pytest.skip("one writer at a time anyway")
    site.listen("one", "ordered.happened")
    other = make_site()
    other.clock.set(site.clock.now())
    other.listen("one", "ordered.happened")
    site.publish(*[ordered("first", n) for n in range(30)], *[ordered(f"k{n}", 0) for n in range(30)])
    site.transport()
    group_id = site.db.read(lambda tx: groups.find(tx, "one")).group_id

    def while_one_works(tx):
        mine, _ = deliveries.due_by_key(tx, group_id, site.clock.now(), 10, Reach(), far=False)
        worker = Dispatcher(other.db, other.bus, "one", batch=10, slow_start=False)
        worker._reach = Reach(quiet=QUIET_STEPS)  # it takes itself to be alone
        return mine, worker.run_once()

    mine, step = site.db.run(while_one_works)
    assert len({w.order_key for w in mine}) == 1
    assert step.handled == 10
    site.pump("one")
    assert len(site.effects("one")) == 60
