"""`patra studio …`: make a film from a chapter, watch runs, cancel, resume, run again (C§2)."""

import time
from typing import TYPE_CHECKING, Any

import click

from patra.cli import studio_edit
from patra.cli.studio_run import (
    actor_name,
    cancel_run,
    check_writable,
    deliver,
    deliver_sidecars,
    do_audited,
    follow,
    say_end,
    studio_of,
)
from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    open_patra,
    outcome_option,
    say_outcome,
    show,
    spare_the_store,
    table,
)

if TYPE_CHECKING:
    from patra.studio.gateway import Submission
    from patra.studio.pipeline import Studio


@click.group("studio", cls=Group)
def group() -> None:
    """From a chapter of text to a film."""


for _command in studio_edit.COMMANDS:
    group.add_command(_command)

MAKE_EPILOG = """\b
Examples:
  patra studio make chapter.txt -o film.mp4
  patra studio make chapter.txt -o film.mp4 --quality standard --subtitles burnt
  patra studio make chapter.txt -o board.html --storyboard
  patra studio make chapter.txt -o film.mp4 --edits edits.json
  patra studio make chapter.txt -o film.mp4 --format 9:16 --sidecars
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
@click.option(
    "--format", "form", type=click.Choice(["16:9", "9:16", "1:1"]), default="16:9", show_default=True, help="Its shape."
)
@click.option("--sidecars", is_flag=True, help="Also FILM.srt, FILM.vtt and FILM.jpg (a poster) beside the film.")
@click.option("--storyboard", is_flag=True, help="Only an HTML page (-o) with a still of each shot.")
@click.option("--edits", type=click.Path(exists=True, dir_okay=False), metavar="EDITS.json", help="Of a storyboard.")
@click.option("--no-narrator", is_flag=True, help="No talking face.")
@click.option("--no-ambience", is_flag=True, help="Nothing but speech: no rain, sea or pad.")
@click.option("--stop-on-failed-shot", is_flag=True, help="Fail the run instead of leaving a failed shot out.")
@click.option("--profile", "profiles", multiple=True, metavar="KIND=ID", help="Prefer a model profile for a worker.")
@click.option("--fresh", is_flag=True, help="Make everything again instead of reusing the same work.")
@config_option
@json_option
def make(
    chapter: str,
    out: str,
    quality: str,
    language: str,
    title: str,
    subtitles: str,
    form: str,
    sidecars: bool,
    storyboard: bool,
    edits: str | None,
    no_narrator: bool,
    no_ambience: bool,
    stop_on_failed_shot: bool,
    profiles: tuple[str, ...],
    fresh: bool,
    config: str | None,
    as_json: bool,
) -> int:
    """Make a film from a chapter, here and now, with a live view of its stages and shots."""
    from patra.kernel.ids import new_id
    from patra.studio.gateway import Options, Submission
    from patra.studio.vocabulary.contracts import run_id_of

    text = _read(chapter)
    check_writable(out)
    changes = studio_edit.read_edits(edits) if edits else {}
    wishes = Options(
        subtitles=subtitles,
        format=form,
        narrator=not no_narrator,
        ambience=not no_ambience,
        on_failed_shot="stop" if stop_on_failed_shot else "leave_out",
        profiles=_voice_preferences(profiles),
        fresh=new_id() if fresh else "",
    )
    asked = Submission(
        chapter=text,
        title=title,
        quality=quality,
        language=language,
        task_id=f"task_{new_id()}",
        submitted_by=actor_name(),
        options=wishes,
    )
    with open_patra(config, create=True) as patra:
        spare_the_store(patra, out)
        if storyboard:
            return _draw_storyboard(studio_of(patra), asked, chapter, out, as_json=as_json)
        studio, run_id = studio_of(patra), run_id_of(asked.task_id)
        began = time.monotonic()
        do_audited(patra, "studio.submit", run_id, lambda tx: studio.submit_in(tx, asked, changes), quality=quality)
        seen = follow(patra, run_id, live=not as_json)
        if seen.stage == "completed":
            deliver(studio, run_id, out)
            if sidecars:
                deliver_sidecars(studio, run_id, out)
        if as_json:
            show(seen, as_json=True)
        else:
            say_end(seen, out, time.monotonic() - began)
    return 0 if seen.stage == "completed" else 1


@group.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@config_option
@json_option
def runs(limit: int, config: str | None, as_json: bool) -> None:
    """List runs, newest first."""
    from patra.studio.views import recent

    with open_patra(config) as patra:
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

    with open_patra(config) as patra:
        seen = studio_of(patra).progress(run_id)
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
@outcome_option
def cancel(run_id: str, config: str | None) -> None:
    """Cancel a run that is under way; running jobs stop soon."""
    with open_patra(config) as patra:
        cancel_run(patra, run_id)
    say_outcome(f"{run_id} is cancelled", run_id=run_id, state="cancelled")


@group.command()
@click.argument("run_id", metavar="RUN")
@click.option(
    "--from", "stage", type=click.Choice(["planning", "executing", "composing"]), help="Run again from a stage."
)
@click.option("-o", "--out", type=click.Path(dir_okay=False), metavar="FILM.mp4", help="Also where the film goes.")
@click.option("--no-wait", is_flag=True, help="Leave the work to `patra up` or `patra work studio`.")
@config_option
@outcome_option
def resume(run_id: str, stage: str | None, out: str | None, no_wait: bool, config: str | None) -> int:
    """Go on with a run that failed or was cancelled, or run an ended one again from a stage."""
    if out:
        check_writable(out)
    with open_patra(config) as patra:
        if out:
            spare_the_store(patra, out)
        studio = studio_of(patra)
        if not stage and not studio.progress(run_id).has_ended:  # its worker was killed, or still works on it
            click.echo(f"{run_id} is under way", err=json_wanted())
        else:
            orchestrator, by = studio.orchestrator, actor_name()
            begun = do_audited(
                patra,
                "studio.resume",
                run_id,
                lambda tx: orchestrator.rerun(tx, run_id, stage, by) if stage else orchestrator.resume(tx, run_id, by),
            )
            click.echo(f"{run_id} goes on from {begun}", err=json_wanted())
        if no_wait:
            if json_wanted():
                show(studio.progress(run_id), as_json=True)
            return 0
        began = time.monotonic()
        seen = follow(patra, run_id, live=not json_wanted())
        if out and seen.stage == "completed":
            deliver(studio, run_id, out)
        if json_wanted():
            show(seen, as_json=True)
        else:
            say_end(seen, out or seen.film_uri or "", time.monotonic() - began)
    return 0 if seen.stage == "completed" else 1


@group.command()
@click.option("--older-than-hours", type=float, default=24.0, show_default=True, help="Spare what is younger.")
@config_option
@outcome_option
def sweep(older_than_hours: float, config: str | None) -> None:
    """Remove files of the artifact folder that no manifest names."""
    with open_patra(config) as patra:
        gone = studio_of(patra).artifacts.collect(time.time() - older_than_hours * 3600)
    say_outcome(f"{gone} files removed", removed=gone)


def _read(chapter: str) -> str:
    """The chapter's text: UTF-8, or UTF-16 that says so with a byte order mark."""
    from patra.kernel.errors import Invalid
    from patra.studio.vocabulary.reasons import Reason

    with click.open_file(chapter, "rb") as file:
        data: Any = file.read()
    try:
        return data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"{chapter} is no UTF-8 text: byte {data[error.start]:#04x} at {error.start}"
        raise Invalid(Reason.CHAPTER_NOT_TEXT, detail, place="chapter", advice="give a plain text file") from error


def _voice_preferences(given: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in given:
        kind, mark, name = one.partition("=")
        if not mark or kind not in {"llm", "audio", "lipsync", "video"}:
            raise click.UsageError(f"--profile {one}: KIND=ID, with a kind of llm, audio, lipsync or video.")
        found.setdefault(kind, []).append(name)
    return found


def _draw_storyboard(studio: "Studio", asked: "Submission", chapter: str, out: str, *, as_json: bool) -> int:
    """Write the storyboard of a chapter; nothing is submitted."""
    from pathlib import Path

    from patra.kernel.errors import count_phrase
    from patra.studio.script.plan import make_plan
    from patra.studio.storyboard import storyboard

    studio.gateway.check(asked)
    plan = make_plan(asked.chapter, asked.language, asked.quality, asked.title, form=asked.options.format)
    Path(out).write_text(storyboard(plan, asked.options.format, chapter=chapter), "utf-8")
    if as_json:
        show({"page": out, "shots": len(plan.shots)}, as_json=True)
    else:
        click.echo(f"{out}: {count_phrase(len(plan.shots), 'shot')}")
    return 0
