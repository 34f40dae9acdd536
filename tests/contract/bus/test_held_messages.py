"""B8: a receiver whose catalogue is behind keeps what it cannot read, and no group misses an event for it."""

import msgspec
import pytest

from patra.bus.catalogue.reasons import Reason
from patra.bus.dispatch.long_worker import LongWorker
from patra.bus.operations import health
from patra.bus.publishing.envelope import encode, rendition
from patra.bus.publishing.publisher_tokens import publisher
from patra.bus.store import events, groups, held_messages
from patra.bus.transports.receiver import STANDBY, Arrival, Receiver
from tests.contract.bus.site import Site
from tests.contract.bus.test_transports import Lying
from tests.unit.bus.making import ORDERED, THING_2, catalogue, envelope, event_type, version

ONE = catalogue(event_type(**ORDERED))
BOTH = catalogue(event_type(**ORDERED, versions=[version("1.0", status="retiring"), version("2.0", THING_2)]))
SECOND_ONLY = catalogue(event_type(**ORDERED, versions=[version("1.0", status="retired"), version("2.0", THING_2)]))
ADDED = catalogue(event_type(**ORDERED), event_type("other.happened"))


def second(number: int):
    return envelope(payload={"key": "k", "number": number}, event_version="2.0")


def stream(*messages) -> Lying:
    bodies = [b"[" + b",".join(map(encode, m)) + b"]" if isinstance(m, tuple) else encode(m) for m in messages]
    return Lying([Arrival(at, text) for at, text in enumerate(bodies, 1)])


@pytest.fixture
def old(database) -> Site:
    site = Site(database, ONE)
    site.effects_table()
    site.db.run(site.bus.adopt)
    return site


def upgraded(old: Site, following) -> Site:
    return Site(old.db, following, clock=old.clock)


def test_an_unknown_major_waits_for_a_receiver_that_knows_it_and_keeps_its_place_in_the_order(old):
    new = upgraded(old, BOTH)
    new.listen("reads_two", versions=">=2")
    messages = stream(second(1), second(2), envelope(), second(3))
    behind = Receiver(old.db, old.bus, messages, batch=3)
    assert (behind.run_once().held, behind.run_once().held) == (2, 1)
    assert [t for t in old.db.read(health).troubles if "3 messages" in t and "thing.happened 2.x" in t]
    assert old.db.read(lambda tx: events.refusals(tx, limit=5)) == []
    assert behind.run_once().received == 0  # it does not take what it cannot read
    ahead = Receiver(new.db, new.bus, messages)
    assert ahead.run_once().new == 3
    new.pump()
    assert [n for _, _, n in new.effects("reads_two")] == [1, 2, 3]
    assert old.db.read(held_messages.counts) == []


def test_what_is_held_goes_before_what_comes_after_it(old):
    new = upgraded(old, BOTH)
    new.listen("reads_two", versions=">=2")
    messages = stream(second(1), second(2), second(3), second(4))
    ahead = Receiver(new.db, new.bus, messages, batch=1)
    assert ahead.run_once().new == 1
    Receiver(old.db, old.bus, messages, batch=2).run_once()  # 2 and 3, by the process that is behind
    for _ in range(5):
        ahead.run_once()
        new.clock.advance(STANDBY)
    new.pump()
    assert [n for _, _, n in new.effects("reads_two")] == [1, 2, 3, 4]


def test_what_another_receiver_holds_while_this_one_begins_goes_first_as_well(old):
    new = upgraded(old, BOTH)
    new.listen("reads_two", versions=">=2")
    messages = stream(second(1), second(2))
    behind = Receiver(old.db, old.bus, messages, batch=1)

    class Raced(Lying):
        def incarnation(self):
            behind.run_once()  # after the look at what is held, before the position is read
            return super().incarnation()

    ahead = Receiver(new.db, new.bus, Raced(list(messages.arrivals)))
    assert ahead.run_once().received == 0
    messages.arrivals.clear()  # nothing more for the one that is behind
    for _ in range(3):
        ahead.run_once()
    new.pump()
    assert [n for _, _, n in new.effects("reads_two")] == [1, 2]


def test_an_event_in_a_known_and_an_unknown_major_reaches_either_group_once(old):
    old.listen("reads_any")
    new = upgraded(old, BOTH)
    new.listen("reads_two", versions=">=2")
    made = envelope()
    messages = stream((made, rendition(made, "2.0", {"key": "k", "number": 7})))
    Receiver(old.db, old.bus, messages).run_once()
    old.pump("reads_any")
    assert len(old.effects("reads_any")) == 1  # it does not wait for the upgrade
    Receiver(new.db, new.bus, messages).run_once()
    new.pump("reads_two")
    old.pump("reads_any")
    assert [n for _, _, n in new.effects("reads_two")] == [7]
    assert len(old.effects("reads_any")) == 1


def test_long_work_that_was_entered_before_the_release_is_not_done_again(old):
    done = {"first": [], "later": []}
    new = upgraded(old, BOTH)
    for site in (old, new):
        for group, events_ in done.items():
            site.bus.long_consumer("thing.happened", group=group)(lambda e, _, to=events_: to.append(e.event_id))
        site.join()
    new.listen("reads_two", versions=">=2")

    def work(site, group):
        site.pump(group)
        worker = LongWorker(site.db, site.bus, group)
        worker.run_once()
        while worker.in_hand:
            worker.run_once(20)
        worker.close()

    made = envelope()
    messages = stream((made, rendition(made, "2.0", {"key": "k", "number": 7})))
    Receiver(old.db, old.bus, messages).run_once()
    work(old, "first")
    Receiver(new.db, new.bus, messages).run_once()
    for group in done:
        work(new, group)
        work(new, group)
    new.pump("reads_two")
    assert done == {"first": [made.event_id], "later": [made.event_id]}
    assert [n for _, _, n in new.effects("reads_two")] == [7]
    assert {g.waiting for g in new.db.read(groups.totals)} == {0}


def test_a_group_that_reads_any_version_waits_where_no_version_is_known_on_its_store(old):
    old.listen("reads_any")
    Receiver(old.db, old.bus, stream(second(5))).run_once()
    new = upgraded(old, SECOND_ONLY)
    new.listen("reads_any")
    Receiver(new.db, new.bus, stream(second(5))).run_once()
    new.pump()
    assert [n for _, _, n in new.effects("reads_any")] == [5]


def test_a_type_of_the_adopted_catalogue_that_this_process_lacks_is_held(old):
    new = upgraded(old, ADDED)
    new.db.run(new.bus.adopt)
    messages = stream(envelope("other.happened"))
    assert Receiver(old.db, old.bus, messages).run_once().held == 1
    new.listen("late", "other.happened")
    Receiver(new.db, new.bus, messages).run_once()
    new.pump()
    assert len(new.effects("late")) == 1


def test_what_nobody_on_the_store_could_read_is_refused_and_not_kept(old):
    made = envelope()
    messages = stream(
        (made, rendition(made, "2.0", {"key": "k", "number": 7})), envelope("strange.happened"), second(1)
    )
    counts = Receiver(old.db, old.bus, messages).run_once()
    assert (counts.new, counts.held, counts.refused) == (1, 0, 3)
    codes = {row.code for row in old.db.read(lambda tx: events.refusals(tx, limit=5))}
    assert codes == {Reason.VERSION_UNKNOWN, Reason.TYPE_UNKNOWN}


def test_b7_who_published_is_known_on_every_store_that_reads_the_stream(make_site):
    here = make_site(ONE)
    made = envelope()
    here.db.run(lambda tx: here.bus.publish(tx, made, publisher=publisher("shop", producers=["Maker"])))
    here.transport()
    if here.stream is None:
        return
    there = make_site(ONE, elsewhere=True)
    there.transport()
    (row,) = there.db.read(lambda tx: events.by_id(tx, made.event_id))
    assert row.published_by == "shop"
    assert msgspec.json.decode(row.body)["event_id"] == made.event_id
