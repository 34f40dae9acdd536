"""`patra studio …`: make a film from a chapter, watch runs, cancel, resume, run again (C§2)."""

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from patra.cli.options import config_option, json_option, opened, show, spare_the_store, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from patra.app.wiring import Patra
    from patra.kernel.db import Tx
    from patra.studio.pipeline import Progress, Studio
    from patra.studio.views import ShotLine


@click.group("studio")
def group() -> None:
    """From a chapter of text to a film."""


MAKE_EPILOG = """\b
Examples:
  patra studio make chapter.txt -o film.mp4
  patra studio make chapter.txt -o film.mp4 --quality standard --subtitles burnt
  patra studio make chapter.txt -o film.mp4 --profile audio=voice-server
  patra studio runs
  patra studio show RUN"""


@group.command(epilog=MAKE_EPILOG)
@click.argument("chapter", type=click.Path(exists=True, dir_okay=False, allow_dash=True), metavar="CHAPTER.txt")
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), metavar="FILM.mp4", help="The film.")
@click.option(
    "--quality", type=click.Choice(["draft", "standard", "high"]), default="draft", show_default=True, help="How good."
)
@click.option("--language", default="", metavar="TAG", help="Language of the chapter (en, zh, …); found by default.")
@click.option("--title", default="", help="Title, instead of the chapter's first line.")
@click.option(
    "--subtitles", type=click.Choice(["soft", "burnt"]), default="soft", show_default=True, help="A stream, or drawn."
)
@click.option("--no-narrator", is_flag=True, help="No talking face.")
@click.option("--stop-on-failed-shot", is_flag=True, help="Fail the run instead of leaving a failed shot out.")
@click.option("--profile", "profiles", multiple=True, metavar="KIND=ID", help="Prefer a model profile for a worker.")
@click.option("--fresh", is_flag=True, help="Make everything anew instead of reusing the same work.")
@config_option
@json_option
def make(
    chapter: str,
    out: str,
    quality: str,
    language: str,
    title: str,
    subtitles: str,
    no_narrator: bool,
    stop_on_failed_shot: bool,
    profiles: tuple[str, ...],
    fresh: bool,
    config: str | None,
    as_json: bool,
) -> int:
    """Make a film from a chapter, here and now, with a live view of its stages and shots."""
    from patra.kernel.ids import new_id
    from patra.studio.contracts import run_id_of
    from patra.studio.gateway import Submission, Wishes

    text = _read(chapter)
    _writable(out)
    wishes = Wishes(
        subtitles=subtitles,
        narrator=not no_narrator,
        on_failed_shot="stop" if stop_on_failed_shot else "leave_out",
        profiles=_preferred(profiles),
        fresh=new_id() if fresh else "",
    )
    asked = Submission(
        chapter=text,
        title=title,
        quality=quality,
        language=language,
        task_id=f"task_{new_id()}",
        submitted_by=_me(),
        options=wishes,
    )
    with opened(config) as patra:
        spare_the_store(patra, out)
        studio, run_id = _studio(patra), run_id_of(asked.task_id)
        began = time.monotonic()
        _acted(patra, "studio.submit", run_id, lambda tx: studio.gateway.submit(tx, asked), quality=quality)
        seen = _followed(patra, run_id, live=not as_json)
        if seen.stage == "completed":
            _deliver(studio, run_id, out)
        if as_json:
            show(seen, as_json=True)
        else:
            _say_end(seen, out, time.monotonic() - began)
    return 0 if seen.stage == "completed" else 1


@group.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@config_option
@json_option
def runs(limit: int, config: str | None, as_json: bool) -> None:
    """List runs, newest first."""
    from patra.studio.views import recent

    with opened(config) as patra:
        show(patra.db.read(lambda tx: recent(tx, limit)), as_json=as_json)


@group.command("show")
@click.argument("run_id", metavar="RUN")
@click.option("--events", is_flag=True, help="With every line of its story.")
@config_option
@json_option
def show_run(run_id: str, events: bool, config: str | None, as_json: bool) -> None:
    """Show a run: its stage, its jobs, its costs, its film and what had to be left out."""
    import msgspec

    from patra.studio.observer import all_notes

    with opened(config) as patra:
        seen = _studio(patra).progress(run_id)
        told = all_notes(patra.db, run_id) if events else []
    if as_json:
        show(msgspec.structs.asdict(seen) | ({"events": told} if events else {}), as_json=True)
        return
    show(seen, as_json=False)
    if events:
        table(["at", "event", "subject", "detail"], [[n.at, n.kind, n.subject, n.detail] for n in told])


@group.command()
@click.argument("run_id", metavar="RUN")
@config_option
def cancel(run_id: str, config: str | None) -> None:
    """Cancel a run that is under way; jobs in hand stop soon."""
    with opened(config) as patra:
        _cancelled(patra, run_id)
    click.echo(f"{run_id} is cancelled")


@group.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--from", "stage", type=click.Choice(["planning", "executing", "composing"]), help="Run again from a stage."
)
@click.option("-o", "--out", type=click.Path(dir_okay=False), metavar="FILM.mp4", help="Also where the film goes.")
@click.option("--no-wait", is_flag=True, help="Leave the work to `patra up` or `patra work studio`.")
@config_option
def resume(run_id: str, stage: str | None, out: str | None, no_wait: bool, config: str | None) -> int:
    """Go on with a run that failed or was cancelled, or run an ended one again from a stage."""
    if out:
        _writable(out)
    with opened(config) as patra:
        if out:
            spare_the_store(patra, out)
        studio = _studio(patra)
        if not stage and not studio.progress(run_id).ended:  # whoever worked on it was killed, or still does
            click.echo(f"{run_id} is under way")
        else:
            orchestrator, by = studio.orchestrator, _me()
            begun = _acted(
                patra,
                "studio.resume",
                run_id,
                lambda tx: orchestrator.rerun(tx, run_id, stage, by) if stage else orchestrator.resume(tx, run_id, by),
            )
            click.echo(f"{run_id} goes on from {begun}")
        if no_wait:
            return 0
        began = time.monotonic()
        seen = _followed(patra, run_id, live=True)
        if out and seen.stage == "completed":
            _deliver(studio, run_id, out)
        _say_end(seen, out or seen.film_uri or "", time.monotonic() - began)
    return 0 if seen.stage == "completed" else 1


@group.command()
@click.option("--older-than-hours", type=float, default=24.0, show_default=True, help="Spare what is younger.")
@config_option
def sweep(older_than_hours: float, config: str | None) -> None:
    """Remove files of the artifact folder that no manifest names."""
    with opened(config) as patra:
        gone = _studio(patra).artifacts.collect(time.time() - older_than_hours * 3600)
    click.echo(f"{gone} removed")


def _studio(patra: "Patra") -> "Studio":
    from patra.app.studio import StudioEngine

    return patra.engine(StudioEngine).studio


def _me() -> str:
    from patra.app.actor import command_line_actor

    return command_line_actor().name


def _acted(patra: "Patra", act: str, subject: str, work: "Callable[[Tx], Any]", **detail: Any) -> Any:
    """Do it and write the audit row in one transaction."""
    from patra.app.actor import command_line_actor
    from patra.app.audit import audit

    def both(tx: "Tx") -> Any:
        done = work(tx)
        audit(tx, command_line_actor(), act, subject, detail, patra.clock.now())
        return done

    return patra.db.run(both)


def _cancelled(patra: "Patra", run_id: str) -> None:
    orchestrator = _studio(patra).orchestrator
    _acted(patra, "studio.cancel", run_id, lambda tx: orchestrator.cancel(tx, run_id, _me()))


def _read(chapter: str) -> str:
    """The chapter's text: UTF-8, or UTF-16 that says so with a byte order mark."""
    from patra.kernel.errors import Invalid
    from patra.studio.reasons import R

    with click.open_file(chapter, "rb") as file:
        data: Any = file.read()
    try:
        return data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"{chapter} is no UTF-8 text: byte {data[error.start]:#04x} at {error.start}"
        raise Invalid(R.CHAPTER_NOT_TEXT, detail, place="chapter", advice="give a plain text file") from error


def _writable(out: str) -> None:
    """Find out before the work, not after it, that the film has nowhere to go."""
    from pathlib import Path

    try:
        Path(out).parent.stat()
        with _draft(out).open("xb"):
            pass
        _draft(out).unlink()
    except OSError as error:
        raise _unwritable(out, error) from error


def _draft(out: str) -> "Path":
    """The film's file while it is copied: beside its place, under a name of this process."""
    import os
    from pathlib import Path

    return Path(out).with_name(f".{Path(out).name}.{os.getpid()}.part")


def _unwritable(out: str, error: OSError) -> Exception:
    from patra.kernel.errors import Invalid
    from patra.studio.reasons import R

    return Invalid(
        R.OUTPUT_UNWRITABLE,
        f"{out}: {error.strerror}",
        place="-o",
        advice="name a file in a folder that may be written to",
    )


def _preferred(given: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in given:
        kind, mark, name = one.partition("=")
        if not mark or kind not in {"llm", "audio", "lipsync", "video"}:
            raise click.UsageError(f"--profile {one}: KIND=ID, with a kind of llm, audio, lipsync or video.")
        found.setdefault(kind, []).append(name)
    return found


def _followed(patra: "Patra", run_id: str, *, live: bool) -> "Progress":
    """Run every module in this process until the run has ended; Ctrl-C cancels it."""
    from patra.studio.views import shots

    studio = _studio(patra)
    with studio.running() as broken, _view(live=live) as draw:
        try:
            while True:
                time.sleep(0.1)
                seen = studio.progress(run_id)
                draw(seen, lambda: studio.db.read(lambda tx: shots(tx, run_id)))
                if seen.ended:
                    return seen
                if len(broken) > 50:
                    raise broken[-1]
        except KeyboardInterrupt:
            _cancelled(patra, run_id)
            raise


class _view:  # noqa: N801  used as a function that opens a block
    """A live view on a terminal, a line a stage elsewhere."""

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
            self._live.update(_picture(seen, shots(), time.monotonic() - self._began))
        elif seen.stage != self._stage:
            self._stage = seen.stage
            click.echo(f"{seen.progress:3d}%  {seen.stage}", err=True)


MARKS = {"made": ("■", "green"), "at_work": ("▣", "yellow"), "waiting": ("·", "dim"), "failed": ("✗", "red")}


def _picture(seen: "Progress", shots: "list[ShotLine]", seconds: float) -> Any:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Text.assemble(
        (seen.title or seen.run_id, "bold"),
        f"  {seen.stage}  {seen.progress}%  {int(seconds) // 60}:{int(seconds) % 60:02}",
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


def _deliver(studio: "Studio", run_id: str, out: str) -> None:
    """Copy the film beside its place and rename it: nobody sees half of it."""
    import shutil

    film, _ = studio.film(run_id)
    draft = _draft(out)
    try:
        shutil.copyfile(film, draft)
        draft.replace(out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _unwritable(f"{out} (the film is {film})", error) from error


def _say_end(seen: "Progress", out: str, seconds: float) -> None:
    if seen.stage != "completed":
        click.echo(f"{seen.run_id} {seen.stage}: {seen.reason_code} {seen.reason}", err=True)
        return
    length = (seen.film_ms or 0) / 1000
    click.echo(f"{out}: {length:.1f} s of film, {seen.shots - len(seen.left_out)} shots, made in {seconds:.1f} s")
    for shot in seen.left_out:
        click.echo(f"left out: {shot['shot_id']} ({shot['error_code']}): {shot['narration'][:60]}", err=True)
    click.echo(f"run {seen.run_id}", err=True)
