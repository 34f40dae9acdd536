"""An origin goes in; a connection to it comes out: one that was kept open where there is one, else a new one.

Of `http.client` itself: the pools of a library on top of it cost more than the exchange of a page does.
"""

import ssl
import threading
from collections.abc import Callable
from http.client import HTTPConnection, HTTPSConnection
from typing import NamedTuple

from urllib3.util import wait_for_read


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int | None


class Connections:
    """Connections of a process that nobody uses at the moment, at most `most` for each origin."""

    def __init__(self, most: int, context: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._most = most
        self._new_context = context or _verifying
        self._context: ssl.SSLContext | None = None
        self._lock = threading.Lock()
        self._idle: dict[Origin, list[HTTPConnection]] = {}

    def take(self, origin: Origin, timeout: float) -> HTTPConnection:
        """A connection that is open. Raises OSError where none can be had, ssl.SSLError among them."""
        while (kept := self._kept(origin)) is not None:
            if not wait_for_read(kept.sock, timeout=0):
                return kept
            kept.close()  # what can be read before anything was asked is its end
        new = self._new(origin, timeout)
        new.connect()
        return new

    def keep(self, origin: Origin, connection: HTTPConnection) -> None:
        """Leave a connection for the next request, its last answer being read to the end."""
        with self._lock:
            idle = self._idle.setdefault(origin, [])
            if connection.sock is not None and len(idle) < self._most:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            all_, self._idle = self._idle, {}
        for connections in all_.values():
            for connection in connections:
                connection.close()

    def _kept(self, origin: Origin) -> HTTPConnection | None:
        with self._lock:
            idle = self._idle.get(origin)
            return idle.pop() if idle else None

    def _new(self, origin: Origin, timeout: float) -> HTTPConnection:
        if origin.scheme != "https":
            return HTTPConnection(origin.host, origin.port, timeout=timeout)
        with self._lock:
            self._context = self._context or self._new_context()
        return HTTPSConnection(origin.host, origin.port, timeout=timeout, context=self._context)


def _verifying() -> ssl.SSLContext:
    """Certificates and host names are verified by what the system trusts; TLS 1.2 at least."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
