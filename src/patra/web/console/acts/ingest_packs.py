"""Acts on packs and on schedules that operators add beside those of packs."""

from typing import Any, cast

import msgspec

from patra.web.console.act import (
    REASON,
    REASON_REQUIRED,
    Act,
    Form,
    Input,
    Preview,
    back_to,
    form_values,
    only_why,
    say,
)
from patra.web.console.markup.formats import plural

_WHEN = (
    Input(name="endpoint", label="Endpoint", required=True, mono=True),
    Input(name="operation", label="Operation", choices=("HARVEST", "UPDATE", "BACKFILL"), value="HARVEST"),
    Input(name="cron", label="Cron", hint="minute hour day month weekday: 30 3 * * 1-5", required=True, mono=True),
    Input(name="timezone", label="Time zone", value="UTC", mono=True),
    Input(name="missed", label="Missed ticks", choices=("ONCE", "ALL", "NONE"), value="ONCE"),
    Input(name="last", label="Last", hint="read so much of time, such as P7D; BACKFILL needs it", mono=True),
    Input(name="params", label="Parameters", hint="NAME=VALUE, one in a line", rows=2, mono=True),
)  # fmt: skip
_OPTIONS = ("operation", "cron", "timezone", "missed", "last")


LINE_ENDS = frozenset("\r\n")


def parameters(text: str) -> dict[str, Any]:
    """Parameters of a pack, one in a line: `name=text`, several times for a list, or `name:=JSON`."""
    found: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, _, value = line.partition("=")
        if name.endswith(":"):
            found[name[:-1].strip()] = _decode_value(value)
        elif name in found:
            before = found[name]
            found[name] = [*(cast("list[Any]", before) if isinstance(before, list) else [before]), value]
        else:
            found[name] = value
    return found


def _decode_value(value: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value


def parameter_lines(params: dict[str, Any]) -> str:
    """The text that `parameters` reads as these."""
    lines: list[str] = []
    for name, value in params.items():
        values = cast("list[Any]", value) if isinstance(value, list) else [value]
        plain = [one for one in values if isinstance(one, str) and one == one.strip() and not LINE_ENDS & set(one)]
        if plain == values and (not isinstance(value, list) or len(values) > 1):
            lines += [f"{name}={one}" for one in plain]
        else:
            lines.append(f"{name}:={msgspec.json.encode(value).decode()}")
    return "\n".join(lines)


def _number(text: str) -> int | str:
    """A number as the interface wants it; what is none is left for it to refuse."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def _schedule(form: Form) -> dict[str, Any]:
    told = form_values(form, "job", "endpoint", "operation", "cron", "timezone", "jitter", "missed", "last", "why")
    priority = form.get("priority", "").strip()
    return {
        **told,
        "params": parameters(form.get("params", "")),
        "reread": form.get("reread", "") == "yes",
        **({"priority": _number(priority)} if priority else {}),
    }


def _promotion(form: Form) -> dict[str, Any]:
    """The version that the preview showed, and no other one that was put on trial meanwhile."""
    version = form.get("previewed_version", "")
    return {**only_why(form), **({"version": _number(version)} if version else {})}


def _trial(form: Form) -> dict[str, Any]:
    share = form.get("share", "").strip()
    return {
        **form_values(form, "source", "why"),
        "text": form.get("text", ""),
        "name": f"{form.get('source') or 'pack'}.yaml",
        **({"share": _number(share)} if share else {}),
    }


INGEST_PACKS: dict[str, Act] = {
    "ingest.add_schedule": Act(
        template="/ingest/schedules",
        level=2,
        title="Add a schedule",
        text="It fires for its latest tick at once, then as it says. It writes no file; the command line has --then.",
        button="Add the schedule",
        body=_schedule,
        done=say("The schedule {job} is added and on."),
        after=back_to,
        inputs=(
            Input(name="job", label="Schedule", hint="SOURCE/NAME, such as crossref/nightly", required=True, mono=True),
            *_WHEN,
            REASON,
        ),
        command='patra ingest schedule add {job} {endpoint} {operation} {cron} {timezone} {missed} {last} --why "…"',
        options=_OPTIONS,
    ),
    "ingest.change_schedule": Act(
        template="/ingest/schedules/change",
        level=2,
        title="Change the schedule {job}",
        text="It is on or off as before. Ticks before the change are not made up; its latest tick fires if it has not.",
        button="Change it",
        body=_schedule,
        done=say("The schedule {job} is changed."),
        after=back_to,
        inputs=(*_WHEN, REASON),
        command='patra ingest schedule change {job} {endpoint} {operation} {cron} {timezone} {missed} {last} --why "…"',
        options=_OPTIONS,
    ),
    "ingest.remove_schedule": Act(
        template="/ingest/schedules/remove",
        level=2,
        title="Remove the schedule {job}",
        text="It no longer fires and is not listed. What it has planned goes on, and its history stays.",
        button="Remove it",
        body=lambda form: form_values(form, "job", "why"),
        done=say("The schedule {job} is removed."),
        after=back_to,
        inputs=(REASON_REQUIRED,),
        command='patra ingest schedule remove {job} --why "…"',
    ),
    "ingest.pack_stage": Act(
        template="/ingest/packs/stage",
        level=2,
        title="Put a new version of {source} on trial",
        text="A share of the plans to come is made from it, the others from the version in force. "
        "Plans that were made keep their version.",
        button="Begin the trial",
        body=_trial,
        done=lambda _, answer: (
            f"Version {answer['version']} of {answer['source']} is on trial for {answer['share']} % of the plans, with "
            f"{plural(len(answer['changes']), 'difference')} and {plural(len(answer['warnings']), 'warning')}."
        ),
        after=back_to,
        inputs=(
            Input(name="text", label="The pack", hint="as YAML", rows=14, required=True, mono=True),
            Input(name="share", label="Share", hint="plans of a hundred", value="20", mono=True),
            REASON_REQUIRED,
        ),
        command='patra ingest pack stage FILE {share} --why "…"',
        options=("share",),
    ),
    "ingest.pack_promote": Act(
        template="/ingest/sources/{source}/promote",
        level=3,
        title="Put the version on trial of {source} in force",
        text="All plans to come are made from it. Plans that were made keep their version.",
        button="Put in force",
        body=_promotion,
        done=say("The version on trial of {source} is in force."),
        after=back_to,
        confirm="source",
        preview=Preview(
            template="/ingest/sources/{source}/trial", query=lambda _: {}, shown_by="ingest/trial_preview.html"
        ),
        inputs=(REASON,),
        command='patra ingest pack promote {source} --why "…"',
    ),
    "ingest.pack_rollback": Act(
        template="/ingest/sources/{source}/rollback",
        level=2,
        title="End the trial of {source}",
        text="Plans to come are made from the version in force. Plans that the trial has made go on.",
        button="End the trial",
        body=only_why,
        done=say("The trial of {source} is over; the version in force makes all plans."),
        after=back_to,
        inputs=(REASON_REQUIRED,),
        command='patra ingest pack rollback {source} --why "…"',
    ),
}
