"""Wakes waiting workers when any process commits, so that latency does not depend on polling.

PostgreSQL notifies its listeners at commit (`LISTEN`/`NOTIFY`). SQLite counts commits in the file; asking for the count
costs microseconds, so a waiting worker asks every two milliseconds. A store in memory has one process, which pokes.
"""

import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

from patra.kernel.db import Database
from patra.kernel.errors import StoreUnavailable, Transient
from patra.kernel.safety.threads import start_thread
from patra.kernel.telemetry import get_logger

CHANNEL = "patra_bus"
POLL_SECONDS = 0.002
WATCH_SECONDS = 0.2
ECHO_SECONDS = 0.004
CONNECT_SECONDS = 5.0
log = get_logger()


class Waker(Protocol):
    """Something to wait on."""

    def wait(self, seconds: float) -> bool:
        """Wait until something was committed, at most so long; gives whether something was."""
        ...

    def poke(self) -> None:
        """Wake the waiting threads of this process."""
        ...

    def close(self) -> None: ...


class Hub:
    """One watcher a process, however many threads wait: it watches while any thread waits, and wakes them all.

    A poke wakes only those who wait for its topic. It cannot see whose commit woke it: shortly after a poke it
    was probably that one's, or one of those that followed, so it lets a moment pass before it wakes them all.
    """

    def __init__(self, source: Waker) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._somebody = threading.Condition(self._lock)
        self._bells: dict[str, _Bell] = {}
        self._waiting = 0
        self._closed = False
        self._poked_at = 0.0
        self._thread: threading.Thread | None = None

    def waker(self, topic: str = "") -> "Sleeper":
        with self._lock:
            bell = self._bells.setdefault(topic, _Bell(self._lock))
        return Sleeper(self, bell)

    def poke(self, *topics: str) -> None:
        """Wake the threads that wait for some topics, or all of them."""
        with self._lock:
            self._poked_at = time.monotonic()
            self._ring(topics or list(self._bells), told=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._ring(list(self._bells), told=False)
            self._somebody.notify_all()
        self._source.poke()
        if self._thread is not None:
            self._thread.join(2.0)
        self._source.close()

    def wait(self, bell: "_Bell", seen: int, seconds: float) -> tuple[int, bool]:
        """Wait until a bell rang since `seen`; gives what to call `seen` next, and whether this process rang it."""
        with self._lock:
            if bell.rung == seen and not self._closed:
                with suppress(Transient):  # no thread for it now: this one sleeps its time, and the next asks again
                    self._thread = start_thread(self._thread, self._watch, "bus watcher")
                self._waiting += 1
                self._somebody.notify_all()
                bell.condition.wait_for(lambda: bell.rung != seen or self._closed, timeout=seconds)
                self._waiting -= 1
            return bell.rung, bell.told > seen

    def _ring(self, topics: Iterable[str], *, told: bool) -> None:
        for topic in topics:
            if (bell := self._bells.get(topic)) is not None:
                bell.rung += 1
                if told:
                    bell.told = bell.rung
                bell.condition.notify_all()

    def _watch(self) -> None:
        while True:
            with self._lock:
                self._somebody.wait_for(lambda: self._waiting > 0 or self._closed)
                if self._closed:
                    return
            try:
                happened = self._source.wait(WATCH_SECONDS)
            except StoreUnavailable:
                time.sleep(WATCH_SECONDS)  # sleepers wake by their own time; the next wait makes a new connection
                continue
            except Exception as error:  # noqa: BLE001  the thread's edge: without it every sleeper would only poll
                log.warning("bus_watcher_failed", error=str(error))
                time.sleep(WATCH_SECONDS)
                continue
            if happened:
                echo = self._poked_at + ECHO_SECONDS - time.monotonic()
                if echo > 0:
                    time.sleep(echo)
                with self._lock:
                    self._ring(list(self._bells), told=False)


class _Bell:
    """What those who wait for one topic hear: how often it rang, and when last because this process rang it."""

    def __init__(self, lock: threading.Lock) -> None:
        self.condition = threading.Condition(lock)
        self.rung = 0
        self.told = 0


class Sleeper:
    """One thread's place to wait at a hub; `told` says whether it was this process that woke it last."""

    def __init__(self, hub: Hub, bell: _Bell) -> None:
        self._hub = hub
        self._bell = bell
        self._seen = 0
        self.told = False

    def wait(self, seconds: float) -> bool:
        before = self._seen
        self._seen, self.told = self._hub.wait(self._bell, before, seconds)
        return self._seen != before


def source(db: Database) -> Waker:
    """A source of notifications about commits to a store."""
    if db.dialect == "postgres":
        return PostgresWaker(db.url)
    path = db.url.removeprefix("sqlite:///")
    return MemoryWaker() if path == ":memory:" else SQLiteWaker(path)


class MemoryWaker:
    def __init__(self) -> None:
        self._poked = threading.Event()

    def wait(self, seconds: float) -> bool:
        woken = self._poked.wait(seconds)
        self._poked.clear()
        return woken

    def poke(self) -> None:
        self._poked.set()

    def close(self) -> None:
        self._poked.set()


class SQLiteWaker:
    """Watches the file's version, which every commit of another connection changes."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._poked = False
        self._seen = self._version()

    def wait(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while True:
            version = self._version()
            if version != self._seen or self._poked:
                self._seen, self._poked = version, False
                return True
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(POLL_SECONDS, left))

    def poke(self) -> None:
        self._poked = True

    def close(self) -> None:
        self._poked = True
        self._connection.close()

    def _version(self) -> int:
        try:
            return self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.ProgrammingError:  # closed while a thread waited
            return -1


class PostgresWaker:
    """A connection of its own that listens; when it is lost, the next wait makes a new one and wakes at once."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        self._poked = threading.Event()

    def wait(self, seconds: float) -> bool:
        import psycopg  # noqa: PLC0415  an extra: only a PostgreSQL store needs it

        from patra.kernel.db.liveness import with_timeouts  # noqa: PLC0415

        try:
            if self._connection is None:
                conninfo = with_timeouts(self._url, connect_seconds=CONNECT_SECONDS)
                self._connection = psycopg.connect(conninfo, autocommit=True, application_name="patra waker")
                self._connection.execute(f"LISTEN {CHANNEL}".encode())
                return True  # what was committed before we listened is found now
            return self._hear_notice(seconds)
        except psycopg.Error as error:  # a standby, too, which nothing can be listened to on
            self._drop()
            raise StoreUnavailable("store_unavailable", f"the listening connection was lost: {error}") from error

    def _hear_notice(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            if self._poked.is_set() or left <= 0:
                woken = self._poked.is_set()
                self._poked.clear()
                return woken
            for _ in self._connection.notifies(timeout=min(left, 0.5), stop_after=1):
                return True

    def poke(self) -> None:
        self._poked.set()

    def close(self) -> None:
        self._poked.set()
        self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
