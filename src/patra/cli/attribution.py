"""`patra attribution …`: replay a log, export one, find what was decided and why, settle, and keep app keys."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from patra.cli.options import config_option, json_option, opened, show, spare_the_store, table

if TYPE_CHECKING:
    from patra.kernel.db import Tx

T = TypeVar("T")


@click.group("attribution")
def group() -> None:
    """Events in, billable facts out (Module F)."""


# --- replay and the log -----------------------------------------------------------------------------------------------

REPLAY_EPILOG = """\b
Each line of LOG is one of
  {"receivedAt": "2026-01-01T00:00:00Z", "batch": <any JSON>}
  {"tick": "2026-01-01T00:02:00Z"}

\b
DIR gets acks.jsonl, billable.jsonl, attribution.jsonl, audits.jsonl, records.jsonl and closures.jsonl. The same log
gives the same bytes, on any machine, on SQLite and on PostgreSQL.

\b
Examples:
  patra attribution replay log.jsonl --out facts
  patra attribution log export | patra attribution replay - --out facts
  patra attribution replay log.jsonl --out facts --store postgresql://patra@localhost/empty"""


@group.command(epilog=REPLAY_EPILOG)
@click.argument("log", type=click.File("rb"))
@click.option("--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Folder for the six files.")
@click.option("--store", metavar="URL", help="An empty store to decide on; a temporary one by default.")
def replay(log: Any, out: str, store: str | None) -> None:
    """Decide a log from the beginning and write everything that follows from it."""
    from io import BytesIO
    from itertools import repeat
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from patra.attribution.reading import is_empty
    from patra.attribution.replay import check_log, write_output
    from patra.attribution.replay import replay as replay_log
    from patra.kernel.db import migrate, open_database
    from patra.kernel.errors import Invalid

    with TemporaryDirectory(prefix="patra-replay-") as folder:
        db = open_database(store or f"sqlite:///{folder}/replay.db", synchronous="FULL" if store else "OFF")
        try:
            migrate(db, ["patra.kernel", "patra.attribution"])
            if not db.read(is_empty):
                raise Invalid("replay_store_not_empty", "the store holds decisions already", advice="give an empty one")
            if store:  # what is decided there stays: not half of a log that turns out to be bad
                log = log if log.seekable() else BytesIO(log.read())
                check_log(log)
                log.seek(0)
            output = replay_log(log, db, group=repeat(32))
        finally:
            db.close()
    write_output(output, Path(out))
    click.echo(
        f"{len(output.acks)} batches, {len(output.billable)} billable facts, "
        f"{len(output.attribution)} attribution facts, {len(output.audits)} audits, "
        f"{len(output.records)} records, {len(output.closures)} closures in {out}"
    )


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
def export(out: str, config: str | None) -> None:
    """Write what came in, in the order of decision, as `replay` reads it.

    Batches are kept for attribution.keep_log_days.
    """
    from patra.attribution.export import exported

    with opened(config) as patra:
        spare_the_store(patra, out)
        with click.open_file(out, "wb") as file:
            for line in exported(patra.db, patra.clock.now()):
                file.write(line + b"\n")


# --- finding ----------------------------------------------------------------------------------------------------------


def _text(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A key as typed; bytes that are no UTF-8 are refused here, since nothing can carry them."""
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
    "--after", type=click.IntRange(-1, 2**62), default=-1, metavar="NUMBER", help="Decisions that follow this number."
)
most_option = click.option(
    "--limit", type=click.IntRange(1, 2**62), default=1000, show_default=True, help="How many decisions."
)


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
    from patra.attribution.locate import Only
    from patra.attribution.queries import timeline

    only = Only(app=app, code=code)
    with opened(config) as patra:
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
    """What was decided about the events of a batch, by batchId, eventId and reason code."""
    from patra.attribution.locate import Only
    from patra.attribution.queries import events_of_batch

    only = Only(app=app, code=code)
    with opened(config) as patra:
        found = patra.db.read(lambda tx: events_of_batch(tx, batch_id, event_id, only, after=after, limit=limit))
    _decisions(found.decisions, as_json=as_json)
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
def list_(what: Any, key: str, app: str, after: int, limit: int, config: str | None) -> None:
    """Facts, audits or records as JSON lines, in the order of decision."""
    import msgspec

    from patra.attribution.locate import Only
    from patra.attribution.queries import listing

    only = Only(app=app)
    with opened(config) as patra:
        found, following = patra.db.read(lambda tx: listing(tx, what, key=key, only=only, after=after, limit=limit))
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

    with opened(config) as patra:
        found = patra.db.read(lambda tx: closure_by_key(tx, key))
    if found is None:
        click.echo(f"there is no closure {key!r}", err=True)
        return 1
    show(found, as_json=as_json)
    return 0


@group.command()
@click.option("--state", type=click.Choice(["open", "closed_success", "closed_failure"]), help="Only in this state.")
@click.option("--after", default="", metavar="PLACE", help="Only those that follow the end of a page.")
@click.option("--limit", type=click.IntRange(1, 2**62), default=100, show_default=True)
@config_option
@json_option
def closures(state: str | None, after: str, limit: int, config: str | None, as_json: bool) -> None:
    """Closures, of one state or of any."""
    from patra.attribution.queries import closures as page

    try:
        place = bytes.fromhex(after)
    except ValueError:
        raise click.BadParameter("not the end of a page", param_hint="--after") from None
    with opened(config) as patra:
        found = patra.db.read(lambda tx: page(tx, state=state, after=place, limit=limit))
    show([view for _, view in found], as_json=as_json)
    if len(found) == limit:
        click.echo(f"there may be more: --after {found[-1][0].hex()}", err=True)


@group.command()
@click.option("--batch", "batch_id", metavar="ID", callback=_text, help="Only events of this batch.")
@click.option("--code", metavar="CODE", callback=_text, help="Only events with this reason code.")
@click.option("--quarantined", is_flag=True, help="Only events in quarantine, with their payload.")
@click.option("--before", metavar="INSTANT", help="Only events received before this instant, or after a page.")
@click.option("--limit", type=click.IntRange(1, 2**62), default=100, show_default=True)
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
    """Rejected events, the newest first."""
    from patra.attribution.queries import LAST_PLACE, reject_place
    from patra.attribution.queries import rejects as page

    place = reject_place(before) if before else LAST_PLACE
    if place is None:
        raise click.BadParameter("neither an RFC 3339 instant nor the end of a page", param_hint="--before")
    with opened(config) as patra:
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
    type=click.IntRange(0, 2**62),
    default=2**62,
    metavar="NUMBER",
    show_default="the newest",
    help="Only with a lower number.",
)
@click.option("--limit", type=click.IntRange(1, 2**62), default=100, show_default=True)
@config_option
@json_option
def refused(batch_id: str, code: str, before: int, limit: int, config: str | None, as_json: bool) -> None:
    """Batches that were refused as a whole, the newest first, as far as the log reaches."""
    from patra.attribution.queries import refused as page

    with opened(config) as patra:
        found = patra.db.read(lambda tx: page(tx, batch_id=batch_id, code=code, before=before, limit=limit))
    show(found, as_json=as_json)
    if len(found) == limit:
        click.echo(f"there may be more: --before {found[-1].number}", err=True)


@group.command()
@json_option
def reasons(as_json: bool) -> None:
    """Every reason code, and when it is given."""
    from patra.attribution.reasons import RETRYABLE, R

    rows = [{"code": code.value, "retryable": code in RETRYABLE, "when": code.text} for code in R]
    show(rows, as_json=as_json)


# --- settlement -------------------------------------------------------------------------------------------------------

SETTLE_EPILOG = """\b
Only facts whose record is `committed` count. --from is included, --to is not; both go by factAt.

\b
Examples:
  patra attribution settle --from 2026-01-01 --to 2026-02-01
  patra attribution settle --from 2026-01-01 --to 2026-02-01 --by placement --format csv > january.csv
  patra attribution settle --from 2026-01-01 --to 2026-02-01 --by day --format parquet --out january.parquet"""


@group.command(epilog=SETTLE_EPILOG)
@click.option("--from", "begin", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option("--to", "end", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option("--by", type=click.Choice(["app", "day", "placement"]), default="app", show_default=True)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    help="By default what the name of FILE ends with, or a table.",
)
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Instead of standard output.")
@config_option
def settle(begin: str, end: str, by: Any, form: str | None, out: str | None, config: str | None) -> None:
    """Count billable facts between two instants."""
    from patra.attribution.settle import as_csv, as_parquet
    from patra.attribution.settle import settle as settled

    first, last = _instant(begin, "--from"), _instant(end, "--to")
    if first > last:
        raise click.BadParameter("lies before --from", param_hint="--to")
    form = form or (out or "table").rpartition(".")[2].lower()
    if form not in {"csv", "json", "parquet"} and (out is not None or form != "table"):
        raise click.UsageError("--out needs --format csv, json or parquet")
    if form == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    with opened(config) as patra:
        if out is not None:
            spare_the_store(patra, out)
        found = patra.db.read(lambda tx: settled(tx, first, last, by))
    if found.uncounted:
        left = ", ".join(f"{count} {status}" for status, count in found.uncounted.items())
        click.echo(f"not counted, since the archive does not have them: {left}", err=True)
    if form == "parquet":
        as_parquet(found, out or "")
    elif form == "table":
        rows = [[line.app_id, line.day, line.placement, line.impressions, line.clicks] for line in found.lines]
        table(
            ["app", "day", "placement", "impressions", "clicks"],
            [*rows, ["total", "", "", found.impressions, found.clicks]],
        )
    else:
        import msgspec

        text = as_csv(found) if form == "csv" else msgspec.json.encode(found).decode() + "\n"
        with click.open_file(out or "-", "w", encoding="utf-8") as file:
            file.write(text)


def _instant(text: str, option: str) -> int:
    from patra.kernel.clock import parse_instant

    found = parse_instant(text if "T" in text.upper() else f"{text}T00:00:00Z")
    if found is None:
        raise click.BadParameter(
            "neither a date (2026-01-31) nor an RFC 3339 instant with its offset (2026-01-31T00:00:00+08:00)",
            param_hint=option,
        )
    return found


# --- app keys ---------------------------------------------------------------------------------------------------------


@group.group("app")
def app_group() -> None:
    """Apps that may send events, and their keys.

    While no app is registered, and only on a loopback address, every app may send.
    """


def _acted(config: str | None, act: str, app_id: str, work: "Callable[[Tx, int], T]") -> "T":
    """Do it and write the audit row in one transaction."""
    from patra.app.actor import command_line_actor
    from patra.app.audit import audit

    with opened(config) as patra:
        now = patra.clock.now()

        def both(tx: "Tx") -> "T":
            result = work(tx, now)
            audit(tx, command_line_actor(), f"attribution.app.{act}", app_id, {}, now)
            return result

        return patra.db.run(both)


@app_group.command("add")
@click.argument("app_id", metavar="APP")
@config_option
def app_add(app_id: str, config: str | None) -> None:
    """Register an app, or give it one more key; the key is printed once and kept as its hash only."""
    from patra.attribution.apps import add_key

    click.echo(_acted(config, "add", app_id, lambda tx, now: add_key(tx, app_id, now)))


@app_group.command("rotate")
@click.argument("app_id", metavar="APP")
@config_option
def app_rotate(app_id: str, config: str | None) -> None:
    """Revoke every key of an app and print a new one."""
    from patra.attribution.apps import rotate_key

    click.echo(_acted(config, "rotate", app_id, lambda tx, now: rotate_key(tx, app_id, now)))


@app_group.command("revoke")
@click.argument("app_id", metavar="APP")
@click.option("--key", "key_id", metavar="ID", help="Only the key whose id begins so; all of the app by default.")
@config_option
def app_revoke(app_id: str, key_id: str | None, config: str | None) -> None:
    """Revoke keys; a process that runs refuses them within two seconds."""
    from patra.attribution.apps import revoke_keys

    for revoked in _acted(config, "revoke", app_id, lambda tx, now: revoke_keys(tx, app_id, now, key_id)):
        click.echo(revoked)


@app_group.command("list")
@config_option
@json_option
def app_list(config: str | None, as_json: bool) -> None:
    """Every key there ever was, by its hash."""
    from patra.attribution.apps import app_keys

    with opened(config) as patra:
        show(patra.db.read(app_keys), as_json=as_json)
