"""Acts on films."""

import re
from typing import Any

from patra.studio.script.edits import STAGING_VALUES
from patra.web.console.act import Act, Form, Input, Preview, back_to, form_values, nothing, say
from patra.web.console.markup.formats import link

UNCHANGED = "as it is"
NUMBER = re.compile(r"\d+(\.\d+)?")
NONE = "-"
"""Typed for nobody, nothing."""


def change_of(form: Form) -> dict[str, Any]:
    """The edit of a shot: fields that are left empty stay as they are."""
    lists = {name: words for name in ("people", "things") if (words := form.get(name, "").strip())}
    seconds = form.get("seconds", "").strip()
    amount = float(seconds) if NUMBER.fullmatch(seconds) else seconds  # what is no number is refused by its field
    return (
        form_values(form, "narration", "lettering", *STAGING_VALUES)
        | {name: [] if words == NONE else _list_words(words) for name, words in lists.items()}
        | ({"seconds": amount} if seconds else {})
    )


def _list_words(words: str) -> list[str]:
    return [one.strip() for one in re.split(r"[,\uff0c\u3001]", words) if one.strip()]


def _choice(name: str) -> Input:
    return Input(name=name, label=name.capitalize(), choices=("", *STAGING_VALUES[name]), empty_label=UNCHANGED)


STUDIO: dict[str, Act] = {
    "studio.submit": Act(
        template="/studio/runs",
        level=2,
        title="Make a film",
        text="The film is made in the background; shots appear on the run's page as they are made.",
        button="Make the film",
        body=lambda form: form_values(form, "chapter", "title", "quality", "language"),
        done=say("The film is under way."),
        after=lambda _, answer: link(f"/studio/run/{answer['run_id']}"),
        inputs=(
            Input(name="chapter", label="Chapter", rows=12, required=True),
            Input(name="title", label="Title", hint="else the first line"),
            Input(name="quality", label="Quality", choices=("draft", "standard", "high"), value="draft"),
            Input(name="language", label="Language", hint="BCP 47, found from the text when empty", mono=True),
        ),
        command="patra studio make CHAPTER.txt",
    ),
    "studio.edit": Act(
        template="/studio/runs/{run_id}/shots/{shot_id}/edit",
        level=2,
        title="Change {shot_id}",
        text="Only what changes is made again; then the film is put together again. What is left empty stays as it is.",
        button="Change and render",
        body=change_of,
        done=say("{shot_id} is made again."),
        after=back_to,
        inputs=(
            Input(name="narration", label="Said", rows=3, hint="instead of the text"),
            *(_choice(name) for name in STAGING_VALUES),
            Input(
                name="people",
                label="People",
                hint="names or kinds, with commas; NAME=KIND for someone new; - for nobody",
            ),
            Input(name="things", label="Things", hint="with commas; - for none"),
            Input(name="lettering", label="Lettering", hint="words instead of a scene"),
            Input(name="seconds", label="Seconds", hint="at least this long", mono=True),
        ),
        preview=Preview(template="/studio/runs/{run_id}/shots", query=nothing, shown_by="studio/shot.html"),
        command="patra studio edit {run_id} {shot_id}",
    ),
    "studio.render": Act(
        template="/studio/runs/{run_id}/render",
        level=2,
        title="Render {shot_id} again",
        text="Another take of this shot is made, and the film is put together again; other shots are found, not made.",
        button="Render again",
        body=lambda form: {"shots": [form["shot_id"]]},
        done=say("{shot_id} is made again."),
        after=back_to,
        command="patra studio render {run_id} --shot {shot_id}",
    ),
    "studio.cancel": Act(
        template="/studio/runs/{run_id}/cancel",
        level=2,
        title="Cancel the run {run_id}",
        text="Running jobs stop soon. It can be resumed later; what is made stays.",
        button="Cancel the run",
        body=nothing,
        done=say("The run is cancelled."),
        after=back_to,
        command="patra studio cancel {run_id}",
    ),
    "studio.resume": Act(
        template="/studio/runs/{run_id}/resume",
        level=2,
        title="Go on with the run {run_id}",
        text="It goes on where it stopped, or from the stage that you choose; what was made is reused.",
        button="Go on",
        body=lambda form: form_values(form, "stage"),
        done=lambda _, answer: f"The run goes on in {answer['stage']}.",
        after=back_to,
        inputs=(
            Input(
                name="stage",
                label="From",
                choices=("", "planning", "executing", "composing"),
                empty_label="where it stopped",
            ),
        ),
        command="patra studio resume {run_id}",
    ),
}
