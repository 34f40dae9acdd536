"""The reference client with its queue on disk: a killed app loses nothing that `add` has taken.

- `add` writes the event to a SQLite file and returns once it is durable. One background thread sends; the rules of
  sending, retrying and waiting are those of `patra.client`.
- The events of a batch are given their `batchId` on disk before the batch is sent for the first time, and go when they
  are answered. Whatever is killed when, the same events are sent again under the same `batchId`, so nothing is counted
  twice and nothing is lost.
- 401 and 403 mean that the key is wrong, not the events: they stay in the file, are tried again after pauses of up to
  a minute, and go out once a client with the right key opens the file. `key_refusal` has the code, and it is logged.
- `flush(seconds)` waits for at most so long and says whether everything was answered.
- At the exit of the interpreter, `exit_seconds` (2 by default) are spent on what is left, and as long again on a
  request that is under way then; the rest stays in the file and is sent when the app opens it again. A process that is
  killed does not even get these seconds, and needs none.
- An answer is passed to `on_answer` from the background thread, after its event has gone from the file: a process
  that is killed in between never hears of it, and `patra attribution find EVENT` says so.
- One process has the file at a time; another that opens it is refused (`QueueInUseError`).
"""

import atexit
import logging
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from patra.client import (
    MAX_BATCH_BYTES,
    MAX_BATCH_EVENTS,
    USELESS,
    Ack,
    Answer,
    Batch,
    Client,
    QueuedEvent,
    Reply,
    refusal_code,
)

_SCHEMA = "CREATE TABLE IF NOT EXISTS event (seq INTEGER PRIMARY KEY AUTOINCREMENT, batch TEXT, body BLOB NOT NULL)"
_UNEXPECTED_PAUSE_S = 1.0
_WRONG_KEY = frozenset({401, 403})
_log = logging.getLogger(__name__)


class QueueInUseError(Exception):
    """Another process has the queue file open."""


class QueueUnwritableError(OSError):
    """The queue file cannot be written now: the disk is full, or fails."""


class StoredEvent(QueuedEvent, frozen=True):
    """An event with its place in the file."""

    seq: int


class EventQueue:
    """Events in a file, in order; each is in no batch yet, or in one."""

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("BEGIN EXCLUSIVE")
            self._db.execute(_SCHEMA)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._db.close()
            raise QueueInUseError(f"{path} is open in another process: {error}") from error
        self._length = int(self._db.execute("SELECT count(*) FROM event").fetchone()[0])

    def __len__(self) -> int:
        return self._length

    def append(self, body: bytes) -> None:
        with self._lock, self._writing():
            self._db.execute("INSERT INTO event (body) VALUES (?)", (body,))
            self._length += 1

    def oldest_batch(self) -> tuple[str, list[StoredEvent]] | None:
        """The batch that was begun, or a new one of the oldest events; its id is durable when this returns."""
        with self._lock, self._writing():
            begun = self._db.execute("SELECT batch FROM event WHERE batch IS NOT NULL ORDER BY seq LIMIT 1").fetchone()
            if begun is not None:
                rows = self._db.execute("SELECT seq, body FROM event WHERE batch = ? ORDER BY seq", begun).fetchall()
                return begun[0], _events(rows)
            rows = self._db.execute("SELECT seq, body FROM event ORDER BY seq LIMIT ?", (MAX_BATCH_EVENTS,)).fetchall()
            if not rows:
                return None
            events = _fitting(_events(rows))
            batch_id = str(uuid.uuid4())
            self._db.execute("UPDATE event SET batch = ? WHERE seq <= ?", (batch_id, events[-1].seq))
            return batch_id, events

    def remove(self, events: Sequence[StoredEvent]) -> None:
        with self._lock, self._writing():
            self._db.execute("BEGIN")
            self._db.executemany("DELETE FROM event WHERE seq = ?", [(event.seq,) for event in events])
            self._db.execute("COMMIT")
            self._length -= len(events)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    @contextmanager
    def _writing(self) -> Generator[None]:
        """A full disk leaves no transaction open behind it: the next attempt starts from the beginning."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if self._db.in_transaction:
                self._db.rollback()
            raise QueueUnwritableError(f"the queue cannot be written: {error}") from error


def _events(rows: Sequence[tuple[int, bytes]]) -> list[StoredEvent]:
    return [StoredEvent(msgspec.json.decode(body), body, seq) for seq, body in rows]


def _fitting(events: list[StoredEvent]) -> list[StoredEvent]:
    """As many of the first events as fit into one batch; at least one."""
    size = 0
    for count, event in enumerate(events):
        size += len(event.body) + 1
        if count and size > MAX_BATCH_BYTES:
            return events[:count]
    return events


class _Sender(Client):
    """The client's rules, over the queue in the file."""

    _useless = USELESS - _WRONG_KEY

    def __init__(self, queue: EventQueue, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._queue = queue
        self.key_refusal = ""

    @property
    def idle(self) -> bool:
        """Whether nothing is left to send, and no answer to pass on."""
        return not len(self._queue) and not self._answers

    def _next_batch(self) -> Batch | None:
        if not self._underway and (found := self._queue.oldest_batch()) is not None:
            self._underway.append(Batch(batch_id=found[0], events=list(found[1])))
        return self._underway[0] if self._underway else None

    def _settle(self, batch: Batch, ack: Ack, reply: Reply) -> float:
        """Events leave the file before their answers are passed on: a full disk makes nobody hear of them twice."""
        self._remove(
            [
                event
                for event, item in zip(batch.events, ack.ackItems, strict=True)
                if not (item.ackStatus == "rejected" and item.retryable)
            ]
        )
        self.key_refusal = ""
        return super()._settle(batch, ack, reply)

    def _pause(self, batch: Batch, reply: Reply | None) -> float:
        code = refusal_code(reply) if reply is not None and reply.status in _WRONG_KEY else ""
        if code and code != self.key_refusal:
            _log.warning("the server refuses the key (%s): events stay in the queue", code)
        self.key_refusal = code
        return super()._pause(batch, reply)

    def _give_up(self, batch: Batch, code: str) -> float:
        self._remove(batch.events)
        return super()._give_up(batch, code)

    def _remove(self, events: Sequence[QueuedEvent]) -> None:
        self._queue.remove([event for event in events if isinstance(event, StoredEvent)])


class DurableClient:
    """Sends events of one app, in order, from one background thread, out of a queue on disk.

        client = DurableClient("https://patra.example", app_id="shop", path="events.queue", key="pk_…")
        client.add({"eventId": "e1", "eventType": "click", "eventAt": "2026-01-01T00:00:00Z", "eventVersion": "1",
                    "traceKey": "t1", "requestKey": "r1", "attemptKey": "a1", "opportunityKey": "o1",
                    "responseReference": "ref1", "renderAttemptId": "ra1", "clickTarget": "shop"})
        client.flush(5.0)
        client.close()

    `add` and `flush` may be called from any thread.
    """

    def __init__(
        self,
        url: str,
        *,
        app_id: str,
        path: Path | str,
        key: str | None = None,
        sdk_version: str = "patra-durable-client/1",
        on_answer: Callable[[Answer], None] | None = None,
        max_waiting_events: int = 100_000,
        timeout: float = 30.0,
        exit_seconds: float = 2.0,
    ) -> None:
        self._queue = EventQueue(path)
        self._sender = _Sender(
            self._queue, url, app_id=app_id, key=key, sdk_version=sdk_version, on_answer=on_answer, timeout=timeout
        )
        self._max_waiting_events = max_waiting_events
        self._exit_seconds = exit_seconds
        self._changed = threading.Condition()
        self._closing = False
        self._sending = False
        self._thread = threading.Thread(target=self._send, name="patra client", daemon=True)
        self._thread.start()
        atexit.register(self._at_exit)

    @property
    def waiting(self) -> int:
        """Events that are not answered yet."""
        return len(self._queue)

    @property
    def key_refusal(self) -> str:
        """The code with which the server refused the key in the last attempt; empty where it did not."""
        return self._sender.key_refusal

    def add(self, event: dict[str, Any]) -> bool:
        """Queue an event durably; False when the queue or the disk is full, or the client is closed."""
        body = msgspec.json.encode(event)
        with self._changed:
            if self._closing or len(self._queue) >= self._max_waiting_events:
                return False
            try:
                self._queue.append(body)
            except QueueUnwritableError:
                return False
            self._changed.notify_all()
        return True

    def flush(self, seconds: float) -> bool:
        """Wait until every event is answered, for at most so long; gives whether it is so."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, seconds)

    def close(self, seconds: float = 5.0) -> bool:
        """Flush for at most so long and stop; what is left stays in the file. Gives whether nothing is left.

        A request that is under way then is waited for as long again, and cut off with the process.
        """
        if self._closing:
            return not len(self._queue)
        atexit.unregister(self._at_exit)
        done = self.flush(seconds)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(seconds)
        if not self._thread.is_alive():  # else it is in a request, and ends with the process
            self._sender.close()
            self._queue.close()
        return done

    def _is_idle(self) -> bool:
        return self._sender.idle and not self._sending

    def _at_exit(self) -> None:
        self.close(self._exit_seconds)

    def _send(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or not self._sender.idle)
                if self._closing:
                    return
                self._sending = True
            try:
                pause = self._sender.send_once()
            except Exception:  # noqa: BLE001  an answer that nobody could take, or a full disk: the thread goes on
                pause = _UNEXPECTED_PAUSE_S
            with self._changed:
                self._sending = False
                self._changed.notify_all()
                until = time.monotonic() + pause
                self._changed.wait_for(lambda: self._closing, max(until - time.monotonic(), 0.0))
