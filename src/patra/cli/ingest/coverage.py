"""`patra ingest coverage|reread`: which windows were read and add up, and reading finished ones again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.options import audit_act, config_option, json_option, open_patra, show, table
from patra.cli.terminal.wrapping import say

if TYPE_CHECKING:
    from patra.ingest.operations.coverage import Coverage

COVERAGE_EPILOG = """\b
Examples:
  patra ingest coverage crossref works
  patra ingest coverage crossref --out crossref.json      a certificate, with a hash over all of it
  patra ingest coverage verify crossref.json              needs no store
\b
Exit code 0 when every window adds up, 1 when one does not."""

COLUMNS = (
    "endpoint", "operation", "leg", "since", "until", "status", "proof", "promised", "positions", "landed",
    "quarantined", "gone", "missing", "detail",
)  # fmt: skip


@click.command(epilog=COVERAGE_EPILOG)
@click.argument("source")
@click.argument("endpoint", default="")
@click.option("--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Most windows.")
@click.option("--after", default="", metavar="PLACE", help="Go on behind this place of a list.")
@click.option("--operation", default="", help="Only this operation.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write a certificate to this file.")
@config_option
@json_option
def coverage(
    config: str | None,
    source: str,
    endpoint: str,
    limit: int,
    after: str,
    operation: str,
    out: Path | None,
    *,
    as_json: bool,
) -> int:
    """Show the windows of a source on the axis of time: promised, read, landed, set aside, missing.

    Promised is the provider's own total. Read are the records that its list gave, repeats included (in JSON and in a
    pipe: `positions`). A source that lists ids first has two legs: LIST, then DETAIL for the records themselves.

    Proof is what shows that nothing is missing: TOTAL (the provider's own, reached), ESTIMATE (reached but for its
    tolerance), READINGS (two that gave the same), IDS (each has an outcome), or NONE: the list ended, and nothing
    counts it.

    `coverage verify FILE` checks a certificate.
    """
    from patra.ingest.operations import coverage as stage
    from patra.ingest.packs.problems import unknown_name
    from patra.ingest.packs.registry import read_tree, unknown_source
    from patra.ingest.vocabulary.reasons import Reason
    from patra.kernel.errors import Invalid

    if source == "verify":
        return _verify(endpoint, as_json=as_json)
    with open_patra(config) as patra:
        now = patra.clock.now()
        tree = patra.db.read(lambda tx: read_tree(tx, source))
        if tree is None:
            raise patra.db.read(lambda tx: unknown_source(tx, source))
        if out is not None:
            made = patra.db.read(lambda tx: stage.certificate(tx, source, endpoint, now=now))
            _write(out, made)
            some = unproven_line(made["sum"]["unproven"])
            say(f"{len(made['windows'])} windows, {made['sum']['open']} open: {out} ({made['hash']})")
            if some:
                say(some)
            return 1 if made["sum"]["open"] else 0
        found = patra.db.read(
            lambda tx: stage.coverage(tx, source, endpoint, operation=operation, limit=limit, after=after)
        )
    if endpoint and not found.windows and endpoint not in (names := list[str](tree["endpoints"])):  # renamed ones have
        raise Invalid(
            Reason.ENDPOINT_UNKNOWN, f"{source} has no endpoint {endpoint!r}", advice=unknown_name(endpoint, names)
        )
    if as_json:
        show(found, as_json=True)
    else:
        rows = [[getattr(one, name) for name in COLUMNS] for one in found.windows]
        if rows:
            table(COLUMNS, rows, titles={"positions": "read"})
        elif tree["endpoints"].get(endpoint, {}).get("role") == "DETAIL":
            click.echo(f"{source} {endpoint} gives records by id; windows are those of a list", err=True)
        else:
            show([], as_json=False)
        _tell(found, source)
    return 1 if found.sum.open else 0


def _tell(found: "Coverage", source: str) -> None:
    from patra.ingest.operations.rereads import words

    s = found.sum
    if s.windows:
        say(sum_line(found))
    if s.unproven:
        say(unproven_line(s.unproven))
    for one in found.rereads:
        say(words(one, source))
    if s.open:
        click.echo("fix the cause (`patra ingest errors`), then run the same again", err=True)
    if found.after:
        click.echo(f"there are more: --after '{found.after}'", err=True)


def sum_line(found: "Coverage") -> str:
    """The sum under the table, in the words of its columns; windows of two legs are two rows of it each."""
    s = found.sum
    two = any(one.leg == "DETAIL" for one in found.windows)
    legs = f" ({len(found.windows)} rows: windows of two legs, LIST and DETAIL, have a row for each)" if two else ""
    return (
        f"{s.complete} of {s.windows} windows add up{legs}: {s.promised:,} promised, {s.positions:,} read, "
        f"{s.landed:,} landed, {s.quarantined:,} in quarantine, {s.missing:,} missing"
    )


def unproven_line(count: int) -> str:
    """What is to be known of windows that no total and no second reading proves; empty where there are none."""
    if not count:
        return ""
    return (
        f"{count} of them cannot be proven complete (proof NONE): the provider gives no total that counts, so records "
        "that its lists leave out are not noticed; name `totalPath` if there is one, or declare "
        "`pagination.verify: TWICE`"
    )


def _write(out: Path, made: dict[str, Any]) -> None:
    import msgspec

    from patra.kernel.files import write_whole

    write_whole(out, msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")


def _verify(file: str, *, as_json: bool) -> int:
    from patra.ingest.operations.coverage import verify
    from patra.kernel.errors import Invalid

    if not file or not Path(file).is_file():
        raise click.BadParameter("name the file of a certificate", param_hint="FILE")
    try:
        found = verify(Path(file).read_bytes())
    except Invalid as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        show(found, as_json=True)
    elif found.problems:
        for problem in found.problems:
            click.echo(problem, err=True)
    else:
        say(f"{found.source}: {found.windows} windows, all add up ({found.hash})")
        if found.unproven:
            say(unproven_line(found.unproven))
    return 1 if found.problems else 0


@click.command()
@click.argument("source")
@click.argument("endpoint")
@click.option("--from", "since", required=True, metavar="WHEN", help="Start of the time to read again.")
@click.option("--to", "until", required=True, metavar="WHEN", help="Its end, not included.")
@click.option("--why", required=True, help="The reason, for the audit.")
@click.option("--executors", type=click.IntRange(1, 64), default=2, show_default=True, help="Windows at the same time.")
@config_option
@json_option
def reread(
    config: str | None, source: str, endpoint: str, since: str, until: str, why: str, executors: int, *, as_json: bool
) -> int:
    """Read finished windows again; the watermark stays where it is, and known records are compared, not doubled."""
    from patra.app.components.ingest import run_of
    from patra.cli.ingest.group import instant_of
    from patra.cli.ingest.run import Lines, tell_drained
    from patra.ingest.planning.trigger import Trigger
    from patra.ingest.vocabulary.codes import Operation
    from patra.kernel.ids import new_id

    if not why.strip():
        raise click.BadParameter("say why", param_hint="--why")
    with open_patra(config) as patra:
        now = patra.clock.now()
        trigger = Trigger(
            source=source,
            endpoint=endpoint,
            operation=Operation.BACKFILL,
            since=instant_of(since, "--from", now),
            until=instant_of(until, "--to", now),
            activity=f"reread-{new_id()}",
        )
        audit_act(patra, "ingest.reread", f"{source}/{endpoint}", why=why, since=since, until=until)
        done = run_of(patra.ground, executors=executors).run(trigger, Lines(f"{source} {endpoint} reread").show)
    return tell_drained(done, as_json=as_json)
