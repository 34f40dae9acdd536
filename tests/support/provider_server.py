"""A simulated provider on a port of this machine: what it answers is sent as it says, or cut on the way."""

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import msgspec


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; `cut` closes the connection after so many bytes of the body."""

    status: int
    body: bytes
    kind: str
    headers: dict[str, str] = {}
    cut: int | None = None


class Answering(Protocol):
    """Whatever answers requests."""

    def answer(self, method: str, target: str, body: bytes) -> Reply: ...


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Answering

    def do_GET(self) -> None:
        self._reply(b"")

    def do_POST(self) -> None:
        self._reply(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def _reply(self, body: bytes) -> None:
        reply = self.provider.answer(self.command, self.path, body)
        with suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body if reply.cut is None else reply.body[: reply.cut])
        if reply.cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it so
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news here."""


@contextmanager
def serving(provider: Answering) -> Generator[str]:
    """The provider on a port of this machine; gives its URL."""
    handler = type("Handler", (_Handler,), {"provider": provider})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
