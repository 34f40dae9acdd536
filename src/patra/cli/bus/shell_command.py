"""A shell command as the handler of events: bounded in time and in what it says, ended when its event is another's."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING

from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.consumer import Poison
from patra.bus.publishing.envelope import encode
from patra.kernel.errors import Transient

if TYPE_CHECKING:
    from patra.bus.consuming.consumer import Event, Hold

DETAIL_BYTES = 2000
LOOK_SECONDS = 0.1
LISTEN_SECONDS = 1.0
GRACE_SECONDS = 5.0
"""How long a command that is asked to end may take."""


class ShellCommand:
    """Runs a command for each event, with the envelope as JSON on its standard input.

    It is the leader of a process group of its own, which is ended with it: after `seconds`, or when the event's lease
    is lost, since another command may be at work on the event from then on.
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command = list(command)
        self._seconds = seconds
        self._lock = Lock()
        self._children: set[subprocess.Popen[bytes]] = set()
        self._is_ending = False

    def __call__(self, event: "Event", hold: "Hold") -> None:
        with self._lock:
            if self._is_ending:
                raise Transient(Reason.HANDLER_FAILED, f"{self._command[0]} was not begun: the consumer ends")
            child = self._start_command(event)
            self._children.add(child)
        try:
            self._watch(child, hold)
        finally:
            self._children.discard(child)

    def end_all(self) -> None:
        """End the commands that run, and wait for them; none is begun any more."""
        with self._lock:
            self._is_ending = True
            children = list(self._children)
        _end(*children)

    def _watch(self, child: "subprocess.Popen[bytes]", hold: "Hold") -> None:
        words = bytearray()
        listener = Thread(target=_listen, args=(child.stderr, words), daemon=True)
        listener.start()
        until = time.monotonic() + self._seconds
        while child.poll() is None and not hold.lost and time.monotonic() < until:
            with suppress(subprocess.TimeoutExpired):
                child.wait(LOOK_SECONDS)
        if ended_by_us := child.poll() is None:
            _end(child)
        listener.join(LISTEN_SECONDS)  # what the command left running may keep its end open
        self._judge(child.returncode, bytes(words), ended_by_us=ended_by_us)

    def _start_command(self, event: "Event") -> "subprocess.Popen[bytes]":
        names = {
            "PATRA_EVENT_ID": event.event_id,
            "PATRA_EVENT_TYPE": event.event_type,
            "PATRA_ATTEMPT": str(event.attempt),
        }
        with tempfile.TemporaryFile() as body:  # no pipe: a command that does not read would hold up who writes
            body.write(encode(event.envelope))
            body.seek(0)
            return subprocess.Popen(  # noqa: S603  the operator's own command
                self._command, stdin=body, stderr=subprocess.PIPE, env=os.environ | names, start_new_session=True
            )

    def _judge(self, status: int, words: bytes, *, ended_by_us: bool) -> None:
        if status == 0 and not ended_by_us:
            return
        told = words.decode(errors="replace").strip()
        how = f"was ended after {self._seconds:g} s" if ended_by_us else f"ended with {status}"
        detail = f"{self._command[0]} {how}{': ' + told if told else ''}"
        raise (Poison if status == os.EX_DATAERR and not ended_by_us else Transient)(Reason.HANDLER_FAILED, detail)


def _listen(stream: IO[bytes] | None, words: bytearray) -> None:
    """Keep the last of what a command says, however much it is."""
    if stream is None:
        return
    with stream:
        while piece := os.read(stream.fileno(), 64 * 1024):
            words += piece
            del words[:-DETAIL_BYTES]


def _end(*children: "subprocess.Popen[bytes]") -> None:
    """End the process groups of commands: ask them, then end what is left of them, also where the wait is cut short."""
    try:
        _signal(children, signal.SIGTERM)
    finally:
        _signal(children, signal.SIGKILL)


def _signal(children: Sequence["subprocess.Popen[bytes]"], how: signal.Signals) -> None:
    for child in children:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, how)
    until = time.monotonic() + GRACE_SECONDS
    for child in children:
        with suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, until - time.monotonic()))
