"""Long handlers: leases with heartbeats instead of time-outs; late results are fenced off."""

import threading

import pytest

from patra.bus import operations, timeline
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.consumer import Poison
from patra.bus.consuming.dead_letter import Filter
from patra.bus.consuming.retry_or_dead_letter import MAX_LOST_WORKERS
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.store import dead_letters, groups
from patra.kernel.clock import SECOND
from tests.contract.bus.site import EFFECT
from tests.unit.bus.making import envelope

SECONDS = 20.0  # the longest a test waits for a thread


class Work:
    """A long handler that waits until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.began = threading.Semaphore(0)
        self.holds = []
        self.error = None

    def __call__(self, event, hold):
        self.holds.append(hold)
        self.began.release()
        assert self.go.wait(SECONDS)
        if self.error is not None:
            raise self.error
        return lambda tx: tx.execute(EFFECT, rows=[("one", event.event_id, event.payload["key"], event.attempt)])


@pytest.fixture
def long_site(site):
    """A site whose group has a long handler, and the workers it makes."""
    made = []

    def build(target=site, event_type="thing.happened", **more):
        work = Work()
        target.bus.long_consumer(event_type, group="one", lease=60 * SECOND, **more)(work)
        target.join()
        worker = LongWorker(target.db, target.bus, "one", jitter=lambda: 0.5)
        made.append((work, worker))
        return work, worker

    yield build
    for work, worker in made:
        work.go.set()
        worker.close()


def feed(site, *envelopes):
    site.publish(*envelopes)
    site.transport()
    return site.step("one")


def drain(worker):
    sums = {}
    while True:
        counts = worker.run_once(SECONDS)
        for name in counts.__struct_fields__:
            sums[name] = sums.get(name, 0) + getattr(counts, name)
        if not worker.in_hand and not counts.started:
            return sums


def test_a_long_handler_runs_outside_a_transaction_and_its_result_is_written_once(site, long_site):
    work, worker = long_site()
    made = envelope()
    assert feed(site, made).started == 1
    assert worker.run_once().started == 1
    assert work.began.acquire(timeout=SECONDS)
    site.publish(envelope("ordered.happened"))  # the store is free meanwhile
    assert site.effects("one") == []
    work.go.set()
    assert drain(worker)["handled"] == 1
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]
    assert site.db.read(groups.totals)[0].waiting == 0


def test_a_handler_that_outlives_its_lease_is_renewed_and_runs_once(site, long_site):
    work, worker = long_site()
    feed(site, envelope())
    worker.run_once()
    assert work.began.acquire(timeout=SECONDS)
    for _ in range(10):
        site.clock.advance(30 * SECOND)
        assert worker.run_once().started == 0
    assert not work.holds[0].lost
    work.go.set()
    assert drain(worker)["handled"] == 1
    assert len(work.holds) == 1


def test_the_work_of_a_dead_worker_comes_back_and_its_late_result_is_fenced_off(site, long_site, make_site):
    work, worker = long_site()
    other = make_site()
    other.clock.set(site.clock.now())
    other_work, other_worker = long_site(other)
    feed(site, envelope())
    worker.run_once()
    assert work.began.acquire(timeout=SECONDS)
    assert other_worker.run_once().started == 0  # it is held
    other.clock.advance(61 * SECOND)
    site.clock.advance(61 * SECOND)
    assert other_worker.run_once().started == 1
    other_work.go.set()
    assert drain(other_worker)["handled"] == 1
    work.go.set()
    assert drain(worker) == {"started": 0, "handled": 0, "later": 0, "dead": 0, "fenced": 1}
    assert [n for _, _, n in site.effects("one")] == [2]  # the second attempt


def test_a_worker_that_lost_its_lease_is_told(site, long_site, make_site):
    work, worker = long_site()
    other = make_site()
    _, other_worker = long_site(other)
    feed(site, envelope())
    worker.run_once()
    assert work.began.acquire(timeout=SECONDS)
    for one in (site, other):
        one.clock.set(site.clock.now() + 61 * SECOND)
    other_worker.run_once()
    worker.run_once()
    assert work.holds[0].lost


def test_an_event_that_loses_every_worker_ends_as_a_dead_letter_not_in_a_circle(site, long_site):
    _work, worker = long_site()
    feed(site, envelope())
    began = site.clock.now()
    for _ in range(MAX_LOST_WORKERS):
        assert worker.run_once().started == 1
        killed(worker, site)
    assert worker.run_once().dead == 1
    (found,) = site.db.read(lambda tx: dead_letters.find(tx, Filter(), limit=5))
    assert (found.letter.error_code, found.letter.attempts) == (Reason.HANDLER_LOST, MAX_LOST_WORKERS)
    first, last = found.letter.first_failed_at, found.letter.last_failed_at  # C§6: when each loss was found
    assert (first - began, last - began) == (61 * SECOND, MAX_LOST_WORKERS * 61 * SECOND)


def killed(worker, site):
    """As if the process had died: nothing is given back, the leases run out."""
    worker._hands.clear()
    site.clock.advance(61 * SECOND)


def test_a_worker_that_is_killed_costs_its_event_no_retry(site, long_site):
    work, worker = long_site(concurrency=6)
    feed(site, envelope())
    for _ in range(MAX_LOST_WORKERS - 1):  # more than the type has retries
        assert worker.run_once().started == 1
        killed(worker, site)
    work.error = ValueError("a first failure")
    work.go.set()
    assert drain(worker)["later"] == 1
    site.clock.advance(60 * SECOND)
    work.error = None
    assert site.step("one").started == 1
    assert drain(worker)["handled"] == 1
    assert len(site.effects("one")) == 1


def test_an_event_that_was_lost_twice_is_worked_on_without_company(site, long_site):
    work, worker = long_site(concurrency=2)
    feed(site, envelope(), envelope(), envelope())
    for _ in range(2):
        assert worker.run_once().started == 2  # the same two, in company
        killed(worker, site)
    assert [worker.run_once().started, worker.run_once().started] == [1, 0]  # one of them, alone
    work.go.set()
    assert drain(worker)["handled"] == 3
    assert site.db.read(lambda tx: dead_letters.find(tx, Filter(), limit=5)) == []
    assert sorted(n for _, _, n in site.effects("one")) == [1, 3, 3]


def test_a_neighbour_of_an_event_that_kills_its_worker_is_done_in_the_end(site, long_site):
    work, worker = long_site(concurrency=3)
    deadly, *others = [envelope() for _ in range(3)]
    feed(site, deadly, *others)
    work.go.set()
    for _ in range(12):
        worker.run_once()
        if any(hand.waiting.event_id == deadly.event_id for hand in worker._hands.values()):
            killed(worker, site)
        else:
            drain_once(worker)
    assert sorted(e for e, _, _ in site.effects("one")) == sorted(e.event_id for e in others)
    (found,) = site.db.read(lambda tx: dead_letters.find(tx, Filter(), limit=5))
    assert found.letter.event_id == deadly.event_id


def drain_once(worker):
    """Write finished results; begin nothing that was not begun before it."""
    while worker.in_hand:
        hands = set(worker._hands)
        worker.run_once(SECONDS)
        if set(worker._hands) - hands:
            return


def test_a_failing_long_handler_is_retried_and_then_a_dead_letter(site, long_site):
    work, worker = long_site()
    work.error = ValueError("out of memory")
    work.go.set()
    feed(site, envelope())
    assert drain(worker)["later"] == 1
    for _ in range(2):
        site.clock.advance(60 * SECOND)
        assert site.step("one").started == 1
        last = drain(worker)
    assert last["dead"] == 1
    (found,) = site.db.read(lambda tx: dead_letters.find(tx, Filter(), limit=5))
    assert found.letter.attempts == 3


def test_the_timeline_tells_that_an_event_is_in_hand_and_since_when_it_stands(site, long_site):
    _work, worker = long_site()
    made = envelope()
    feed(site, made)
    assert worker.run_once().started == 1
    published, _, standing = site.db.read(lambda tx: timeline.timeline(tx, made.event_id))
    assert (standing.what, standing.at) == ("waiting", published.at)
    assert (standing.detail["state"], standing.detail["due_at"]) == ("held", None)


def test_a_poisonous_result_is_a_dead_letter_at_once(site, long_site):
    work, worker = long_site()
    work.error = Poison("bad_film", "no frames")
    work.go.set()
    feed(site, envelope())
    assert drain(worker)["dead"] == 1


def test_a_result_that_cannot_be_written_is_a_failure_of_the_handler(site, long_site):
    _, worker = long_site()

    def finish(tx):
        raise KeyError("no such row")

    site.bus.consumers[:] = []
    site.bus.long_consumer("thing.happened", group="one")(lambda event, hold: finish)
    feed(site, envelope())
    assert drain(worker)["later"] == 1
    assert site.effects("one") == []


def test_no_more_work_at_once_than_the_group_allows_over_all_workers(site, long_site, make_site):
    work, worker = long_site(concurrency=2)
    other = make_site()
    other.clock.set(site.clock.now())
    _, other_worker = long_site(other, concurrency=2)
    feed(site, *[envelope() for _ in range(4)])
    assert worker.run_once().started == 2
    assert other_worker.run_once().started == 0
    work.go.set()
    assert drain(worker)["handled"] == 4


def test_order_per_key_holds_for_long_work_too(site, long_site):
    work, worker = long_site(event_type="ordered.happened", concurrency=3)
    work.go.set()
    feed(site, *[envelope("ordered.happened", {"key": key, "n": n}) for n in range(3) for key in "ab"])
    for _ in range(8):
        drain(worker)
        site.clock.advance(SECOND)
        site.step("one")
    drain(worker)
    made = [k for _, k, _ in site.effects("one")]
    assert sorted(made) == list("aaabbb")
    assert worker.in_hand == 0


def test_an_orderly_end_gives_the_work_back_and_counts_no_attempt(site, long_site, make_site):
    work, worker = long_site()
    feed(site, envelope())
    worker.run_once()
    assert work.began.acquire(timeout=SECONDS)
    worker.close()
    assert work.holds[0].lost
    other = make_site()
    other.clock.set(site.clock.now())
    other_work, other_worker = long_site(other)
    other_work.go.set()
    drain(other_worker)
    assert [n for _, _, n in site.effects("one")] == [1]


def test_a_paused_group_starts_no_long_work(site, long_site):
    from patra.bus import operations

    _, worker = long_site()
    feed(site, envelope())
    site.run(operations.pause, "one", by="ann")
    assert worker.run_once().started == 0


def test_what_is_in_hand_when_its_group_is_forgotten_has_no_effect_and_stops_nobody(long_site, site):
    work, worker = long_site()
    feed(site, envelope())
    site.step("one")
    assert worker.run_once().started == 1
    site.run(operations.forget, "one", by="ann", confirm="one")
    work.go.set()
    with pytest.raises(groups.GroupGone):  # it takes no more; what it had is settled before
        worker.run_once(SECONDS)
    assert (worker.in_hand, site.effects("one")) == (0, [])
    site.join()
    feed(site, envelope())
    site.step("one")
    assert worker.run_once().started == 1
    assert worker.run_once(SECONDS).handled == 1
