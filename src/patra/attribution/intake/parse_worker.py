"""Reads batches in a process of its own: `read_batch` over bodies and their instants.

Reading costs a third of an event, and one interpreter does one thing at a time. So a server gives it to a child, and
its own interpreter is left to the writer. Bodies go down a pipe in the order of their arrival and come back up another
in the same order. What the child cannot read, or no longer answers, the caller reads itself: nothing depends on it.
"""

import contextlib
import fcntl
import gc
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import BinaryIO, cast

import msgspec

from patra.attribution.contract.reasons import Reason
from patra.attribution.intake.batch import Batch, read_batch
from patra.attribution.intake.checked_event import Event
from patra.attribution.intake.envelope import Envelope, Refused
from patra.attribution.intake.validate import Rejected
from patra.kernel.telemetry import get_logger

log = get_logger()

PATIENCE_SECONDS = 10.0
"""How long to wait for an answer; a batch takes milliseconds, the worst of them a second."""
ENDING_SECONDS = 5.0
_PIPE = 1 << 20
_DOWN = struct.Struct("<Iq")
"""Before each body: its length and its instant."""
_UP = struct.Struct("<I")
"""Before each answer: its length; of nothing, where the asker must read for itself. A first one says that it begins."""


class Read(msgspec.Struct, frozen=True, array_like=True):
    """A batch as it was read, without its body."""

    refused: Reason | None
    batch_id: str | None
    app_id: str
    log: bytes
    tales: bytes = b""
    events: list[Event] = []
    rejected: list[Rejected] = []


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Read).decode


def answer(body: bytes, received_at: int) -> bytes:
    """What was read, to be sent; nothing where it cannot be: numbers past 64 bits, text that is none.

    Nothing, too, where reading fails: who asked will fail alike and answer for it, and the child goes on.
    """
    with contextlib.suppress(Exception):
        batch = read_batch(body, received_at)
        found = batch.envelope
        if isinstance(found, Refused):
            return _encode(Read(found.code, found.batch_id, "", batch.log))
        return _encode(Read(None, found.batch_id, found.app_id, batch.log, batch.tales, batch.events, batch.rejected))
    return b""


def batch_of(sent: bytes, body: bytes, received_at: int) -> Batch:
    """The batch that an answer is about."""
    if not sent:
        return read_batch(body, received_at)
    read = _decode(sent)
    if read.refused is not None:
        found: Envelope | Refused = Refused(code=read.refused, batch_id=read.batch_id)
    else:
        found = Envelope(batch_id=read.batch_id or "", app_id=read.app_id, uniqueness=None, events=[])
    return Batch(
        received_at=received_at,
        body=body,
        envelope=found,
        events=read.events,
        rejected=read.rejected,
        log=read.log,
        tales=read.tales,
    )


class Reader:
    """A child that reads. `send` and `receive` are each called by one thread at a time."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "patra.attribution.intake.parse_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._down, self._up = cast("BinaryIO", self._child.stdin), cast("BinaryIO", self._child.stdout)
        for pipe in (self._down, self._up):
            _widen(pipe)
        self._came = select.poll()
        self._came.register(self._up, select.POLLIN)
        self._buffer = bytearray()
        self._begun = False
        self.alive = True

    @property
    def ready(self) -> bool:
        """Whether the child takes bodies by now: it needs a moment to begin. Asked only while nothing was sent."""
        if self.alive and not self._begun and self._came.poll(0):
            self._begin()
        return self.alive and self._begun

    def send(self, body: bytes, received_at: int) -> None:
        """Give a body to the child; waits while it has a megabyte before it."""
        try:
            self._down.write(_DOWN.pack(len(body), received_at) + body)
            self._down.flush()
        except OSError:
            self._end_child()

    def receive(self) -> bytes:
        """The child's answer to the oldest body that has none yet; nothing once it has ended or fallen silent."""
        if not (self.alive and (self._begun or self._begin())):
            return b""
        try:
            (length,) = _UP.unpack(self._next(_UP.size))
            return self._next(length)
        except (EOFError, OSError, ValueError):  # ended, or closed while a caller still waited
            self._end_child()
            return b""

    @property
    def has_answer(self) -> bool:
        """Whether `receive` would give the next answer without waiting for the child."""
        try:
            while self.alive and self._begun and not self._whole() and self._came.poll(0):
                self._take()
        except (EOFError, OSError, ValueError):
            self._end_child()
        return not self.alive or self._whole()

    def _whole(self) -> bool:
        """Whether the next answer is here."""
        held = len(self._buffer)
        return held >= _UP.size and held >= _UP.size + _UP.unpack_from(self._buffer)[0]

    def _take(self) -> None:
        if not (some := os.read(self._up.fileno(), _PIPE)):
            raise EOFError
        self._buffer += some

    def _begin(self) -> bool:
        try:
            self._begun = bool(self._next(_UP.size))
        except (EOFError, OSError, ValueError):
            self._end_child()
        return self._begun

    def _next(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._came.poll(PATIENCE_SECONDS * 1000):
                self._child.kill()
                raise EOFError
            self._take()
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    def close(self) -> None:
        self.alive = False
        with contextlib.suppress(OSError):
            self._down.close()
        try:
            self._child.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._up.close()

    def _end_child(self) -> None:
        if self.alive:
            self.alive = False
            log.warning("attribution_reader_ended", advice="the server reads batches itself until it is started again")


def _widen(pipe: BinaryIO) -> None:
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)


def main() -> None:
    """Read until no more comes. Who asks decides when to stop: signals that are sent to all its processes pass."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answers: SimpleQueue[bytes | None] = SimpleQueue()
    writer = threading.Thread(target=_write, args=(sys.stdout.buffer, answers))
    writer.start()
    gc.freeze()
    answers.put(b"")
    down = sys.stdin.buffer
    while len(head := down.read(_DOWN.size)) == _DOWN.size:
        length, received_at = _DOWN.unpack(head)
        answers.put(answer(down.read(length), received_at))
    answers.put(None)
    writer.join()


def _write(up: BinaryIO, answers: "SimpleQueue[bytes | None]") -> None:
    """In a thread of its own, so that the child takes bodies in even while nobody takes its answers."""
    with contextlib.suppress(BrokenPipeError):
        while (found := answers.get()) is not None:
            up.write(_UP.pack(len(found)) + found)
            up.flush()
        return
    os._exit(0)  # nobody is left to read for


if __name__ == "__main__":
    main()
