"""Events for programs in any language: pull with a long poll, acknowledge, refuse, extend (C§3, B7)."""

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.access.actor import Actor
from patra.app.components.bus import bus_of, publisher_for, tenants_seen_by_group
from patra.app.wiring import Patra
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import VersionRange, parse_range
from patra.bus.consuming.retry_or_dead_letter import MAX_RETRY_AFTER
from patra.bus.dispatch.pull import Delivery, Nack, PullConsumers, Settled
from patra.bus.publishing.envelope import Envelope, Refused, from_wire, to_wire
from patra.bus.publishing.publish import objections
from patra.bus.publishing.publisher_tokens import Publisher
from patra.bus.publishing.submission import Submission
from patra.bus.store.groups import GroupGone
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.safety.redact import redact_text
from patra.web.api.bus.shapes import (
    AckAsked,
    Deliveries,
    ExtendAsked,
    NackAsked,
    PullAsked,
    PulledEvent,
    SettledDeliveries,
    answer,
    problem,
)
from patra.web.auth import LOCAL
from patra.web.body import read_body
from patra.web.endpoint import JSON, Request
from patra.web.problem import Problem, problem_response

POLL_SECONDS = 0.1  # between looks of a request that waits; it holds no thread meanwhile
MAX_WAITING_PULLS = 100  # of one process


class LongPolls:
    """Requests that take events, and wait for the first; only so many wait at once, since each looks at the store."""

    def __init__(self, patra: Patra) -> None:
        self._patra = patra
        self._waiting = 0

    async def pull(self, request: RawRequest) -> Response:
        body = await read_body(request, self._patra.settings.web.max_body_bytes)
        if isinstance(body, Problem):
            return problem_response(body)
        try:
            asked = msgspec.json.decode(body or b"{}", type=PullAsked)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return problem_response(Problem(400, "body_invalid", "The body is not what is asked for", str(error)))
        group, actor = request.path_params["group"], request.scope["patra.actor"]
        who = await run_in_threadpool(_consumer, self._patra, actor, group, asked.types)
        if isinstance(who, Problem):
            return problem_response(who)
        consumers = _consumers(self._patra)
        if (refused := await run_in_threadpool(_subscribe_group, consumers, group, asked, actor.name)) is not None:
            return problem_response(refused)

        def take() -> list[Delivery]:
            lease = asked.lease_seconds * SECOND
            return consumers.pull(
                group,
                asked.max,
                lease,
                tenants=who.tenants,
                seen_by_group=lambda tx: tenants_seen_by_group(self._patra, tx, group),
                by=actor.name,
            )

        try:
            found = await self._first(request, take, asked.wait_seconds)
        except GroupGone as error:
            return problem_response(Problem(404, Reason.GROUP_UNKNOWN.value, Reason.GROUP_UNKNOWN.text, str(error)))
        return Response(
            msgspec.json.encode(Deliveries(deliveries=[_pulled_event(one) for one in found])), media_type=JSON
        )

    async def _first(
        self, request: RawRequest, take: Callable[[], list[Delivery]], wait_seconds: float
    ) -> list[Delivery]:
        """What there is, or the first that comes in time; at once where too many wait already."""
        until = time.monotonic() + wait_seconds
        found = await run_in_threadpool(take)
        if found or self._waiting >= MAX_WAITING_PULLS:
            return found
        self._waiting += 1
        try:
            while not found and time.monotonic() < until and not await request.is_disconnected():
                await asyncio.sleep(POLL_SECONDS)
                found = await run_in_threadpool(take)
        finally:
            self._waiting -= 1
        return found


def acknowledge(request: Request) -> SettledDeliveries | Problem:
    asked: AckAsked = request.body

    def work(consumers: PullConsumers, group: str, who: Publisher) -> Settled | Problem:
        events: list[Envelope] = []
        submission = Submission(request.patra.clock.now(), partial(objections, bus_of(request.patra).bus.catalogue))
        for one in asked.publish:
            match from_wire(one, submission):
                case Refused() as refused:
                    return problem(refused)
                case Envelope() as envelope:
                    events.append(envelope)
        return consumers.acknowledge(group, asked.deliveries, events, who)

    return _settle_deliveries(request, work)


def refuse(request: Request) -> SettledDeliveries | Problem:
    asked: NackAsked = request.body
    nack = Nack(
        code=asked.code or Reason.HANDLER_FAILED.value,
        detail=redact_text(asked.detail),
        dead=asked.dead,
        wait=min(asked.retry_after_seconds * SECOND, MAX_RETRY_AFTER),
    )
    return _settle_deliveries(
        request,
        lambda consumers, group, who: consumers.refuse(group, dict.fromkeys(asked.deliveries, nack), by=who.name),
    )


def extend(request: Request) -> SettledDeliveries | Problem:
    asked: ExtendAsked = request.body
    lease = asked.lease_seconds * SECOND
    return _settle_deliveries(request, lambda consumers, group, _: consumers.extend(group, asked.deliveries, lease))


def _settle_deliveries(
    request: Request, work: Callable[[PullConsumers, str, Publisher], Settled | Problem]
) -> SettledDeliveries | Problem:
    request.audited = True  # one row per event, in the inbox and the dead letters: not an act of an operator
    group = request.path["group"]
    who = _consumer(request.patra, request.actor or LOCAL, group)
    if isinstance(who, Problem):
        return who
    try:
        done = work(_consumers(request.patra), group, who)
    except GroupGone as error:
        return Problem(404, Reason.GROUP_UNKNOWN.value, Reason.GROUP_UNKNOWN.text, str(error))
    if isinstance(done, Problem):
        return done
    if (refused := next((one for one in done.published if isinstance(one, Refused)), None)) is not None:
        return problem(refused)
    return SettledDeliveries(deliveries=done.deliveries, published=[answer(one) for one in done.published])


def _consumer(patra: Patra, actor: Actor, group: str, types: Collection[str] = ()) -> Publisher | Problem:
    """Who may take events of a group: an administrator, or a token that is bound to it (B7)."""
    who = publisher_for(patra, actor)
    if who is None or not who.may_consume(group):
        detail = (
            f"the token is not bound to the group {group}: name it in `groups` of [bus.publishers.{actor.name}], "
            "or make one with `patra token new publisher --group`"
        )
        refused = Refused(code=Reason.CONSUMER, place="/group", detail=detail)
        _consumers(patra).record_refusal(group, types, refused, actor.name)
        return Problem(403, Reason.CONSUMER.value, Reason.CONSUMER.text, detail)
    return who


def _consumers(patra: Patra) -> PullConsumers:
    return PullConsumers(patra.db, bus_of(patra).bus)


def _subscribe_group(consumers: PullConsumers, group: str, asked: PullAsked, by: str) -> Problem | None:
    wanted: dict[str, VersionRange] = {}
    for name, text in asked.types.items():
        versions = parse_range(text)
        if versions is None:
            detail = f"{text!r} is not a range such as `>=1,<2`"
            unreadable = Refused(code=Reason.VERSION_UNKNOWN, place="/types", detail=detail)
            consumers.record_refusal(group, asked.types, unreadable, by)
            return problem(unreadable)
        wanted[name] = versions
    refused = consumers.subscribe(group, wanted, from_beginning=asked.from_beginning, by=by)
    return None if refused is None else problem(refused)


def _pulled_event(one: Delivery) -> PulledEvent:
    event: dict[str, Any] = to_wire(one.event)
    return PulledEvent(
        delivery=one.delivery,
        event=event,
        attempt=one.attempt,
        replay=one.replay,
        lease_until=format_instant(one.lease_until),
    )
