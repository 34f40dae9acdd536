"""`patra attribution rate | period | statement | reconcile`: prices, closed periods, and the other side's list."""

from typing import TYPE_CHECKING, Any

import click

from patra.cli.terminal.groups import Group
from patra.cli.terminal.options import (
    audit_act,
    config_option,
    json_option,
    open_patra,
    outcome_option,
    say_outcome,
    show,
    spare_the_store,
    table,
)
from patra.cli.terminal.wrapping import say
from patra.kernel.errors import count_phrase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patra.attribution.settlement.statement import StatementFile
    from patra.attribution.verify import Finding
    from patra.kernel.db import Database

app_option = click.option("--app", "app_id", required=True, metavar="APP", help="The app.")


# --- rates ------------------------------------------------------------------------------------------------------------


@click.group("rate", cls=Group)
def rate() -> None:
    """Prices of billable facts, in integer micro-units of a currency.

    Rates are only added. Of those that are valid at a fact's factAt, the one that names its creative decides, then
    its placement, then its app; among equals the newest.
    """


@rate.command("add")
@click.argument("billable_type", metavar="TYPE", type=click.Choice(["impression", "click"]))
@click.argument("price_micros", metavar="MICROS", type=click.IntRange(0, 10**15))
@click.argument("currency", metavar="CURRENCY")
@click.option("--app", "app_id", default="", metavar="APP", help="Only for this app.")
@click.option("--placement", default="", metavar="KEY", help="Only for this placement.")
@click.option("--creative", default="", metavar="ID", help="Only for this creative.")
@click.option("--from", "begin", required=True, metavar="INSTANT", help="A date (UTC) or an RFC 3339 instant.")
@click.option("--to", "end", metavar="INSTANT", help="The first instant at which it is not valid any more.")
@config_option
@outcome_option
def rate_add(
    billable_type: str,
    price_micros: int,
    currency: str,
    app_id: str,
    placement: str,
    creative: str,
    begin: str,
    end: str | None,
    config: str | None,
) -> None:
    """Add a price: 2500 is 2.50 per thousand impressions, 150000 is 0.15 per click."""
    from patra.attribution.settlement.rate_card import Rate
    from patra.attribution.settlement.statement_store import add_rate

    made = Rate(
        billable_type=f"billable_{billable_type}",
        price_micros=price_micros,
        currency=currency,
        app_id=app_id,
        placement=placement,
        creative=creative,
        valid_from=instant(begin, "--from"),
        valid_to=instant(end, "--to") if end else None,
    )
    with open_patra(config) as patra:
        version = patra.db.run(lambda tx: add_rate(tx, made, patra.clock.now()))
        named = {"app": app_id, "type": made.billable_type, "currency": currency, "price_micros": price_micros}
        audit_act(patra, "attribution.rate.add", str(version), **named)
    say_outcome(f"rate {version} is added", version=version)


@rate.command("list")
@config_option
@json_option
def rate_list(config: str | None, as_json: bool) -> None:
    """All rates, by version."""
    from patra.attribution.settlement.statement_store import all_rates
    from patra.kernel.clock import format_instant

    with open_patra(config) as patra:
        found = patra.db.read(all_rates)
    rows: list[dict[str, Any]] = [
        {
            "version": one.version,
            "type": one.billable_type,
            "priceMicros": one.price_micros,
            "currency": one.currency,
            "app": one.app_id,
            "placement": one.placement,
            "creative": one.creative,
            "from": format_instant(one.valid_from),
            "to": format_instant(one.valid_to) if one.valid_to is not None else None,
        }
        for one in found
    ]
    show(rows, as_json=as_json, exact=True)  # prices begin and end at dates


def instant(text: str, option: str) -> int:
    from patra.kernel.clock import parse_instant

    found = parse_instant(text if "T" in text.upper() else f"{text}T00:00:00Z")
    if found is None:
        raise click.BadParameter("neither a date (2026-01-31) nor an RFC 3339 instant", param_hint=option)
    return found


# --- periods and statements -------------------------------------------------------------------------------------------


@click.group("period", cls=Group)
def period() -> None:
    """Close periods."""


@period.command("close")
@click.argument("name", metavar="PERIOD")
@app_option
@click.option("--allow-unpriced", is_flag=True, help="Also if facts have no price; they are counted apart.")
@config_option
@json_option
def period_close(name: str, app_id: str, allow_unpriced: bool, config: str | None, as_json: bool) -> None:
    """Write the immutable statement of a month (2026-10) or a day (2026-10-05), in UTC.

    Refuses while the period is not over, records are undelivered, facts have no price, or verification finds a fault in
    the facts. Faults of running sums and of the index by key are only reported: no statement is made from them.
    What arrives later is an adjustment in the next statement.
    """
    from patra.attribution.settlement.period import close_period, parse_period
    from patra.attribution.verify import REBUILD_ADVICE

    def tell(findings: "Sequence[Finding]") -> None:
        checks = ", ".join(sorted({one.check for one in findings}))
        click.echo(f"warning: {checks}; the statement does not depend on it. {REBUILD_ADVICE}.", err=True)

    asked = parse_period(name)
    with open_patra(config) as patra:
        file = close_period(patra.db, patra.clock, app_id, asked, allow_unpriced=allow_unpriced, tell=tell)
        audit_act(patra, "attribution.period.close", app_id, period=name, hash=file.statement.hash)
    _show_statement(file, as_json=as_json)


@click.group("statement", cls=Group)
def statement() -> None:
    """Statements of closed periods."""


@statement.command("list")
@click.option("--app", "app_id", default="", metavar="APP", help="Only of this app.")
@config_option
@json_option
def statement_list(app_id: str, config: str | None, as_json: bool) -> None:
    """Every statement, by app, the oldest first."""
    from patra.attribution.settlement.statement_store import statements

    with open_patra(config) as patra:
        found = patra.db.read(lambda tx: statements(tx, app_id))
    rows: list[dict[str, Any]] = [
        {
            "app": one.app_id,
            "number": one.number,
            "period": one.period,
            "closedAt": one.closed_at,
            "impressions": one.impressions,
            "clicks": one.clicks,
            "adjustments": one.adjustments,
            "amounts": one.amounts,
            "hash": one.hash,
        }
        for one in found
    ]
    show(rows, as_json=as_json)


@statement.command("show")
@click.argument("name", metavar="PERIOD")
@app_option
@config_option
@json_option
def statement_show(name: str, app_id: str, config: str | None, as_json: bool) -> None:
    """One statement, with its lines."""
    with open_patra(config) as patra:
        _show_statement(_read_statement(patra.db, app_id, name), as_json=as_json)


@statement.command("export")
@click.argument("name", metavar="PERIOD")
@app_option
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Instead of standard output.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "csv", "parquet"]),
    help="By default what the name of FILE ends with, or json.",
)
@config_option
@outcome_option
def statement_export(name: str, app_id: str, out: str | None, form: str | None, config: str | None) -> None:
    """Write a statement with its facts; JSON is what `statement verify` reads, CSV and Parquet hold the facts."""
    import msgspec

    from patra.attribution.settlement.export import FACT_COLUMNS, rows_as_csv, rows_as_parquet

    form = form or ((out or "").rpartition(".")[2].lower() or "json")
    if form not in {"json", "csv", "parquet"}:
        raise click.UsageError("--out: name the file .json, .csv or .parquet, or give --format")
    if form == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    with open_patra(config) as patra:
        if out is not None:
            spare_the_store(patra, out)
        file = _read_statement(patra.db, app_id, name)
    rows: list[dict[str, Any]] = [msgspec.to_builtins(fact) for fact in file.facts]
    if form == "parquet":
        rows_as_parquet(FACT_COLUMNS, rows, out or "")
    else:
        text = rows_as_csv(list(FACT_COLUMNS), rows) if form == "csv" else msgspec.json.encode(file).decode() + "\n"
        with click.open_file(out or "-", "w", encoding="utf-8") as target:
            target.write(text)
    if out is not None:
        say_outcome(f"{count_phrase(len(rows), 'fact')} in {out}", file=out, facts=len(rows))


@statement.command("verify")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.File("rb"))
@outcome_option
def statement_verify(files: tuple[Any, ...]) -> int:
    """Check exported statements without the store: counts, amounts, hashes, and the chain from one FILE to the next.

    Name several files of one app with the oldest first. Exit code 1 if anything is wrong.
    """
    import msgspec

    from patra.attribution.settlement.statement import StatementFile, verification
    from patra.kernel.errors import Invalid

    read: list[StatementFile] = []
    for file in files:
        try:
            read.append(msgspec.json.decode(file.read(), type=StatementFile))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            advice = "it reads the JSON that `statement export PERIOD --app APP --out FILE.json` writes"
            raise Invalid("statement_unreadable", str(error), place=file.name, advice=advice) from None
    wrong = verification(read)
    good = [
        f"{file.statement.app_id} {file.statement.period}: valid, {count_phrase(len(file.facts), 'fact')}, "
        f"{file.statement.hash}"
        for file in read
    ]
    say_outcome("\n".join(wrong or good), sound=not wrong, problems=wrong, hashes=[one.statement.hash for one in read])
    return 1 if wrong else 0


@click.command("reconcile")
@click.argument("theirs", metavar="THEIRS.csv", type=click.File("r", encoding="utf-8-sig"))
@app_option
@click.option("--period", "name", required=True, metavar="PERIOD", help="The month (2026-10) or day (2026-10-05).")
@config_option
@json_option
def reconcile(theirs: Any, app_id: str, name: str, config: str | None, as_json: bool) -> int:
    """Compare the counterparty's list with ours and explain each difference by the decision that made it.

    THEIRS.csv has a header with billingKey, or responseReference, renderAttemptId and billableType; priceMicros is
    compared where it is there. Ours is the statement of the period, or what counts in it while it is not closed. Exit
    code 1 if anything differs.
    """
    from patra.attribution.settlement.period import parse_period
    from patra.attribution.settlement.reconcile import their_facts
    from patra.attribution.settlement.reconciliation import reconcile as compare

    asked, listed = parse_period(name), their_facts(theirs)
    with open_patra(config) as patra:
        found = compare(patra.db, app_id, asked, listed)
    if as_json:
        show(found, as_json=True)
    else:
        table(
            ["difference", "billingKey", "ours", "theirs", "explanation"],
            [[one.kind, one.billing_key, one.ours_micros, one.theirs_micros, one.explanation] for one in found],
        )
        click.echo(f"{count_phrase(len(listed), 'row')} of theirs: {count_phrase(len(found), 'difference')}", err=True)
    return 1 if found else 0


def _read_statement(db: "Database", app_id: str, name: str) -> "StatementFile":
    from patra.attribution.settlement.statement_store import statement_file
    from patra.kernel.errors import Invalid

    found = db.read(lambda tx: statement_file(tx, app_id, name))
    if found is None:
        raise Invalid(
            "statement_unknown",
            f"{app_id} has no statement of {name}",
            advice="`patra attribution statement list` lists those that there are",
        )
    return found


def _amount(micros: int, currency: str) -> str:
    """The amount as it is settled, and as people write it: no digit is rounded."""
    whole, rest = divmod(abs(micros), 1_000_000)
    written = f"{'-' if micros < 0 else ''}{whole:,}.{f'{rest:06}'.rstrip('0'):0<2}"
    return f"{micros} micro-{currency} ({written} {currency})"


def _show_statement(file: "StatementFile", *, as_json: bool) -> None:
    if as_json:
        show(file.statement, as_json=True)
        return
    found = file.statement
    table(
        ["period", "adjustment", "placement", "creative", "type", "count", "price", "amount", "currency"],
        [
            [
                line.period,
                line.adjustment_flag,
                line.placement,
                line.creative,
                line.billable_type,
                line.count,
                line.price_micros,
                line.amount_micros,
                line.currency,
            ]
            for line in found.lines
        ],
    )
    amounts = ", ".join(_amount(micros, currency) for currency, micros in found.amounts.items()) or "no amount"
    say(
        f"statement {found.number} of {found.app_id} for {found.period}: "
        f"{count_phrase(found.impressions, 'impression')}, {count_phrase(found.clicks, 'click')}, "
        f"{count_phrase(found.adjustments, 'adjustment')}, {amounts}"
    )
    say(f"hash {found.hash}, {f'follows {found.previous_hash}' if found.previous_hash else 'the first of its app'}")
