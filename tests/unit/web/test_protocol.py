"""Below HTTP: headers are bounded in bytes, number and time, connections in number; those that ask keep room."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from patra.kernel.telemetry import metrics_text
from patra.web.endpoint import Endpoint, Request
from tests.unit.web.served import Client, served, web_settings

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@contextmanager
def connection(client: Client) -> Iterator[socket.socket]:
    host, _, port = client.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as sock:
        yield sock


def answer(sock: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    out = b""
    while piece := sock.recv(65_536):
        out += piece
    return out


def status_and_code(raw: bytes) -> tuple[int, str]:
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    return int(head.split()[1]), msgspec.json.decode(body)["code"]


def send(sock: socket.socket, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # refused while it still came
        sock.sendall(data)


@pytest.mark.parametrize(
    "head",
    [
        HEALTH + b"X: " + b"a" * 5000 + b"\r\n\r\n",
        HEALTH + b"X: a\r\n" * 60 + b"\r\n",
        HEALTH + b"".join(b"X%d: %s\r\n" % (n, b"a" * 100) for n in range(45)) + b"\r\n",
        b"GET /health?" + b"a" * 5000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["one large", "many", "large together", "url"],
)
def test_a_header_that_is_too_large_is_refused(head: bytes) -> None:
    with served(web_settings(max_header_bytes=4096, max_headers=50)) as client, connection(client) as sock:
        sock.sendall(head)
        assert status_and_code(answer(sock)) == (431, "headers_too_large")
        assert client.get("/health").status == 200


def test_a_header_without_end_is_cut_off_at_the_bound() -> None:
    with served(web_settings(max_header_bytes=4096)) as client, connection(client) as sock:
        sock.sendall(HEALTH + b"X: " + b"a" * 4096)
        assert status_and_code(answer(sock)) == (431, "headers_too_large")


def test_trailers_without_end_are_cut_off_too() -> None:
    start = b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    patient = web_settings(max_header_bytes=4096, header_seconds=600, idle_seconds=600)
    with served(patient) as client, connection(client) as sock:
        sock.sendall(start)
        for _ in range(64):
            send(sock, b"X: " + b"a" * 1000)
        with suppress(ConnectionResetError):
            answer(sock)  # which comes to an end


def test_a_trailer_is_no_header() -> None:
    """A proxy that passes trailers on has replaced `X-Forwarded-For` in the header alone."""
    token = "a-token-of-the-tests-0123456789"
    chunked = b"GET /loops HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    guarded = web_settings(admin_tokens=(f"alice=sha256:{sha256(token.encode()).hexdigest()}",))
    with served(guarded) as client, connection(client) as sock:
        sock.sendall(chunked + f"Authorization: Bearer {token}\r\n\r\n".encode())
        assert b'"code":"token_missing"' in answer(sock)


def test_a_header_of_the_usual_size_passes() -> None:
    with served() as client:
        headers = {f"X-{n}": "a" * 200 for n in range(60)}
        assert client.get("/health", headers=headers).status == 200


@pytest.mark.parametrize(("sent", "said"), [(b"", b""), (HEALTH, b"HTTP/1.1 408 ")], ids=["silent", "half a header"])
def test_a_connection_that_asks_nothing_is_closed_in_time(sent: bytes, said: bytes) -> None:
    with served(web_settings(header_seconds=0.05)) as client, connection(client) as sock:
        sock.sendall(sent)
        assert answer(sock)[: len(said) or None] == said


def test_a_connection_that_is_kept_open_is_closed_when_its_next_header_does_not_come() -> None:
    with served(web_settings(header_seconds=0.05, idle_seconds=1)) as client, connection(client) as sock:
        sock.sendall(HEALTH + b"\r\n")
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 ")
        sock.sendall(HEALTH)
        assert status_and_code(answer(sock)) == (408, "headers_timed_out")


@pytest.mark.parametrize(
    "web", [{"max_connections": 16}, {"max_connections_per_address": 16}], ids=["in total", "by address"]
)
def test_connections_that_ask_nothing_do_not_keep_out_one_that_asks(web: dict[str, Any]) -> None:
    with served(web_settings(header_seconds=600, **web)) as client, ExitStack() as open_sockets:
        idle = [open_sockets.enter_context(connection(client)) for _ in range(64)]
        assert client.get("/health").status == 200
        assert answer(idle[0]) == b""  # the one that waited longest went first


def test_where_every_connection_is_at_work_one_more_is_refused() -> None:
    body = b"POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    with served(web_settings(max_connections=4)) as client, ExitStack() as open_sockets:
        for _ in range(4):
            busy = open_sockets.enter_context(connection(client))
            busy.sendall(body)
            assert busy.recv(100).startswith(b"HTTP/1.1 100")  # it is at work, and waits for the body
        with connection(client) as more:
            assert status_and_code(answer(more)) == (503, "too_many_connections")


def test_a_trusted_proxy_may_hold_any_number_of_connections() -> None:
    token = ("sha256:" + "0" * 64,)
    web = {"max_connections_per_address": 2, "trusted_proxies": ("127.0.0.1",), "admin_tokens": token}
    with served(web_settings(**web)) as client, ExitStack() as open_sockets:
        socks = [open_sockets.enter_context(connection(client)) for _ in range(8)]
        for sock in socks:
            sock.sendall(HEALTH + b"\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_its_answer_is_cut_off() -> None:
    def large(request: Request) -> bytes:
        return b"a" * 50_000_000

    endpoint = Endpoint(method="GET", path="/large", handler=large, role=None, summary="Large.", media="text/plain")
    with served(web_settings(request_seconds=1.0), [endpoint]) as client, connection(client) as sock:
        sock.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        while "answer_not_read" not in metrics_text().decode():
            assert client.get("/health").status == 200
        assert len(answer(sock)) < 50_000_000


def test_a_request_with_two_hosts_is_refused_and_the_next_one_with_one_is_not() -> None:
    for second in (b"Host: evil.example\r\n", b"hOST: 127.0.0.1\r\n"):
        with served() as client, connection(client) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert b" 200 " in sock.recv(4096)
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n" + second + b"\r\n")
            assert status_and_code(answer(sock)) == (400, "request_malformed")


def test_what_is_no_http_is_answered_as_every_refusal_is() -> None:
    with served() as client, connection(client) as sock:
        sock.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert status_and_code(answer(sock)) == (400, "request_malformed")
