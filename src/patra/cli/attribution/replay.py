"""`patra attribution replay`: decide a log again, under the live rules or, as a what-if, under others."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.options import show, table

if TYPE_CHECKING:
    from pathlib import Path

    from patra.attribution.contract.rules import Rules
    from patra.attribution.settlement.rate_card import Rate
    from patra.attribution.what_if import Difference, Outcome

EPILOG = """\b
Each line of LOG is one of
  {"receivedAt": "2026-01-01T00:00:00Z", "batch": <any JSON>}
  {"tick": "2026-01-01T00:02:00Z"}

\b
DIR gets acks.jsonl, billable.jsonl, attribution.jsonl, audits.jsonl, records.jsonl and closures.jsonl. The same log
gives the same bytes, on any machine, on SQLite and on PostgreSQL.

\b
With --rules the log is decided twice, under the live rules and under those of FILE, and the difference is printed. DIR
then gets what follows from FILE. Such a file:
  name = "f_closure_v2"
  closure_wait_seconds = 300
  click_wait_seconds = 60
  future_limit_hours = 1
  [dedup_window_days]
  click = 7

\b
Examples:
  patra attribution replay log.jsonl --out facts
  patra attribution log export | patra attribution replay - --out facts
  patra attribution replay log.jsonl --out facts --store postgresql://patra@localhost/empty
  patra attribution rate list --json > rates.json
  patra attribution replay log.jsonl --rules next.toml --rates rates.json"""


@click.command("replay", epilog=EPILOG)
@click.argument("log", type=click.File("rb"))
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="Folder for the six files.")
@click.option("--store", metavar="URL", help="An empty store to decide on; a temporary one by default.")
@click.option(
    "--rules",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Other windows (TOML): print what they would change.",
)
@click.option(
    "--rates",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="With --rules: prices, as `rate list --json` prints them.",
)
@click.option("--json", "as_json", is_flag=True, help="The counts as JSON; with --rules the difference, fact by fact.")
def replay(log: Any, out: str | None, store: str | None, rules: str | None, rates: str | None, as_json: bool) -> None:
    """Decide a log from the beginning and write everything that follows from it."""
    if rules is None:
        if out is None or rates is not None:
            raise click.UsageError("give --out DIR, or --rules FILE for a what-if; --rates goes with --rules")
        _replay(log, out, store, as_json=as_json)
        return
    if store is not None:
        raise click.UsageError("--rules decides on temporary stores: --store does not go with it")
    _what_if(log, rules, rates, out, as_json=as_json)


def _replay(log: Any, out: str, store: str | None, *, as_json: bool) -> None:
    from io import BytesIO
    from itertools import repeat
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from patra.attribution.replay import check_log, write_output
    from patra.attribution.replay import replay as replay_log
    from patra.attribution.storage.read import is_empty
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
    counts = {
        "batches": len(output.acks),
        "billable facts": len(output.billable),
        "attribution facts": len(output.attribution),
        "audits": len(output.audits),
        "records": len(output.records),
        "closures": len(output.closures),
    }
    if as_json:
        show({"folder": out, **{name.replace(" ", "_"): count for name, count in counts.items()}}, as_json=True)
    else:
        click.echo(f"{', '.join(f'{count} {name}' for name, count in counts.items())} in {out}")


def _what_if(log: Any, rules_file: str, rates_file: str | None, out: str | None, *, as_json: bool) -> None:
    from io import BytesIO
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from patra.attribution.contract.rules import LIVE_RULES, read_rules
    from patra.attribution.replay import last_instant, write_output
    from patra.attribution.settlement.rate_card import read_rates
    from patra.attribution.what_if import difference
    from patra.kernel.clock import format_instant

    rules = read_rules(Path(rules_file))
    rates = read_rates(Path(rates_file)) if rates_file else []
    log = log if log.seekable() else BytesIO(log.read())
    end = last_instant(log)
    tick = [] if end is None else [b'{"tick": "%s"}' % format_instant(end).encode()]
    runs: list[Outcome] = []
    with TemporaryDirectory(prefix="patra-what-if-") as folder:
        for number, applied in enumerate((LIVE_RULES, rules)):
            log.seek(0)
            runs.append(_run(Path(folder) / f"{number}.db", [log, tick], applied, rates))
    found = difference(*runs)
    if out is not None:
        write_output(runs[1].output, Path(out))
    if as_json:
        show(found, as_json=True)
    else:
        _print(found, priced=bool(rates))


def _run(path: "Path", parts: list[Any], rules: "Rules", rates: "list[Rate]") -> "Outcome":
    from itertools import chain

    from patra.attribution.what_if import outcome
    from patra.kernel.db import migrate, open_database

    db = open_database(f"sqlite:///{path}", synchronous="OFF")
    try:
        migrate(db, ["patra.kernel", "patra.attribution"])
        return outcome(chain(*parts), db, rules, rates)
    finally:
        db.close()


def _print(found: "Difference", *, priced: bool) -> None:
    changed = [one for one in found.figures if one.difference or one.what.startswith(("billable", "micros"))]
    table(
        ["figure", found.live, found.other, "difference"],
        [[one.what, one.live, one.other, f"{one.difference:+d}"] for one in changed],
    )
    if found.facts:
        click.echo()
        table(
            ["billingKey", "factAt", "only under", "price in micros", "decided instead"],
            [
                [one.billing_key, one.fact_at, one.only, one.price_micros, "; ".join(one.decisions)]
                for one in found.facts
            ],
        )
    if not priced:
        click.echo("no prices were given (--rates), so no money is compared", err=True)
