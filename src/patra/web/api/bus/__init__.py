"""Events, CloudEvents and operators' words go in over HTTP; the bus's answers come out (B1, C§6).

`POST /bus/events` takes our envelope, a list of envelopes, or CloudEvents 1.0 in structured, batch or binary mode; what
is refused is answered with its code and place.

| file | in | out |
|---|---|---|
| shapes | structs of the bus | what is read and written on the wire |
| publishing | headers and body | published events, each answered |
| reading | questions | events, groups, dead letters, contracts |
| acting | an operator's word | the act and its audit row |
"""

from collections.abc import Callable
from typing import Any

from patra.app.actor import Role
from patra.app.wiring import Patra
from patra.web.api.bus import acting, reading
from patra.web.api.bus.publishing import publish
from patra.web.api.bus.shapes import (
    Answers,
    Changed,
    DiscardAsked,
    FreezeState,
    Groups,
    Health,
    Hook,
    HookAsked,
    Hooks,
    LetterAnswer,
    LetterDetail,
    LetterQuery,
    Letters,
    Reasoned,
    RefusalQuery,
    Refusals,
    ReplayAsked,
    Timeline,
    Types,
)
from patra.web.endpoint import Endpoint, Request

TAG = "bus"


def routes(patra: Patra) -> list[Endpoint]:
    def get(path: str, handler: Callable[[Request], Any], summary: str, response: Any, **more: Any) -> Endpoint:
        return Endpoint(
            method="GET",
            path=path,
            handler=handler,
            role=Role.VIEWER,
            summary=summary,
            response=response,
            tag=TAG,
            **more,
        )

    def post(path: str, handler: Callable[[Request], Any], act: str, summary: str, **more: Any) -> Endpoint:
        role = more.pop("role", Role.OPERATOR)
        return Endpoint(method="POST", path=path, handler=handler, role=role, summary=summary, act=act, tag=TAG, **more)

    unknown = {404: "there is no such thing"}
    return [
        Endpoint(
            method="POST",
            path="/bus/events",
            raw=lambda request: publish(patra, request),
            role=Role.OPERATOR,
            summary="Publish events: our envelope or CloudEvents 1.0",
            description=__doc__ or "",
            tag=TAG,
            act="bus.publish",
            response=Answers,
            also={207: "several events, of which some are refused: each is answered for itself"},
            problems={400: "the message is refused", 409: "the key or the type does not allow it"},
        ),
        get(
            "/bus/events/{key}",
            reading.events_by_key,
            "Events by event_id, trace_id or correlation_id, as CloudEvents",
            Any,
        ),
        get("/bus/timeline/{key}", reading.timeline_of, "What happened to an event or a trace, in order", Timeline),
        get("/bus/catalogue", reading.types, "Every event type", Types),
        get("/bus/catalogue/asyncapi", reading.asyncapi, "The catalogue as AsyncAPI 3", Any),
        get(
            "/bus/catalogue/{type}",
            reading.one_type,
            "One event type as a page",
            bytes,
            media="text/markdown",
            problems=unknown,
        ),
        get("/bus/groups", reading.all_groups, "Consumer groups, their subscriptions and lag", Groups),
        get("/bus/health", reading.health, "Frozen types, dead letters, paused groups", Health),
        get("/bus/refusals", reading.refusals, "Publishes that were refused", Refusals, query=RefusalQuery),
        get("/bus/dead-letters", reading.letters, "Dead letters", Letters, query=LetterQuery),
        get(
            "/bus/dead-letters/{group}/{event_id}",
            reading.letter,
            "One dead letter, with its payload held against the schema",
            LetterDetail,
            problems=unknown,
        ),
        post(
            "/bus/replay",
            acting.replay,
            "bus.replay",
            "Replay dead letters to the group that failed",
            request=ReplayAsked,
            response=LetterAnswer,
            problems={400: "not confirmed by name", 404: "there is no such group"},
        ),
        post(
            "/bus/discard",
            acting.discard,
            "bus.discard",
            "Discard dead letters, with a reason",
            request=DiscardAsked,
            response=LetterAnswer,
        ),
        post(
            "/bus/groups/{group}/pause",
            acting.pause,
            "bus.pause",
            "Hand no events to a group",
            response=Changed,
            problems=unknown,
        ),
        post(
            "/bus/groups/{group}/resume",
            acting.resume,
            "bus.resume",
            "Go on handing events to a group",
            response=Changed,
            problems=unknown,
        ),
        post(
            "/bus/types/{type}/freeze",
            acting.freeze,
            "bus.freeze",
            "Freeze publishing of a type",
            request=Reasoned,
            response=FreezeState,
            problems=unknown,
        ),
        post(
            "/bus/types/{type}/thaw", acting.thaw, "bus.thaw", "Lift a freeze", response=FreezeState, problems=unknown
        ),
        get("/bus/webhooks", acting.hooks, "Endpoints that events are sent to", Hooks),
        post(
            "/bus/webhooks",
            acting.add_hook,
            "bus.webhook.add",
            "Send events to an endpoint",
            request=HookAsked,
            response=Hook,
            role=Role.ADMIN,
            status=201,
            problems={409: "there is a webhook of this name already"},
        ),
        Endpoint(
            method="DELETE",
            path="/bus/webhooks/{name}",
            handler=acting.remove_hook,
            role=Role.ADMIN,
            summary="Forget an endpoint",
            act="bus.webhook.remove",
            tag=TAG,
            response=Changed,
            problems=unknown,
        ),
    ]
