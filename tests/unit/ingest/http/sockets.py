"""A server that says, byte for byte, what a test tells it to say, and remembers what it was asked."""

import socket
import ssl
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress

Reply = bytes | Callable[[socket.socket], None]


class Scripted:
    """Each request on any connection gets the next reply; the last one is repeated."""

    def __init__(self, replies: Sequence[Reply], greeting: bytes = b"", tls: ssl.SSLContext | None = None) -> None:
        self._greeting = greeting
        self._tls = tls
        self.requests: list[bytes] = []
        self.connections = 0
        self.open = 0
        self._replies = list(replies)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.spoken: list[tuple[str | None, str | None]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                self.open += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError):
                self._talk(self._secured(connection))
        finally:
            self.open -= 1

    def _secured(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        secured = self._tls.wrap_socket(connection, server_side=True)
        self.spoken.append((secured.version(), secured.selected_alpn_protocol()))
        return secured

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if self._greeting:
                connection.sendall(self._greeting)
                return
            while request := _request(connection):
                with self._lock:
                    self.requests.append(request)
                    reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
                if isinstance(reply, bytes):
                    connection.sendall(reply)
                    if b"Content-Length" not in reply.partition(b"\r\n\r\n")[0]:
                        return
                else:
                    reply(connection)
                    return

    def close(self) -> None:
        self._listener.close()


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65_536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(h.split(b":")[1]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length")), 0)
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def scripted(*replies: Reply, greeting: bytes = b"", tls: ssl.SSLContext | None = None) -> Generator[Scripted]:
    server = Scripted(replies, greeting, tls)
    try:
        yield server
    finally:
        server.close()


def page(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body
