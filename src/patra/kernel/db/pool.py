"""Turns a URL into connections to PostgreSQL, at most so many at once.

A caller connects in its own thread, so an outage answers at once and with its cause, and the first call after it
succeeds. (psycopg_pool connects in the background: a caller waits its whole timeout to learn that there is none, and
after an outage waits again for the pool's next attempt.)
"""

import threading
from collections import deque
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from patra.kernel.db.liveness import Watchdog, with_timeouts
from patra.kernel.errors import StoreUnavailable
from patra.kernel.safety.redact import redact_url

Connection = psycopg.Connection[Any]
CONNECT_SECONDS = 5.0
SILENT_SECONDS = 10.0


class Pool:
    def __init__(self, url: str, *, size: int, wait: float, silent_seconds: float = SILENT_SECONDS) -> None:
        self._url = url
        self._conninfo = with_timeouts(url, connect_seconds=min(wait, CONNECT_SECONDS))
        self._watchdog = Watchdog(self._conninfo, silent_seconds=silent_seconds, lost=self.drop_idle)
        self._size = size
        self._wait = wait
        self._slots = threading.BoundedSemaphore(size)
        self._idle: deque[Connection] = deque()
        self._closed = False

    def take(self) -> Connection:
        """A connection that is idle, or a new one; waits while all are in use."""
        if self._closed:
            raise StoreUnavailable("store_closed", "the store has been closed")
        if not self._slots.acquire(timeout=self._wait):
            raise self._unavailable(f"all {self._size} connections were in use for {self._wait:g} s")
        try:
            try:
                connection = self._idle.pop()  # the one used last: its caches are warm
            except IndexError:
                connection = self._connect()
            self._watchdog.begin(connection)
        except BaseException:
            self._slots.release()
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        self._watchdog.end(connection)
        if self._closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        self._slots.release()

    def drop_idle(self) -> None:
        """Forget the idle connections: when one was lost, the others probably were too."""
        with suppress(IndexError):  # others take from it, too
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Close what is idle; a connection in use is closed when it is given back."""
        self._closed = True
        self._watchdog.close()
        self.drop_idle()

    def _connect(self) -> Connection:
        try:
            connection = psycopg.connect(
                self._conninfo,
                autocommit=True,  # BEGIN and COMMIT are ours
                prepare_threshold=3,
            )
            connection.execute(b"SET TIME ZONE 'UTC'; SET idle_in_transaction_session_timeout = '120s'")
        except OSError as error:
            raise self._unavailable(f"this process may open no connection: {error}") from error
        except psycopg.OperationalError as error:
            cause = " ".join(str(error).split())  # libpq writes paragraphs
            raise self._unavailable(f"{cause} (start the server, or correct the URL of the store)") from error
        return connection

    def _unavailable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable("store_unavailable", f"{redact_url(self._url)} cannot be reached: {why}")
