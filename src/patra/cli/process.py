"""Settings go in; a process that serves and works until a signal ends it comes out, and its exit code.

The first SIGTERM or SIGINT stops intake, lets what is in hand finish within `web.shutdown_seconds`, releases leases and
closes the store. The second ends the process at once: nothing is lost by that, since every step is one transaction.
"""

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from types import FrameType

from patra.app.parts import Part
from patra.app.settings import Settings
from patra.app.wiring import PARTS, Patra, build
from patra.kernel.errors import ConfigInvalid
from patra.kernel.telemetry import get_logger, setup_logging, setup_tracing
from patra.web.api import operations
from patra.web.endpoint import Endpoint
from patra.web.server import app, every_endpoint
from patra.web.serving import Serving, listen

log = get_logger()

WEB_SHARE = 0.6  # of the shutdown's time: requests finish first, since they may wait for a loop's work


class Stop:
    """The wish to stop, from a signal or from the program."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[str] = SimpleQueue()  # its put() may be called in a signal handler
        self._on_ask: Callable[[], None] | None = None
        self.by = ""

    def ask(self, by: str) -> None:
        if not self.by:
            self.by = by
            self._asked.put(by)
            if self._on_ask:
                self._on_ask()

    def then(self, action: Callable[[], None]) -> None:
        """What to do when asked; at once if that has been."""
        self._on_ask = action
        if self.by:
            action()

    def wait(self) -> None:
        self._asked.get()


@contextmanager
def stop_on_signals() -> Generator[Stop]:
    """SIGTERM and SIGINT ask to stop; the second one ends the process there and then."""
    stop = Stop()

    def received(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.by:
            os._exit(128 + number)
        stop.ask(signal.Signals(number).name)

    before = {number: signal.signal(number, received) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(
    settings: Settings,
    *,
    web: bool,
    loops: Iterable[str] | None,
    only_operations: bool = False,
    listening: Callable[[str, Patra, Stop], None] | None = None,
    parts: Sequence[Part] = PARTS,
) -> int:
    """Be a Patra until stopped. `loops` names the loops to run (empty: all, None: none); gives the exit code."""
    setup_logging(level=settings.log.level, format=settings.log.format, sample_info=settings.log.sample_info)
    stop_tracing = setup_tracing(endpoint=settings.telemetry.otlp_endpoint, service=settings.telemetry.service_name)
    with ExitStack() as at_last, stop_on_signals() as stop:
        at_last.callback(stop_tracing)
        listener = listen(settings.web) if web else None
        try:
            patra = build(settings, parts=parts)
        except BaseException:
            if listener:
                listener.close()
            raise
        served: Serving | None = None
        try:
            if listener:
                endpoints: list[Endpoint] = operations.routes(patra) if only_operations else every_endpoint(patra)
                finish = settings.web.shutdown_seconds * WEB_SHARE
                served = Serving(app(patra, endpoints), listener, finish_seconds=finish)
            settle_interpreter()
            if loops is not None and not patra.start(loops) and not served:
                raise ConfigInvalid("loops_none", "no engine of this installation has a loop: there is nothing to do")
            if served:
                log.info("listening", url=served.url, open=served.app.gate.open, pid=os.getpid())
                if listening:
                    listening(served.url, patra, stop)
                stop.then(served.stop)
                served.run()
            else:
                log.info("working", pid=os.getpid())
                stop.wait()
        finally:
            until = time.monotonic() + settings.web.shutdown_seconds * ((1 - WEB_SHARE) if served else 1)
            log.info("stopping", by=stop.by or "an error")
            late = patra.close(until - time.monotonic())
    return _leave(late, until)


def settle_interpreter() -> None:
    """What was built to start with stays for good: the collector of cycles need not look at it again and again.

    It looks less often, too: a batch of events makes thousands of objects, none of them in a cycle, and a full turn in
    the midst of them is a pause that a client feels. And a thread that computes gives way sooner: one that comes back
    from the network or the store has little to do, and somebody waits for it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    sys.setswitchinterval(0.002)


def _leave(late: list[str], until: float) -> int:
    """Wait for threads in hand until the bound; what is still busy then must not keep the process alive."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(until - time.monotonic(), 0.1))
            if thread.is_alive():
                late = [*late, thread.name]
    if late:
        log.error("left_behind", what=late)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
    return 0
