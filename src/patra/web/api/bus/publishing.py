"""Publishes the envelopes of a request and answers each by itself (B1)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.access.actor import Actor
from patra.app.access.audit import audit
from patra.app.components.bus import bus_of, completion_for, publisher_for
from patra.app.wiring import Patra
from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.cloudevents import BATCH, STRUCTURED, from_binary, from_structured, is_binary, legible_event
from patra.bus.publishing.envelope import Envelope, Refused, decode, from_wire, legible
from patra.bus.publishing.foreign_cloudevents import Completion
from patra.bus.publishing.json_text import UNREADABLE, decode_json
from patra.bus.publishing.publish import MAX_ENVELOPE_BYTES, Outcome, Published, objections
from patra.bus.publishing.publisher_tokens import Publisher
from patra.bus.publishing.submission import Submission
from patra.kernel.db import Tx
from patra.web.api.bus.shapes import MAX_PAGE_ROWS, Answers, answer, problem
from patra.web.body import read_body
from patra.web.endpoint import JSON
from patra.web.problem import Problem, problem_response

ACT = "bus.publish"


async def publish(patra: Patra, request: RawRequest) -> Response:
    body = await read_body(request, max(MAX_ENVELOPE_BYTES * 2, patra.settings.web.max_body_bytes))
    if isinstance(body, Problem):
        return problem_response(body)
    headers = dict(request.headers)
    actor: Actor = request.scope["patra.actor"]
    who = publisher_for(patra, actor)
    if who is None:  # a token of another name than the settings bind, after they changed
        return problem_response(
            Problem(403, Reason.PUBLISHER.value, Reason.PUBLISHER.text, "the token is bound to no producer")
        )
    return await run_in_threadpool(_publish_body, patra, actor, who, headers, body)


def _publish_body(patra: Patra, actor: Actor, who: Publisher, headers: dict[str, str], body: bytes) -> Response:
    bus = bus_of(patra).bus
    submission = Submission(patra.clock.now(), partial(objections, bus.catalogue))
    read = _read(headers, body, submission, completion_for(patra, who))
    if isinstance(read, Refused):
        patra.db.run(lambda tx: bus.refuse(tx, [(legible(None), read)], by=who.name))
        return problem_response(problem(read))
    if isinstance(read, Problem):
        return problem_response(read)
    several, found = read
    good = [one for one in found if isinstance(one, Envelope)]
    if broken := bus_of(patra).hindrance({one.event_type for one in good}):
        title = "This process has another contract than the one in force; nothing was published"
        return problem_response(Problem(503, broken.code.value, title, str(broken)))
    unread = _unread(headers, body, found, several=several)

    def work(tx: Tx) -> list[Outcome]:
        bus.refuse(tx, unread, by=who.name)
        done = bus.publish_many(tx, good, publisher=who) if good else []
        _audit(tx, actor, good, done, patra.clock.now())
        return done

    answered = iter(patra.db.run(work) if found else [])
    outcomes: list[Outcome] = [one if isinstance(one, Refused) else next(answered) for one in found]
    if not several and isinstance(refused := outcomes[0], Refused):
        return problem_response(problem(refused))
    status = 200 if all(isinstance(o, Published) for o in outcomes) else 207
    content = Answers(events=[answer(o) for o in outcomes])
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def _audit(tx: Tx, actor: Actor, asked: Sequence[Envelope], done: Sequence[Outcome], now: int) -> None:
    """One row for what a request published; what was refused stands among the refusals of the bus, with who asked."""
    published = [one for one, outcome in zip(asked, done, strict=True) if isinstance(outcome, Published)]
    if published:
        types = sorted({one.event_type for one in published})
        detail = {"events": len(published), "types": types, "tenants": sorted({one.tenant_id for one in published})}
        audit(tx, actor, ACT, published[0].event_id, detail, now)


def _unread(
    headers: dict[str, str], body: bytes, found: Sequence[Envelope | Refused], *, several: bool
) -> list[tuple[Envelope, Refused]]:
    """Each that is not an envelope, with what is legible of it (A4)."""
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


def _read(
    headers: dict[str, str], body: bytes, submission: Submission, complete: Completion
) -> tuple[bool, Sequence[Envelope | Refused]] | Refused | Problem:
    """Whether there are several, and each as an envelope or why not; too many are not looked at."""
    media = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if is_binary(headers):
        return False, [from_binary(headers, body, submission, complete)]
    if media == JSON and not body.lstrip().startswith(b"["):
        return False, [decode(body, submission)]
    try:
        raw = decode_json(body)
    except UNREADABLE as error:
        return Refused(code=Reason.ENVELOPE_MALFORMED, place="", detail=f"not JSON: {error}")
    if _count(raw) > MAX_PAGE_ROWS:
        return Problem(413, "too_many_events", f"At most {MAX_PAGE_ROWS} events at once")
    match media, raw:
        case "application/json", list():
            return True, [from_wire(one, submission) for one in raw]  # pyright: ignore[reportUnknownVariableType]
        case "application/cloudevents-batch+json", list():
            return True, [from_structured(one, submission, complete) for one in raw]  # pyright: ignore[reportUnknownVariableType]
        case "application/cloudevents+json", _:
            return False, [from_structured(raw, submission, complete)]
        case _:
            known = f"{JSON}, {STRUCTURED}, {BATCH}, or CloudEvents in binary mode"
            return Refused(code=Reason.ENVELOPE_MALFORMED, place="", detail=f"send {known}")


def _count(raw: Any) -> int:
    return len(cast("list[Any]", raw)) if isinstance(raw, list) else 1
