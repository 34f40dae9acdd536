"""`patra attribution schema`, `reasons` and `send-sample`: events and answers, for machines and for a first look."""

from typing import Any

import click

from patra.cli.terminal.options import (
    config_option,
    json_option,
    json_wanted,
    load_settings,
    outcome_option,
    say_outcome,
    show,
    table,
)
from patra.cli.terminal.suggestions import did_you_mean, nearest

SCHEMA_EPILOG = """\b
Examples:
  patra attribution schema                        the JSON Schema of a batch
  patra attribution schema ack                    of the answer
  patra attribution schema typescript > events.d.ts
  patra attribution schema example                a batch with one event of each type
  patra attribution schema --out schemas          all of them, a file each"""

FILES = {
    "request": "event-batch-request.schema.json",
    "ack": "event-batch-ack.schema.json",
    "typescript": "events.d.ts",
    "example": "event-batch.example.json",
}


@click.command("schema", epilog=SCHEMA_EPILOG)
@click.argument("what", type=click.Choice(list(FILES)), default="request")
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="Write every form into this folder.")
@outcome_option
def schema(what: str, out: str | None) -> None:
    """Print the contract of events: JSON Schema 2020-12, TypeScript types, or an example."""
    from pathlib import Path

    if out is None:
        if json_wanted() and what == "typescript":
            raise click.UsageError(
                "TypeScript types are not JSON; `schema request` is the same contract as JSON Schema"
            )
        click.echo(_text(what), nl=False)
        return
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in FILES.items():
        (folder / file).write_text(_text(name), encoding="utf-8")
    files = [str(folder / file) for file in FILES.values()]
    say_outcome("\n".join(files), files=files)


def _text(what: str) -> str:
    import json

    from patra.attribution.contract.event_fields import example_batch
    from patra.attribution.event_schema import ack_schema, request_schema, typescript
    from patra.kernel.clock import SystemClock, format_instant

    match what:
        case "typescript":
            return typescript()
        case "ack":
            found = ack_schema()
        case "example":
            found = example_batch(format_instant(SystemClock().now()))
        case _:
            found = request_schema()
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


@click.command("reasons")
@click.argument("code", default="")
@json_option
def reasons(code: str, as_json: bool) -> None:
    """Every reason code, or CODE alone, and when it is given."""
    from patra.attribution.contract.reasons import RETRYABLE, Reason

    if code and code not in {one.value for one in Reason}:
        said = did_you_mean(nearest(code, [one.value for one in Reason])) or "`patra attribution reasons` lists them."
        raise click.BadParameter(f"there is no {code!r}. {said}", param_hint="CODE")
    chosen = [one for one in Reason if code in {"", one.value}]
    rows = [{"code": one.value, "retryable": one in RETRYABLE, "when": one.text} for one in chosen]
    show(rows, as_json=as_json)


@click.command("send-sample")
@click.option("--url", metavar="URL", help="Where Patra listens; by default the address of the settings.")
@click.option("--app", "app_id", default="sample", show_default=True, metavar="APP", help="The app that sends.")
@click.option("--key", metavar="KEY", help="Its key, where apps are registered.")
@click.option(
    "--days-ago",
    type=click.IntRange(0, 2),
    default=0,
    show_default=True,
    help="When the events happened: 1 makes a day that is over, which can be closed into a statement.",
)
@click.option("--without", metavar="FIELD", help="Leave this field out of every event, to see which are rejected.")
@config_option
@outcome_option
def send_sample(
    url: str | None, app_id: str, key: str | None, days_ago: int, without: str | None, config: str | None
) -> int:
    """Send one event of each type to a running Patra and show the answers.

    The keys are new each time, so every call adds one impression and one click. Exit code 1 if one is rejected.
    """
    import uuid

    from patra.attribution.contract.event_fields import sample_events
    from patra.client import Answer, Client
    from patra.kernel.clock import DAY, SystemClock, format_instant

    if url is None:
        web = load_settings(config).settings.web
        url = f"http://{f'[{web.host}]' if ':' in web.host else web.host}:{web.port}"
    answers: list[Answer] = []
    client = Client(url, app_id=app_id, key=key, sdk_version="patra-sample/1", on_answer=answers.append)
    run = uuid.uuid4().hex[:8]
    events = sample_events(format_instant(SystemClock().now() - days_ago * DAY), run)
    fields = {name for event in events for name in event}
    if without is not None and without not in fields:
        said = did_you_mean(nearest(without, fields)) or f"They have {', '.join(sorted(fields))}."
        raise click.BadParameter(f"no sample has a field {without!r}. {said}", param_hint="--without")
    try:
        for event in events:
            client.add({name: value for name, value in event.items() if name != without})
        client.send_once()
    finally:
        client.close()
    if not answers:
        click.echo(f"no answer from {url}; is `patra up` running?", err=True)
        return 4
    accepted = all(one.status == "accepted" for one in answers)
    rows: list[list[Any]] = [[one.event["eventId"], one.event["eventType"], one.status, one.code] for one in answers]
    names = ["eventId", "eventType", "status", "code"]
    if json_wanted():
        show([dict(zip(names, row, strict=True)) for row in rows], as_json=True)
    else:
        if refused := _refused_batch({one.code for one in answers}, app_id):
            click.echo(refused, err=True)
            return 1
        table(["eventId", "status", "code"], [[name, status, code] for name, _, status, code in rows])
        following = f"find 'ref-{run}|ra-{run}'" if accepted else "rejects"
        click.echo(f"next: patra attribution {following}")
    return 0 if accepted else 1


def _refused_batch(codes: set[str], app_id: str) -> str:
    """Why the batch was refused as a whole, and what to do; nothing where its events were decided."""
    from patra.attribution.contract.reasons import Reason
    from patra.web.api.attribution import STATUSES

    reason = next((one for one in STATUSES if codes == {one.value}), None)
    if reason is None:
        return ""
    advice = "`patra attribution turned-away` counts such batches"
    if reason in {Reason.APP_KEY_MISSING, Reason.APP_KEY_FOREIGN}:
        advice = f"`patra attribution app add {app_id}` prints a key of this app: give it with --key KEY"
    return f"the batch was not taken: {reason.text} [{reason}]\n{advice}"
