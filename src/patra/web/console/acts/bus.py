"""Acts on dead letters, groups, types and webhooks."""

from patra.web.console.act import (
    IDS,
    REASON,
    REASON_REQUIRED,
    Act,
    Form,
    Input,
    Preview,
    back_to,
    form_values,
    ids_of,
    next_address,
    nothing,
    say,
)
from patra.web.console.markup.formats import link, plural

BULK_FIELDS = ("group", "type", "error_code", "why", "as_of")
BULK_PREVIEW = Preview(
    template="/bus/dead-letters/preview",
    query=lambda form: form_values(form, "group", "type", "error_code"),
    shown_by="bus/preview.html",
)


def _replay_command(form: Form) -> str:
    """By what the form names: events, a filter, or nothing but the group."""
    if ids_of(form):
        return "patra bus replay {group} {event_ids}"
    return "patra bus replay {group} {type} {error_code}" if form_values(form, "type", "error_code") else REPLAY_ALL


REPLAY_ALL = "patra bus replay {group} --all"
BUS: dict[str, Act] = {
    "bus.replay": Act(
        template="/bus/replay",
        level=3,
        title="Replay dead letters to {group}",
        text="They keep their event_id, go to this group alone, and pass its inbox once. Other groups do not see them.",
        button="Replay",
        body=lambda form: {
            "group": form["group"],
            "confirm": form.get("confirm", ""),
            **({"event_ids": ids} if (ids := ids_of(form)) else form_values(form, "type", "error_code")),
        },
        done=next_address,
        after=back_to,
        confirm="group",
        inputs=(
            Input(name="event_ids", label="Event ids", hint="one in a line; empty: all that match", rows=3, mono=True),
            Input(name="type", label="Only of this type", mono=True),
            Input(name="error_code", label="Only with this error code", mono=True),
        ),
        command=_replay_command,
        options=("type", "error_code"),
    ),
    "bus.discard": Act(
        template="/bus/discard",
        level=3,
        title="Discard dead letters of {group}",
        text="They stay readable, but are never handled. Later events of their keys go on. This cannot be undone.",
        button="Discard",
        body=lambda form: {"group": form["group"], "event_ids": ids_of(form), "reason": form.get("reason", "")},
        done=next_address,
        after=back_to,
        inputs=(IDS, Input(name="reason", label="Why", hint="kept with each dead letter", required=True)),
        command='patra bus discard {group} {event_ids} --reason "…"',
    ),
    "bus.replay_all": Act(
        template="/bus/acts",
        level=3,
        title="Replay all dead letters of {group}",
        text="The dead letters are fixed now; later ones are not touched. They go to this group alone.",
        button="Replay all",
        body=lambda form: {"act": "replay", "confirm": form.get("confirm", ""), **form_values(form, *BULK_FIELDS)},
        done=lambda _, answer: f"{plural(answer['total'], 'dead letter is', 'dead letters are')} being replayed.",
        after=lambda _, answer: link(f"/bus/act/{answer['act_id']}"),
        confirm="group",
        preview=BULK_PREVIEW,
        inputs=(REASON,),
        command="patra bus replay-all {group} {type} {error_code} --dry-run",
        options=("type", "error_code"),
    ),
    "bus.discard_all": Act(
        template="/bus/acts",
        level=3,
        title="Discard all dead letters of {group}",
        text="They stay readable, but are never handled. Later events of their keys go on. This cannot be undone.",
        button="Discard all",
        body=lambda form: {"act": "discard", "confirm": form.get("confirm", ""), **form_values(form, *BULK_FIELDS)},
        done=lambda _, answer: f"{plural(answer['total'], 'dead letter is', 'dead letters are')} being discarded.",
        after=lambda _, answer: link(f"/bus/act/{answer['act_id']}"),
        confirm="group",
        preview=BULK_PREVIEW,
        inputs=(REASON_REQUIRED,),
        command='patra bus discard-all {group} {type} {error_code} --reason "…" --dry-run',
        options=("type", "error_code"),
    ),
    "bus.stop_act": Act(
        template="/bus/acts/{act_id}/stop",
        level=2,
        title="Stop this act",
        text="It stops after its current batch. Dead letters that were moved stay so; begin it again for the rest.",
        button="Stop",
        body=nothing,
        done=say("The act is stopped."),
        after=back_to,
        command="patra bus acts {act_id} --stop",
    ),
    "bus.pause": Act(
        template="/bus/groups/{group}/pause",
        level=2,
        title="Pause the group {group}",
        text="Events wait for it and are not lost; its lag grows until it is resumed.",
        button="Pause",
        body=nothing,
        done=say("{group} is paused."),
        after=back_to,
    ),
    "bus.resume": Act(
        template="/bus/groups/{group}/resume",
        level=2,
        title="Resume the group {group}",
        text="What waits is handed to it, the oldest first.",
        button="Resume",
        body=nothing,
        done=say("{group} goes on."),
        after=back_to,
    ),
    "bus.freeze": Act(
        template="/bus/types/{type}/freeze",
        level=3,
        title="Freeze {type}",
        text="Publishers of this type are refused until it is thawed. Events that were published are still handled.",
        button="Freeze",
        body=lambda form: {"reason": form.get("reason", "")},
        done=say("{type} is frozen."),
        after=back_to,
        confirm="type",
        inputs=(Input(name="reason", label="Why", required=True),),
        command='patra bus freeze {type} --reason "…"',
    ),
    "bus.thaw": Act(
        template="/bus/types/{type}/thaw",
        level=2,
        title="Thaw {type}",
        text="Publishing begins again at once. Its open dead letters stay, and are tolerated from now on.",
        button="Thaw",
        body=nothing,
        done=say("{type} is thawed."),
        after=back_to,
        command="patra bus thaw {type}",
    ),
    "bus.webhook.add": Act(
        template="/bus/webhooks",
        level=3,
        title="Add a webhook",
        text="Events of these types are sent there, signed. The secret is shown once.",
        button="Add",
        body=lambda form: {
            "name": form.get("name", ""),
            "url": form.get("url", ""),
            "types": {
                name: versions.strip() or ">=1"
                for line in form.get("types", "").splitlines()
                for name, _, versions in [line.strip().partition(" ")]
                if name
            },
        },
        done=say("The webhook {name} is there."),
        after=back_to,
        inputs=(
            Input(name="name", label="Name", required=True, mono=True),
            Input(name="url", label="Address", hint="https://…", required=True, mono=True),
            Input(name="types", label="Types", hint="one in a line: TYPE >=1,<2", rows=3, required=True, mono=True),
        ),
        secret=lambda answer: ("The secret that signs what is sent", str(answer.get("secret", ""))),
    ),
    "bus.webhook.remove": Act(
        method="DELETE",
        template="/bus/webhooks/{name}",
        level=3,
        title="Remove the webhook {name}",
        text="Nothing is sent there any more, and what waits for it is forgotten.",
        button="Remove",
        body=nothing,
        done=say("The webhook {name} is removed."),
        after=back_to,
        confirm="name",
    ),
}
