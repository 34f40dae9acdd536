"""Where an alert can be dealt with, and what it says as one of the things that need a person."""

from typing import Any
from urllib.parse import quote

from patra.web.console.markup.formats import link
from patra.web.console.needs.need import Need


def place_of(rule: str, subject: str) -> tuple[str, str]:
    """Where an alert can be dealt with: the address of that view, and what its button says.

    Subjects of ingest begin with the source (`pubmed/search/HARVEST`, with a namespace or a plan behind a blank).
    """
    source, last = subject.partition("/")[0], subject.rpartition(" ")[2]
    match rule:
        case "incomplete":
            return link("/ingest/coverage", source=source), "Open coverage"
        case "failed":
            return link("/ingest/tasks", source=source, status="FAILED"), "Open failed tasks"
        case "always_failing":
            return link("/ingest/errors", source=source), "Open errors"
        case "fatal" | "errors":
            return link(f"/ingest/source/{quote(source, safe='')}"), "Open source"
        case "watermark_held" | "cursor_lag":
            return link("/ingest/cursors", source=source), "Open cursors"
        case "throttled" | "budget":
            return link("/ingest/rate"), "Open rate and quota"
        case "queue":
            return link("/ingest"), "Open queue"
        case "plan_idle":
            return link(f"/ingest/plan/{quote(last, safe='')}"), "Open plan"
        case "bus_dead_letters":
            return link("/bus/dead-letters", type=subject), "Open dead letters"
        case "bus_frozen":
            return link(f"/bus/type/{quote(subject, safe='')}"), "Open type"
        case "bus_lag":
            return link("/bus/groups"), "Open groups"
        case "bus_suspended":
            return link("/bus/webhooks"), "Open webhooks"
        case "undelivered":
            return link("/outbox", channel=subject), "Open outbox"
        case _:
            return link("/alerts"), "Open alerts"


def alert_need(alert: dict[str, Any]) -> Need:
    """A firing alert needs a person until it is acknowledged; then it is worth watching."""
    known, silent = alert["acknowledged"], alert["silenced"]
    name = alert["alert"].replace("_", " ")
    fields = {"alert": alert["alert"], "subject": alert["subject"]}
    href, door = place_of(alert["alert"], alert["subject"])
    if known or silent:
        note = known or silent
        said = f"{'known to' if known else 'silenced by'} {note['by']}{': ' + note['why'] if note['why'] else ''}"
        return Need(
            tone="hold",
            subject=alert["subject"],
            href=href,
            what=name,
            why=said,
            since=alert["since"],
            door=door,
        )
    return Need(
        tone="bad" if alert["state"] == "FIRING" else "warn",
        subject=alert["subject"],
        href=href,
        what=name,
        why=alert["detail"],
        consequence=alert["advice"],
        since=alert["since"],
        door=door,
        act="ingest.acknowledge",
        act_label="Acknowledge…",
        fields=fields,
    )
