"""The bus as a process runs it: duties in threads, webhooks on a real endpoint, upkeep."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from patra.bus import webhook
from patra.bus.cloudevents import from_structured
from patra.bus.deadletter import Filter
from patra.bus.envelope import Refused
from patra.bus.operations import find_letters
from patra.bus.reasons import R
from patra.bus.runtime import BusEngine, Webhooks
from patra.bus.store import deliveries, events, groups
from patra.bus.versions import parse_range
from patra.kernel.clock import DAY, SECOND, SystemClock
from patra.kernel.db import migrate
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock
from tests.contract.bus.conftest import TYPES
from tests.unit.bus.making import THING_2, catalogue, envelope, event_type, version

LONG = 30.0


@pytest.fixture
def engine(database) -> Iterator[BusEngine]:
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

    @engine.bus.consumer("thing.happened", group="quick")
    def _(tx, event):
        seen.append(event.event_id)

    @engine.bus.long_consumer("thing.happened", group="slow")
    def _(event, hold):
        return lambda tx: done.set()

    database.run(engine.bus.join)
    made = envelope()
    publishing = threading.Timer(0.2, lambda: database.run(lambda tx: engine.bus.publish(tx, made)))
    publishing.start()
    run_duties(engine, done, "quick", "slow")
    assert seen == [made.event_id]
    engine.close()


def test_with_a_broker_the_duties_include_sending_and_receiving(database, nats_url):
    migrate(database, ["patra.kernel", "patra.bus"])
    engine = BusEngine(database, SystemClock(), TYPES, nats_url=nats_url, stream=f"R{id(database)}")
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
    """A real HTTP endpoint that answers what it is told."""

    def __init__(self) -> None:
        self.status = 200
        self.calls: list[tuple[dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.calls.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(outer.status)
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
    call = webhook.post()
    assert [call(endpoint.url, {}, b"event") for _ in range(3)] == [200] * 3
    assert endpoint.connections == 1
    endpoint.close()


def test_the_rest_of_an_answer_is_not_taken_for_the_next_one():
    def answer(connection, n):
        connection.sendall(b"rest!" * n + b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nok")

    endpoint, call = Raw(answer), webhook.post()
    assert [call(endpoint.url, {}, b"event") for _ in range(3)] == [200] * 3
    endpoint.close()


def hook(engine, url, name="shop", types=None):
    wanted = {t: parse_range(">=1") for t in types or ["thing.happened"]}
    return engine.db.run(lambda tx: webhook.add(tx, engine.bus, name, url, wanted, by="ann"))


def turns(engine, duty, seconds=LONG):
    """Turns until nothing is in hand any more."""
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
    assert webhook.verified(made.secret, headers, body, engine.clock.now())
    assert not webhook.verified(made.secret, headers, body + b" ", engine.clock.now())
    assert not webhook.verified(webhook.new_secret(), headers, body, engine.clock.now())
    assert not webhook.verified(made.secret, headers, body, engine.clock.now() + 301 * SECOND)


def test_a_webhook_that_fails_is_retried_and_then_a_dead_letter(engine, endpoint):
    hook(engine, endpoint.url)
    endpoint.status = 503
    publish(engine, envelope())
    duty = Webhooks(engine)
    for _ in range(3):
        turns(engine, duty)
        engine.clock.advance(60 * SECOND)
    assert len(endpoint.calls) == 3
    (letter,) = engine.db.read(lambda tx: find_letters(tx, Filter(), limit=5))
    assert (letter.group, letter.error_code) == ("webhook.shop", R.WEBHOOK_STATUS)
    assert "503" in letter.error_detail


def test_a_webhook_that_is_gone_is_not_called_again(engine, endpoint):
    hook(engine, endpoint.url)
    endpoint.status = 410
    publish(engine, envelope())
    turns(engine, Webhooks(engine))
    assert engine.db.read(lambda tx: find_letters(tx, Filter(), limit=5))[0].attempts == 1


def test_a_webhook_that_cannot_be_reached_or_redirects_is_a_failure(engine, endpoint):
    hook(engine, "http://127.0.0.1:1/")
    first = envelope()
    publish(engine, first)
    turns(engine, Webhooks(engine))
    assert engine.db.read(groups.totals)[0].failing == 1
    (waiting,) = engine.db.read(lambda tx: deliveries.of_event(tx, first.event_id))
    assert waiting["error_code"] == R.WEBHOOK_UNREACHABLE
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
    stamp = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == webhook.signature(made.secret, headers["webhook-id"], stamp, body)


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
