"""Everything that happens in a run goes in; its story, its costs, and `error.recorded` come out (C§5). Producer:
Observer.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Event
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Tx
from patra.studio.contracts import VERSIONS, Said, context_of, say
from patra.studio.profiles import Profile
from patra.studio.reasons import R
from patra.studio.store import Q, text

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
    "artifact.published",
)


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
        for event_type in SEEN:
            bus.consumer(event_type, group=GROUP, versions=VERSIONS)(self.on_event)

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
            say(self._bus, tx, context_of(event), [self._recorded(event, *error)])

    def _cost(self, payload: dict[str, Any]) -> int:
        profile = self._profiles.get(payload.get("model_profile_id", ""))
        if profile is None or payload.get("metrics", {}).get("reused"):
            return 0
        seconds = max((a.get("duration_ms", 0) for a in payload["artifacts"]), default=0) / 1000
        return round(profile.cost_micros * seconds)

    def _recorded(self, event: Event, module: str, code: str, message: str, severity: str) -> Said:
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
        return Said(type="error.recorded", key=event.event_id, payload=body)


_TOLD = (
    *("stage", "previous_stage", "progress", "reason", "reason_code", "worker_type", "worker_id", "model_profile_id"),
    *("status", "error_code", "error_message", "retryable", "attempt", "duration_ms", "metrics"),
    *("final_artifact_uri", "job_id"),
)


def _error_of(event: Event) -> tuple[str, str, str, str] | None:
    """Module, code, words and severity of the error that an event tells of, if it does."""
    payload, kind = event.payload, event.envelope.event_type
    if kind == "run.stage.changed" and payload["stage"] == "failed":
        return "orchestrator", payload.get("reason_code", ""), payload.get("reason", ""), "critical"
    if kind == "job.failed" and payload["error_code"] != R.JOB_CANCELLED:
        return "worker-hub", payload["error_code"], payload.get("error_message", ""), "error"
    if kind.startswith("worker.") and payload["status"] == "failed" and payload["error_code"] != R.JOB_CANCELLED:
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
