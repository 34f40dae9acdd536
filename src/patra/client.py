"""The reference client of `POST /events`: takes events one by one and reports the result of each.

This is how an SDK must behave (§3.8.6, §3.8.7), small enough to be read as its documentation:

- Events wait in one queue, in order, and go out in batches of at most 100. An event is written down when it is queued:
  whatever becomes of the object afterwards, every attempt sends the same. A batch keeps its `batchId` and its events
  for as long as it is retried, so that sending it again can never count anything twice.
- Only one batch is under way at a time: what an app did first is what the server sees first.
- 200: every item is answered. Those that are `rejected` and `retryable` go back to the front of the queue, in order,
  under their old `batchId` and no other; `accepted`, `duplicate` and other `rejected` items are never sent again.
- 400, 401, 403, 413, 415: sending the same again is of no use. The batch is given up, and its events are answered with
  the code of the refusal. So is an event that is too large for any batch, without being sent.
- 503, whatever else a server or a proxy in front of it says (a 404 in the middle of a deployment, the ACK of another
  batch), or no answer in time: the same events are sent again, after `Retry-After` if there is one (seconds or a date,
  an hour at most), else after a pause that doubles each time and varies, so that clients do not come back together.
"""

import gzip
import random
import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import msgspec
import urllib3

MAX_BATCH_EVENTS = 100
MAX_BATCH_BYTES = 900 * 1024  # of a batch before compression
TAKEN_BYTES = 1024 * 1024  # of a batch by the server
ANSWER_BYTES = 4 * TAKEN_BYTES  # of an answer, which repeats the ids of the events
COMPRESS_FROM_BYTES = 1024  # bytes from which compressing pays
PAUSES = (0.5, 60.0)  # seconds: the first, and the longest
MAX_RETRY_AFTER_S = 3600.0  # seconds that a server may ask for
ROUTE_HEADER = "Patra-Route"  # the same in all requests of a client: a balancer sends them to one intake
USELESS = frozenset({400, 401, 403, 413, 415})


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one event: the item of the ACK, or the code of the refusal of its batch."""

    event: dict[str, Any]
    status: str
    code: str
    server_event_key: str | None = None


class _Item(msgspec.Struct, frozen=True):
    retryable: bool
    eventIndex: int  # noqa: N815  names of the specification
    ackStatus: Literal["accepted", "duplicate", "rejected"]  # noqa: N815
    ackReasonCode: str  # noqa: N815
    serverEventKey: str  # noqa: N815


class Ack(msgspec.Struct, frozen=True):
    batchId: str  # noqa: N815
    ackItems: list[_Item]  # noqa: N815

    def answers(self, batch: "Batch") -> bool:
        """Whether it answers for these events, item by item, and not for those of another sender."""
        places = [item.eventIndex for item in self.ackItems]
        return self.batchId == batch.batch_id and places == list(range(len(batch.events)))


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""


class QueuedEvent(msgspec.Struct, frozen=True):
    """An event, and its JSON as it was when it was queued."""

    event: dict[str, Any]
    body: bytes


class Reply(msgspec.Struct, frozen=True):
    status: int
    retry_after: str
    body: bytes


class Batch(msgspec.Struct):
    """Events that go out together, under one id, for as long as it takes."""

    batch_id: str
    events: list[QueuedEvent]
    attempts: int = 0


class Client:
    """Sends events of one app, in order, from one thread.

        client = Client("https://patra.example", app_id="shop", key="pk_…", on_answer=print)
        client.add({"eventId": "e1", "eventType": "click", "eventAt": "2026-01-01T00:00:00Z", "eventVersion": "1",
                    "traceKey": "t1", "requestKey": "r1", "attemptKey": "a1", "opportunityKey": "o1",
                    "responseReference": "ref1", "renderAttemptId": "ra1", "clickTarget": "shop"})
        client.flush()

    `add` only queues; `flush` sends until the queue is empty; `send_once` makes one attempt and says how long to wait
    before the next. A queue that is full refuses the event: an SDK then drops its oldest diagnostics, never silently.
    """

    _useless = USELESS

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
        self._headers = {"Content-Type": "application/json", ROUTE_HEADER: uuid.uuid4().hex}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._sdk_version = sdk_version
        self._on_answer = on_answer or _nobody
        self._most_waiting = most_waiting
        self._sleep = sleep
        self._timeout = timeout
        self._http = urllib3.PoolManager(maxsize=1, retries=False, timeout=timeout)
        self._waiting: deque[QueuedEvent] = deque()
        self._underway: deque[Batch] = deque()
        self._answers: deque[Answer] = deque()

    def add(self, event: dict[str, Any]) -> bool:
        """Queue an event; False when the queue is full. Raises TypeError or ValueError where it has no JSON form."""
        if len(self._waiting) >= self._most_waiting:
            return False
        self._waiting.append(QueuedEvent(event, msgspec.json.encode(event)))
        return True

    def flush(self, seconds: float | None = None) -> bool:
        """Send everything that waits, for at most so many seconds; gives whether nothing is left.

        Without a bound it takes as long as it takes. An attempt that is under way when the time is over is waited for.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while self._waiting or self._underway or self._answers:
            pause = self.send_once()
            if until is not None and time.monotonic() + pause > until:
                return not (self._waiting or self._underway or self._answers)
            self._sleep(pause)
        return True

    def send_once(self) -> float:
        """Send the oldest batch once; gives the seconds to wait before the next attempt."""
        self._tell()
        batch = self._next_batch()
        pause = 0.0 if batch is None else self._send(batch)
        self._tell()
        return pause

    def _send(self, batch: Batch) -> float:
        body = self._body(batch)
        if len(body) > TAKEN_BYTES:
            return self._give_up(batch, "f_body_too_large")
        try:
            reply = self._post(body)
        except urllib3.exceptions.HTTPError:
            return self._pause(batch, None)
        ack = _decode_body(reply.body, Ack)
        if ack is not None and ack.answers(batch):
            return self._settle(batch, ack, reply)
        if reply.status not in self._useless:
            return self._pause(batch, reply)
        return self._give_up(batch, refusal_code(reply))

    def _post(self, body: bytes) -> Reply:
        """The answer to a batch, which has to be there in time, not only its every byte."""
        until = time.monotonic() + self._timeout
        headers = self._headers
        if len(body) >= COMPRESS_FROM_BYTES:
            body, headers = gzip.compress(body, 6), {**headers, "Content-Encoding": "gzip"}
        answer = self._http.request("POST", self._url, body=body, headers=headers, preload_content=False)
        try:
            data = _whole(answer, until)
        except BaseException:
            answer.close()
            raise
        answer.release_conn()
        return Reply(answer.status, answer.headers.get("Retry-After", ""), data)

    def close(self) -> None:
        self._http.clear()

    def _next_batch(self) -> Batch | None:
        """The batch under way, or the next events of the queue: at most 100, and not too many bytes."""
        if not self._underway and self._waiting:
            events: list[QueuedEvent] = []
            size = 0
            while self._waiting and len(events) < MAX_BATCH_EVENTS:
                size += len(self._waiting[0].body) + 1
                if events and size > MAX_BATCH_BYTES:
                    break
                events.append(self._waiting.popleft())
            self._underway.append(Batch(batch_id=str(uuid.uuid4()), events=events))
        return self._underway[0] if self._underway else None

    def _body(self, batch: Batch) -> bytes:
        return msgspec.json.encode(
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

    def _settle(self, batch: Batch, ack: Ack, reply: Reply) -> float:
        """Answer what is settled; keep, in order, what the server asks for again."""
        again: list[QueuedEvent] = []
        for queued, item in zip(batch.events, ack.ackItems, strict=True):
            if item.ackStatus == "rejected" and item.retryable:
                again.append(queued)
                continue
            said = Answer(
                event=queued.event, status=item.ackStatus, code=item.ackReasonCode, server_event_key=item.serverEventKey
            )
            self._answers.append(said)
        if again:
            batch.events = again
            return self._pause(batch, reply)
        self._underway.popleft()
        return 0.0

    def _give_up(self, batch: Batch, code: str) -> float:
        """Nobody will ever take the batch: its events are answered with the reason."""
        self._underway.popleft()
        self._answers += [Answer(event=queued.event, status="rejected", code=code) for queued in batch.events]
        return 0.0

    def _tell(self) -> None:
        """Report what is settled, each answer once: a listener that fails costs no other theirs."""
        while self._answers:
            self._on_answer(self._answers.popleft())

    def _pause(self, batch: Batch, reply: Reply | None) -> float:
        """How long to wait before the same batch is sent again; a server that says 0 is not asked without end."""
        batch.attempts += 1
        asked = _seconds(reply.retry_after) if reply is not None else None
        if asked:
            return min(asked, MAX_RETRY_AFTER_S)
        first, longest = PAUSES
        return random.uniform(0.5, 1.0) * min(longest, first * 2 ** (batch.attempts - 1))


def refusal_code(reply: Reply) -> str:
    problem = _decode_body(reply.body, _Problem)
    return (problem.code if problem else "") or f"http_{reply.status}"


def _whole(answer: urllib3.BaseHTTPResponse, until: float) -> bytes:
    data = bytearray()
    while part := answer.read1(65536):
        data += part
        if len(data) > ANSWER_BYTES or time.monotonic() > until:
            raise urllib3.exceptions.ProtocolError("the answer has no end")
    return bytes(data)


def _seconds(asked: str) -> float | None:
    """A `Retry-After` of seconds or of a date, as the seconds from now."""
    if asked.isascii() and asked.isdecimal():
        return float(asked)
    with suppress(ValueError, OverflowError):
        return max(parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
    return None


def _decode_body(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _nobody(answer: Answer) -> None:
    """Nobody asked."""
