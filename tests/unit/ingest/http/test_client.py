"""What leaves the process, what comes back, and every way in which it does not (ch. 4.2, ruling I8)."""

import gzip
import re
import socket
import struct
import zlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from patra.ingest.http.client import (
    CHUNK_BYTES,
    Answer,
    Failure,
    Fault,
    Outgoing,
    Transport,
    follow_redirect,
    with_tracing,
)
from patra.ingest.ratelimit.limiter import Permit
from patra.kernel.safety.networks import networks_of
from tests.certificates import certificate
from tests.services import free_port
from tests.unit.ingest.http.sockets import Scripted, page, scripted

PERMIT = Permit(key="k", id="p", cost=1, at=0, waited=0, asked=1, why=None, view={})


@pytest.fixture
def transport():
    found = Transport()
    yield found
    found.close()


def get(server: Scripted, path: str = "/works", **more) -> Outgoing:
    settings = {"hosts": ("127.0.0.1",), "allow_http": True, "connect_timeout": 2.0, "read_timeout": 2.0} | more
    return Outgoing(method="GET", url=server.url + path, **settings)


def failed(transport: Transport, request: Outgoing) -> Failure:
    found = transport.send(request, PERMIT)
    assert isinstance(found, Failure), found
    return found


def answered(transport: Transport, request: Outgoing) -> Answer:
    found = transport.send(request, PERMIT)
    assert isinstance(found, Answer), found
    return found


def test_a_name_that_leads_inside_is_asked_only_where_its_network_is_named() -> None:
    inside = Transport(networks=networks_of(["127.0.0.0/8"]))
    with scripted(page(b"{}")) as server:
        port = server.url.rpartition(":")[2]
        request = Outgoing(
            method="GET", url=f"http://api.provider.test:{port}/", hosts=("*.provider.test",), allow_http=True
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("socket.getaddrinfo", resolves_to("127.0.0.1"))
            refused = failed(Transport(), request)
            assert (refused.fault, server.connections) == (Fault.CONNECT, 0)
            assert "not a public address" in refused.detail
            assert answered(inside, request).status == 200
            through = msgspec.structs.replace(request, proxy=f"http://proxy.test:{port}")
            assert "not a public address" in failed(Transport(), through).detail
    inside.close()


def resolves_to(address: str):
    def getaddrinfo(host: str, port: int, *_: object, **__: object):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    return getaddrinfo


def test_a_connection_is_used_again(transport: Transport) -> None:
    with scripted(page(b"{}", Content_Type="application/json; charset=utf-8")) as server:
        for _ in range(3):
            answer = answered(transport, get(server))
        assert (answer.status, answer.body, answer.content_type) == (200, b"{}", "application/json")
        assert (server.connections, len(server.requests)) == (1, 3)


def test_a_connection_that_the_provider_gave_up_is_not_used_again(transport: Transport) -> None:
    def once(connection: socket.socket) -> None:
        connection.sendall(page(b"first"))  # and then it hangs up, without having said so

    with scripted(once, page(b"second")) as server:
        first = answered(transport, get(server))
        while server.open:  # its end is on its way
            pass
        second = answered(transport, get(server))
        assert (first.body, second.body, server.connections) == (b"first", b"second", 2)


def test_a_connection_whose_answer_was_not_read_to_the_end_is_not_used_again(transport: Transport) -> None:
    large = b"x" * 10 * CHUNK_BYTES  # more than one read takes in
    with scripted(page(large)) as server:
        assert failed(transport, get(server, max_bytes=100)).fault is Fault.TOO_LARGE
        assert answered(transport, get(server)).body == large
        assert server.connections == 2


def test_chunks_are_put_together_and_the_connection_is_used_again(transport: Transport) -> None:
    chunks = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n"
    reply = b"HTTP/1.1 200 OK\r\nX-Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks
    with scripted(reply) as server:
        for _ in range(2):
            answer = answered(transport, get(server))
            assert (answer.body, answer.wire_bytes) == (b"hello world", 11)
        assert server.connections == 1


def test_a_proxy_is_asked_for_the_whole_url(transport: Transport) -> None:
    with scripted(page(b"{}")) as proxy:
        request = Outgoing(
            method="GET",
            url="http://api.example.org/works",
            hosts=("api.example.org",),
            allow_http=True,
            proxy=proxy.url,
        )
        assert answered(transport, request).body == b"{}"
        assert proxy.requests[0].startswith(b"GET http://api.example.org/works HTTP/1.1\r\n")


def test_repeated_headers_are_joined(transport: Transport) -> None:
    reply = b"HTTP/1.1 200 OK\r\nLink: <a>; rel=next\r\nLink: <b>; rel=last\r\nContent-Length: 0\r\n\r\n"
    with scripted(reply) as server:
        assert answered(transport, get(server)).headers["link"] == "<a>; rel=next, <b>; rel=last"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"x" * 5000, mtime=0)),
        ("x-gzip", gzip.compress(b"x" * 2000, mtime=0) + gzip.compress(b"x" * 3000, mtime=0)),
        ("deflate", zlib.compress(b"x" * 5000)),
        ("deflate", zlib.compress(b"x" * 5000)[2:-4]),
        ("identity", b"x" * 5000),
    ],
)
def test_compressed_bodies_are_unpacked(transport: Transport, encoding: str, packed: bytes) -> None:
    with scripted(page(packed, Content_Encoding=encoding)) as server:
        answer = answered(transport, get(server))
        assert (answer.body, answer.wire_bytes) == (b"x" * 5000, len(packed))
        assert b"Accept-Encoding: gzip, deflate" in server.requests[0]


def test_a_body_is_bounded_also_after_decompression(transport: Transport) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    with scripted(page(bomb, Content_Encoding="gzip"), page(b"x" * 3000)) as server:
        assert failed(transport, get(server, max_bytes=1_000_000)).fault is Fault.TOO_LARGE
        assert failed(transport, get(server, max_bytes=2999)).fault is Fault.TOO_LARGE


def test_an_encoding_nobody_asked_for_or_garbage_is_refused(transport: Transport) -> None:
    with scripted(page(b"xyz", Content_Encoding="compress"), page(b"not gzip", Content_Encoding="gzip")) as server:
        assert failed(transport, get(server)).fault is Fault.BAD_ENCODING
        assert failed(transport, get(server)).fault is Fault.BAD_ENCODING


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def half_then_reset(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    reset(connection)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (reset, Fault.RESET),
        (lambda c: c.close(), Fault.RESET),
        (half_then_reset, Fault.RESET),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Fault.TRUNCATED),
        (lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), Fault.TRUNCATED),
        (page(gzip.compress(b"x" * 9000, mtime=0)[:-12], Content_Encoding="gzip"), Fault.TRUNCATED),
        (b"what is this\r\n\r\n", Fault.RESET),
    ],
    ids=["reset", "closed", "reset-half-way", "chunks-cut", "length-cut", "gzip-cut", "not-http"],
)
def test_a_broken_answer_has_a_name(transport: Transport, reply, fault: Fault) -> None:
    with scripted(reply) as server:
        assert failed(transport, get(server)).fault is fault


def test_silence_is_a_timeout(transport: Transport) -> None:
    with scripted(lambda c: c.recv(1)) as server:
        assert failed(transport, get(server, read_timeout=0.05)).fault is Fault.TIMEOUT


def a_byte_now_and_then(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
    connection.recv(1)  # nothing more until the other side hangs up


def test_a_body_that_drips_in_is_a_timeout_as_a_whole(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patra.ingest.http.client.MAX_EXCHANGE_S", 0.0)
    with scripted(a_byte_now_and_then) as server:
        found = failed(transport, get(server, read_timeout=60.0))  # each byte by itself comes in time
    assert found.fault is Fault.TIMEOUT
    assert "not over after" in found.detail


def part_of_a_chunk(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{")
    connection.recv(1)


def test_a_body_that_drips_in_within_one_chunk_is_a_timeout_too(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patra.ingest.http.client.MAX_EXCHANGE_S", 0.0)
    with scripted(part_of_a_chunk) as server:
        found = failed(transport, get(server, read_timeout=60.0))
    assert (found.fault, "not over after" in found.detail) == (Fault.TIMEOUT, True)


def test_a_closed_port_is_a_failed_connect(transport: Transport) -> None:
    request = Outgoing(
        method="GET", url=f"http://127.0.0.1:{free_port()}/", hosts=("127.0.0.1",), allow_http=True, connect_timeout=1
    )
    assert failed(transport, request).fault is Fault.CONNECT


def test_an_unknown_name_is_a_dns_failure(transport: Transport) -> None:
    request = Outgoing(method="GET", url="http://no-such-host.invalid/", hosts=("*.invalid",), allow_http=True)
    assert failed(transport, request).fault is Fault.DNS


def test_pages_come_over_tls_on_a_connection_that_is_used_again(
    transport: Transport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", mine.authority)
    large = b"x" * 300_000
    with scripted(page(b"{}"), page(large), page(b"[]"), tls=mine.context()) as server:
        bodies = [answered(transport, get(server, allow_http=False)).body for _ in range(3)]
        assert bodies == [b"{}", large, b"[]"]
        assert server.connections == 1
        assert server.spoken == [("TLSv1.3", "http/1.1")]


@pytest.mark.parametrize(
    ("name", "until", "trusted"),
    [
        ("127.0.0.1", None, False),
        ("api.example.org", None, True),
        ("127.0.0.1", datetime(2020, 1, 1, tzinfo=UTC), True),
    ],
    ids=["unknown authority", "another host's", "expired"],
)
def test_a_certificate_that_proves_nothing_is_a_tls_failure_and_nothing_is_asked(
    transport: Transport,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    until: datetime | None,
    trusted: bool,
) -> None:
    theirs = certificate(tmp_path, name, until=until)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", theirs.authority)
    with scripted(page(b"{}"), tls=theirs.context()) as server:
        assert failed(transport, get(server, allow_http=False)).fault is Fault.TLS
        assert server.requests == []


def test_plain_text_where_tls_belongs_is_a_tls_failure(transport: Transport) -> None:
    with scripted(greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        url = server.url.replace("http:", "https:")
        request = Outgoing(method="GET", url=url, hosts=("127.0.0.1",), connect_timeout=2, read_timeout=2)
        assert failed(transport, request).fault is Fault.TLS


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://evil.example.org/", Fault.HOST_REFUSED),
        ("https://api.example.org.evil.com/", Fault.HOST_REFUSED),
        ("https://api.example.org@evil.com/", Fault.HOST_REFUSED),
        ("https://user:pw@api.example.org/", Fault.HOST_REFUSED),
        ("http://api.example.org/", Fault.HOST_REFUSED),
        ("file:///etc/passwd", Fault.UNSENDABLE),
        ("https://[::1/", Fault.UNSENDABLE),
        ("https://127.0.0.1\\.example.org/", Fault.UNSENDABLE),
        ("https://127.0.0.1\t.example.org/", Fault.UNSENDABLE),
        ("//api.example.org/x", Fault.UNSENDABLE),
    ],
)
def test_only_declared_hosts_are_asked(transport: Transport, url: str, fault: Fault) -> None:
    assert failed(transport, Outgoing(method="GET", url=url, hosts=("api.example.org",))).fault is fault


def test_a_line_break_in_a_header_is_never_sent(transport: Transport) -> None:
    with scripted(page(b"{}")) as server:
        request = get(server, headers=(("X-A", "1\r\nX-Evil: 2"),))
        assert failed(transport, request).fault is Fault.UNSENDABLE
        assert server.requests == []


def hop(location: str, status: int = 302) -> Answer:
    return Answer(status=status, headers={"location": location}, body=b"", url="", elapsed=0, wire_bytes=0)


BASE = Outgoing(
    method="GET",
    url="https://a.org/x?key=s3cret",
    headers=(("Authorization", "Bearer s3cret"), ("X-Key", "s3cret"), ("Accept", "*/*")),
    secrets=("s3cret",),
    hosts=("a.org", "b.org"),
    follow=True,
)


def test_a_redirect_on_the_same_host_keeps_the_headers() -> None:
    following = follow_redirect(BASE, hop("/y"))
    assert isinstance(following, Outgoing)
    assert (following.url, following.hops, following.headers) == ("https://a.org/y", 1, BASE.headers)


def test_a_redirect_to_another_host_does_not_get_the_credential() -> None:
    following = follow_redirect(BASE, hop("https://b.org/y", 308))
    assert isinstance(following, Outgoing)
    assert following.headers == (("Accept", "*/*"),)


def test_redirects_are_bounded_and_only_for_reads() -> None:
    from msgspec.structs import replace

    last = replace(BASE, hops=3)
    for request in (last, replace(BASE, method="POST"), replace(BASE, follow=False)):
        refused = follow_redirect(request, hop("/y"))
        assert isinstance(refused, Failure)
        assert refused.fault is Fault.REDIRECT_REFUSED
    assert follow_redirect(BASE, hop("/y", 304)) is None
    assert follow_redirect(BASE, hop("/y", 200)) is None


def test_a_redirect_off_the_hosts_is_refused_when_it_is_sent(transport: Transport) -> None:
    following = follow_redirect(BASE, hop("https://evil.org/?q=s3cret"))
    assert isinstance(following, Outgoing)
    refused = failed(transport, following)
    assert refused.fault is Fault.HOST_REFUSED
    assert "s3cret" not in refused.detail


def test_secrets_stand_in_the_request_and_nowhere_else(transport: Transport) -> None:
    secret = "p@ss/w+rd &1"
    request = Outgoing(
        method="POST",
        url="http://127.0.0.1:1/x?q=p%40ss%2Fw%2Brd%20%261&term=p%40ss%2Fw%2Brd+%261",
        body=f"key={secret}".encode(),
        headers=(("Authorization", f"Token {secret}"),),
        secrets=(secret,),
        hosts=("127.0.0.1",),
        allow_http=True,
        connect_timeout=0.5,
    )
    failure = failed(transport, request)
    for text in (repr(request), str(request), request.shown_url, failure.detail):
        assert "rd" not in text.replace("word", "")
        assert "p%40ss" not in text
    masked = Outgoing(method="POST", url="http://x/", body=b"key=***")
    assert request.body_hash == masked.body_hash


def test_correlation_and_trace_context_go_with_every_request(transport: Transport) -> None:
    with scripted(page(b"{}")) as server:
        answered(transport, get(server, headers=with_tracing((("Accept", "application/json"),), "ing-run-7")))
        sent = server.requests[0].decode().lower()
        assert "x-ingest-correlation-id: ing-run-7\r\n" in sent
        parts = next(line for line in sent.split("\r\n") if line.startswith("traceparent: ")).split(" ")[1].split("-")
        assert [len(part) for part in parts] == [2, 32, 16, 2]


def test_headers_go_out_in_their_order_and_one_that_comes_twice_goes_out_twice(transport: Transport) -> None:
    with scripted(page(b"{}")) as server:
        answered(transport, get(server, headers=(("X-B", "1"), ("X-A", "2"), ("x-b", "3"))))
        answered(transport, get(server, headers=(("X-B", "1"), ("X-A", "2"), ("accept-encoding", "identity"))))
    twice, own = (part.decode().lower() for part in server.requests)
    assert re.findall(r"x-\w: \d", twice) == ["x-b: 1", "x-b: 3", "x-a: 2"]
    assert "accept-encoding: gzip" in twice
    assert re.findall(r"x-\w: \d", own) == ["x-b: 1", "x-a: 2"]
    assert re.findall(r"accept-encoding: (\S+)", own) == ["identity"]


def test_a_body_is_sent_as_it_is(transport: Transport) -> None:
    with scripted(page(b"{}")) as server:
        request = Outgoing(
            method="POST",
            url=server.url + "/fetch",
            headers=(("Content-Type", "application/x-www-form-urlencoded"),),
            body=b"id=1,2,3",
            hosts=("127.0.0.1",),
            allow_http=True,
        )
        answered(transport, request)
        assert server.requests[0].startswith(b"POST /fetch HTTP/1.1\r\n")
        assert server.requests[0].endswith(b"\r\n\r\nid=1,2,3")


@pytest.mark.parametrize(
    "location", ["https://127.0.0.1\\.a.org/", "https://user@a.org/", "https://[::1/", "https://a.org:x/"]
)
def test_a_redirect_that_parsers_could_read_differently_is_not_followed(location: str) -> None:
    refused = follow_redirect(BASE, hop(location))
    assert isinstance(refused, Failure)
    assert refused.fault is Fault.REDIRECT_REFUSED


def test_what_was_checked_against_a_wildcard_is_what_is_connected_to(transport: Transport) -> None:
    request = Outgoing(method="GET", url="http://127.0.0.1\\.good.test/", hosts=("*.good.test",), allow_http=True)
    assert failed(transport, request).fault is Fault.UNSENDABLE
