"""`patra ingest alerts|acknowledge|silence|end-silence`: what fires, who knows of it, what is silent (ch. 14.8)."""

from typing import Any

import click

from patra.cli.ingest.operations import act, why_option
from patra.cli.terminal.options import config_option, json_option, open_patra, outcome_option, show

EPILOG = """\b
RULE and SUBJECT stand in `patra alerts`. An acknowledgement ends with the alert; a silence ends at its time,
and what still fires then is sent.

\b
Examples:
  patra ingest acknowledge fatal crossref/works --why "the key is being renewed"
  patra ingest silence cursor_lag crossref/works/HARVEST --for PT4H --why "maintenance at the provider" """


ALL_EPILOG = """\b
Examples:
  patra alerts                          what fires, since when, and what to do
  patra alerts --json | jq '.[].alert'
Exit code 1 if any fires."""


@click.command("alerts", epilog=ALL_EPILOG)
@config_option
@json_option
def all_alerts(config: str | None, *, as_json: bool) -> int:
    """Show the alerts of all engines that fire, those that may soon, and those that were over in the last day."""
    return _alerts(config, as_json=as_json)


@click.command()
@config_option
@json_option
def alerts(config: str | None, *, as_json: bool) -> int:
    """Show the alerts that fire, those that may soon, and those that were over in the last day; exit 1 if any fires."""
    return _alerts(config, as_json=as_json)


def _alerts(config: str | None, *, as_json: bool) -> int:
    from patra.ingest.operations.alerting.last_check import late_check_text
    from patra.ingest.operations.alerting.monitor import alerts as found
    from patra.kernel.clock import SECOND

    with open_patra(config) as patra:
        now = patra.clock.now()
        rows = found(patra.db, now)
        late = late_check_text(rows, now, int(patra.settings.alerts.every_seconds * SECOND))
    firing = sum(1 for row in rows if row["state"] == "FIRING")
    if as_json:
        show(rows, as_json=True)
    elif rows:
        show([_line(row) for row in rows], as_json=False)
    else:
        click.echo("no alert fires")
    if late:
        click.echo(f"{late}: `patra up` or `patra work` checks again", err=True)
    return 1 if firing else 0


def _line(row: dict[str, Any]) -> dict[str, Any]:
    known, silent = row["acknowledged"], row["silenced"]
    return {
        **{name: row[name] for name in ("state", "severity", "alert", "subject", "since")},
        "known_to": known["by"] if known else "",
        "silent_until": silent["until"] if silent else "",
        "detail": row["detail"],
        "advice": row["advice"],
    }


def _until(text: str | None, duration: str | None, now: int) -> int | None:
    from patra.cli.ingest.group import instant_of
    from patra.kernel.clock import parse_duration

    if text and duration:
        raise click.UsageError("give --until or --for, not both")
    return now + parse_duration(duration) if duration else instant_of(text, "--until", now)


until_option = click.option("--until", metavar="WHEN", help="Until this instant: a date, or 2026-01-31T12:00:00Z.")
for_option = click.option("--for", "duration", metavar="DURATION", help="For so long, such as PT2H or P1D.")


@click.command(epilog=EPILOG)
@click.argument("rule")
@click.argument("subject")
@until_option
@for_option
@why_option
@config_option
@outcome_option
def acknowledge(rule: str, subject: str, until: str | None, duration: str | None, why: str, config: str | None) -> None:
    """Acknowledge an alert: it needs no other person while it fires, or until the time you give."""
    from patra.ingest.operations.alerting import acknowledgements

    act(
        config,
        lambda tx, by, now: acknowledgements.acknowledge(
            tx, rule, subject, by=by, why=why, until=_until(until, duration, now), now=now
        ),
    )


@click.command(epilog=EPILOG)
@click.argument("rule")
@click.argument("subject")
@until_option
@for_option
@click.option("--why", required=True, help="The reason; it is kept with the silence and in the audit.")
@config_option
@outcome_option
def silence(rule: str, subject: str, until: str | None, duration: str | None, why: str, config: str | None) -> None:
    """Send no notifications of an alert until the time you give, at most 30 days ahead; pages and lists show it."""
    from patra.ingest.operations.alerting import acknowledgements

    if not until and not duration:
        raise click.UsageError("say how long: --for PT2H, or --until WHEN")
    act(
        config,
        lambda tx, by, now: acknowledgements.silence_alert(
            tx, rule, subject, by=by, why=why, until=_until(until, duration, now) or now, now=now
        ),
    )


@click.command("end-silence", epilog=EPILOG)
@click.argument("rule")
@click.argument("subject")
@why_option
@config_option
@outcome_option
def end_silence(rule: str, subject: str, why: str, config: str | None) -> None:
    """Send notifications of an alert again; exit 1 where it was not silenced."""
    from patra.ingest.operations.alerting import acknowledgements

    act(config, lambda tx, _by, now: acknowledgements.end_silence(tx, rule, subject, why=why, now=now))
