"""Takes batches from any thread and answers each when it is durable: one writer commits all waiting batches together.

Batches are read where they arrive, or by a child process (`reader`), and decided by the writer, one after the other in
the order of their `receivedAt`, which never goes back within a process: while the writer is at work, the next ones are
read. A batch that was queued is answered after the commit or not at all; when too many wait, new ones are turned away
before they cost anything (F10).

On PostgreSQL there are two writers: while one waits for the database, the other decides, where there is enough for
both. They are to each other as two processes are, and what holds for those (`store`) holds for them. SQLite has one
writer at a time.

No timer overtakes a batch that waits, in whichever process (A1): each process that takes batches writes down every
second since when one may wait there (`att_intake`), and a tick goes no further than that. A process that has not been
heard of for `PROCESS_LOST_AFTER` counts as dead; a batch that waited longer than `COMMIT_TIMEOUT` is not
taken, and the database ends a commit that takes longer than what is left, so none is left by then. Others that wait for
its locks go on, too: a process may be stopped in the midst of a commit.
"""

import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.ack import BatchAck, not_taken
from patra.attribution.decision.answer_metrics import count_answer
from patra.attribution.decision.decide import Ticked
from patra.attribution.delivery.port import EnqueueForArchive
from patra.attribution.intake.batch import Batch, Item, Tick, read_batch
from patra.attribution.intake.envelope import Envelope, Refused
from patra.attribution.intake.fair_share import AppLimits, FairShare
from patra.attribution.intake.parse_worker import Reader, batch_of
from patra.attribution.intake.trusted_clock import MAX_JUMP, trust_clock
from patra.attribution.storage.dedup_keys import Keys, carry_once
from patra.attribution.storage.read import something_due
from patra.attribution.storage.write import announce, forget_intake
from patra.kernel.clock import SECOND, Clock
from patra.kernel.db import Database
from patra.kernel.errors import StoreUnavailable, Transient
from patra.kernel.safety.threads import Threads
from patra.kernel.telemetry import gauge, get_logger, histogram

log = get_logger()

COMMIT_SECONDS = histogram("patra_attribution_commit_seconds", "How long one commit of the writer took.")
COMMIT_BATCHES = histogram(
    "patra_attribution_commit_batches", "Batches in one commit of the writer.", buckets=(1, 2, 4, 8, 16, 32, 64)
)
WAITING = gauge("patra_attribution_waiting_batches", "Batches that wait for the writer.")

BUSY_SHARE = 0.2
"""Part of its time in commits beyond which the duties in the background step aside."""
COMMIT_TIMEOUT = 10 * SECOND
"""How long a batch may wait for its commit where other processes go by what this one announced."""
FEW, SOON = 4, 0.02
"""Fewer batches than these are left to a writer that is at work, for so many seconds: small commits cost the most."""
CLOCK_DOUBTED = "the server's clock has jumped ahead and is not believed yet; send the batch later"
APP_OVERDOES = "this app sends more than its share of the intake; send the batch later"
PROCESS_LOST_AFTER = 20 * SECOND
"""After how long without an announcement a process counts as dead; well beyond `COMMIT_TIMEOUT` and one commit."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much the intake takes at a time."""

    waiting: int = 256
    """Batches that may wait; more are turned away."""
    group: int = 32
    """Batches of one commit."""
    overdue: int = 1000
    """Closures of one turn of the timer."""
    writers: int = 0
    """Threads that commit; 0 chooses: two on PostgreSQL, one on SQLite."""
    lag: int = 2 * SECOND
    """How far the timer stays behind the clock, so that batches of other processes are decided first."""
    reader: bool = False
    """Whether a child process reads the batches."""
    apps: AppLimits = AppLimits()
    """What one app may take of it."""
    announce: float = 1.0
    """Seconds between two announcements to other processes; 0 makes none but those of the timer."""


class Overloaded(msgspec.Struct, frozen=True, kw_only=True):
    """The batch was turned away unread; `retry_after` is in seconds, `why` is said where it is not the load."""

    retry_after: int = 1
    why: str = ""


class NotTaken(msgspec.Struct, frozen=True, kw_only=True):
    """The store could not be written: nothing of the batch was taken."""

    ack: BatchAck | None


Reply = BatchAck | Refused | NotTaken


class _Waiting(msgspec.Struct, eq=False):
    future: "Future[Any]"
    read: Callable[[], Item]
    """Gives the item; called once, in the order of the queue."""
    is_read: Callable[[], bool]
    """Whether that would give it at once; asked in the order of the queue."""
    received_at: int
    since: int
    app_id: str | None = None
    """The only app that may send the batch."""


class _Taken(NamedTuple):
    future: "Future[Any]"
    item: Item


class Engine:
    """The intake and the writer of one process."""

    def __init__(
        self, db: Database, clock: Clock, *, limits: Limits | None = None, hand: EnqueueForArchive | None = None
    ) -> None:
        self.db = db
        self.keys = Keys()
        self._clock = trust_clock(clock)
        self._limits = limits or Limits()
        self._fair = FairShare(self._limits.apps, self._limits.waiting, lambda: clock.monotonic() / SECOND)
        self._hand = hand
        self._arriving = threading.Lock()
        self._wants_reader = self._limits.reader
        self._reader: Reader | None = None
        self._taking = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._deciding: list[_Waiting] = []
        self._process = secrets.token_hex(8)
        self._shared = db.dialect == "postgres"
        self._bound = (PROCESS_LOST_AFTER - COMMIT_TIMEOUT) / SECOND if self._shared else None  # seconds of a commit
        self._threads = Threads(self._duties())
        self._closed = threading.Event()
        self._closing = False
        self._last = 0
        self._load = 0.0
        self._load_at = 0.0

    def submit(
        self, body: bytes, received_at: int | None = None, *, app_id: str | None = None
    ) -> "Future[Reply] | Overloaded":
        """Take a batch; the future is answered when its commit is durable. `app_id`: the only app that may send it."""
        if self.full:
            return Overloaded()
        if received_at is None and (seconds := self._clock.seconds_of_doubt()):
            return Overloaded(retry_after=seconds, why=CLOCK_DOUBTED)
        future: Future[Reply] = Future()
        if app_id is not None:
            if seconds := self._fair.enter(app_id):
                return Overloaded(retry_after=seconds, why=APP_OVERDOES)
            future.add_done_callback(lambda _: self._fair.leave(app_id))
        with self._arriving:  # one at a time: batches wait in the order of their instants
            self._last = self._stamp() if received_at is None else received_at
            at, reader = self._last, self._reader_at_work()
            batch = None if reader else read_batch(body, at)

            def read() -> Item:
                return batch or batch_of(reader.receive() if reader else b"", body, at)

            def is_read() -> bool:
                return reader is None or reader.has_answer

            if not self._enqueue(_Waiting(future, read, is_read, at, self._clock.now(), app_id)):
                future.cancel()
                return Overloaded()
            if reader:  # only now: should it hang, the writer waits for this very batch, and gives it up
                reader.send(body, at)
            return future

    def _stamp(self) -> int:
        """The instant of a batch: never before the last one, but where the clock was set back and stayed there."""
        now = self._clock.now()
        return now if now < self._last - MAX_JUMP else max(self._last, now)

    @property
    def full(self) -> bool:
        """Whether a batch would be turned away, so that its body need not even be read."""
        return self._closing or len(self._queue) >= self._limits.waiting

    def sweep(self) -> Ticked:
        """Apply one batch of the deadlines that lie behind the clock by the lag, when it is their turn in the queue."""
        future: Future[Any] = Future()
        now = self._clock.now() - self._limits.lag
        if not self.db.read(lambda tx: something_due(tx, now)):
            return Ticked(0)
        nobody_waits = self.announce() if self._shared else now + self._limits.lag
        with self._arriving:
            now = max(self._last, self._clock.now())
            tick = Tick(at=min(now - self._limits.lag, nobody_waits))
            if not self._enqueue(_Waiting(future, lambda: tick, lambda: True, now, now)):
                return Ticked(0)
        done = future.result()
        if isinstance(done, NotTaken):
            raise StoreUnavailable("store_unavailable", "the deadlines could not be applied")
        return done if isinstance(done, Ticked) else Ticked(0)

    def announce(self) -> int:
        """Publish since when a batch may wait here; gives the instant before which none waits anywhere."""
        with self._arriving, self._changed:  # none is between its stamp and the queue
            now = max(self._last, self._clock.now())
            waiting = [one.received_at for one in (*self._queue, *self._deciding)]
        seen_at = self._clock.now()
        oldest = min([now, *waiting])
        return self.db.run(lambda tx: announce(tx, self._process, oldest, seen_at, seen_at - PROCESS_LOST_AFTER))

    def carry(self) -> int:
        """When idle, one batch of the recent dedup keys moves into the ledger's tree; gives how many."""
        return 0 if self.busy() else carry_once(self.db, self.keys, self._clock.now())

    def warm(self) -> None:
        """Read what the first commit would have to read: a connection, and on SQLite the recent keys and closures.

        To be called before the first batch is taken: what is in memory belongs to the writer from then on.
        """
        self.db.read(self.keys.refresh)

    def busy(self) -> bool:
        """Whether what can wait should wait: the writer was at work for `BUSY_SHARE` of the last second."""
        return self._load * math.exp(self._load_at - time.monotonic()) > BUSY_SHARE

    def close(self, seconds: float = 10.0) -> None:
        """Take no more, answer what waits, end the writer."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        until = time.monotonic() + seconds
        self._closed.set()
        self._threads.join(until)
        if self._reader is not None:
            self._reader.close()
        if self._threads.has_begun and self._shared:
            with suppress(Transient):  # it is forgotten in any case, a little later
                self.db.run(lambda tx: forget_intake(tx, self._process))

    def run_once(self) -> int:
        """Commit what waits and is read, up to one group; gives how many batches that were.

        For the first one it waits; nobody waits for another that is still being read.
        """
        waiting: list[_Waiting] = []
        read: list[Item | None] = []
        try:
            with self._taking:
                while len(waiting) < self._limits.group and (one := self._next(read_only=bool(waiting))):
                    waiting.append(one)
                    read.append(_read(one))
            taken = [
                _Taken(one.future, item)
                for one, item in zip(waiting, read, strict=True)
                # a caller that stopped waiting before its turn has no answer, and its batch was not taken
                if one.future.set_running_or_notify_cancel()
                and item is not None
                and not _foreign(one, item)
                and not self._late(one, item)
            ]
            if taken:
                self._commit(taken)
        finally:
            with self._changed:
                self._deciding = [one for one in self._deciding if one not in waiting]
            for one in waiting:  # nobody is left waiting, whatever went wrong
                if not one.future.done():
                    one.future.set_exception(StoreUnavailable("writer_failed", "the batch may not have been taken"))
        return len(waiting)

    def _next(self, *, read_only: bool) -> _Waiting | None:
        """Take the next batch out of the queue, if there is one; `read_only`: if it is read already."""
        if not self._queue or (read_only and not self._queue[0].is_read()):
            return None
        with self._changed:
            one = self._queue.popleft()
            self._deciding.append(one)
            WAITING.set(len(self._queue))
        return one

    def _reader_at_work(self) -> Reader | None:
        """Who reads the next batch, if not we; started with the first one, and left out until it is ready."""
        if self._reader is not None:
            return self._reader if self._reader.ready else None
        if self._wants_reader:
            try:
                self._reader = Reader()
            except OSError as error:  # no memory for it, or no processes allowed: we do without
                self._wants_reader = False
                log.warning("attribution_reader_not_started", reason=str(error))
        return None

    def _late(self, waiting: _Waiting, item: Item) -> bool:
        """Whether a batch waited so long that other processes may count this one as dead: it is to be sent again."""
        if not self._shared or self._clock.now() - waiting.since <= COMMIT_TIMEOUT:
            return False
        waiting.future.set_result(_not_taken(item))
        return True

    def _enqueue(self, waiting: _Waiting) -> bool:
        with self._changed:
            if self._closing:
                return False
            self._threads.begin()
            self._queue.append(waiting)
            WAITING.set(len(self._queue))
            self._changed.notify()
            return True

    def _duties(self) -> dict[str, Callable[[], None]]:
        writers = self._limits.writers or (2 if self._shared else 1)
        duties: dict[str, Callable[[], None]] = {f"attribution writer {n + 1}": self._write for n in range(writers)}
        if self._shared and self._limits.announce:
            duties["attribution intake"] = self._announce
        return duties

    def _announce(self) -> None:
        while not self._closed.is_set():
            with suppress(Exception):  # whatever went wrong, others hold back until it goes right again
                self.announce()
            self._closed.wait(self._limits.announce)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if self._deciding:
                    self._changed.wait_for(lambda: len(self._queue) >= FEW or self._closing, SOON)
                if not self._queue and self._closing:
                    return
            with suppress(Exception):  # everyone was answered: whatever went wrong must not end the writer
                self.run_once()

    def _commit(self, taken: Sequence[_Taken]) -> None:
        began = time.perf_counter()
        try:
            items = [one.item for one in taken]
            due = self._limits.overdue if any(isinstance(item, Tick) for item in items) else 0
            answers = commit(self.db, items, due=due, hand=self._hand, keys=self.keys, seconds=self._bound)
        except Transient as error:
            for one in taken:
                one.future.set_result(_not_taken(one.item))
            with suppress(Exception):  # a log that cannot be written changes nothing
                log.warning("attribution_commit_failed", code=error.code, detail=error.detail, batches=len(taken))
            return
        except Exception as error:
            if len(taken) > 1:
                for one in taken:
                    self._commit([one])
                return
            taken[0].future.set_exception(error)
            with suppress(Exception):
                log.exception("attribution_batch_failed", reason=str(error))
            return
        spent, now = time.perf_counter() - began, time.monotonic()
        self._load = self._load * math.exp(self._load_at - now) + spent
        self._load_at = now
        COMMIT_SECONDS.observe(spent)
        COMMIT_BATCHES.observe(len(taken))
        for one, answer in zip(taken, answers, strict=True):
            one.future.set_result(answer)
            count_answer(answer)


def _read(waiting: _Waiting) -> Item | None:
    """Its item; None where something is wrong with its reading alone, which costs no other batch its turn."""
    try:
        return waiting.read()
    except Exception as error:
        with suppress(Exception):
            log.exception("attribution_batch_unread", reason=str(error))
        return None


def _foreign(waiting: _Waiting, item: Item) -> bool:
    """Whether the batch names another app than may send it; it is answered so."""
    envelope = item.envelope if isinstance(item, Batch) else None
    if waiting.app_id is None or not isinstance(envelope, Envelope) or envelope.app_id == waiting.app_id:
        return False
    waiting.future.set_result(Refused(code=Reason.APP_KEY_FOREIGN, batch_id=envelope.batch_id))
    return True


def _not_taken(item: Item) -> NotTaken:
    if isinstance(item, Batch) and isinstance(item.envelope, Envelope):
        return NotTaken(ack=not_taken(item.envelope, item.received_at, item.as_sent(), Reason.STORE_UNAVAILABLE))
    return NotTaken(ack=None)
