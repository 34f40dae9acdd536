"""The HTTP interface of the bus: events, CloudEvents, and acts of operators (B1, C§6).

`POST /bus/events` takes our envelope, a list of envelopes, or CloudEvents 1.0 in structured, batch or binary mode; what
is refused is answered with its code and place.

| file | in | out |
|---|---|---|
| shapes | structs of the bus | what is read and written on the wire |
| publishing | headers and body | published events, each answered |
| flow | the catalogue, recent counts | who sends what to whom, and how fast |
| group_detail | a group | what waits and fails in it |
| events | a key, or a filter | events of the log and what happened to them |
| reading | filters | groups, dead letters, refusals, contracts |
| pulling | a group's pull, ack, nack and extend | events under leases, and what became of them |
| over_time | filters | how many dead letters failed when |
| beside | a dead letter | the last handled event of its type, and what its cause shares |
| acting | an act of an operator | its result and its audit row |
| bulk | a query over dead letters | causes, a preview, an act on all of them, its progress |
"""

from typing import Any

from patra.app.access.actor import Role
from patra.app.wiring import Patra
from patra.web.api.bus import acting, beside, bulk, events, flow, group_detail, over_time, pulling, reading
from patra.web.api.bus.publishing import ACT, publish
from patra.web.api.bus.shapes import (
    AckAsked,
    Answers,
    Changed,
    Deliveries,
    DiscardAsked,
    ExtendAsked,
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
    NackAsked,
    PullAsked,
    Reasoned,
    RefusalQuery,
    Refusals,
    ReplayAsked,
    RotateAsked,
    Rotated,
    SettledDeliveries,
    StageAsked,
    Stages,
    StageState,
    Types,
)
from patra.web.endpoint import Endpoint, EndpointGroup

TAG = "bus"


def routes(patra: Patra) -> list[Endpoint]:
    group = EndpointGroup(TAG)
    get, post = group.get, group.post
    unknown = {404: "there is no such thing"}
    return [
        Endpoint(
            method="POST",
            path="/bus/events",
            raw=lambda request: publish(patra, request),
            role=Role.PUBLISHER,
            summary="Publish events: our envelope or CloudEvents 1.0",
            description="One, a list, or CloudEvents in structured, batch or binary mode. What is refused is answered "
            "with its code and place.",
            tag=TAG,
            act=ACT,
            response=Answers,
            also={207: "several events, of which some are refused: each is answered for itself"},
            problems={
                400: "the message is refused",
                403: "not allowed to this publisher",
                409: "the key or the type does not allow it",
            },
        ),
        *events.routes(TAG),
        get("/bus/catalogue", reading.types, "Every event type", Types, shared=True),
        get("/bus/catalogue/asyncapi", reading.asyncapi, "The catalogue as AsyncAPI 3", Any, shared=True),
        get(
            "/bus/catalogue/{type}",
            reading.one_type,
            "One event type as a page",
            bytes,
            media="text/markdown",
            problems=unknown,
            shared=True,
        ),
        get("/bus/groups", reading.all_groups, "Consumer groups, their subscriptions and lag", Groups),
        get("/bus/health", reading.health, "Frozen types, dead letters, paused groups", Health),
        get(
            "/bus/refusals",
            reading.refusals,
            "Publishes that were refused",
            Refusals,
            query=RefusalQuery,
            tenant_query="tenant_id",
        ),
        *flow.routes(TAG),
        *group_detail.routes(TAG),
        *bulk.routes(),
        *over_time.routes(TAG),
        *beside.routes(TAG),
        get("/bus/dead-letters", reading.letters, "Dead letters", Letters, query=LetterQuery, tenant_query="tenant_id"),
        get(
            "/bus/dead-letters/{group}/{event_id}",
            reading.letter,
            "One dead letter, with its payload held against the schema",
            LetterDetail,
            problems=unknown,
            tenant_of=reading.tenant_of_letter,
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
            "Pause the delivery of events to a group",
            response=Changed,
            problems=unknown,
        ),
        post(
            "/bus/groups/{group}/resume",
            acting.resume,
            "bus.resume",
            "Resume the delivery of events to a group",
            response=Changed,
            problems=unknown,
        ),
        Endpoint(
            method="POST",
            path="/bus/groups/{group}/pull",
            raw=pulling.LongPolls(patra).pull,
            role=Role.PUBLISHER,
            summary="Take events of a consumer group, each under a lease; waits for the first",
            description="The first pull subscribes the group. `ack`, `nack` and `extend` answer for what was taken.",
            tag=TAG,
            act="bus.pull",
            request=PullAsked,
            response=Deliveries,
            seconds=90,
            problems={400: "no such type or version", 403: "not allowed to this token"},
        ),
        *[
            post(
                f"/bus/groups/{{group}}/{name}",
                handler,
                f"bus.{name}",
                summary,
                role=Role.PUBLISHER,
                request=body,
                response=SettledDeliveries,
                problems={403: "not allowed to this token", 404: "there is no such group"},
            )
            for name, handler, summary, body in (
                ("ack", pulling.acknowledge, "Events are handled; publish what follows with it", AckAsked),
                ("nack", pulling.refuse, "Events failed: retry them later, or never", NackAsked),
                ("extend", pulling.extend, "Hold on to events that take longer", ExtendAsked),
            )
        ],
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
        get("/bus/stages", acting.stages, "New major versions and how far they have come", Stages),
        post(
            "/bus/types/{type}/stage",
            acting.set_stage,
            "bus.stage",
            "Move the newest major version of a type to another stage",
            request=StageAsked,
            response=StageState,
            problems={400: "it cannot go there from where it is"},
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
        post(
            "/bus/webhooks/{name}/rotate",
            acting.rotate_hook,
            "bus.webhook.rotate",
            "Give an endpoint a new secret; the old one signs along for a while",
            request=RotateAsked,
            response=Rotated,
            role=Role.ADMIN,
            problems=unknown,
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
