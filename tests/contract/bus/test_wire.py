"""The connection to a NATS server: on a real one with names, tokens and certificates, and on one that behaves badly."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from patra.bus.transports.nats import BrokerUnreachable, NatsStream
from patra.bus.transports.outbound import UNREACHABLE, Parcel
from patra.bus.transports.wire import Message, Post, Wire, WireError
from tests import services
from tests.certificates import certificate

LONG = 20.0
INFO = b'INFO {"max_payload":1048576,"headers":true}\r\n'


@contextmanager
def scripted(script):
    """A server that greets, and then does what a test tells it to: `script(connection, said)`."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with server.accept()[0] as connection:
            script(connection, connection.makefile("rb"))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"nats://127.0.0.1:{server.getsockname()[1]}"
    server.close()
    thread.join(LONG)


def greeted(connection, said):
    """Up to the subscription for answers; gives the name of that."""
    connection.sendall(INFO)
    assert said.readline().startswith(b"CONNECT {")
    assert said.readline() == b"PING\r\n"
    connection.sendall(b"PONG\r\n")
    return said.readline().split()[1].decode()


def test_messages_are_whole_however_they_are_cut(nats_url):
    body = b"a\r\nMSG x 1 5\r\n" * 1000

    def script(connection, said):
        greeted(connection, said)
        headed = b"NATS/1.0 408 Timeout\r\n\r\n"
        with_name = b"NATS/1.0\r\nName: value\r\n\r\n"
        connection.sendall(b"MSG a 7 %d\r\n" % len(body))
        for at in range(0, len(body), 4097):
            connection.sendall(body[at : at + 4097])
        connection.sendall(b"\r\nPI")
        connection.sendall(b"NG\r\n+OK\r\nHMSG b 8 r.1 %d %d\r\n%b\r\n" % (len(headed), len(headed), headed))
        connection.sendall(b"HMSG c 9 %d %d\r\n%bxyz\r\n" % (len(with_name), len(with_name) + 3, with_name))
        assert said.readline() == b"PONG\r\n"
        connection.sendall(b"MSG d 7 r.2 0\r\n\r\n")
        said.readline()

    with scripted(script) as url:
        wire = Wire(url, LONG)
        until = time.monotonic() + LONG
        assert [wire.receive(until) for _ in range(4)] == [
            Message(7, "a", "", None, body),
            Message(8, "b", "r.1", "408", b""),
            Message(9, "c", "", None, b"xyz"),
            Message(7, "d", "r.2", None, b""),
        ]
        wire.close()


def test_an_answer_is_told_from_what_else_arrives(nats_url):
    def script(connection, said):
        inbox = greeted(connection, said).removesuffix(".*")
        said.readline()
        said.readline()
        connection.sendall(
            f"MSG elsewhere 5 2\r\nhi\r\nMSG {inbox}.0 1 3\r\nold\r\nMSG {inbox}.1 1 3\r\nyes\r\n".encode()
        )
        said.readline()

    with scripted(script) as url:
        wire = Wire(url, LONG)
        assert wire.request("question").data == b"yes"
        assert wire.receive(time.monotonic() + LONG) == Message(5, "elsewhere", "", None, b"hi")
        wire.close()


def refusing(connection, said):
    connection.sendall(INFO)
    said.readline()
    said.readline()
    connection.sendall(b"-ERR 'Authorization Violation'\r\n")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (lambda connection, _: connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "no NATS server"),
        (lambda connection, _: connection.sendall(b"INFO {\r\n"), "no NATS server"),
        (refusing, "Authorization"),
        (lambda *_: None, "closed"),
    ],
)
def test_a_server_that_will_not_have_us_is_told_of(script, why):
    with scripted(script) as url, pytest.raises(WireError, match=why):
        Wire(url, LONG)


def test_a_server_that_says_nothing_is_not_waited_for_for_ever():
    ended = threading.Event()
    with scripted(lambda *_: ended.wait(LONG)) as url:
        with pytest.raises(WireError, match="says nothing"):
            Wire(url, 0.05)
        ended.set()


def test_no_header_brings_a_line_of_its_own(nats_url):
    wire = Wire(nats_url, LONG)
    for value in ("a\r\nPUB x 0", "a\nb"):
        with pytest.raises(ValueError, match="line's end"):
            wire.post([Post(subject="x", headers=(("Nats-Msg-Id", value),))])
    wire.close()


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
        with pytest.raises(BrokerUnreachable, match="Authorization Violation") as caught:
            stranger.incarnation()
        assert "guess" not in str(caught.value)
        assert stranger.send([parcel("2")]) == [UNREACHABLE]


def test_a_server_with_a_certificate_is_spoken_to_under_tls(tmp_path, monkeypatch):
    mine = certificate(tmp_path)
    with services.nats(None, None, "--tls", "--tlscert", mine.certificate, "--tlskey", mine.key) as url:
        stranger = NatsStream(url, seconds=LONG)
        with pytest.raises(BrokerUnreachable, match="CERTIFICATE"):
            stranger.incarnation()
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


def test_a_sender_with_nothing_to_send_is_still_heard_by_the_server(nats_url):
    """The reader looks after it: the server would close what does not answer."""
    heard = threading.Event()

    def script(connection, said):
        greeted(connection, said)
        connection.sendall(b"PING\r\n")
        if said.readline() == b"PONG\r\n":
            heard.set()

    with scripted(script) as url:
        name = f"W{time.monotonic_ns()}"
        stream = NatsStream(nats_url, name, prefix=f"{name}.bus")
        stream.incarnation()
        stream._out = Wire(url, LONG)
        until = time.monotonic() + LONG
        while not heard.is_set() and time.monotonic() < until:
            stream.read(0, 10, 0.02)
        assert heard.is_set()
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
    with pytest.raises(BrokerUnreachable, match="refused"):
        nobody.incarnation()
