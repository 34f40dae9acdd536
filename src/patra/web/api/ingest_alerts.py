"""Alerts of the ingest platform over HTTP: which fire, who knows of them, which are silent until when (ch. 14.8)."""

from typing import Annotated

import msgspec
from msgspec import Meta

from patra.ingest.operations.alerting import acknowledgements
from patra.ingest.operations.alerting.monitor import alerts
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import parse_duration, parse_instant
from patra.kernel.errors import Invalid
from patra.web.api.ingest_acts import TAG, Done, act_audited
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

UNKNOWN = frozenset({Reason.ALERT_UNKNOWN})
Name = Annotated[str, Meta(min_length=1, max_length=400)]
UNTIL_TEXT = "Until when, RFC 3339."
FOR_TEXT = "For how long instead, an ISO 8601 duration such as PT2H."


class AlertNote(msgspec.Struct, frozen=True, kw_only=True):
    """A note on an alert; without `until` it holds as long as the alert fires."""

    by: str
    at: str
    until: str | None
    why: str


class AlertLine(msgspec.Struct, frozen=True, kw_only=True):
    """A rule and the subject it fires for."""

    alert: str
    subject: str
    severity: str
    state: str
    value: float
    detail: str
    advice: str
    since: str
    fired: str | None
    over: str | None
    acknowledged: AlertNote | None
    silenced: AlertNote | None


class Alerts(msgspec.Struct, frozen=True, kw_only=True):
    alerts: list[AlertLine]


class Acknowledge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alert is acknowledged."""

    alert: Name
    subject: Name
    why: Annotated[str, Meta(max_length=500)] = ""
    until: Annotated[str, Meta(max_length=40, description=UNTIL_TEXT)] = ""
    duration: Annotated[str, Meta(max_length=40, description=FOR_TEXT)] = ""


class Silence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which alert is silenced, until when and why."""

    alert: Name
    subject: Name
    why: Annotated[str, Meta(min_length=1, max_length=500)]
    until: Annotated[str, Meta(max_length=40, description=UNTIL_TEXT)] = ""
    duration: Annotated[str, Meta(max_length=40, description=FOR_TEXT)] = ""


class EndSilence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    alert: Name
    subject: Name
    why: Annotated[str, Meta(max_length=500)] = ""


NOT_THERE = {404: "There is no such alert, or it is over."}


def routes() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    return [
        group.get(
            "/ingest/alerts", _alerts, "Alerts that fire, that may soon, and that were over in the last day", Alerts
        ),
        *(
            group.post(
                f"/ingest/alerts/{name}",
                handler,
                f"ingest.{name.replace('-', '_')}",
                summary,
                request=body,
                response=Done,
                problems=NOT_THERE,
            )
            for name, handler, body, summary in (
                ("acknowledge", _acknowledge, Acknowledge, "Acknowledge an alert"),
                ("silence", _silence, Silence, "Send no notifications of an alert for a while"),
                ("end-silence", _end_silence, EndSilence, "Send notifications of an alert again"),
            )
        ),
    ]


def _alerts(request: Request) -> Alerts:
    found = alerts(request.patra.db, request.patra.clock.now())
    return Alerts(alerts=msgspec.convert(found, list[AlertLine]))


def _acknowledge(request: Request) -> Done | Problem:
    asked: Acknowledge = request.body
    now, by = request.patra.clock.now(), (request.actor or LOCAL).name
    until = until_of(asked.until, asked.duration, now)
    return act_audited(
        request,
        lambda tx: acknowledgements.acknowledge(
            tx, asked.alert, asked.subject, by=by, why=asked.why, until=until, now=now
        ),
        unknown=UNKNOWN,
    )


def _silence(request: Request) -> Done | Problem:
    asked: Silence = request.body
    now, by = request.patra.clock.now(), (request.actor or LOCAL).name
    until = until_of(asked.until, asked.duration, now)
    if until is None:
        return Problem(422, Reason.ALERT_UNTIL_INVALID.value, "A silence ends", "Give `until` or `duration`.")
    return act_audited(
        request,
        lambda tx: acknowledgements.silence_alert(
            tx, asked.alert, asked.subject, by=by, why=asked.why, until=until, now=now
        ),
        unknown=UNKNOWN,
    )


def _end_silence(request: Request) -> Done | Problem:
    asked: EndSilence = request.body
    now = request.patra.clock.now()
    return act_audited(
        request,
        lambda tx: acknowledgements.end_silence(tx, asked.alert, asked.subject, why=asked.why, now=now),
        unknown=UNKNOWN,
    )


def until_of(until: str, duration: str, now: int) -> int | None:
    """The instant that was given, or now and the duration that was given; None for neither."""
    if duration:
        return now + parse_duration(duration)
    if not until:
        return None
    found = parse_instant(until)
    if found is None:
        raise Invalid(
            Reason.ALERT_UNTIL_INVALID,
            f"{until!r} is not an instant",
            place="until",
            advice="write 2026-01-31T00:00:00Z",
        )
    return found
