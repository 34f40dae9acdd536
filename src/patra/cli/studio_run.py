"""What the commands of the studio share: acts with their audit row, following a run to its end, delivering its film."""

import time
from typing import TYPE_CHECKING, Any

import click

from patra.cli.studio_view import LiveView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from patra.app.wiring import Patra
    from patra.kernel.db import Tx
    from patra.studio.pipeline import Progress, Studio


def studio_of(patra: "Patra") -> "Studio":
    from patra.app.components.studio import StudioEngine

    return patra.engine(StudioEngine).studio


def actor_name() -> str:
    from patra.app.access.actor import command_line_actor

    return command_line_actor().name


def do_audited(patra: "Patra", act: str, subject: str, work: "Callable[[Tx], Any]", **detail: Any) -> Any:
    """Do it and write the audit row in one transaction."""
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit

    def both(tx: "Tx") -> Any:
        done = work(tx)
        audit(tx, command_line_actor(), act, subject, detail, patra.clock.now())
        return done

    return patra.db.run(both)


def cancel_run(patra: "Patra", run_id: str) -> None:
    orchestrator = studio_of(patra).orchestrator
    do_audited(patra, "studio.cancel", run_id, lambda tx: orchestrator.cancel(tx, run_id, actor_name()))


OTHER_FILMS = frozenset({".avi", ".gif", ".m4v", ".mkv", ".mov", ".mpg", ".webm", ".wmv"})
"""Endings of films in another form than the one that is written."""


def check_writable(out: str) -> None:
    """Find out before the work, not after it, that the film has nowhere to go."""
    from pathlib import Path

    from patra.kernel.errors import Invalid
    from patra.studio.vocabulary.reasons import Reason

    if Path(out).suffix.lower() in OTHER_FILMS:
        instead = Path(out).with_suffix(".mp4")
        raise Invalid(
            Reason.OUTPUT_UNWRITABLE, f"{out}: a film is written as MP4", place="-o", advice=f"name it {instead}"
        )
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
    from patra.studio.vocabulary.reasons import Reason

    return Invalid(
        Reason.OUTPUT_UNWRITABLE,
        f"{out}: {error.strerror}",
        place="-o",
        advice="name a file in a folder that may be written to",
    )


def follow(patra: "Patra", run_id: str, *, live: bool) -> "Progress":
    """Run every module in this process until the run has ended; Ctrl-C cancels it."""
    from patra.studio.views import shots

    studio = studio_of(patra)
    with studio.running() as broken, LiveView(live=live) as draw:
        try:
            while True:
                time.sleep(0.1)
                seen = studio.progress(run_id)
                draw(seen, lambda: studio.db.read(lambda tx: shots(tx, run_id)))
                if seen.has_ended:
                    return seen
                if len(broken) > 50:
                    raise broken[-1]
        except KeyboardInterrupt:
            cancel_run(patra, run_id)
            raise


def deliver(studio: "Studio", run_id: str, out: str) -> None:
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


def deliver_sidecars(studio: "Studio", run_id: str, out: str) -> None:
    """Copy the subtitles and the poster beside the film, under its name."""
    import shutil
    from pathlib import Path

    endings = {"application/x-subrip": ".srt", "text/vtt": ".vtt", "image/jpeg": ".jpg"}
    _, manifest = studio.film(run_id)
    for artifact in manifest.artifacts:
        if ending := endings.get(artifact.media_type):
            shutil.copyfile(studio.artifacts.verify_once(artifact), Path(out).with_suffix(ending))


def _next_steps(seen: "Progress", out: str) -> list[str]:
    """What to do with a run that has no film: see why, fix it, go on."""
    from patra.studio.vocabulary.reasons import Reason

    steps = [f"  why:   patra studio show {seen.run_id} --events"]
    if seen.reason_code == str(Reason.HANDLER_FAILED):
        steps.append("  event: patra bus dead-letters")
    if seen.reason_code != str(Reason.CANCELLED):
        steps.append("  fix the cause, then")
    film = f" -o {out}" if out else ""
    return [*steps, f"  go on: patra studio resume {seen.run_id}{film}"]


def say_end(seen: "Progress", out: str, seconds: float) -> None:
    if seen.stage != "completed":
        click.echo(f"{seen.run_id} {seen.stage}: {seen.reason_code} {seen.reason}", err=True)
        for line in _next_steps(seen, out):
            click.echo(line, err=True)
        return
    length = (seen.film_ms or 0) / 1000
    click.echo(f"{out}: {length:.1f} s of film, {seen.shots - len(seen.left_out)} shots, made in {seconds:.1f} s")
    for shot in seen.left_out:
        click.echo(f"left out: {shot['shot_id']} ({shot['error_code']}): {shot['narration'][:60]}", err=True)
    click.echo(f"run {seen.run_id}", err=True)
