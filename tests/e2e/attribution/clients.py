"""Clients of `POST /events` for proofs and tests: they build events, send them over keep-alive, and keep every answer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
import urllib3

PATIENCE = 60.0


def instant(at: float | None = None) -> str:
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event(kind: str, attempt: str, number: str, **fields: Any) -> dict[str, Any]:
    """One event on the render attempt `attempt`; its idempotency key is `number`."""
    own = {
        "ad_filled": {"creativeId": "cr-1"},
        "impression": {"creativeId": "cr-1"},
        "click": {"clickTarget": "https://shop.example/1"},
        "interaction": {"interactionType": "expand"},
        "error": {"errorStage": "render", "errorCode": "timeout", "errorClass": "terminal"},
    }[kind]
    return {
        "eventId": f"ev-{number}",
        "idempotencyKey": number,
        "eventType": kind,
        "eventAt": instant(),
        "traceKey": f"tr-{attempt}",
        "requestKey": f"rq-{attempt}",
        "attemptKey": "at-1",
        "opportunityKey": f"op-{attempt}",
        "responseReference": f"rr-{attempt}",
        "renderAttemptId": "ra-1",
        "eventVersion": "1",
        **own,
        **fields,
    }


def body(batch_id: str, events: list[dict[str, Any]], app: str = "reader-ios") -> bytes:
    return msgspec.json.encode(
        {
            "batchId": batch_id,
            "appId": app,
            "sdkVersion": "4.2.0",
            "sentAt": instant(),
            "schemaVersion": "1.0",
            "events": events,
        }
    )


class Answers:
    """The answer to every event, by its idempotency key, from any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.told: dict[str, list[tuple[str, str]]] = {}
        self.sources: dict[str, str] = {}
        self.acks: dict[str, dict[str, Any]] = {}
        """The last answer to every batch, by its id."""
        self.statuses: Counter[int] = Counter()
        self.trouble: list[str] = []

    def keep(self, events: list[dict[str, Any]], answer: bytes) -> None:
        ack = msgspec.json.decode(answer)
        items = ack["ackItems"]
        assert [item["eventIndex"] for item in items] == list(range(len(events)))
        with self._lock:
            self.acks[ack["batchId"]] = ack
            for sent, item in zip(events, items, strict=True):
                key = sent["idempotencyKey"]
                self.told.setdefault(key, []).append((item["ackStatus"], item["ackReasonCode"]))
                self.sources[key] = item["serverEventKey"]

    def note(self, status: int, detail: str = "") -> None:
        with self._lock:
            self.statuses[status] += 1
            if detail:
                self.trouble.append(detail)

    def accepted(self, key: str) -> int:
        return sum(status == "accepted" for status, _ in self.told.get(key, ()))


def post(pool: urllib3.PoolManager, url: str, batch: bytes) -> urllib3.BaseHTTPResponse:
    return pool.request(
        "POST",
        f"{url}/events",
        body=batch,
        headers={"Content-Type": "application/json"},
        retries=False,
        timeout=PATIENCE,
    )
