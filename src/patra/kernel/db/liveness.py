"""Ends waits for a PostgreSQL server that is silent: stopped, cut off or frozen, while its sockets stay open.

The system's time-outs do not see such a server: its kernel goes on to acknowledge packets. So a watchdog looks at
connections that are long in use. It asks their server for another connection; where it gets none in time, it shuts the
sockets down, and callers that wait on them fail at once: the connection is lost. A statement that merely takes long
on a server that answers is left alone.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from patra.kernel.errors import Transient
from patra.kernel.safety.threads import start_thread
from patra.kernel.telemetry import get_logger

log = get_logger()

Connection = psycopg.Connection[Any]
PROBE_SECONDS = 2  # the shortest that libpq takes for a connection
_DEFAULTS: dict[str, str] = {
    "application_name": "patra",
    "keepalives": "1",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class Server(NamedTuple):
    """The one server that a connection leads to, of those that the URL names."""

    host: str
    address: str
    port: int


def with_timeouts(url: str, *, connect_seconds: float) -> str:
    """The URL as connection parameters: what it leaves open is set so that a lost server is noticed.

    Of several hosts the one that takes writes is chosen, so that a standby which was promoted is found.
    """
    given = conninfo_to_dict(url)
    defaults = _DEFAULTS | {"connect_timeout": str(max(PROBE_SECONDS, int(connect_seconds)))}
    if "," in str(given.get("host") or given.get("hostaddr") or ""):
        defaults["target_session_attrs"] = "read-write"
    return make_conninfo(url, **{name: value for name, value in defaults.items() if name not in given})


class Watchdog:
    """Watches the connections in use; its thread runs from the first of them until `close`."""

    def __init__(self, conninfo: str, *, silent_seconds: float, lost: Callable[[], None]) -> None:
        self._conninfo = conninfo
        self._silent_seconds = silent_seconds
        self._lost = lost
        self._lock = threading.Lock()
        self._busy: dict[Connection, tuple[float, Server]] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, connection: Connection) -> None:
        info = connection.info
        server = Server(info.host, info.hostaddr, info.port)
        with self._lock:
            self._busy[connection] = (time.monotonic(), server)
            with suppress(Transient):  # no thread for it now: the next connection in use asks again
                self._thread = start_thread(self._thread, self._run, "postgres watchdog")

    def end(self, connection: Connection) -> None:
        with self._lock:
            self._busy.pop(connection, None)

    def close(self) -> None:
        self._stop.set()

    def run_once(self) -> int:
        """Probe the servers of connections that are long in use; gives how many connections were ended."""
        before = time.monotonic() - self._silent_seconds
        with self._lock:
            servers = {server for since, server in self._busy.values() if since <= before}
        return sum(self._end_all(server) for server in servers if not self._answers(server))

    def _run(self) -> None:
        while not self._stop.wait(self._silent_seconds / 2):
            try:
                self.run_once()
            except Exception as error:  # noqa: BLE001  the thread's edge: a watchdog that died would end no silence again
                log.warning("store_watchdog_failed", error=str(error))

    def _answers(self, server: Server) -> bool:
        where: dict[str, Any] = {"host": server.host, "port": server.port, "target_session_attrs": "any"}
        if server.address:
            where["hostaddr"] = server.address
        conninfo = make_conninfo(self._conninfo, **where, connect_timeout=PROBE_SECONDS)
        try:
            psycopg.connect(conninfo, autocommit=True).close()
        except psycopg.OperationalError as error:
            # one that refused, or is gone, ends its connections itself
            return error.sqlstate is not None or "timeout" not in str(error)
        return True

    def _end_all(self, server: Server) -> int:
        ended = 0
        with self._lock:  # what is in here has not been given back
            for connection, (_, at) in list(self._busy.items()):
                if at == server and not connection.closed:
                    ended += 1
                    with suppress(OSError, psycopg.Error):
                        _shut_down(connection)
        log.warning("store_server_silent", host=server.host, port=server.port, connections=ended)
        self._lost()
        return ended


def _shut_down(connection: Connection) -> None:
    """Shut the socket of a connection down under its waiting user, without closing it: that is for its owner to do."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)
