"""`patra attribution …`: replay a log, export one, find what was decided and why, settle, and keep app keys."""

import sys
from collections.abc import Mapping
from typing import Any, ClassVar

import click

from patra.cli.attribution.event_steps import print_steps
from patra.cli.terminal.groups import LazyGroup
from patra.cli.terminal.options import (
    AtLeast,
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
from patra.cli.terminal.wrapping import say

# Commands in modules of their own, imported when they are asked for.
ELSEWHERE: dict[str, tuple[str, str]] = {
    "replay": (
        "patra.cli.attribution.replay:replay",
        "Decide a log from the beginning and write everything that follows from it.",
    ),
    "reasons": ("patra.cli.attribution.contract:reasons", "Every reason code, or one, and when it is given."),
    "schema": ("patra.cli.attribution.contract:schema", "Print the contract of events as JSON Schema or TypeScript."),
    "rate": ("patra.cli.attribution.statements:rate", "Prices of billable facts."),
    "period": ("patra.cli.attribution.statements:period", "Close periods."),
    "statement": ("patra.cli.attribution.statements:statement", "List, show, export and verify statements."),
    "reconcile": ("patra.cli.attribution.statements:reconcile", "Compare the counterparty's list with ours."),
    "archive": ("patra.cli.attribution.archive:archive", "What is on its way to the archive, and when it is lost."),
    "reissue": ("patra.cli.attribution.reissue:reissue", "Issue records again that the archive did not take."),
    "app": ("patra.cli.attribution.apps:app_group", "Apps that may send events, and their keys."),
    "history": (
        "patra.cli.attribution.history:history",
        "The log and records past their retention: list, ask, check, bring back.",
    ),
    "settle": ("patra.cli.attribution.settle:settle", "Count billable facts between two instants."),
    "send-sample": ("patra.cli.attribution.contract:send_sample", "Send one event of each type to a running Patra."),
}


class _AttributionGroup(LazyGroup):
    elsewhere = ELSEWHERE
    sections: ClassVar[Mapping[str, str]] = {
        "Send": "schema send-sample app",
        "See what was decided": "event find closure closures list rejects refused turned-away reasons",
        "Settle": "rate settle period statement reconcile",
        "Keep and check": "verify log replay archive reissue history",
    }


@click.group("attribution", cls=_AttributionGroup)
def group() -> None:
    """Turn ad events into billable facts, each counted once."""


# --- the log ----------------------------------------------------------------------------------------------------------


@group.group("log")
def log_group() -> None:
    """The log of what came in."""


@log_group.command("export")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Instead of standard output.",
)
@config_option
@outcome_option
def export(out: str, config: str | None) -> None:
    """Write what came in, in the order of decision, as `replay` reads it: exactly, with whatever the apps sent.

    Batches are kept for attribution.keep_log_days; those that were moved to history since are read from there. A log
    that lost its beginning says so in its first line, and replay refuses it.
    """
    from patra.app.components.attribution import history_of
    from patra.attribution.log_export import export_log

    with open_patra(config) as patra:
        spare_the_store(patra, out)
        lines = 0
        with click.open_file(out, "wb") as file:
            for line in export_log(patra.db, patra.clock.now(), history_of(patra.settings.attribution)):
                file.write(line + b"\n")
                lines += 1
    if out != "-":
        say_outcome(f"{lines} lines in {out}", file=out, lines=lines)


# --- finding ----------------------------------------------------------------------------------------------------------


def _text(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A key as typed; bytes that are not UTF-8 are refused here, since nothing can carry them."""
    del ctx
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise click.BadParameter("is not UTF-8", param=param) from None
    return value


def _key(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value:
        raise click.BadParameter("is empty", param=param)
    return _text(ctx, param, value) or ""


app_option = click.option("--app", default="", metavar="APP", callback=_text, help="Only events of this app.")
code_option = click.option(
    "--code", default="", metavar="CODE", callback=_text, help="Only decisions with this reason code."
)
after_option = click.option(
    "--after", type=AtLeast(-1), default=-1, metavar="NUMBER", help="Decisions that follow this number."
)
most_option = click.option("--limit", type=AtLeast(1), default=1000, show_default=True, help="How many decisions.")


@group.command()
@click.argument("key", callback=_key)
@app_option
@code_option
@after_option
@most_option
@config_option
@json_option
def find(key: str, app: str, code: str, after: int, limit: int, config: str | None, as_json: bool) -> None:
    """What was decided about a KEY, in order.

    KEY is a batchId, eventId, sourceEventId, traceKey, requestKey, attemptKey, opportunityKey, responseReference,
    renderAttemptId, closureKey, billingKey, attributionKey, canonicalDedupKey, factId, recordKey, payloadKey or appId.
    """
    from patra.attribution.queries import timeline
    from patra.attribution.storage.key_search import Only

    only = Only(app=app, code=code)
    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: timeline(tx, key, only, after=after, limit=limit))
    _decisions(found.decisions, as_json=as_json)
    _more(found.next)
    _unread(found.refused)


@group.command()
@click.option("--batch", "batch_id", required=True, metavar="ID", callback=_key, help="The batch.")
@click.option("--event", "event_id", default="", metavar="ID", callback=_text, help="The event; all by default.")
@app_option
@code_option
@after_option
@most_option
@config_option
@json_option
def event(
    batch_id: str, event_id: str, app: str, code: str, after: int, limit: int, config: str | None, as_json: bool
) -> None:
    """What was decided about the events of a batch, by batchId, eventId and reason code; of one event, its checks."""
    from patra.attribution.queries import events_of_batch
    from patra.attribution.storage.key_search import Only

    only = Only(app=app, code=code)
    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: events_of_batch(tx, batch_id, event_id, only, after=after, limit=limit))
    _decisions(found.decisions, as_json=as_json)
    if event_id and not as_json:
        print_steps(found.decisions)
    _more(found.next)
    _unread(found.refused)


def _unread(refused: list[Any]) -> None:
    for one in refused:
        click.echo(f"a batch of this id was refused as a whole at {one.receivedAt}: {one.code}", err=True)


def _more(following: int | None) -> None:
    if following is not None:
        click.echo(f"there is more: --after {following}", err=True)


def _decisions(found: list[Any], *, as_json: bool) -> None:
    if as_json or not found:
        show(found, as_json=as_json)
        return
    table(
        ["decidedAt", "eventId", "action", "reason", "count", "billable", "attribution", "records"],
        [
            [
                one.audit["decidedAt"],
                one.records[0]["sourceKeys"]["eventId"],
                one.audit["decisionAction"],
                one.audit["decisionReasonCode"],
                one.count,
                one.billable["billingKey"] if one.billable else "",
                one.attribution["attributionType"] if one.attribution else "",
                " ".join(str(record["recordStatus"]) for record in one.records)
                + (f" ({one.archiveCode})" if one.archiveCode else ""),
            ]
            for one in found
        ],
    )


@group.command("list")
@click.argument("what", type=click.Choice(["billable", "attribution", "audits", "records"]))
@click.option("--key", default="", metavar="KEY", callback=_text, help="Only what carries this key; see `find`.")
@app_option
@after_option
@most_option
@config_option
@outcome_option
def list_(what: Any, key: str, app: str, after: int, limit: int, config: str | None) -> None:
    """Facts, audits or records in the order of decision; into a pipe, a JSON object per line."""
    import msgspec

    from patra.attribution.queries import listing
    from patra.attribution.storage.key_search import Only

    only = Only(app=app)
    with open_patra(config) as patra:
        found, following = patra.db.read(lambda tx: listing(tx, what, key=key, only=only, after=after, limit=limit))
    if json_wanted() or sys.stdout.isatty() or not found:
        show(found, as_json=json_wanted())
    else:
        for line in found:
            click.echo(msgspec.json.encode(line).decode())
    _more(following)


@group.command()
@click.argument("key", callback=_key)
@config_option
@json_option
def closure(key: str, config: str | None, as_json: bool) -> int:
    """One closure by its closureKey, `responseReference|renderAttemptId`."""
    from patra.attribution.queries import closure_by_key

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: closure_by_key(tx, key))
    if found is None:
        click.echo(f"there is no closure {key!r}; `patra attribution find {key}` looks for a part of its key", err=True)
        return 1
    show(found, as_json=as_json)
    return 0


@group.command()
@click.option("--state", type=click.Choice(["open", "closed_success", "closed_failure"]), help="Only in this state.")
@click.option("--by-deadline", is_flag=True, help="Those that wait, the one that is due first before the others.")
@click.option("--after", default="", metavar="PLACE", help="Only those that follow the end of a page.")
@click.option("--limit", type=AtLeast(1), default=100, show_default=True)
@config_option
@json_option
def closures(state: str | None, by_deadline: bool, after: str, limit: int, config: str | None, as_json: bool) -> None:
    """Closures, of one state or of any, or by their deadlines."""
    from patra.attribution.queries import ClosureView, closures_by_deadline
    from patra.attribution.queries import closures as page_of

    try:
        place: bytes | None = bytes.fromhex(after)
    except ValueError:
        raise click.BadParameter("not the end of a page", param_hint="--after") from None
    found: list[ClosureView] = []
    with open_patra(config) as patra:
        if by_deadline:
            due = patra.db.read(lambda tx: closures_by_deadline(tx, after=place or b"", limit=limit))
            found, place = [view for _, view in due], due[-1][0] if len(due) == limit else None
        else:
            while place is not None and len(found) < limit:
                rest = limit - len(found)
                page = patra.db.read(lambda tx, at=place, rest=rest: page_of(tx, state=state, after=at, limit=rest))
                found, place = found + page.closures, page.next
    show(found, as_json=as_json)
    if place is not None:
        click.echo(f"there may be more: --after {place.hex()}", err=True)


@group.command()
@click.option("--batch", "batch_id", metavar="ID", callback=_text, help="Only events of this batch.")
@click.option("--code", metavar="CODE", callback=_text, help="Only events with this reason code.")
@click.option("--quarantined", is_flag=True, help="Only events in quarantine, with their payload.")
@click.option("--before", metavar="INSTANT", help="Only events received before this instant, or after a page.")
@click.option("--limit", type=AtLeast(1), default=100, show_default=True)
@config_option
@json_option
def rejects(
    batch_id: str | None,
    code: str | None,
    quarantined: bool,
    before: str | None,
    limit: int,
    config: str | None,
    as_json: bool,
) -> None:
    """Rejected events, the newest first.

    An event that is sent again unchanged is the same row, and `count` goes up. `fieldPath` is the first field that is
    wrong, `alsoWrong` names further required ones. What was rejected stays listed, also after a corrected event was
    accepted. `raw` is the event as it came: it is kept for events without `responseReference` alone, in the quarantine;
    of others no payload is kept beside the log.
    """
    from patra.attribution.queries import LAST_PLACE, reject_place
    from patra.attribution.queries import rejects as page

    place = reject_place(before) if before else LAST_PLACE
    if place is None:
        raise click.BadParameter("neither an RFC 3339 instant nor the end of a page", param_hint="--before")
    with open_patra(config) as patra:
        found = patra.db.read(
            lambda tx: page(tx, batch_id=batch_id, code=code, quarantined=quarantined, before=place, limit=limit)
        )
    show(found.rejects, as_json=as_json)
    if found.next is not None:
        click.echo(f"there may be more: --before {found.next}", err=True)


@group.command()
@click.option("--batch", "batch_id", default="", metavar="ID", callback=_text, help="Only batches of this id.")
@click.option("--code", default="", metavar="CODE", callback=_text, help="Only with this code.")
@click.option(
    "--before",
    type=AtLeast(0),
    default=2**62,
    metavar="NUMBER",
    show_default="the newest",
    help="Only with a lower number.",
)
@click.option("--limit", type=AtLeast(1), default=100, show_default=True)
@config_option
@json_option
def refused(batch_id: str, code: str, before: int, limit: int, config: str | None, as_json: bool) -> None:
    """Batches that were refused as a whole, the newest first, as far as the log reaches."""
    from patra.attribution.queries import list_refused as page

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: page(tx, batch_id=batch_id, code=code, before=before, limit=limit))
    show(found, as_json=as_json)
    if len(found) == limit:
        click.echo(f"there may be more: --before {found[-1].number}", err=True)


@group.command("turned-away")
@click.option("--code", default="", metavar="CODE", callback=_text, help="Only with this code.")
@click.option("--limit", type=AtLeast(1), default=100, show_default=True)
@config_option
@json_option
def turned_away(code: str, limit: int, config: str | None, as_json: bool) -> None:
    """Batches that were turned away unread: missing or foreign key, too large, unknown encoding, overload."""
    from patra.attribution.turned_away import turned_away as page

    with open_patra(config) as patra:
        show(patra.db.read(lambda tx: page(tx, code=code, limit=limit)), as_json=as_json)


@group.command()
@click.option("--rebuild-sums", is_flag=True, help="First empty the running sums of settlement; they are made again.")
@config_option
@json_option
def verify(rebuild_sums: bool, config: str | None, as_json: bool) -> int:
    """Check the rows that money is settled on against the decisions, the log and each other.

    Also the dedup ledger against the accepted events, the counts of dropped and rejected events against their rows, and
    every event of the log against the decisions. It only reads, but for --rebuild-sums, which is audited: a running
    Patra then sums all facts again, and settlement is exact meanwhile. Exit code 1 if anything is not as it must be;
    `patra doctor` shows the last result.
    """
    from patra.app.access.actor import command_line_actor
    from patra.app.access.audit import audit
    from patra.attribution.storage.running_sums import rebuild_sums as rebuild
    from patra.attribution.verify import verify as check

    with open_patra(config) as patra:
        if rebuild_sums:
            actor, now = command_line_actor(), patra.clock.now()
            patra.db.run(lambda tx: (rebuild(tx), audit(tx, actor, "attribution.sums.rebuild", "", {}, now)))
        found = check(patra.db, patra.clock)
    if as_json:
        show(found, as_json=True)
    else:
        table(["check", "key"], [[one.check, one.key] for one in found.findings])
        looked = f"{found.decisions} decisions, {found.billableFacts} billable facts, {found.logLines} lines of the log"
        count = len(found.findings)
        say(f"{looked}, {found.dedupKeys} dedup keys: {count} finding{'s' * (count != 1)}")
        if found.history:
            moved = ", ".join(f"{rows} rows of {kind}" for kind, rows in found.history.items())
            say(f"in history and not looked at: {moved} (`patra attribution history check`)")
    return 1 if found.findings else 0
