"""What is seen while a film is made: a live picture on a terminal, one line per stage elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from patra.studio.pipeline import Progress
    from patra.studio.views import ShotLine


class LiveView:
    """A live view on a terminal, one line per stage elsewhere."""

    def __init__(self, *, live: bool) -> None:
        self._live: Any = None
        self._on = live
        self._stage = ""
        self._began = time.monotonic()

    def __enter__(self) -> Any:
        if self._on and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self._draw

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.__exit__(*error)

    def _draw(self, seen: "Progress", shots: "Callable[[], list[ShotLine]]") -> None:
        if not self._on:
            return
        if self._live is not None:
            self._live.update(picture(seen, shots(), time.monotonic() - self._began))
        elif seen.stage != self._stage:
            self._stage = seen.stage
            click.echo(f"{seen.progress:3d}%  {seen.stage}", err=True)


MARKS = {"made": ("■", "green"), "at_work": ("▣", "yellow"), "waiting": ("·", "dim"), "failed": ("✗", "red")}


def picture(seen: "Progress", shots: "list[ShotLine]", seconds: float) -> Any:
    """The stage, the jobs by kind and one mark per shot, for rich."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    left = ""
    if 0 < seen.progress < 100:
        rest = int(seconds * (100 - seen.progress) / seen.progress)
        left = f"  about {rest // 60}:{rest % 60:02} left"
    head = Text.assemble(
        (seen.title or seen.run_id, "bold"),
        f"  {seen.stage}  {seen.progress}%  {int(seconds) // 60}:{int(seconds) % 60:02}{left}",
    )
    grid = Table.grid(padding=(0, 2))
    for kind in ("llm", "audio", "lipsync", "video"):
        states = seen.jobs.get(kind, {})
        total, done = sum(states.values()), states.get("succeeded", 0)
        if not total:
            continue
        busy, failed = states.get("claimed", 0), states.get("failed", 0)
        words = f"{done}/{total}" + (f"  {busy} at work" if busy else "") + (f"  {failed} failed" if failed else "")
        grid.add_row(kind, ProgressBar(total=total, completed=done, width=30), words)
    made = sum(shot.state == "made" for shot in shots)
    line = Text.assemble("shots  ", *(MARKS[shot.state] for shot in shots), f"  {made}/{len(shots)}")
    return Group(head, grid, *([line] if shots else []))
