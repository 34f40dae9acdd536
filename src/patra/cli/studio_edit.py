"""`patra studio shots | edit | render | storyboard`: look at the shots of a run, change one, make the film again."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.studio_run import actor_name, check_writable, deliver, do_audited, follow, say_end, studio_of
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
    from collections.abc import Mapping

    from patra.app.wiring import Patra
    from patra.studio.script.edits import ShotEdit

EDIT_EPILOG = """\b
Examples:
  patra studio edit RUN 3 --place kitchen --person Anna --thing kettle -o film.mp4
  patra studio edit RUN 3 --lettering 'Three weeks later' --seconds 4 --later
  patra studio edit RUN 3 --reset -o film.mp4"""


@click.command("shots")
@click.argument("run_id", metavar="RUN")
@config_option
@json_option
def shots_command(run_id: str, config: str | None, as_json: bool) -> None:
    """List the shots of a run: what is said, what is seen, and who changed it."""
    from patra.studio.views import shot_details

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: shot_details(tx, run_id))
    if as_json:
        show(found, as_json=True)
        return
    rows = [[one.number, one.state, one.seen, ", ".join(one.edited_by), one.narration[:60]] for one in found]
    table(["shot", "state", "seen", "edited by", "said"], rows)


@click.command("edit", epilog=EDIT_EPILOG)
@click.argument("run_id", metavar="RUN")
@click.argument("shot", metavar="SHOT")
@click.option("--narration", metavar="TEXT", help="What is said instead.")
@click.option("--place", help="Where it is (kitchen, sea, …); '' for no place.")
@click.option("--time", "time_of_day", help="dawn, morning, day, dusk or night.")
@click.option("--weather", help="rain, storm, snow, fog, wind or clear.")
@click.option("--mood", help="calm, joyful, sad, tense, mysterious or warm.")
@click.option("--framing", help="wide, medium or insert.")
@click.option("--camera", help="push_in, pull_out, pan_left, pan_right, drift_up or drift_down.")
@click.option("--subject", help="The thing of a close-up: letter, clock, key, …")
@click.option("--person", "people", multiple=True, metavar="NAME", help="Who is seen, each; NAME=KIND for someone new.")
@click.option("--nobody", is_flag=True, help="Nobody is seen.")
@click.option("--thing", "things", multiple=True, help="What is seen, each, instead of what the text names.")
@click.option("--nothing", is_flag=True, help="No things are seen.")
@click.option("--lettering", metavar="TEXT", help="Words instead of a scene.")
@click.option("--seconds", type=float, help="At least this long.")
@click.option("--reset", is_flag=True, help="Without the earlier edits of the shot.")
@click.option("--later", is_flag=True, help="Keep the edit; `render` makes the film.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), metavar="FILM.mp4", help="Also where the film goes.")
@click.option("--no-wait", is_flag=True, help="Leave the work to `patra up` or `patra work studio`.")
@config_option
@outcome_option
def edit_command(
    run_id: str,
    shot: str,
    time_of_day: str | None,
    people: tuple[str, ...],
    nobody: bool,
    things: tuple[str, ...],
    nothing: bool,
    reset: bool,
    later: bool,
    out: str | None,
    no_wait: bool,
    config: str | None,
    **fields: Any,
) -> int:
    """Change one shot of an ended run; only what changed is made again, and the film is put together again."""
    from patra.studio.script.edits import ShotEdit

    change = ShotEdit(
        **fields,
        time=time_of_day,
        people=people if people or nobody else None,
        things=things if things or nothing else None,
        reset=reset,
    )
    if not change.changes:
        raise click.UsageError("Give what is to change, such as --place kitchen; see --help.")
    return _remake(config, run_id, {shot_id_of(shot): change}, out, later=later, no_wait=no_wait)


@click.command("render")
@click.argument("run_id", metavar="RUN")
@click.option("--shot", "shots", multiple=True, metavar="SHOT", help="Make this shot again: another take of it.")
@click.option("--edits", type=click.Path(exists=True, dir_okay=False), metavar="EDITS.json", help="Of a storyboard.")
@click.option("-o", "--out", type=click.Path(dir_okay=False), metavar="FILM.mp4", help="Also where the film goes.")
@click.option("--no-wait", is_flag=True, help="Leave the work to `patra up` or `patra work studio`.")
@config_option
@outcome_option
def render_command(
    run_id: str, shots: tuple[str, ...], edits: str | None, out: str | None, no_wait: bool, config: str | None
) -> int:
    """Make the film of an ended run again with the edits of its shots; what is the same is found, not made."""
    from msgspec.structs import replace

    from patra.studio.script.edits import ShotEdit

    changes = read_edits(edits) if edits else {}
    for shot_id in map(shot_id_of, shots):
        changes[shot_id] = replace(changes.get(shot_id, ShotEdit()), again=True)
    return _remake(config, run_id, changes, out, later=False, no_wait=no_wait)


@click.command("storyboard")
@click.argument("run_id", metavar="RUN")
@click.option("-o", "--out", required=True, type=click.Path(dir_okay=False), metavar="BOARD.html", help="The page.")
@config_option
@outcome_option
def storyboard_command(run_id: str, out: str, config: str | None) -> None:
    """Draw the storyboard of a run as an HTML page; its fields give the edits for `render --edits`."""
    from patra.kernel.errors import count_phrase
    from patra.studio.storyboard import storyboard
    from patra.studio.views import plan_of

    check_writable(out)
    with open_patra(config) as patra:
        spare_the_store(patra, out)
        plan, form = patra.db.read(lambda tx: plan_of(tx, run_id))
        Path(out).write_text(storyboard(plan, form, run_id), "utf-8")
    say_outcome(f"{out}: {count_phrase(len(plan.shots), 'shot')}", page=out, shots=len(plan.shots))


COMMANDS = (shots_command, edit_command, render_command, storyboard_command)


def shot_id_of(given: str) -> str:
    """A shot by its id or by its number in the film."""
    return f"shot_{int(given):04}" if given.isascii() and given.isdigit() else given


def read_edits(file: str) -> "dict[str, ShotEdit]":
    """The edits that a storyboard page has written: a JSON object, by shot."""
    import msgspec

    from patra.kernel.errors import Invalid
    from patra.studio.script.edits import ShotEdit
    from patra.studio.vocabulary.reasons import Reason

    try:
        return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, ShotEdit])
    except (msgspec.DecodeError, OSError) as error:
        advice = 'it is an object such as {"shot_0003": {"place": "kitchen"}}'
        raise Invalid(Reason.EDIT_INVALID, f"{file}: {error}", place="--edits", advice=advice) from error


def _remake(
    config: str | None, run_id: str, edits: "Mapping[str, ShotEdit]", out: str | None, *, later: bool, no_wait: bool
) -> int:
    if out:
        check_writable(out)
    with open_patra(config) as patra:
        if out:
            spare_the_store(patra, out)
        studio, by = studio_of(patra), actor_name()
        stage = do_audited(
            patra,
            "studio.edit",
            run_id,
            lambda tx: studio.edit_in(tx, run_id, edits, by, later=later),
            shots={shot_id: change.changes for shot_id, change in edits.items()},
        )
        return _follow(patra, run_id, stage, out, waits=not (later or no_wait))


def _follow(patra: "Patra", run_id: str, stage: str, out: str | None, *, waits: bool) -> int:
    studio = studio_of(patra)
    if not waits:
        if json_wanted():
            show(studio.progress(run_id), as_json=True)
        else:
            click.echo(f"{run_id} is {stage}; the edit is kept")
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
