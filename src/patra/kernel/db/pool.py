"""A URL goes in; connections to PostgreSQL, at most so many at once, come out.

A caller connects in its own thread, so an outage answers at once and with its cause, and the first call after it
succeeds. (psycopg_pool connects in the background: a caller waits its whole timeout to learn that there is none, and
after an outage waits again for the pool's next attempt.)
"""

import threading
from collections import deque
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from patra.kernel.errors import StoreUnavailable
from patra.kernel.redact import redact_url

Connection = psycopg.Connection[Any]


class Pool:
    def __init__(self, url: str, *, size: int, wait: float) -> None:
        self._url = url
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
                return self._idle.pop()  # the one used last: its caches are warm
            except IndexError:
                return self._connect()
        except BaseException:
            self._slots.release()
            raise

    def give_back(self, connection: Connection) -> None:
        if self._closed or connection.pgconn.transaction_status != TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        self._slots.release()

    def drop_idle(self) -> None:
        """Forget the idle connections: when one was lost, the others probably were too."""
        while self._idle:
            self._idle.pop().close()

    def close(self) -> None:
        """Close what is idle; a connection in use is closed when it is given back."""
        self._closed = True
        self.drop_idle()

    def _connect(self) -> Connection:
        try:
            connection = psycopg.connect(
                self._url,
                autocommit=True,  # BEGIN and COMMIT are ours
                connect_timeout=max(2, int(self._wait)),
                application_name="patra",
                prepare_threshold=3,
            )
            connection.execute(b"SET TIME ZONE 'UTC'; SET idle_in_transaction_session_timeout = '120s'")
        except psycopg.OperationalError as error:
            cause = " ".join(str(error).split())  # libpq writes paragraphs
            raise self._unavailable(f"{cause} (start the server, or correct the URL of the store)") from error
        return connection

    def _unavailable(self, why: str) -> StoreUnavailable:
        return StoreUnavailable("store_unavailable", f"{redact_url(self._url)} cannot be reached: {why}")
