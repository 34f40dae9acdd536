"""`patra demo`: a whole Patra on a temporary store; it says where to look, and shows what the engines do."""

import contextlib
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from patra.cli.process import Stop

EPILOG = """\b
Examples:
  patra demo               until Ctrl-C; the store is gone afterwards
  patra demo --once        come up, check, show, end (exit code 1 if something did not answer)
  patra demo --seconds 60"""

PORT = 8642
PLACES = (
    ("/", "what answers here"),
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

    from patra.app.sources import load
    from patra.cli.process import run
    from patra.demo import STEPS

    with tempfile.TemporaryDirectory(prefix="patra-demo-") as name:
        folder = Path(name)
        values: dict[str, Any] = {
            "store.url": f"sqlite:///{folder / 'patra.db'}",
            "web.port": _free_port() if port is None else port,
            "web.shutdown_seconds": 5.0,
            "log.level": "warning",
        }
        for step in STEPS:
            values |= step.prepare(folder) if step.prepare else {}
        settings = load(None, {}, values, folder).settings
        guide = _Guide(folder, once=once, seconds=seconds)
        code = run(settings, web=True, loops=(), listening=lambda url, _patra, stop: guide.start(url, stop))
    return code or guide.failed


class _Guide:
    """Looks at the process from outside, over HTTP, and prints what it sees."""

    def __init__(self, folder: "Path", *, once: bool, seconds: float | None) -> None:
        self.failed = 1  # until it has been seen to work
        self._folder = folder
        self._once = once
        self._seconds = seconds

    def start(self, url: str, stop: "Stop") -> None:
        threading.Thread(target=self._show_and_maybe_stop, args=(url, stop), name="demo guide", daemon=True).start()

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
        click.echo(f"\nPatra is up at {url} on a temporary store.\n")
        for path, what in PLACES:
            status = http.request("GET", url + path).status
            click.echo(f"  {status}  {url + path:<38} {what}")
            if status != 200:
                raise RuntimeError(f"{path} answered {status}")
        for step in STEPS:
            click.echo(f"\n{step.name}")
            for line in step.show(Demo(url=url, folder=self._folder)):
                click.echo(f"  {line}")
        if not self._once and self._seconds is None:
            click.echo("\nCtrl-C ends it, and the store is gone.")
        sys.stdout.flush()


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
        return PORT
