"""`patra demo`: a whole Patra on a temporary store; it says where to look, and shows what the engines do."""

import contextlib
import socket
import sys
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from urllib3 import PoolManager

    from patra.app.wiring import Patra
    from patra.cli.serving.process import Stop
    from patra.demo import Demo, Step

EPILOG = """\b
Examples:
  patra demo               fill every engine, then go on until Ctrl-C; the store is gone afterwards
  patra demo --once        come up, check, show, end (exit code 1 if something did not answer)
  patra demo --seconds 60"""

PORT = 8642
WALK_LINKS = 6
STOPPING_S = 30.0
PLACES = (
    ("/health", "alive?"),
    ("/ready", "store, migrations, loops"),
    ("/openapi.json", "the interface"),
    ("/metrics", "for Prometheus"),
)


@click.command("demo", epilog=EPILOG)
@click.option("--port", type=int, help="Port to listen on; by default 8642, or a free one if that is taken.")
@click.option("--once", is_flag=True, help="End as soon as everything has been shown.")
@click.option("--seconds", type=click.FloatRange(min=0), help="End after this many seconds.")
def command(port: int | None, once: bool, seconds: float | None) -> int:
    """Start everything on a temporary store and say where to look."""
    import tempfile
    from pathlib import Path

    from patra.app.configuration.settings_loader import load
    from patra.cli.serving.process import run
    from patra.demo import STEPS

    with tempfile.TemporaryDirectory(prefix="patra-demo-") as name:
        folder = Path(name)
        values: dict[str, Any] = {
            "store.url": f"sqlite:///{folder / 'patra.db'}",
            "web.port": _free_port() if port is None else port,
            "web.shutdown_seconds": 5.0,
            "log.level": "error",  # alerts are shown on the pages
        }
        for step in STEPS:
            values |= step.prepare(folder) if step.prepare else {}
        found = load(None, {}, values, folder)
        with ExitStack() as at_end:
            guide = _Guide(folder, at_end, once=once, seconds=seconds)
            code = run(
                found.settings,
                web=True,
                loops=(),
                listening=guide.start,
                origins=found.origins,
            )
            guide.stop.set()
    return code or guide.failed


class _Guide:
    """Looks at the process from outside, over HTTP, and prints what it sees."""

    def __init__(self, folder: "Path", at_end: ExitStack, *, once: bool, seconds: float | None) -> None:
        self.failed = 1  # until it has been seen to work
        self.stop = threading.Event()
        self._folder = folder
        self._at_end = at_end
        self._once = once
        self._seconds = seconds
        self._patra: Patra | None = None

    def start(self, url: str, patra: "Patra", stop: "Stop") -> None:
        self.watch(patra)
        threading.Thread(target=self._show_and_maybe_stop, args=(url, stop), name="demo guide", daemon=True).start()

    def watch(self, patra: "Patra") -> None:
        """From now on its first page says what happens."""
        from patra.demo import STEPS

        self._patra = patra
        self._notice(f"It is being filled: {', '.join(step.name.partition(':')[0] for step in STEPS)}.")

    def _notice(self, text: str, links: "Sequence[tuple[str, str]]" = ()) -> None:
        """Say it on the first page of the console, which is open long before everything is there."""
        from patra.app.wiring import Notice

        if self._patra is not None:
            text = f"This is a demonstration on a temporary store. {text}"
            self._patra.notice = Notice(text=text, links=links)

    def _show_and_maybe_stop(self, url: str, stop: "Stop") -> None:
        try:
            self._show(url)
            self.failed = 0
        except Exception as error:  # noqa: BLE001  the guide's edge: say it, and end with exit code 1
            click.echo(f"patra: the demo did not work: {type(error).__name__}: {error}", err=True)
            stop.ask("the demo failed")
            return
        if self._once:
            stop.ask("the demo is over")
        elif self._seconds is not None:
            timer = threading.Timer(self._seconds, stop.ask, ["the demo's time is over"])
            timer.daemon = True
            timer.start()

    def _show(self, url: str) -> None:
        from urllib3 import PoolManager

        from patra.demo import STEPS, Demo

        http = PoolManager(timeout=10.0, retries=False)
        click.echo(f"\nPatra is up at {url} on a temporary store.\n\n  Open {url}/console/\n")
        for path, what in PLACES:
            status = http.request("GET", url + path).status
            click.echo(f"  {status}  {url + path:<38} {what}")
            if status != 200:
                raise RuntimeError(f"{path} answered {status}")
        demo = Demo(url=url, folder=self._folder, once=self._once, stop=self.stop, at_end=self._at_end)
        for number, step in enumerate(STEPS, 1):
            click.echo(f"\n{step.name}")
            self._notice(f"It is being filled, {number} of {len(STEPS)}: {step.name}.")
            for line in step.show(demo):
                say(f"  {line}")
            sys.stdout.flush()
            if step.live is not None and not self._once:
                threading.Thread(target=_go_on, args=(step, demo), name=f"demo {step.name}", daemon=True).start()
        self._walk(http, demo)

    def _walk(self, http: "PoolManager", demo: "Demo") -> None:
        """The links, each looked at before it is shown."""
        from patra.demo import Link

        start = Link(path="/console/", text="is everything well, and what needs a person")
        click.echo("\nLook at this")
        walk = [start, *demo.walk][:WALK_LINKS]
        self._notice("It is filled, and goes on producing. Look at this:", [(one.path, one.text) for one in walk[1:]])
        for number, link in enumerate(walk, 1):
            status = http.request("GET", demo.url + link.path).status
            if status != 200:
                raise RuntimeError(f"{link.path} answered {status}")
            click.echo(f"  {number}. {demo.url}{link.path}\n     {link.text}")
        if not self._once and self._seconds is None:
            click.echo("\nIt goes on producing. Ctrl-C ends it, and the store is gone.")
        sys.stdout.flush()


def _go_on(step: "Step", demo: "Demo") -> None:
    """Let a step produce. A server that is being stopped refuses its last request: that is not worth a word."""
    try:
        if step.live is not None:
            step.live(demo)
    except Exception as error:  # noqa: BLE001  a thread's edge: say it, unless the demo ends
        if not demo.stop.wait(STOPPING_S):
            click.echo(f"patra: {step.name}: ended by {type(error).__name__}: {error}", err=True)


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
        return PORT
