"""The reference client of `POST /events`: events go in one by one; each is answered once its fate is known.

This is how an SDK must behave (§3.8.6, §3.8.7), small enough to be read as its documentation:

- Events wait in one queue, in order, and go out in batches of at most 100. An event is written down when it is queued:
  whatever becomes of the object afterwards, every attempt sends the same. A batch keeps its `batchId` and its events
  for as long as it is retried, so that sending it again can never count anything twice.
- Only one batch is under way at a time: what an app did first is what the server sees first.
- 200: every item is answered. Those that are `rejected` and `retryable` go back to the front of the queue, in order,
  under their old `batchId` and no other; `accepted`, `duplicate` and other `rejected` items are never sent again.
- 400, 401, 403, 413, 415: sending the same again is of no use. The batch is given up, and its events are answered with
  the code of the refusal.
- 503, whatever else a server or a proxy in front of it says (a 404 in the middle of a deployment), or no answer at all:
  the same events are sent again, after `Retry-After` if there is one (seconds or a date, an hour at most), else after a
  pause that doubles each time and varies, so that clients do not come back together.
"""

import gzip
import random
import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
import urllib3

MOST_EVENTS = 100
MOST_BYTES = 900 * 1024  # of a batch before compression; the server takes 1 MiB
LARGE = 1024  # bytes from which compressing pays
PAUSES = (0.5, 60.0)  # seconds: the first, and the longest
LONGEST = 3600.0  # seconds that a server may ask for
USELESS = frozenset({400, 401, 403, 413, 415})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event: the item of the ACK, or the code of the refusal of its batch."""

    event: dict[str, Any]
    status: str
    code: str
    server_event_key: str | None = None


class _Item(msgspec.Struct, frozen=True):
    retryable: bool
    ackStatus: str  # noqa: N815  names of the specification
    ackReasonCode: str  # noqa: N815
    serverEventKey: str  # noqa: N815


class _Ack(msgspec.Struct, frozen=True):
    ackItems: list[_Item]  # noqa: N815


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""


class _Queued(msgspec.Struct, frozen=True):
    """An event, and its JSON as it was when it was queued."""

    event: dict[str, Any]
    body: bytes


class _Batch(msgspec.Struct):
    """Events that go out together, under one id, for as long as it takes."""

    batch_id: str
    events: list[_Queued]
    attempts: int = 0


class Client:
    """Sends events of one app, in order, from one thread.

        client = Client("https://patra.example", app_id="shop", key="pk_…", on_answer=print)
        client.add({"eventId": "…", "eventType": "impression", …})
        client.flush()

    `add` only queues; `flush` sends until the queue is empty; `send_once` makes one attempt and says how long to wait
    before the next. A queue that is full refuses the event: an SDK then drops its oldest diagnostics, never silently.
    """

    def __init__(
        self,
        url: str,
        *,
        app_id: str,
        key: str | None = None,
        sdk_version: str = "patra-client/1",
        on_answer: Callable[[Answer], None] | None = None,
        most_waiting: int = 10_000,
        timeout: float = 30.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._url = f"{url.rstrip('/')}/events"
        self._app_id = app_id
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._sdk_version = sdk_version
        self._on_answer = on_answer or _nobody
        self._most_waiting = most_waiting
        self._sleep = sleep
        self._http = urllib3.PoolManager(maxsize=1, retries=False, timeout=timeout)
        self._waiting: deque[_Queued] = deque()
        self._underway: deque[_Batch] = deque()

    def add(self, event: dict[str, Any]) -> bool:
        """Queue an event; False when the queue is full. Raises TypeError or ValueError where it has no JSON form."""
        if len(self._waiting) >= self._most_waiting:
            return False
        self._waiting.append(_Queued(event, msgspec.json.encode(event)))
        return True

    def flush(self) -> None:
        """Send everything that waits, however long it takes."""
        while self._waiting or self._underway:
            self._sleep(self.send_once())

    def send_once(self) -> float:
        """Send the oldest batch once; gives the seconds to wait before the next attempt."""
        batch = self._next_batch()
        if batch is None:
            return 0.0
        body, headers = self._body(batch)
        try:
            answer = self._http.request("POST", self._url, body=body, headers=headers)
        except urllib3.exceptions.HTTPError:
            return self._pause(batch, None)
        ack = _decoded(answer.data, _Ack)
        if ack is not None and len(ack.ackItems) == len(batch.events):
            return self._settle(batch, ack, answer)
        if answer.status not in USELESS:
            return self._pause(batch, answer)
        self._underway.popleft()
        problem = _decoded(answer.data, _Problem)
        code = (problem.code if problem else "") or f"http_{answer.status}"
        for queued in batch.events:
            self._on_answer(Answer(event=queued.event, status="rejected", code=code))
        return 0.0

    def close(self) -> None:
        self._http.clear()

    def _next_batch(self) -> _Batch | None:
        """The batch under way, or the next events of the queue: at most 100, and not too many bytes."""
        if not self._underway and self._waiting:
            events: list[_Queued] = []
            size = 0
            while self._waiting and len(events) < MOST_EVENTS:
                size += len(self._waiting[0].body) + 1
                if events and size > MOST_BYTES:
                    break
                events.append(self._waiting.popleft())
            self._underway.append(_Batch(batch_id=str(uuid.uuid4()), events=events))
        return self._underway[0] if self._underway else None

    def _body(self, batch: _Batch) -> tuple[bytes, dict[str, str]]:
        body = msgspec.json.encode(
            {
                "batchId": batch.batch_id,
                "appId": self._app_id,
                "sdkVersion": self._sdk_version,
                "sentAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "schemaVersion": "1",
                "retrySequence": batch.attempts,
                "events": [msgspec.Raw(queued.body) for queued in batch.events],
            }
        )
        if len(body) < LARGE:
            return body, self._headers
        return gzip.compress(body, 6), {**self._headers, "Content-Encoding": "gzip"}

    def _settle(self, batch: _Batch, ack: _Ack, answer: urllib3.BaseHTTPResponse) -> float:
        """Answer what is settled; keep, in order, what the server asks for again."""
        again: list[_Queued] = []
        for queued, item in zip(batch.events, ack.ackItems, strict=True):
            if item.ackStatus == "rejected" and item.retryable:
                again.append(queued)
                continue
            said = Answer(
                event=queued.event, status=item.ackStatus, code=item.ackReasonCode, server_event_key=item.serverEventKey
            )
            self._on_answer(said)
        if again:
            batch.events = again
            return self._pause(batch, answer)
        self._underway.popleft()
        return 0.0

    def _pause(self, batch: _Batch, answer: urllib3.BaseHTTPResponse | None) -> float:
        """How long to wait before the same batch is sent again."""
        batch.attempts += 1
        asked = _seconds(answer.headers.get("Retry-After", "")) if answer is not None else None
        if asked is not None:
            return min(asked, LONGEST)
        first, longest = PAUSES
        return random.uniform(0.5, 1.0) * min(longest, first * 2 ** (batch.attempts - 1))


def _seconds(asked: str) -> float | None:
    """A `Retry-After` of seconds or of a date, as the seconds from now."""
    if asked.isascii() and asked.isdecimal():
        return float(asked)
    with suppress(ValueError):
        return max(parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
    return None


def _decoded(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _nobody(answer: Answer) -> None:
    """Nobody asked."""
