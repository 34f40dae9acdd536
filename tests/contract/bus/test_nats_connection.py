"""The connection to NATS: servers that ask for names, tokens, keys and certificates, that behave badly, that die."""

import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import msgspec
import pytest

from patra import Bus
from patra.bus.transports.nats import BrokerUnreachable, NatsStream
from patra.bus.transports.nats_connection import login
from patra.bus.transports.sender import UNREACHABLE, Parcel
from tests import services
from tests.certificates import certificate
from tests.contract.bus.nats_keys import Operator, user_seed

LONG = 60.0
INFO = b'INFO {"max_payload":1048576,"headers":true}\r\n'


@contextmanager
def scripted(script):
    """A server that runs `script(connection, said)` for each client."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                accepted = server.accept()[0]
            except OSError:
                return
            with accepted as connection, suppress(OSError):  # the client may be gone
                script(connection, connection.makefile("rb"))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"nats://127.0.0.1:{server.getsockname()[1]}"
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(LONG)


def refusing(connection, said):
    connection.sendall(INFO)
    said.readline()
    said.readline()
    connection.sendall(b"-ERR 'Authorization Violation'\r\n")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (lambda connection, _: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "expecting INFO"),
        (lambda connection, _: connection.sendall(b"INFO {\r\n"), "json parse error"),
        (refusing, "Authorization"),
        (lambda *_: None, "expecting INFO"),
    ],
)
def test_a_server_that_will_not_have_us_is_told_of(script, why):
    with scripted(script) as url:
        stream = NatsStream(url, seconds=LONG)
        with pytest.raises(BrokerUnreachable, match=why):
            stream.incarnation()
        stream.close()


def test_a_server_that_says_nothing_is_not_waited_for_for_ever():
    ended = threading.Event()
    with scripted(lambda *_: ended.wait(LONG)) as url:
        stream = NatsStream(url, seconds=0.05)
        with pytest.raises(BrokerUnreachable):
            stream.incarnation()
        ended.set()
        stream.close()


@pytest.mark.parametrize("what", ["read", "send"])
def test_closing_while_a_connection_is_made_tells_its_user_that_the_broker_is_out_of_reach(what):
    """Not a cancellation, which no loop expects: it would be told of as a fault of Patra."""
    connected, ended = threading.Event(), threading.Event()
    told = []

    def silent(*_):
        connected.set()
        ended.wait(LONG)

    def use():
        try:
            told.append(stream.incarnation() if what == "read" else stream.send([parcel("1")]))
        except Exception as error:  # noqa: BLE001  whichever it is
            told.append(type(error))

    with scripted(silent) as url:
        stream = NatsStream(url, seconds=10 * LONG)
        user = threading.Thread(target=use, daemon=True)
        user.start()
        assert connected.wait(LONG)
        stream.close()
        user.join(LONG)
        ended.set()
    assert told == [BrokerUnreachable if what == "read" else [UNREACHABLE]]


def test_no_password_is_said_to_a_server_that_does_not_encrypt_where_the_address_says_tls():
    heard = []

    def script(connection, said):
        heard.append(b"")  # a client connected
        connection.sendall(INFO)
        heard.append(said.readline())

    with scripted(script) as url:
        for who in ("ann:secret@", "secret@", ""):
            stream = NatsStream(url.replace("nats://", f"tls://{who}"), seconds=1.0)
            with pytest.raises(BrokerUnreachable):
                stream.incarnation()
            stream.close()
    assert len(heard) == 6  # each attempt was ended before the next: none leaves its socket open
    assert b"secret" not in b"".join(heard)


def test_an_address_is_read_with_its_name_and_without_it_in_the_address():
    who = login("nats://a%40b:p%3A@one:4222,two:4223")
    assert who.servers == ("nats://one:4222", "nats://two:4223")
    assert (who.user, who.password) == ("a@b", "p:")
    assert (login("tls://t0k@one").user, login("tls://t0k@one").password) == ("t0k", None)


def parcel(key, body=b"x"):
    return Parcel(key=key, event_type="thing.happened", body=body)


@pytest.mark.parametrize(
    ("options", "user"),
    [(("--user", "ann", "--pass", "p:/@ ß"), "ann:p%3A%2F%40%20%C3%9F"), (("--auth", "t0k/en"), "t0k%2Fen")],
)
def test_a_server_may_ask_for_a_name_or_a_token(options, user):
    with services.nats(None, None, *options) as url:
        stream = NatsStream(url.replace("//", f"//{user}@"), seconds=LONG)
        assert stream.send([parcel("1")]) == [None]
        assert len(stream.read(0, 10, 0.0)) == 1
        stream.close()
        stranger = NatsStream(url.replace("//", "//eve:guess@"), seconds=LONG)
        with pytest.raises(BrokerUnreachable, match="Authorization") as caught:
            stranger.incarnation()
        assert "guess" not in str(caught.value)
        assert stranger.send([parcel("2")]) == [UNREACHABLE]
        stranger.close()


def test_a_server_with_a_certificate_is_spoken_to_under_tls(tmp_path, monkeypatch):
    mine = certificate(tmp_path)
    with services.nats(None, None, "--tls", "--tlscert", mine.certificate, "--tlskey", mine.key) as url:
        stranger = NatsStream(url, seconds=LONG)
        with pytest.raises(BrokerUnreachable, match="CERTIFICATE"):
            stranger.incarnation()
        stranger.close()
        monkeypatch.setenv("SSL_CERT_FILE", mine.authority)
        for address in (url, url.replace("nats://", "tls://")):
            stream = NatsStream(address, seconds=LONG)
            large = [parcel(f"{address}{n}", b"x" * 100_000) for n in range(30)]
            assert stream.send(large) == [None] * 30
            assert {len(a.body) for a in stream.read(0, 30, 0.0)} == {100_000}
            assert stream.read(60, 30, 0.01) == []
            stream.close()


def test_what_is_too_large_for_the_server_holds_back_nothing_else(nats_url):
    name = f"W{time.monotonic_ns()}"
    stream = NatsStream(nats_url, name, prefix=f"{name}.bus")
    assert stream.send([parcel("1"), parcel("2", b"x" * (2 << 20)), parcel("3")]) == [None, UNREACHABLE, None]
    assert [a.position for a in stream.read(0, 10, 0.0)] == [1, 2]
    stream.close()


def test_closing_wakes_whoever_reads(nats_url):
    name = f"W{time.monotonic_ns()}"
    stream = NatsStream(nats_url, name, prefix=f"{name}.bus")
    stream.incarnation()
    told = []

    def read():
        try:
            stream.read(0, 10, LONG * 10)
        except BrokerUnreachable as error:
            told.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    while not stream._wished:
        pass
    stream.close()
    thread.join(LONG)
    assert len(told) == 1


def test_of_several_servers_the_next_one_that_answers_is_asked(nats_url):
    free = socket.create_server(("127.0.0.1", 0))
    dead = f"nats://127.0.0.1:{free.getsockname()[1]}"
    free.close()
    stream = NatsStream(f"{dead},{nats_url},{dead}", "SEVERAL", prefix="several")
    try:
        assert stream.send([Parcel(key="k", event_type="thing.happened", body=b"1")]) == [None]
        assert stream.incarnation()
    finally:
        stream.close()
    nobody = NatsStream(f"{dead},{dead}", "SEVERAL", prefix="several")
    with pytest.raises(BrokerUnreachable, match=r"Connect call failed|refused"):
        nobody.incarnation()
    nobody.close()


def test_no_id_brings_a_header_of_its_own(nats_url):
    name = f"W{time.monotonic_ns()}"
    stream = NatsStream(nats_url, name, prefix=f"{name}.bus")
    stream.send([parcel("a\r\nNats-Expected-Stream: other"), parcel("b\r\n\r\nPUB x 0\r\n"), parcel("3")])
    assert stream.send([parcel("4")]) == [None]  # it speaks our language still
    stream.close()


def test_a_server_may_ask_for_an_nkey(tmp_path):
    seed, public = user_seed()
    config = tmp_path / "nkey.conf"
    config.write_text(f"authorization {{ users = [ {{ nkey: {public} }} ] }}", "utf-8")
    with services.nats(None, None, "-c", str(config)) as url:
        stream = NatsStream(url, seconds=LONG, credentials=seed)
        assert stream.send([parcel("1")]) == [None]
        assert len(stream.read(0, 10, 0.0)) == 1
        stream.close()
        for other in ("", user_seed()[0]):
            stranger = NatsStream(url, seconds=LONG, credentials=other)
            with pytest.raises(BrokerUnreachable, match="Authorization"):
                stranger.incarnation()
            stranger.close()
        with Bus.open("sqlite:///:memory:", nats_url=url, nats_credentials=seed) as bus:
            assert bus.run_until_idle() == 0
        with Bus.open("sqlite:///:memory:", nats_url=url) as bus, pytest.raises(BrokerUnreachable):
            bus.run_until_idle()


def test_a_server_may_ask_for_a_credentials_file_with_a_jwt(tmp_path):
    operator = Operator()
    config = tmp_path / "jwt.conf"
    config.write_text(operator.server_config(), "utf-8")
    with services.nats(None, None, "-c", str(config)) as url:
        stream = NatsStream(url, seconds=LONG, credentials=operator.credentials())
        assert stream.send([parcel("1")]) == [None]
        assert len(stream.read(0, 10, 0.0)) == 1
        stream.close()
        stranger = NatsStream(url, seconds=LONG, credentials=Operator().credentials())
        with pytest.raises(BrokerUnreachable, match="Authorization"):
            stranger.incarnation()
        stranger.close()


def test_a_cluster_of_three_loses_nothing_when_the_leader_of_its_stream_is_killed(tmp_path):
    """Only one server is named: of the others the cluster tells. What was not confirmed is sent again, as a relay does."""
    ports, routes = [services.free_port() for _ in range(3)], [services.free_port() for _ in range(3)]
    others = ",".join(f"nats://127.0.0.1:{port}" for port in routes)
    with ExitStack() as running:
        servers = {}
        for n in range(3):
            options = ("--cluster_name", "c", "--cluster", f"nats://127.0.0.1:{routes[n]}", "--routes", others)
            server = services.nats(ports[n], tmp_path / f"js{n}", "-n", f"n{n}", *options)
            servers[f"n{n}"] = running.push(server) and server
            server.__enter__()
        stream = NatsStream(f"nats://127.0.0.1:{ports[0]}", seconds=2.0, replicas=3)
        confirmed = sent_until_confirmed(stream, range(100))
        assert [a.body for a in read_until(stream, 0, 50)] == [b"%d" % n for n in range(50)]
        info = described(stream)
        assert (info["config"]["num_replicas"], len(info["cluster"]["replicas"])) == (3, 2)
        servers[info["cluster"]["leader"]].__exit__(None, None, None)
        confirmed += sent_until_confirmed(stream, range(100, 200))
        arrived = [a.body for a in read_until(stream, 50, 150)]
        assert confirmed == 200
        assert sorted(arrived, key=int) == [b"%d" % n for n in range(50, 200)]
        stream.close()


def sent_until_confirmed(stream, numbers):
    waiting = {n: parcel(f"k{n}", b"%d" % n) for n in numbers}
    until = time.monotonic() + 3 * LONG
    while waiting and time.monotonic() < until:
        sent = dict(waiting)
        for n, code in zip(sent, stream.send(list(sent.values())), strict=True):
            if code is None:
                del waiting[n]
    return len(numbers) - len(waiting)


def read_until(stream, after, count):
    found = []
    until = time.monotonic() + 3 * LONG
    while len(found) < count and time.monotonic() < until:
        try:
            found += stream.read(found[-1].position if found else after, count - len(found), 0.5)
        except BrokerUnreachable:
            continue
    return found


def described(stream):
    return msgspec.json.decode(stream._in.request(f"$JS.API.STREAM.INFO.{stream.name}").data)
