"""A NATS server's address goes in; a connection that one thread at a time speaks over comes out, without an event loop.

The client protocol of NATS is lines of text. Spoken over a plain socket, a message is in the hands of whoever waits for
it as soon as it is here: no other thread has to wake first (docs/decisions/0041).
"""

import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from patra.kernel.ids import new_id

PORT = 4222
CHUNK = 1 << 18


class WireError(Exception):
    """The connection cannot be made, was lost, or the server refused; it is closed."""


class Message(msgspec.Struct, frozen=True, gc=False):
    """What arrived: on which subscription, from the server itself with a `status`."""

    sid: int
    subject: str
    reply: str
    status: str | None
    data: bytes


class Post(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is sent: an answer to it comes to `reply`."""

    subject: str
    data: bytes = b""
    reply: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Wire:
    """One connection. `close` may be called by any thread, and wakes whoever waits."""

    def __init__(self, url: str, seconds: float) -> None:
        self._seconds = seconds
        self._buffer = bytearray()
        self._at = 0  # how far the buffer was read
        self._aside: deque[Message] = deque()  # what arrived while an answer was waited for
        self._ponged = False
        self._sids = 0
        self._tokens = 0
        self.closed = False
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        host = parts.hostname or "localhost"
        try:
            self._socket = socket.create_connection((host, parts.port or PORT), timeout=seconds)
        except (OSError, ValueError) as error:
            self.closed = True
            raise WireError(f"{type(error).__name__} {error}") from error
        try:
            self._greet(host, parts.scheme == "tls", _credentials(parts.username, parts.password))
        except BaseException:
            self.close()
            raise
        self._inbox = f"_INBOX.{new_id()}"
        self._answers = self.subscribe(f"{self._inbox}.*")

    def close(self) -> None:
        self.closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def subscribe(self, subject: str) -> int:
        self._sids += 1
        self._send(f"SUB {subject} {self._sids}\r\n".encode())
        return self._sids

    def unsubscribe(self, sid: int) -> None:
        self._send(f"UNSUB {sid}\r\n".encode())

    def post(self, posts: Sequence[Post]) -> None:
        self._send(b"".join([_lines(one) for one in posts]))

    def own_subject(self) -> str:
        """A subject of its own for one answer."""
        self._tokens += 1
        return f"{self._inbox}.{self._tokens}"

    def request(self, subject: str, data: bytes = b"") -> Message:
        """The answer to a question; what else arrives meanwhile stays for `receive`."""
        reply = self.own_subject()
        self.post([Post(subject=subject, data=data, reply=reply)])
        until = time.monotonic() + self._seconds
        while (message := self._next(until)) is not None:
            if message.subject == reply:
                return message
            if message.sid != self._answers:  # else an answer that came too late
                self._aside.append(message)
        self.close()
        raise WireError(f"no answer within {self._seconds:g} s")

    def receive(self, until: float) -> Message | None:
        """The next message, waited for until an instant of the monotonic clock."""
        return self._aside.popleft() if self._aside else self._next(until)

    def tend(self) -> None:
        """Answer the server if it asked whether we are there; learn it if the connection was lost."""
        while (message := self._next(0.0)) is not None:
            if message.sid != self._answers:
                self._aside.append(message)

    def _next(self, until: float) -> Message | None:
        while (message := self._parsed()) is None:
            if not self._read(until):
                return None
        return message

    def _read(self, until: float) -> bool:
        """Whether something came in time."""
        try:
            self._socket.settimeout(max(until - time.monotonic(), 0.0) if until else 0.0)
            chunk = self._socket.recv(CHUNK)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            return False
        except (OSError, ValueError) as error:
            self.close()
            raise WireError(f"{type(error).__name__} {error}") from error
        if not chunk:
            self.close()
            raise WireError("the connection was closed")
        self._buffer += chunk
        return True

    def _parsed(self) -> Message | None:
        """The next message of the buffer, if it is whole; what the server says besides is answered."""
        while (end := self._buffer.find(b"\r\n", self._at)) >= 0:
            line = bytes(self._buffer[self._at : end])
            if line.startswith((b"MSG ", b"HMSG ")):
                return self._message(line.decode().split(), end + 2)
            self._at = end + 2
            if line == b"PING":
                self._send(b"PONG\r\n")
            elif line == b"PONG":
                self._ponged = True
            elif line.startswith(b"-ERR"):
                self.close()
                raise WireError(f"the server said {line[4:].decode(errors='replace').strip()}")
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        return None

    def _message(self, words: list[str], start: int) -> Message | None:
        end = start + int(words[-1])
        if len(self._buffer) < end + 2:
            return None
        headed = words[0] == "HMSG"
        place = start + int(words[-2]) if headed else start
        status = None
        if headed:
            first = bytes(self._buffer[start:place]).split(b"\r\n", 1)[0].split()
            status = first[1].decode() if len(first) > 1 else None
        reply = words[3] if len(words) == (6 if headed else 5) else ""
        data = bytes(self._buffer[place:end])
        self._at = end + 2
        return Message(int(words[2]), words[1], reply, status, data)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._seconds)
            self._socket.sendall(data)
        except (OSError, ValueError) as error:
            self.close()
            raise WireError(f"{type(error).__name__} {error}") from error

    def _greet(self, host: str, tls: bool, credentials: dict[str, str]) -> None:
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        until = time.monotonic() + self._seconds
        while b"\r\n" not in self._buffer:
            if not self._read(until):
                raise WireError("the server says nothing")
        line, _, rest = bytes(self._buffer).partition(b"\r\n")
        if not line.startswith(b"INFO "):
            raise WireError("this is no NATS server")
        self._buffer = bytearray(rest)
        try:
            info: dict[str, Any] = msgspec.json.decode(line[5:], type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise WireError("this is no NATS server") from error
        self.largest = int(info.get("max_payload", 1 << 20))
        if tls or info.get("tls_required"):
            try:
                self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=host)
            except OSError as error:
                raise WireError(f"{type(error).__name__} {error}") from error
        hello = {"verbose": False, "pedantic": False, "lang": "patra", "version": "1", "protocol": 1, "name": "patra"}
        hello |= {"headers": True, "no_responders": True, **credentials}
        self._send(b"CONNECT " + msgspec.json.encode(hello) + b"\r\nPING\r\n")
        while not self._ponged:
            if not self._read(until):
                raise WireError("the server does not answer")
            self._parsed()


def _credentials(user: str | None, password: str | None) -> dict[str, str]:
    """A name alone is a token."""
    if user is None:
        return {}
    if password is None:
        return {"auth_token": unquote(user)}
    return {"user": unquote(user), "pass": unquote(password)}


def _lines(post: Post) -> bytes:
    reply = f" {post.reply}" if post.reply else ""
    if not post.headers:
        return b"PUB %b%b %d\r\n%b\r\n" % (post.subject.encode(), reply.encode(), len(post.data), post.data)
    head = "".join([f"{name}: {value}\r\n" for name, value in post.headers])
    if head.count("\r\n") != len(post.headers) or head.count("\n") != len(post.headers):
        raise ValueError("a header has a line's end in it")
    block = f"NATS/1.0\r\n{head}\r\n".encode()
    line = f"HPUB {post.subject}{reply} {len(block)} {len(block) + len(post.data)}\r\n".encode()
    return b"%b%b%b\r\n" % (line, block, post.data)
