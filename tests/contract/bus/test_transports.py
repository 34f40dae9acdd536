"""What the transports promise beyond the common suite: wake-ups, restarts of the broker, stores that share a stream."""

import contextlib
import os
import threading
import time

import msgspec
import pytest

import patra
from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import Reason
from patra.bus.operations import health
from patra.bus.publishing.envelope import rendition
from patra.bus.publishing.publish import Published
from patra.bus.store import events, groups
from patra.bus.transports.nats import WISH_SECONDS, BrokerUnreachable, NatsStream
from patra.bus.transports.nats_connection import EventLoop, NatsConnection, login
from patra.bus.transports.notifier import Hub, MemoryWaker, SQLiteWaker, source
from patra.bus.transports.receiver import STANDBY, Arrival, Receiver
from patra.bus.transports.sender import Outboxed, Parcel, relay
from patra.kernel.clock import SECOND
from patra.kernel.db import open_database
from tests import services
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import Site
from tests.unit.bus.making import ORDERED, THING_2, catalogue, envelope, event_type, version

LONG = 20.0


def test_a_waiting_worker_wakes_when_another_connection_commits(database, database_url):
    site = Site(database, TYPES)
    site.effects_table()
    site.listen("one")
    waiting = source(database)
    while waiting.wait(0.01):  # what was committed before
        pass
    other = open_database(database_url)
    bus = Bus(TYPES, site.clock)
    began = time.monotonic()
    thread = threading.Thread(target=lambda: other.run(lambda tx: bus.publish(tx, envelope())))
    thread.start()
    assert waiting.wait(LONG)
    assert time.monotonic() - began < LONG
    thread.join()
    other.close()
    waiting.close()


def test_a_poke_wakes_within_the_process(database):
    waiting = source(database)
    waiting.wait(0.01)
    waiting.poke()
    assert waiting.wait(LONG)
    waiting.close()


def test_a_store_in_memory_is_woken_by_hand(tmp_path):
    waiting = source(open_database("sqlite:///:memory:"))
    assert isinstance(waiting, MemoryWaker)
    assert not waiting.wait(0.0)
    waiting.poke()
    assert waiting.wait(LONG)
    closed = SQLiteWaker(str(tmp_path / "x.db"))
    closed.close()
    assert closed.wait(0.0)


def test_one_watcher_wakes_every_sleeper_and_ends(database):
    hub = Hub(source(database))
    sleepers = [hub.waker() for _ in range(3)]
    woken = []
    threads = [threading.Thread(target=lambda s=s: woken.append(s.wait(LONG))) for s in sleepers]
    for thread in threads:
        thread.start()
    hub.poke()
    for thread in threads:
        thread.join(LONG)
    assert woken == [True] * 3
    hub.close()
    assert sleepers[0].wait(LONG)
    assert not hub._thread.is_alive()


def test_a_poke_wakes_only_those_who_wait_for_its_topic():
    hub = Hub(MemoryWaker())
    mine, other = hub.waker("mine"), hub.waker("other")
    hub.poke("mine")
    assert (mine.wait(LONG), mine.told) == (True, True)
    assert (other.wait(0.0), other.told) == (False, False)
    assert (mine.wait(0.0), mine.told) == (False, False)
    hub.poke("nobody's")
    hub.poke()
    assert other.wait(LONG)
    hub.close()


def test_who_is_woken_by_another_process_was_told_nothing_by_its_own():
    source = MemoryWaker()
    hub = Hub(source)
    mine = hub.waker("mine")
    source.poke()  # as a commit elsewhere
    assert (mine.wait(LONG), mine.told) == (True, False)
    hub.poke("mine")
    source.poke()
    assert (mine.wait(LONG), mine.told) == (True, True)
    hub.close()


@pytest.fixture
def stream(nats_url):
    name = f"X{os.getpid()}_{time.monotonic_ns()}"
    made = NatsStream(nats_url, name, prefix=f"{name}.bus")
    yield made
    made.close()


def asked(stream, what):
    """Something asked of the server behind the stream's back."""
    loop = EventLoop()
    connection = NatsConnection(loop, login(stream._url), 5.0)
    answer = msgspec.json.decode(connection.request(f"$JS.API.{what}").data)
    connection.close()
    loop.close()
    return answer


def forget_reader(stream):
    assert asked(stream, f"CONSUMER.DELETE.{stream.name}.{stream._consumer}")["success"]


def parcel(n):
    return Parcel(key=str(n), event_type="thing.happened", body=str(n).encode())


def test_a_stream_is_read_in_order_from_any_position(stream):
    assert stream.send([parcel(n) for n in range(10)]) == [None] * 10
    assert stream.read(0, 4, 0.0) == [Arrival(n + 1, str(n).encode()) for n in range(4)]
    assert [a.position for a in stream.read(4, 100, 0.0)] == [5, 6, 7, 8, 9, 10]
    assert [a.position for a in stream.read(2, 3, 0.0)] == [3, 4, 5]
    assert stream.read(10, 5, 0.05) == []


def test_the_broker_takes_out_what_is_sent_twice(stream):
    stream.send([parcel(1), parcel(1)])
    stream.send([parcel(1)])
    assert len(stream.read(0, 10, 0.0)) == 1


def test_a_reader_that_waits_gets_what_is_sent_meanwhile(stream, nats_url):
    stream.send([parcel(0)])
    stream.read(0, 10, 0.0)
    other = NatsStream(nats_url, stream.name, prefix=f"{stream.name}.bus")
    thread = threading.Thread(target=lambda: other.send([parcel(1)]))
    thread.start()
    assert [a.position for a in stream.read(1, 10, LONG)] == [2]
    thread.join()
    other.close()


def test_a_reader_goes_on_where_a_message_was_lost_on_its_way(stream):
    stream.send([parcel(n) for n in range(6)])
    assert [a.position for a in stream.read(0, 2, LONG)] == [1, 2]
    stream._wish(stream._in, 4, WISH_SECONDS)
    stream._delivered -= 1  # as if the client had thrown one away
    assert [a.position for a in stream.read(2, 10, LONG)] == [3, 4, 5, 6]


def test_a_server_that_will_not_serve_a_reader_keeps_it_in_no_circle(stream):
    stream.send([parcel(0)])
    stream.read(0, 10, LONG)
    stood = []

    def refused(wire, position):
        stood.append(position)
        stand(wire, position)
        forget_reader(stream)

    stand, stream._stand_before = stream._stand_before, refused
    stream.reset()
    with contextlib.suppress(BrokerUnreachable):
        assert stream.read(0, 10, 0.0) == []
    assert len(stood) <= 2


def test_who_reads_when_the_end_is_closed_is_told_at_once_and_opens_nothing(stream):
    stream.send([parcel(0)])
    stream.read(0, 10, LONG)
    stream.close()
    with pytest.raises(BrokerUnreachable):
        stream.read(1, 10, LONG)
    assert stream.send([parcel(1)]) == [Reason.TRANSPORT_UNREACHABLE]
    stream.close()  # once more


def test_a_reader_whose_place_on_the_server_is_gone_takes_another(stream):
    stream.send([parcel(0)])
    assert len(stream.read(0, 10, LONG)) == 1

    forget_reader(stream)
    stream.send([parcel(1)])
    assert [a.position for a in stream.read(1, 10, LONG)] == [2]


@pytest.fixture
def restartable(tmp_path):
    """A broker that can be stopped and started again on the same data."""
    port, data, running = services.free_port(), tmp_path / "js", []

    def start():
        server = services.nats(port, data)
        server.__enter__()
        running.append(server)
        return f"nats://127.0.0.1:{port}"

    def stop():
        running.pop().__exit__(None, None, None)

    yield start, stop
    while running:
        stop()


def make_site(tmp_path, name, stream):
    site = Site(open_database(f"sqlite:///{tmp_path / name}.db"), TYPES, stream)
    site.effects_table()
    site.listen("one", "ordered.happened")
    return site


def ordered(key, n):
    return envelope("ordered.happened", {"key": key, "n": n})


def test_what_is_published_while_the_broker_is_down_arrives_in_order_when_it_is_back(tmp_path, restartable):
    start, stop = restartable
    stream = NatsStream(start(), seconds=1.0)
    site = make_site(tmp_path, "a", stream)
    site.publish(*[ordered("a", n) for n in range(3)])
    site.pump()
    site.transport()  # what the store announced, when it first saw the stream
    stop()
    site.publish(*[ordered("a", n) for n in range(3, 6)])
    sending = relay(site.db, stream, site.clock)
    assert sending.run_once().retried == 1  # the head of the key; what follows it waits
    with pytest.raises(BrokerUnreachable):
        Receiver(site.db, site.bus, stream).run_once()
    start()
    site.clock.advance(120 * SECOND)  # the group that was held falls due again
    site.pump()
    assert [n for _, _, n in site.effects("one")] == [0, 1, 2, 3, 4, 5]
    stream.close()
    site.db.close()


def test_a_stream_that_was_lost_and_made_anew_is_read_from_its_beginning(tmp_path, restartable, stream, nats_url):
    start, _ = restartable
    url = start()
    stream = NatsStream(url, seconds=1.0)
    site = make_site(tmp_path, "a", stream)
    site.publish(*[ordered("a", n) for n in range(3)])
    site.pump()
    asked(stream, f"STREAM.DELETE.{stream.name}")
    stream.close()
    anew = NatsStream(url, seconds=1.0)
    site.stream = anew
    site.publish(ordered("a", 3))
    site.pump()
    assert [n for _, _, n in site.effects("one")] == [0, 1, 2, 3]
    anew.close()
    site.db.close()


def test_a_stream_that_is_made_anew_under_a_reader_is_read_from_its_beginning(tmp_path, stream):
    site = make_site(tmp_path, "a", stream)
    receiver = Receiver(site.db, site.bus, stream)
    site.publish(*[ordered("a", n) for n in range(3)])
    sending = relay(site.db, stream, site.clock)
    sending.run_once()
    assert receiver.run_once(LONG).delivered == 3  # beside them the store announced its catalogue
    asked(stream, f"STREAM.DELETE.{stream.name}")
    site.publish(*[ordered("b", n) for n in range(5)])
    while sending.run_once().retried:
        site.clock.advance(60 * SECOND)
    received = 0
    for _ in range(100):
        with contextlib.suppress(BrokerUnreachable):
            received += receiver.run_once(0.05).received
        if received == 5:
            break
    site.pump()
    assert [(key, n) for _, key, n in site.effects("one")] == [
        ("a", 0),
        ("a", 1),
        ("a", 2),
        *[("b", n) for n in range(5)],
    ]
    site.db.close()


def test_a_reader_that_begins_again_asks_which_stream_it_is(stream):
    """Else it would take the store's position in a stream made again for one of another, and begin that again."""
    before = stream.incarnation()
    asked(stream, f"STREAM.DELETE.{stream.name}")
    assert stream.incarnation() == before  # it is not asked for at every turn
    stream.reset()
    assert stream.incarnation() != before


def test_each_store_that_reads_the_stream_gets_every_event_once(tmp_path, stream):
    here, there = make_site(tmp_path, "here", stream), make_site(tmp_path, "there", stream)
    made = [ordered("a", n) for n in range(5)]
    here.publish(*made)
    here.pump()
    there.pump()
    there.pump()
    assert (
        [e for e, _, _ in here.effects("one")] == [e for e, _, _ in there.effects("one")] == [m.event_id for m in made]
    )
    assert there.publish(made[0])[0].duplicate  # forwarding it there is no new event


class Lying:
    """A stream that repeats, and holds what is not an envelope."""

    name = "lying"

    def __init__(self, arrivals):
        self.arrivals = arrivals

    def incarnation(self):
        return "one"

    def read(self, after, limit, seconds):
        return [a for a in self.arrivals if a.position > after][:limit]

    def reset(self):
        pass


def body(made):
    from patra.bus.publishing.envelope import encode

    return encode(made)


def test_a4_a_message_that_is_no_event_leaves_a_row_and_stops_nothing(tmp_path):
    site = make_site(tmp_path, "a", None)
    good, strange = ordered("a", 0), envelope("no.such_type")
    arrivals = [Arrival(1, b"{"), Arrival(2, body(strange)), Arrival(3, body(good)), Arrival(4, body(good))]
    counts = Receiver(site.db, site.bus, Lying(arrivals)).run_once()
    assert (counts.received, counts.refused) == (4, 2)
    site.pump()
    assert [e for e, _, _ in site.effects("one")] == [good.event_id]
    assert [a.act for a in site.db.read(lambda tx: groups.acts(tx, subject="lying"))] == ["message_refused"]
    assert [r.code for r in site.db.read(lambda tx: events.refusals(tx, limit=5))] == [Reason.TYPE_UNKNOWN]


def test_b4_a_later_minor_than_this_store_knows_costs_no_group_its_event(tmp_path):
    site = make_site(tmp_path, "a", None)
    later = envelope("ordered.happened", {"key": "a", "n": 7, "new": True}, event_version="1.1")
    broken = envelope("ordered.happened", {"n": 8, "new": True}, event_version="1.0")
    counts = Receiver(site.db, site.bus, Lying([Arrival(1, body(later)), Arrival(2, body(broken))])).run_once()
    assert (counts.new, counts.refused) == (1, 1)
    site.pump()
    assert site.effects("one") == [(later.event_id, "a", 7)]
    assert (
        site.publish(later)[0].code is Reason.VERSION_UNKNOWN
    )  # nobody publishes here what the catalogue does not have


def test_a4_messages_that_expired_before_they_were_read_are_told_of(tmp_path):
    site = make_site(tmp_path, "a", None)
    Receiver(site.db, site.bus, Lying([Arrival(7, body(ordered("a", 0)))])).run_once()
    (act,) = site.db.read(lambda tx: groups.acts(tx, subject="lying"))
    assert (act.act, act.detail["code"], act.detail["first"]) == ("stream_truncated", Reason.STREAM_TRUNCATED, 7)


def test_of_two_receivers_one_moves_on(tmp_path):
    site = make_site(tmp_path, "a", None)
    arrivals = [Arrival(n + 1, body(ordered("a", n))) for n in range(4)]
    one, two = (Receiver(site.db, site.bus, Lying(arrivals), batch=2) for _ in range(2))
    assert one.run_once().received == 2
    assert two.run_once().received == 2
    assert one.run_once().received == 0  # it stands where it was, and looks again
    site.pump()
    assert [n for _, _, n in site.effects("one")] == [0, 1, 2, 3]


def test_a_receiver_that_was_slower_stands_by_until_the_other_stands_still(tmp_path):
    site = make_site(tmp_path, "a", None)
    arrivals = [Arrival(n + 1, body(ordered("a", n))) for n in range(8)]
    streams = [Lying(arrivals) for _ in range(2)]
    reads = []
    streams[0].read = lambda *asked: reads.append(asked) or Lying.read(streams[0], *asked)
    slow, fast = (Receiver(site.db, site.bus, stream, batch=1) for stream in streams)
    assert slow.run_once().received == 1
    assert fast.run_once().received == 1
    assert slow.run_once().received == 0  # it lost
    reads.clear()
    for _ in range(4):
        assert fast.run_once().received == 1
        site.clock.advance(STANDBY)
        assert slow.run_once().received == 0
    assert reads == []  # it asks neither the broker nor for the row
    site.clock.advance(STANDBY)  # the other was killed
    assert slow.run_once().received == 1
    site.pump()
    assert [n for _, _, n in site.effects("one")] == list(range(7))


def test_a_receiver_that_lost_its_race_on_a_stream_made_anew_skips_nothing_of_it(tmp_path):
    """Its last position is older than the store's: neither of them is one of the new stream."""
    site = make_site(tmp_path, "a", None)
    streams = [Lying([Arrival(n + 1, body(ordered("a", n))) for n in range(4)]) for _ in range(2)]
    slow, fast = (Receiver(site.db, site.bus, stream, batch=2) for stream in streams)
    assert (slow.run_once().received, fast.run_once().received) == (2, 2)
    for stream in streams:
        stream.arrivals = [Arrival(n + 1, body(ordered("b", n))) for n in range(6)]
        stream.incarnation = lambda: "two"
    assert slow.run_once().received == 0  # the store's position is another than it knew
    while slow.run_once().received:
        pass
    site.pump()
    assert [(key, n) for _, key, n in site.effects("one")] == [
        *[("a", n) for n in range(4)],
        *[("b", n) for n in range(6)],
    ]


def test_a_position_that_the_store_lost_is_no_reason_to_skip_what_it_lost_with_it(tmp_path):
    """A receiver does not wait for the disk: a server that dies may lose what it wrote, and the position with it."""
    site = make_site(tmp_path, "a", None)
    arrivals = [Arrival(n + 1, body(ordered("a", n))) for n in range(4)]
    receiver = Receiver(site.db, site.bus, Lying(arrivals), batch=2)
    receiver.run_once()
    for table in ("bus_position", "bus_delivery", "bus_event"):
        site.db.run(lambda tx, table=table: tx.script(f"DELETE FROM {table}"))
    assert receiver.run_once().received == 0  # the position is not where it was left
    for _ in range(2):  # looks whether another receiver is at work
        site.clock.advance(STANDBY)
        receiver.run_once()
    while receiver.run_once().received:
        pass
    site.pump()
    assert [n for _, _, n in site.effects("one")] == [0, 1, 2, 3]


class Breaking:
    """A broker that does not confirm some messages."""

    def __init__(self):
        self.sent = []
        self.broken = set()

    def send(self, parcels):
        answers = []
        for one in parcels:
            if one.key in self.broken:
                answers.append(Reason.TRANSPORT_UNREACHABLE.value)
            else:
                self.sent.append(one.key)
                answers.append(None)
        return answers


def test_a_message_that_the_broker_does_not_confirm_holds_back_its_key_only(tmp_path):
    site = make_site(tmp_path, "a", None)
    site.bus = Bus(TYPES, site.clock, Outboxed())
    broker = Breaking()
    made = [ordered("a", 0), ordered("b", 0), ordered("a", 1), ordered("b", 1)]
    site.publish(*made)
    broker.broken = {made[0].event_id}
    sending = relay(site.db, broker, site.clock)
    assert sending.run_once().delivered == 2
    assert broker.sent == [made[1].event_id, made[3].event_id]
    broker.broken = set()
    site.clock.advance(SECOND)
    sending.run_once()
    assert broker.sent[2:] == [made[0].event_id, made[2].event_id]


def test_b5_a_freeze_reaches_the_store_of_the_publisher_and_so_does_the_thaw(tmp_path, stream):
    here, there = make_site(tmp_path, "here", stream), make_site(tmp_path, "there", stream)
    there.run(operations.freeze, "ordered.happened", by="ann", reason="it fails there")
    there.transport()
    here.transport()
    (refused,) = here.publish(ordered("a", 0))
    assert refused.code is Reason.TYPE_FROZEN
    assert "it fails there" in refused.detail
    assert [f.event_type for f in here.db.read(health).frozen] == ["ordered.happened"]
    assert [f.reason.count("it fails there") for f in there.db.read(health).frozen] == [1]
    there.run(operations.thaw, "ordered.happened", by="ann")
    there.transport()
    here.transport()
    assert isinstance(here.publish(ordered("a", 0))[0], Published)


def remake(stream):
    asked(stream, f"STREAM.DELETE.{stream.name}")
    stream.close()
    return NatsStream(stream._url, stream.name, prefix=stream._prefix)


def test_what_a_store_froze_and_adopted_is_told_again_on_a_stream_that_was_remade(tmp_path, stream):
    ahead = [version("1.0", status="retiring"), version("2.0", THING_2)]
    types = [event_type("ordered.happened", **ORDERED), event_type("thawed.happened")]
    there = Site(
        open_database(f"sqlite:///{tmp_path / 'there.db'}"), catalogue(event_type(versions=ahead), *types), stream
    )
    there.db.run(there.bus.adopt)
    here = Site(open_database(f"sqlite:///{tmp_path / 'here.db'}"), catalogue(event_type(), *types), stream)
    here.db.run(here.bus.adopt)
    there.run(operations.freeze, "thawed.happened", by="ann", reason="for a while")
    there.transport()
    here.transport()  # here knows that one, and will not hear of its thaw
    there.run(operations.thaw, "thawed.happened", by="ann")
    there.run(operations.freeze, "ordered.happened", by="ann", reason="it fails there")
    sending = relay(there.db, stream, there.clock)
    assert sending.run_once().groups  # the stream has confirmed it; then it is gone
    again = remake(stream)
    late = Site(open_database(f"sqlite:///{tmp_path / 'late.db'}"), catalogue(event_type(), *types), again)
    late.db.run(late.bus.adopt)
    try:
        for site in (there, here):
            site.stream = again
            site.transport()
        for site in (there, here, late):
            site.transport()
        for site in (here, late):
            assert [f.event_type for f in site.db.read(health).frozen] == ["ordered.happened"]
            assert site.publish(ordered("a", 0))[0].code is Reason.TYPE_FROZEN
            assert isinstance(site.publish(envelope("thawed.happened"))[0], Published)
            assert site.publish(envelope())[0].code is Reason.CATALOGUE_BEHIND
    finally:
        again.close()


def test_b5_an_operator_may_thaw_here_what_another_store_froze(tmp_path, stream):
    here, there = make_site(tmp_path, "here", stream), make_site(tmp_path, "there", stream)
    there.run(operations.freeze, "ordered.happened", by="ann", reason="it fails there")
    there.transport()
    here.transport()
    here.run(operations.thaw, "ordered.happened", by="bob")
    assert isinstance(here.publish(ordered("a", 0))[0], Published)


def test_b8_a_publisher_behind_the_catalogue_of_another_store_is_refused(tmp_path, stream):
    def site(name, types):
        made = Site(open_database(f"sqlite:///{tmp_path / f'{name}.db'}"), types, stream)
        made.db.run(made.bus.adopt)
        return made

    ahead = [version("1.0", status="retiring"), version("2.0", THING_2)]
    here = site("here", catalogue(event_type()))
    assert isinstance(here.publish(envelope())[0], Published)
    there = site("there", catalogue(event_type(versions=ahead)))
    there.transport()
    here.transport()
    (refused,) = here.publish(envelope())
    assert refused.code is Reason.CATALOGUE_BEHIND
    made = envelope()
    both = there.publish(made, rendition(made, "2.0", {"key": "k", "number": 1}))
    assert isinstance(both[0], Published)  # one that is ahead of another store loses nothing


def test_a_program_on_a_stream_sends_and_takes_events_until_nothing_is_left(restartable, tmp_path):
    start, _ = restartable
    url, seen = start(), []
    (tmp_path / "one.yaml").write_text(
        """{type: thing.happened, title: T, description: D, producer: Maker, versions: [{version: "1.0", examples: [{}],
        schema: {type: object, additionalProperties: false}}]}"""
    )
    stores = [f"sqlite:///{tmp_path / name}.db" for name in ("sender", "receiver")]
    sender, receiver = [patra.Bus.open(store, contracts=[tmp_path], nats_url=url) for store in stores]
    with sender, receiver:
        receiver.consume("thing.happened", group="one")(lambda tx, event: seen.append(event.event_id))
        assert receiver.run_until_idle() == 0
        made = sender.publish("thing.happened", {}, tenant="acme", key="k")
        assert (sender.run_until_idle(), receiver.run_until_idle(), seen) == (0, 1, [made])
