"""A wire between a client and PostgreSQL that a test can cut: at once, or just before or just after a commit arrives."""

import contextlib
import socket
import struct
import threading
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

Cut = Literal["before the commit", "after the commit"]


class Wire:
    """Forwards a port to the server of a URL. `url` leads through the wire."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._listener = self._listen(0)
        self._port = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self.cut_at: Cut | None = None
        self.silent = False  # as a server that was stopped: connections are taken and stay open, nothing passes
        user = f"{parts.username}@" if parts.username else ""
        self.url = urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{self._port}"))

    def cut(self) -> None:
        """End every connection now, as a reset from the network does; new ones are let through."""
        while self._ends:
            with contextlib.suppress(OSError):
                self._ends.pop().shutdown(socket.SHUT_RDWR)

    def take_away(self) -> None:
        """The server is gone: connections end, new ones are refused."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def bring_back(self) -> None:
        self._listener = self._listen(self._port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port), reuse_port=False)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._ends += [client, server]
            threading.Thread(target=self._up, args=(client, server), daemon=True).start()
            threading.Thread(target=self._down, args=(server, client), daemon=True).start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self.silent:
                    continue
                if self.cut_at == "before the commit" and b"COMMIT\0" in data:
                    break
                server.sendall(data)
        _reset(server)
        _reset(client)

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if self.silent:
                    continue
                if self.cut_at == "after the commit" and b"COMMIT\0" in data:
                    break
                client.sendall(data)
        _reset(client)
        _reset(server)


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
    end.close()
