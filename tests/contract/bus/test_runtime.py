"""The bus as a process runs it: duties in threads, webhooks on a real endpoint, upkeep."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from standardwebhooks import Webhook as StandardWebhook

from patra.app.component import Health
from patra.app.components.bus import webhook_check
from patra.bus import operations, runtime
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import parse_range
from patra.bus.consuming.dead_letter import Filter, letter_id
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.operations import find_letters, resume
from patra.bus.publishing.cloudevents import from_structured
from patra.bus.publishing.envelope import Refused
from patra.bus.runtime import BusEngine, Upkeep, Webhooks
from patra.bus.store import deliveries, events, groups
from patra.bus.transports import webhook
from patra.bus.transports.webhook_secrets import WebhookKeys
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, SystemClock
from patra.kernel.db import migrate
from patra.kernel.db.queries import statement
from patra.kernel.errors import ConfigInvalid
from patra.kernel.ids import new_id
from patra.kernel.machine import history
from patra.kernel.testing import ManualClock
from tests.contract.bus.conftest import TYPES
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

LONG = 60.0


@pytest.fixture
def engine(database, monkeypatch) -> Iterator[BusEngine]:
    monkeypatch.setattr("patra.bus.runtime.IDLE_SECONDS", 0.01)  # these tests take the turns themselves
    migrate(database, ["patra.kernel", "patra.bus"])
    made = BusEngine(database, ManualClock(), TYPES)
    yield made
    made.close()


def run_duties(engine: BusEngine, done: threading.Event, *groups_: str) -> None:
    """Every duty in a thread of its own until `done` is set."""
    stop = threading.Event()

    def loop(duty):
        while not stop.is_set():
            duty.run_once()

    duties = [d for g in groups_ for d in engine.group_duties(g)] + [d for d in engine.duties() if d.every == 1]
    threads = [threading.Thread(target=loop, args=(duty,), daemon=True) for duty in duties]
    for thread in threads:
        thread.start()
    assert done.wait(LONG)
    stop.set()
    for thread in threads:
        thread.join(LONG)


def test_duties_handle_what_is_published_without_being_asked(database, nats_url, request):
    migrate(database, ["patra.kernel", "patra.bus"])
    engine = BusEngine(database, SystemClock(), TYPES)
    seen, done = [], threading.Event()

    def handled(group, event):
        seen.append((group, event.event_id))
        if len(seen) == 2:  # whichever of them is the last
            done.set()

    @engine.bus.consumer("thing.happened", group="quick")
    def _(tx, event):
        handled("quick", event)

    @engine.bus.long_consumer("thing.happened", group="slow")
    def _(event, hold):
        return lambda tx: handled("slow", event)

    database.run(engine.bus.join)
    made = envelope()
    publishing = threading.Timer(0.2, lambda: database.run(lambda tx: engine.bus.publish(tx, made)))
    publishing.start()
    run_duties(engine, done, "quick", "slow")
    assert sorted(seen) == [("quick", made.event_id), ("slow", made.event_id)]
    engine.close()


def test_with_a_broker_the_duties_include_sending_and_receiving(database, nats_url):
    migrate(database, ["patra.kernel", "patra.bus"])
    engine = BusEngine(database, SystemClock(), TYPES, nats_url=nats_url, stream=f"R{new_id()}")
    engine.stream._prefix = engine.stream.name
    done = threading.Event()

    @engine.bus.consumer("thing.happened", group="quick")
    def _(tx, event):
        done.set()

    database.run(engine.bus.join)
    database.run(lambda tx: engine.bus.publish(tx, envelope()))
    run_duties(engine, done, "quick")
    engine.close()


class Endpoint:
    """A real HTTP endpoint with prepared answers."""

    def __init__(self) -> None:
        self.status = 200
        self.statuses: dict[str, int] = {}
        self.headers: dict[str, str] = {}
        self.calls: list[tuple[dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.calls.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(outer.statuses.get(self.headers["webhook-id"], outer.status))
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Raw:
    """An endpoint on a plain socket: `answer(connection, n)` is called after the n-th request on a connection."""

    def __init__(self, answer) -> None:
        self.connections = 0
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/hook"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, suppress(OSError):
            for n in range(100):
                asked = b""
                while not asked.endswith(b"\r\n\r\nevent"):
                    if not (more := connection.recv(65_536)):
                        return
                    asked += more
                self._answer(connection, n)

    def close(self):
        self._listener.close()


def test_an_answer_with_a_body_leaves_its_connection_for_the_next_call():
    endpoint = Raw(lambda connection, n: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    call = webhook.post(SystemClock())
    assert [call(endpoint.url, {}, b"event").status for _ in range(3)] == [200] * 3
    assert endpoint.connections == 1
    endpoint.close()


def test_the_rest_of_an_answer_is_not_taken_for_the_next_one():
    def answer(connection, n):
        connection.sendall(b"rest!" * n + b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nok")

    endpoint, call = Raw(answer), webhook.post(SystemClock())
    assert [call(endpoint.url, {}, b"event").status for _ in range(3)] == [200] * 3
    endpoint.close()


def hook(engine, url, name="shop", types=None):
    wanted = {t: parse_range(">=1") for t in types or ["thing.happened"]}
    return engine.db.run(lambda tx: webhook.add(tx, engine.bus, name, url, wanted, by="ann"))


def signed(secret, headers, body):
    """The signature of a request, by the library that receivers use."""
    at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
    return StandardWebhook(secret).sign(headers["webhook-id"], at, body.decode())


def turns(engine, duty, seconds=LONG):
    """Turns until nothing is in progress any more."""
    while True:
        done = duty.run_once().done
        if not done and not any(worker.in_hand for _, _, worker in duty._known.values()):
            return


def publish(engine, made):
    engine.db.run(lambda tx: engine.bus.publish(tx, made))


def test_a_webhook_gets_each_event_as_a_signed_cloudevent(engine, endpoint):
    made = hook(engine, endpoint.url)
    event = envelope()
    publish(engine, event)
    publish(engine, envelope("ordered.happened"))
    turns(engine, Webhooks(engine))
    ((headers, body),) = endpoint.calls
    assert headers["content-type"].startswith("application/cloudevents+json")
    assert from_structured(msgspec.json.decode(body)) == event
    assert headers["webhook-timestamp"] == str(engine.clock.now() // SECOND)
    assert headers["webhook-signature"] == signed(made.secret, headers, body)


def test_b9_a_dead_endpoint_suspends_itself_with_its_backlog_kept_and_freezes_nobody(engine, endpoint):
    hook(engine, endpoint.url)
    endpoint.status = 503
    made = [envelope() for _ in range(5)]  # more than the type's threshold of dead letters
    for one in made:
        publish(engine, one)
    duty = Webhooks(engine)
    began = engine.clock.now()
    for _ in range(len(webhook.SCHEDULE) + 1):
        turns(engine, duty)
        engine.clock.advance(27 * HOUR)
    assert engine.clock.now() - began > 3 * DAY
    state = engine.db.read(groups.webhook_states)["shop"]
    assert state.suspended_at is not None
    assert "503" in state.suspended_reason
    called = len(endpoint.calls)
    turns(engine, duty)
    assert len(endpoint.calls) == called
    assert engine.db.read(lambda tx: find_letters(tx, Filter(state=None), limit=5)) == []
    assert engine.health().frozen == []
    assert engine.health().troubles == ["group webhook.shop is paused"]
    publish(engine, envelope())
    endpoint.status = 200
    endpoint.calls.clear()
    engine.db.run(lambda tx: resume(tx, engine.bus, "webhook.shop", by="ann"))
    turns(engine, duty)
    assert {headers["webhook-id"] for headers, _ in endpoint.calls} > {one.event_id for one in made}
    state = engine.db.read(groups.webhook_states)["shop"]
    assert (state.suspended_at, state.last_success_at) == (None, engine.clock.now())


def test_b9_an_event_that_a_living_endpoint_rejects_is_a_dead_letter_that_freezes_nobody(engine, endpoint):
    hook(engine, endpoint.url)
    rejected = [envelope() for _ in range(5)]
    endpoint.statuses = {one.event_id: 422 for one in rejected}
    for one in rejected:
        publish(engine, one)
    duty = Webhooks(engine)
    for _ in range(len(webhook.SCHEDULE) + 1):
        publish(engine, envelope())
        turns(engine, duty)
        engine.clock.advance(27 * HOUR)
    letters = engine.db.read(lambda tx: find_letters(tx, Filter(), limit=9))
    assert {letter.event_id for letter in letters} == {one.event_id for one in rejected}
    assert {letter.error_code for letter in letters} == {Reason.WEBHOOK_STATUS}
    assert engine.health().frozen == []
    assert engine.db.read(groups.webhook_states)["shop"].suspended_at is None


def test_a_webhook_that_is_gone_is_suspended_at_once(engine, endpoint):
    hook(engine, endpoint.url)
    endpoint.status = 410
    publish(engine, envelope())
    turns(engine, Webhooks(engine))
    assert len(endpoint.calls) == 1
    assert "410" in engine.db.read(groups.webhook_states)["shop"].suspended_reason
    assert engine.db.read(groups.totals)[0].waiting == 1


@pytest.mark.parametrize("unit", ["seconds", "date"])
def test_retry_after_is_honoured(engine, endpoint, unit):
    hook(engine, endpoint.url)
    endpoint.status = 429
    later = formatdate(engine.clock.now() // SECOND + 3600, usegmt=True)
    endpoint.headers = {"retry-after": "3600" if unit == "seconds" else later}
    made = envelope()
    publish(engine, made)
    turns(engine, Webhooks(engine))
    (waiting,) = engine.db.read(lambda tx: deliveries.of_event(tx, made.event_id))
    assert waiting["due_at"] - engine.clock.now() == HOUR


def test_a_webhook_gets_events_of_its_tenants_only(engine, endpoint):
    wanted = {"thing.happened": parse_range(">=1")}
    engine.db.run(lambda tx: webhook.add(tx, engine.bus, "shop", endpoint.url, wanted, by="ann", tenants=["acme"]))
    mine, other = envelope(tenant_id="acme"), envelope(tenant_id="other")
    publish(engine, mine)
    publish(engine, other)
    turns(engine, Webhooks(engine))
    assert [headers["webhook-id"] for headers, _ in endpoint.calls] == [mine.event_id]
    assert engine.db.read(groups.totals)[0].waiting == 0


def test_while_a_new_secret_overlaps_the_old_one_both_sign(engine, endpoint):
    made = hook(engine, endpoint.url)
    fresh = engine.db.run(lambda tx: webhook.rotate(tx, engine.bus, "shop", by="ann", overlap=HOUR))
    duty = Webhooks(engine)
    publish(engine, envelope())
    turns(engine, duty)
    engine.clock.advance(HOUR)
    publish(engine, envelope())
    turns(engine, duty)
    (during, one), (after, two) = endpoint.calls
    assert during["webhook-signature"].split() == [signed(fresh, during, one), signed(made.secret, during, one)]
    assert after["webhook-signature"] == signed(fresh, after, two)
    assert engine.db.run(lambda tx: webhook.rotate(tx, engine.bus, "nobody", by="ann")) is None


def test_with_a_key_no_secret_is_in_the_store_and_without_it_events_wait(engine, endpoint):
    engine.webhook_keys = WebhookKeys(["a-key-of-more-than-thirty-two-characters"])
    wanted, keys = {"thing.happened": parse_range(">=1")}, engine.webhook_keys
    made = engine.db.run(lambda tx: webhook.add(tx, engine.bus, "shop", endpoint.url, wanted, by="ann", keys=keys))
    fresh = engine.db.run(lambda tx: webhook.rotate(tx, engine.bus, "shop", by="ann", overlap=HOUR, keys=keys))
    row = str(engine.db.read(lambda tx: tx.fetch_dicts(statement("rows", "SELECT * FROM bus_webhook"))))
    assert not any(secret.removeprefix("whsec_") in row for secret in (made.secret, fresh))
    assert "whsec_" not in row
    publish(engine, envelope())
    engine.webhook_keys = WebhookKeys(["another-key-of-more-than-32-characters"])
    turns(engine, Webhooks(engine))
    assert endpoint.calls == []
    engine.webhook_keys = keys
    turns(engine, Webhooks(engine))
    ((headers, body),) = endpoint.calls
    assert headers["webhook-signature"].split() == [signed(fresh, headers, body), signed(made.secret, headers, body)]


def test_a_secret_in_clear_that_a_key_replaced_leaves_the_store_when_its_overlap_is_over(engine):
    keys = WebhookKeys(["a-key-of-more-than-thirty-two-characters"])
    hook(engine, "http://127.0.0.1:1/")
    engine.db.run(lambda tx: webhook.rotate(tx, engine.bus, "shop", by="ann", overlap=HOUR, keys=keys))
    upkeep = next(d for d in engine.duties() if d.name == "upkeep")
    for passed, clear in ((0, True), (HOUR, False)):
        engine.clock.advance(passed)
        upkeep.run_once()
        (row,) = engine.db.read(groups.webhooks)
        assert row.old_secret.startswith("whsec_") is clear
        assert webhook_check([row], keys).health is (Health.WARNING if clear else Health.OK)


def test_a_webhook_that_cannot_be_reached_or_redirects_is_a_failure(engine, endpoint):
    hook(engine, "http://127.0.0.1:1/")
    first = envelope()
    publish(engine, first)
    turns(engine, Webhooks(engine))
    assert engine.db.read(groups.totals)[0].failing == 1
    (waiting,) = engine.db.read(lambda tx: deliveries.of_event(tx, first.event_id))
    assert waiting["error_code"] == Reason.WEBHOOK_UNREACHABLE
    endpoint.status = 302
    hook(engine, endpoint.url, "other")
    publish(engine, envelope())
    turns(engine, Webhooks(engine))
    assert [g.failing for g in engine.db.read(groups.totals)] == [1, 2]


def test_a_webhook_that_is_removed_gets_nothing_more(engine, endpoint):
    hook(engine, endpoint.url)
    duty = Webhooks(engine)
    turns(engine, duty)
    assert engine.db.run(lambda tx: webhook.remove(tx, engine.bus, "shop", by="ann"))
    publish(engine, envelope())
    turns(engine, duty)
    assert endpoint.calls == []
    assert [a.act for a in engine.db.read(lambda tx: groups.acts(tx, subject="webhook.shop"))] == [
        "webhook_remove",
        "webhook_add",
    ]


def test_a_webhook_that_is_removed_and_added_again_is_called_with_its_new_secret(engine, endpoint):
    hook(engine, endpoint.url)
    duty = Webhooks(engine)
    turns(engine, duty)
    engine.db.run(lambda tx: webhook.remove(tx, engine.bus, "shop", by="ann"))
    made = hook(engine, endpoint.url)  # before the duty looked again
    publish(engine, envelope())
    turns(engine, duty)
    ((headers, body),) = endpoint.calls
    assert headers["webhook-signature"] == signed(made.secret, headers, body)


@pytest.mark.parametrize(
    ("name", "url", "types", "place"),
    [
        ("Shop", "http://x/", ["thing.happened"], "/name"),
        ("shop", "ftp://x/", ["thing.happened"], "/url"),
        ("shop", "http://", ["thing.happened"], "/url"),
        ("shop", "http://x/", ["no.such_type"], "/types/no.such_type"),
    ],
)
def test_a_webhook_that_makes_no_sense_is_refused(engine, name, url, types, place):
    found = hook(engine, url, name, types)
    assert isinstance(found, Refused)
    assert found.place == place


def test_upkeep_empties_what_is_past_its_retention_and_adopts_the_catalogue(engine):
    publish(engine, envelope())
    upkeep = next(d for d in engine.duties() if d.name == "upkeep")
    upkeep.run_once()
    assert engine.db.read(lambda tx: events.after(tx, 0, limit=5))[0].body is not None
    engine.clock.advance(91 * DAY)
    upkeep.run_once()
    assert engine.db.read(lambda tx: events.after(tx, 0, limit=5))[0].body is None
    assert engine.db.read(groups.last_release) is not None


def test_upkeep_deletes_the_keys_of_emptied_events_after_their_time_and_no_other(engine, monkeypatch):
    monkeypatch.setattr(runtime, "PURGE_BATCH_SIZE", 2)
    engine.bus.consumer("thing.happened", group="slow")(lambda _tx, _event: None)
    first = [envelope() for _ in range(5)]
    for one in first:
        publish(engine, one)
    engine.db.run(engine.bus.join)
    waiting = envelope()
    publish(engine, waiting)
    engine.clock.advance(150 * DAY)
    young = [envelope(), envelope()]
    for one in young:
        publish(engine, one)

    def kept():
        return {one.event_id for one in engine.db.read(lambda tx: events.after(tx, 0, limit=20))}

    everything = {one.event_id for one in (*first, waiting, *young)}
    Upkeep(engine).run_once()
    assert kept() == everything  # by default for ever
    engine.keys_kept = 151 * DAY
    Upkeep(engine).run_once()
    assert kept() == everything
    engine.keys_kept = 149 * DAY
    Upkeep(engine).run_once()
    assert kept() == {one.event_id for one in (waiting, *young)}  # one is still to be handled: its body stays, too
    publish(engine, first[0])  # its key is free again
    assert first[0].event_id in kept()
    engine.clock.advance(500 * DAY)
    Dispatcher(engine.db, engine.bus, "slow", slow_start=False).run_once()
    for _ in range(2):
        engine.clock.advance(HOUR)
        Upkeep(engine).run_once()
    assert len(kept()) == 1  # never the newest: numbers go on from it


def test_dead_letters_leave_so_many_days_after_they_were_settled_and_open_ones_stay(engine):
    fails = {"bad"}

    def handle(_tx, event):
        if event.payload["key"] in fails:
            raise ValueError("no luck")

    engine.bus.consumer("thing.happened", group="one")(handle)
    engine.db.run(engine.bus.join)
    made = [envelope(payload={"key": "bad"}) for _ in range(3)]
    for one in made:
        publish(engine, one)
    dispatcher = Dispatcher(engine.db, engine.bus, "one", slow_start=False)
    dead = 0
    while dead < len(made):
        dead += dispatcher.run_once().dead
        engine.clock.advance(HOUR)
    opened, discarded, replayed = (one.event_id for one in made)
    engine.clock.advance(10 * DAY)
    fails.clear()
    engine.db.run(lambda tx: operations.discard(tx, engine.bus, "one", [discarded], by="ann", reason="withdrawn"))
    engine.db.run(lambda tx: operations.replay(tx, engine.bus, "one", [replayed], by="ann", confirm="one"))
    while dispatcher.run_once().busy:
        pass

    def left():
        ids = {letter_id("one", one.event_id) for one in made}
        found = engine.db.read(
            lambda tx: tx.lookup("bus_dead_letter", columns=("event_id",), key=("letter_id",), keys=[(i,) for i in ids])
        )
        return {event_id for (event_id,) in found}, {
            move.subject for move in engine.db.read(lambda tx: history(tx, ids))
        }

    def upkeep(days):
        engine.settled_letters_kept = days * DAY if days else None
        engine.clock.advance(HOUR)
        Upkeep(engine).run_once()

    engine.clock.advance(5 * DAY)
    for days in (None, 6):  # it failed fifteen days ago, and was settled five days ago
        upkeep(days)
        moved = {letter_id("one", discarded), letter_id("one", replayed)}
        assert left() == ({opened, discarded, replayed}, moved)
    upkeep(5)
    assert left() == ({opened}, set())


def test_upkeep_looks_at_what_has_to_stay_once_an_hour_and_empties_it_when_nobody_waits(engine, monkeypatch):
    monkeypatch.setattr(runtime, "PURGE_BATCH_SIZE", 2)
    engine.bus.consumer("thing.happened", group="slow")(lambda _tx, _event: None)
    engine.db.run(engine.bus.join)
    for _ in range(5):
        publish(engine, envelope())
    engine.clock.advance(91 * DAY)
    pages = []
    purge_bodies = events.purge_bodies
    monkeypatch.setattr(
        events, "purge_bodies", lambda tx, name, **more: pages.append(purge_bodies(tx, name, **more)) or pages[-1]
    )

    def seen():
        pages.clear()
        upkeep.run_once()
        return [(page.seen, page.emptied) for page in pages if page.seen]

    upkeep = Upkeep(engine)
    assert seen() == [(2, 0), (2, 0), (1, 0)]  # the group has them still to handle
    assert seen() == []  # not again, and nothing came after them
    Dispatcher(engine.db, engine.bus, "slow", slow_start=False).run_once()
    engine.clock.advance(59 * MINUTE)
    assert seen() == []
    engine.clock.advance(MINUTE)
    assert seen() == [(2, 2), (2, 2), (1, 1)]


def test_b4_a_store_refuses_a_catalogue_that_breaks_what_was_in_force_on_it(engine, database):
    database.run(engine.bus.adopt)
    broken = BusEngine(
        database,
        engine.clock,
        catalogue(
            *[t for t in TYPES.types.values() if t.name != "thing.happened"],
            event_type(versions=[version("1.0", THING_2)]),
        ),
    )
    with pytest.raises(ConfigInvalid, match="needs_major"):
        database.run(broken.bus.adopt)
    assert broken.db.read(broken.bus.evolution)[0].event_type == "thing.happened"


def test_b4_a_major_is_not_retired_while_a_group_of_the_store_needs_it(engine, database):
    dual = TYPES.types["dual.happened"]
    engine.bus.consumer("dual.happened", group="old", versions=">=1,<2")(lambda tx, event: None)
    database.run(engine.bus.adopt)
    database.run(engine.bus.join)
    moved = event_type("dual.happened", versions=[version("1.0", status="retired"), version("2.0", THING_2)])
    after = BusEngine(database, engine.clock, catalogue(*[t for t in TYPES.types.values() if t is not dual], moved))
    with pytest.raises(ConfigInvalid, match="in_use"):
        database.run(after.bus.adopt)
