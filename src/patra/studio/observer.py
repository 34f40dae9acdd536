"""Turns everything that happens in a run into its story, its costs, and `error.recorded` (C§5). Producer:
Observer.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event
from patra.bus.consuming.dead_letter import DeadLetter, Filter
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import dead_letters
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.studio.profiles import Profile
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.storage.store import Q, text
from patra.studio.vocabulary.contracts import VERSIONS, OutgoingEvent, context_of, publish, run_id_of
from patra.studio.vocabulary.reasons import Reason

MODULE = "Observer"  # as the bus knows it (C§5)

GROUP = "observer"
SEEN = (
    "run.created",
    "run.stage.changed",
    "job.claimed",
    "job.succeeded",
    "job.failed",
    "worker.llm.completed",
    "worker.audio.completed",
    "worker.video.completed",
    "worker.lipsync.completed",
    "compose.completed",
    "compose.failed",
    "artifact.published",
)


NEEDED_GROUPS = ("orchestrator", "planner", "model-router", "worker-hub", "composer")  # a run waits for these
OTHER_GROUPS = ("gateway", "observer")
DEAD_LETTER = "dead_letter"  # the kind of a note
DEAD_LETTERS_PER_PAGE = 200
DEAD_LETTER_OVERLAP = 60 * SECOND  # clocks of several processes differ


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a run's story."""

    note_id: int
    event_id: str
    at: str
    kind: str
    subject: str
    detail: dict[str, Any]


class Observer:
    def __init__(self, bus: Bus, profiles: Mapping[str, Profile]) -> None:
        self._bus = bus
        self._profiles = profiles
        self._letters_from: int | None = None
        for event_type in SEEN:
            bus.consumer(event_type, group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_event))

    def on_event(self, tx: Tx, event: Event) -> None:
        payload, envelope = event.payload, event.envelope
        worker = envelope.event_type.startswith("worker.")
        row = {
            "run_id": payload["run_id"],
            "event_id": envelope.event_id,
            "at": envelope.occurred_at,
            "kind": envelope.event_type,
            "subject": payload.get("shot_id") or payload.get("stage") or payload.get("job_id") or "",
            "detail": text({name: payload[name] for name in _TOLD if payload.get(name) not in (None, "", [])}),
            "cost_micros": self._cost(payload) if worker else 0,
            "work_ms": payload.get("duration_ms", 0) if worker else 0,
        }
        tx.insert("stu_note", [row])
        if (error := _error_of(event)) is not None:
            publish(self._bus, tx, context_of(event), [self._record_error(event, *error)], by=MODULE)

    def run_once(self, db: Database) -> int:
        """Record handlers that gave up: each open dead letter of the studio's groups once. Gives how many."""
        began, since = self._bus.clock.now(), self._letters_from
        recorded = sum(self._record_group(db, group, since) for group in (*NEEDED_GROUPS, *OTHER_GROUPS))
        self._letters_from = began - DEAD_LETTER_OVERLAP
        return recorded

    def _record_group(self, db: Database, group: str, since: int | None) -> int:
        """All dead letters of one group, page by page: none is passed over, however many there are."""
        wanted, last, recorded = Filter(group=group, failed_from=since), None, 0
        while True:
            page, found = db.read(lambda tx, last=last: self._unrecorded_letters(tx, wanted, last))
            for letter in found:
                db.run(lambda tx, letter=letter: self._record_letter(tx, letter))
            recorded += len(found)
            if len(page) < DEAD_LETTERS_PER_PAGE:
                return recorded
            last = page[-1]

    def _unrecorded_letters(
        self, tx: Tx, wanted: Filter, last: DeadLetter | None
    ) -> tuple[list[DeadLetter], list[DeadLetter]]:
        """The page of dead letters behind the last one seen, and those of it that are still to be recorded."""
        located = dead_letters.find(tx, wanted, limit=DEAD_LETTERS_PER_PAGE, before=last)
        page = [one.letter for one in located]
        return page, [one for one in page if one.event_type != "error.recorded" and not self._is_recorded(tx, one)]

    def _is_recorded(self, tx: Tx, letter: DeadLetter) -> bool:
        params = {
            "event_id": letter.event_id,
            "kind": DEAD_LETTER,
            "subject": letter.group,
            "at": letter.last_failed_at,
        }
        return bool(tx.fetch(Q["note_of_letter"], params | {"run_id": run_id_of(letter.correlation_id)}))

    def _record_letter(self, tx: Tx, letter: DeadLetter) -> None:
        if self._is_recorded(tx, letter):
            return
        run_id = run_id_of(letter.correlation_id)
        detail = {"error_code": letter.error_code, "error_message": letter.error_detail, "attempts": letter.attempts}
        row = {
            "run_id": run_id,
            "event_id": letter.event_id,
            "at": letter.last_failed_at,
            "kind": DEAD_LETTER,
            "subject": letter.group,
            "detail": text(detail),
            "cost_micros": 0,
            "work_ms": 0,
        }
        tx.insert("stu_note", [row])
        body: dict[str, Any] = {
            "error_id": f"err_{letter.letter_id}"[:200],
            "module": letter.group,
            "error_code": letter.error_code,
            "message": letter.error_detail[:10000],
            "severity": "critical" if letter.group in NEEDED_GROUPS else "error",
            "retryable": False,
            "source_event_id": letter.event_id,
            "source_event_type": letter.event_type,
            "task_id": letter.correlation_id,
            "run_id": run_id,
            "recorded_at": format_instant(self._bus.clock.now()),
            "details": {
                "dead_letter": letter.letter_id,
                "attempts": letter.attempts,
                "failed_at": letter.last_failed_at,
            },
        }
        key = f"{letter.letter_id}:{letter.last_failed_at}"
        error = OutgoingEvent(type="error.recorded", key=key, payload=body)
        publish(self._bus, tx, context_of(decode_trusted(letter.envelope)), [error], by=MODULE)

    def _cost(self, payload: dict[str, Any]) -> int:
        profile = self._profiles.get(payload.get("model_profile_id", ""))
        if profile is None or payload.get("metrics", {}).get("reused"):
            return 0
        seconds = max((a.get("duration_ms", 0) for a in payload["artifacts"]), default=0) / 1000
        return round(profile.cost_micros * seconds)

    def _record_error(self, event: Event, module: str, code: str, message: str, severity: str) -> OutgoingEvent:
        payload, now = event.payload, self._bus.clock.now()
        body: dict[str, Any] = {
            "error_id": f"err_{event.event_id}",
            "module": module,
            "error_code": code,
            "message": message[:10000],
            "severity": severity,
            "retryable": bool(payload.get("retryable", False)),
            "source_event_id": event.event_id,
            "source_event_type": event.envelope.event_type,
            "task_id": event.envelope.correlation_id,
            "run_id": payload["run_id"],
            "recorded_at": format_instant(now),
        }
        if "job_id" in payload:
            body["job_id"] = payload["job_id"]
        return OutgoingEvent(type="error.recorded", key=event.event_id, payload=body)


_TOLD = (
    *("stage", "previous_stage", "progress", "reason", "reason_code", "worker_type", "worker_id", "model_profile_id"),
    *("status", "error_code", "error_message", "retryable", "attempt", "duration_ms", "metrics"),
    *("final_artifact_uri", "job_id"),
)


def _error_of(event: Event) -> tuple[str, str, str, str] | None:
    """Module, code, words and severity of the error that an event reports, if it does."""
    payload, kind = event.payload, event.envelope.event_type
    if kind == "run.stage.changed" and payload["stage"] == "failed":
        return "orchestrator", payload.get("reason_code", ""), payload.get("reason", ""), "critical"
    if kind == "job.failed" and payload["error_code"] != Reason.JOB_CANCELLED:
        return "worker-hub", payload["error_code"], payload.get("error_message", ""), "error"
    if kind.startswith("worker.") and payload["status"] == "failed" and payload["error_code"] != Reason.JOB_CANCELLED:
        return event.envelope.producer, payload["error_code"], payload.get("error_message", ""), "warning"
    return None


def notes(tx: Tx, run_id: str, since: int = 0, limit: int = 1000) -> list[Note]:
    """The story of a run, from a line on."""
    rows = tx.fetch(Q["notes_of_run"], {"run_id": run_id, "since": since, "limit": limit})
    return [
        Note(
            note_id=number,
            event_id=event_id,
            at=format_instant(at),
            kind=kind,
            subject=subject,
            detail=msgspec.json.decode(detail),
        )
        for number, event_id, at, kind, subject, detail, _, _ in rows
    ]


def all_notes(db: Database, run_id: str, at_once: int = 1000) -> list[Note]:
    """The whole story of a run, read page by page."""
    told: list[Note] = []
    while page := db.read(lambda tx: notes(tx, run_id, told[-1].note_id if told else 0, at_once)):
        told.extend(page)
    return told
