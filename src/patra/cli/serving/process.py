"""A process that serves and works until a signal ends it.

The first SIGTERM or SIGINT stops intake, lets running work finish within `web.shutdown_seconds`, releases leases and
closes the store. The second ends the process at once: nothing is lost by that, since every step is one transaction.
"""

import atexit
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from types import FrameType

from patra import __version__ as patra_version
from patra.app.component import Component
from patra.app.configuration.egress_targets import refused_targets, targets
from patra.app.configuration.settings import Settings
from patra.app.loops import LoopRole, refuse_loops_of_no_engine
from patra.app.wiring import COMPONENTS, Patra, build
from patra.cli.terminal.options import shown_store
from patra.kernel.errors import ConfigInvalid
from patra.kernel.telemetry import get_logger, setup_logging, setup_tracing
from patra.web.api import operations
from patra.web.asgi import app, every_endpoint
from patra.web.endpoint import Endpoint
from patra.web.uvicorn_server import Serving, listen

log = get_logger()

WEB_SHARE = 0.6  # of the shutdown's time: requests finish first, since they may wait for a loop's work


CLOSING_GRACE_SECONDS = 1.0  # beyond the bound: the loops use all of it, and then the store is closed


class Stop:
    """The wish to stop, from a signal or from the program."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[str] = SimpleQueue()  # its put() may be called in a signal handler
        self._on_ask: Callable[[], None] | None = None
        self._reload: Callable[[], object] | None = None
        self._reload_asked = False
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

    def ask_reload(self) -> None:
        """Read the tokens again, or remember to: a signal may come before there is anything to read them with."""
        self._reload_asked = True
        if self._reload is not None:
            threading.Thread(target=self._reload, name="reload", daemon=True).start()  # a handler must not log

    def reload_with(self, action: Callable[[], object]) -> None:
        """What SIGHUP asks for; at once if it has come already."""
        self._reload = action
        if self._reload_asked:
            action()

    def wait(self) -> None:
        self._asked.get()


@contextmanager
def stop_on_signals() -> Generator[Stop]:
    """SIGTERM and SIGINT ask to stop, the second one ends the process there and then; SIGHUP reads tokens again."""
    stop = Stop()

    def take_signal(number: int, frame: FrameType | None) -> None:
        del frame
        if stop.by:
            os._exit(128 + number)
        stop.ask(signal.Signals(number).name)

    def hung_up(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.ask_reload()

    before = {number: signal.signal(number, take_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hung_up)
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
    roles: Iterable[str] = (),
    only_operations: bool = False,
    listening: Callable[[str, Patra, Stop], None] | None = None,
    parts: Sequence[Component] = COMPONENTS,
    origins: Mapping[str, str] | None = None,
) -> int:
    """Be a Patra until stopped. Gives the exit code.

    `loops` names the loops to run, and `roles` narrows them (empty: all). None: only those of the intake, which
    belong to the process that takes requests.
    """
    greeted = web and listening is None and starts_quietly(settings, terminal=sys.stderr.isatty())
    _log_as_configured(settings, level="warning" if greeted else settings.log.level)
    stop_tracing = setup_tracing(endpoint=settings.telemetry.otlp_endpoint, service=settings.telemetry.service_name)
    with ExitStack() as at_last, stop_on_signals() as stop:
        at_last.callback(stop_tracing)
        if loops is not None:
            for refused in refused_targets(targets(settings)):
                raise refused
            refuse_loops_of_no_engine(loops, [part.name for part in parts if part.join])
        listener = listen(settings.web) if web else None
        try:
            patra = build(settings, parts=parts)
            patra.origins = origins or {}
        except BaseException:
            if listener:
                listener.close()
            raise
        served: Serving | None = None
        running = False
        try:
            if listener:
                endpoints: list[Endpoint] = operations.routes(patra) if only_operations else every_endpoint(patra)
                finish = settings.web.shutdown_seconds * WEB_SHARE
                served = Serving(app(patra, endpoints), listener, finish_seconds=finish)
                stop.reload_with(served.app.gate.reload)
            if not only_operations:
                patra.warm()
            settle_interpreter()
            started = patra.start((), [LoopRole.INTAKE]) if loops is None else patra.start(loops, roles)
            if not started and not served:
                raise ConfigInvalid(
                    "loops_none", "no engine of this installation has such a loop: there is nothing to do"
                )
            running = True
            if served:
                opened = served.app.gate.exposure
                if greeted:
                    sys.stderr.write(greeting(served.url, shown_store(settings), opened.api))
                    _log_as_configured(settings, level=settings.log.level)
                else:
                    log.info("exposure", api=opened.api, intake=opened.intake, names=opened.shown_names)
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
            if running:  # else it never began, and what refused it is the only thing to say
                log.info("stopping", by=stop.by or "an error")
            late = _close(patra, until)
    return _leave(late, until)


def starts_quietly(settings: Settings, *, terminal: bool) -> bool:
    """Whether a person starts it: then a few lines say where it is, instead of the events of the start."""
    return terminal and settings.log.format != "json" and settings.log.level == "info"


def greeting(url: str, store: str, api: str) -> str:
    """What a person wants to know of a server that has just started."""
    return (
        f"Patra {patra_version} listens on {url}\n"
        f"  console  {url}/console\n"
        f"  store    {store}\n"
        f"  open to  {api}\n"
        "Ctrl-C stops it. Warnings and what it does from now on are logged below.\n"
    )


def _log_as_configured(settings: Settings, *, level: str) -> None:
    setup_logging(level=level, format=settings.log.format, sample_info=settings.log.sample_info)


def _close(patra: Patra, until: float) -> list[str]:
    """Close within the bound, whatever a part or the store waits for; gives what did not end."""
    late: list[str] = ["closing"]

    def close() -> None:
        late[:] = patra.close(until - time.monotonic())

    thread = threading.Thread(target=close, name="closing", daemon=True)
    thread.start()
    thread.join(max(until - time.monotonic(), 0) + CLOSING_GRACE_SECONDS)
    return list(late)


def settle_interpreter() -> None:
    """Freeze the objects of the start: the garbage collector need not examine them again and again.

    It looks less often, too: a batch of events makes thousands of objects, none of them in a cycle, and a full turn in
    the midst of them is a pause that a client feels. And a thread that computes gives way sooner: one that comes back
    from the network or the store has little to do, and a client waits for it.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # else DuckDB's binding reports what is frozen as leaked
    gc.set_threshold(100_000, 20, 50)
    sys.setswitchinterval(0.002)


def _leave(late: list[str], until: float) -> int:
    """Wait for running threads until the bound; what is still busy then must not keep the process alive."""
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
