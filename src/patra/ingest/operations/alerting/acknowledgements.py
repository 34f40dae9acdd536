"""Acknowledgements of alerts, and silences in which nobody is notified; both end by themselves (ch. 14.8).

An acknowledgement holds for the episode in which it was made: an alert that was over and comes back is new. A silence
holds until its instant. An alert that fires in a silence is notified when the silence ends, if it still fires then.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from patra.ingest.operations.alerting.alert_state import Alert, AlertState
from patra.ingest.operations.alerting.bus_rules import ALL_RULES
from patra.ingest.planning.operations import Act
from patra.ingest.planning.store import Q
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.kernel.safety.redact import redact_text

MAX_SILENCE = 30 * DAY
NOTES_KEPT = 7 * DAY


class NoteKind(StrEnum):
    ACK = "ACK"
    SILENCE = "SILENCE"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note on an alert; an acknowledgement without `until` holds as long as the alert lasts."""

    by: str
    at: int
    until: int | None
    why: str
    held_at: int | None = None

    def as_fields(self) -> dict[str, Any]:
        until = None if self.until is None else format_instant(self.until)
        return {"by": self.by, "at": format_instant(self.at), "until": until, "why": redact_text(self.why)}


Notes = Mapping[tuple[str, NoteKind], Note]


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """Which alerts are notified now, and which are held back: the key, with the instant at which it fired."""

    told: tuple[Alert, ...]
    held: tuple[tuple[str, int | None], ...]


def acknowledgement(notes: Notes, alert: Alert, now: int) -> Note | None:
    note = notes.get((alert.key, NoteKind.ACK))
    if note is None or alert.state is AlertState.OVER or note.at < alert.since:
        return None
    return note if note.until is None or now < note.until else None


def silence(notes: Notes, alert: Alert, now: int) -> Note | None:
    note = notes.get((alert.key, NoteKind.SILENCE))
    return note if note is not None and note.until is not None and now < note.until else None


def telling(changed: Sequence[Alert], alerts: Iterable[Alert], notes: Notes, now: int) -> Telling:
    """The notifications to send: not those in a silence; and those that a silence has held back until now."""
    told: list[Alert] = []
    held: list[tuple[str, int | None]] = []
    for alert in changed:
        note = notes.get((alert.key, NoteKind.SILENCE))
        kept = note.held_at if note is not None else None
        if silence(notes, alert, now):
            held.append((alert.key, alert.fired_at if alert.state is AlertState.FIRING else None))
        elif alert.state is AlertState.OVER and kept is not None:  # nobody heard that it fired
            held.append((alert.key, None))
        else:
            told.append(alert)
    seen = {alert.key for alert in changed}
    for alert in alerts:
        if alert.key not in seen and is_owed(notes, alert, now):
            told.append(alert)
            held.append((alert.key, None))
    return Telling(told=tuple(told), held=tuple(held))


def is_owed(notes: Notes, alert: Alert, now: int) -> bool:
    """Whether an alert fires whose silence is over and of which no notification was sent."""
    note = notes.get((alert.key, NoteKind.SILENCE))
    held = note is not None and note.held_at is not None and note.held_at == alert.fired_at
    return held and alert.state is AlertState.FIRING and silence(notes, alert, now) is None


def alert_notes(tx: Tx) -> dict[tuple[str, NoteKind], Note]:
    return {
        (key, NoteKind(kind)): Note(by=by, at=at, until=until, why=why, held_at=held)
        for key, kind, by, at, until, why, held in tx.fetch(Q["alert_notes"])
    }


def write_held(tx: Tx, held: Sequence[tuple[str, int | None]]) -> None:
    if held:
        tx.execute(Q["alert_held"], rows=list(held))


def purge_notes(tx: Tx, now: int) -> int:
    return tx.execute(Q["alert_note_purge"], {"before": now - NOTES_KEPT})


def acknowledge(tx: Tx, rule: str, subject: str, *, by: str, why: str, until: int | None, now: int) -> Act:
    """Acknowledge an alert: it needs nobody else while it lasts, or until an instant."""
    key = f"{rule}|{subject}"
    if _state(tx, key)[0] == AlertState.OVER:
        raise Invalid(Reason.ALERT_UNKNOWN, f"{rule} of {subject} is over", advice="`patra alerts` lists them")
    if until is not None:
        _check_bound(until, now)
    _write(tx, key, NoteKind.ACK, by=by, why=why, until=until, now=now)
    detail = {"why": why, "until": None if until is None else format_instant(until)}
    return Act(act="ingest.acknowledge", subject=key, changed=1, detail=detail)


def silence_alert(tx: Tx, rule: str, subject: str, *, by: str, why: str, until: int, now: int) -> Act:
    """Send no notifications of an alert until an instant, whether it fires now or later."""
    key = f"{rule}|{subject}"
    if rule not in {one.name for one in ALL_RULES}:
        raise Invalid(Reason.ALERT_UNKNOWN, f"there is no rule {rule}", advice="`patra alerts` lists them")
    if not why.strip():
        raise Invalid(Reason.ALERT_UNEXPLAINED, "a silence has a reason", place="why", advice="say why")
    _state(tx, key)
    _check_bound(until, now)
    _write(tx, key, NoteKind.SILENCE, by=by, why=why, until=until, now=now)
    detail = {"why": why, "until": format_instant(until)}
    return Act(act="ingest.silence", subject=key, changed=1, detail=detail)


def end_silence(tx: Tx, rule: str, subject: str, *, why: str, now: int) -> Act:
    key = f"{rule}|{subject}"
    changed = tx.execute(Q["alert_silence_end"], {"key": key, "now": now})
    return Act(act="ingest.end_silence", subject=key, changed=changed, detail={"why": why})


def _state(tx: Tx, key: str) -> tuple[str, int]:
    row = tx.fetch_one(Q["alert_state_of"], {"key": key})
    if row is None:
        raise Invalid(
            Reason.ALERT_UNKNOWN,
            f"there is no alert {key.replace('|', ' of ', 1)}",
            advice="`patra alerts` lists them",
        )
    return str(row[0]), int(row[1])


def _check_bound(until: int, now: int) -> None:
    if not now < until <= now + MAX_SILENCE:
        raise Invalid(
            Reason.ALERT_UNTIL_INVALID,
            f"{format_instant(until)} is not within the next 30 days",
            place="until",
            advice="give an instant to come, at most 30 days ahead",
        )


def _write(tx: Tx, key: str, kind: NoteKind, *, by: str, why: str, until: int | None, now: int) -> None:
    row = (key, kind.value, by, now, until, why.replace("\0", "\ufffd"))
    tx.execute(Q["alert_note_set"], rows=[row])
