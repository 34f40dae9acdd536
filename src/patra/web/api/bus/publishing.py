"""A request's headers and body go in; envelopes are published, and each is answered for itself (B1)."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.bus import bus_of
from patra.app.wiring import Patra
from patra.bus.cloudevents import BATCH, STRUCTURED, from_binary, from_structured, is_binary, legible_event
from patra.bus.envelope import Envelope, Refused, decode, from_wire, legible
from patra.bus.publish import LARGEST, Outcome, Published
from patra.bus.reasons import R
from patra.kernel.db import Tx
from patra.web.api.bus.shapes import MOST, Answers, answer, problem
from patra.web.body import read_body
from patra.web.endpoint import JSON
from patra.web.problem import Problem, problem_response


async def publish(patra: Patra, request: RawRequest) -> Response:
    body = await read_body(request, max(LARGEST * 2, patra.settings.web.max_body_bytes))
    if isinstance(body, Problem):
        return problem_response(body)
    headers = dict(request.headers)
    return await run_in_threadpool(_published, patra, headers, body)


def _published(patra: Patra, headers: dict[str, str], body: bytes) -> Response:
    bus = bus_of(patra).bus
    read = _read(headers, body)
    if isinstance(read, Refused):
        patra.db.run(lambda tx: bus.refuse(tx, [(legible(None), read)]))
        return problem_response(problem(read))
    several, found = read
    if len(found) > MOST:
        return problem_response(Problem(413, "too_many_events", f"At most {MOST} events at once"))
    good = [one for one in found if isinstance(one, Envelope)]
    if broken := bus_of(patra).hindrance({one.event_type for one in good}):
        title = "This process has another contract than the one in force; nothing was published"
        return problem_response(Problem(503, broken.code.value, title, str(broken)))
    unread = _unread(headers, body, found, several=several)

    def work(tx: Tx) -> list[Outcome]:
        bus.refuse(tx, unread)
        return bus.publish_many(tx, good) if good else []

    answered = iter(patra.db.run(work) if found else [])
    outcomes: list[Outcome] = [one if isinstance(one, Refused) else next(answered) for one in found]
    if not several and isinstance(refused := outcomes[0], Refused):
        return problem_response(problem(refused))
    status = 200 if all(isinstance(o, Published) for o in outcomes) else 207
    content = Answers(events=[answer(o) for o in outcomes])
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def _unread(
    headers: dict[str, str], body: bytes, found: Sequence[Envelope | Refused], *, several: bool
) -> list[tuple[Envelope, Refused]]:
    """Each that is no envelope, with what is legible of it (A4)."""
    if all(isinstance(one, Envelope) for one in found):
        return []
    try:
        raw: Any = headers if is_binary(headers) else msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raw = None
    given = cast("list[Any]", raw) if several else [raw]
    cloud = is_binary(headers) or "cloudevents" in headers.get("content-type", "").lower()
    seen = [legible_event(one) if cloud else legible(one) for one in given]
    return [(what, one) for what, one in zip(seen, found, strict=True) if isinstance(one, Refused)]


def _read(headers: dict[str, str], body: bytes) -> tuple[bool, Sequence[Envelope | Refused]] | Refused:
    """Whether there are several, and each as an envelope or why not."""
    media = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if is_binary(headers):
        return False, [from_binary(headers, body)]
    if media == JSON and not body.lstrip().startswith(b"["):
        return False, [decode(body)]
    try:
        raw: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Refused(code=R.ENVELOPE_MALFORMED, place="", detail=f"not JSON: {error}")
    match media, raw:
        case "application/json", list():
            return True, [from_wire(one) for one in raw]  # pyright: ignore[reportUnknownVariableType]
        case "application/cloudevents-batch+json", list():
            return True, [from_structured(one) for one in raw]  # pyright: ignore[reportUnknownVariableType]
        case "application/cloudevents+json", _:
            return False, [from_structured(raw)]
        case _:
            known = f"{JSON}, {STRUCTURED}, {BATCH}, or CloudEvents in binary mode"
            return Refused(code=R.ENVELOPE_MALFORMED, place="", detail=f"send {known}")
