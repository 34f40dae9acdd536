"""Every field of a batch and of its events: what it holds, an example, and what it is for (§3.8.4, §3.8.5, F2, F3).

Together with `KINDS` this is the one source of the event reference, the JSON Schemas, the OpenAPI bodies and the
TypeScript types. The intake takes its limits and forms from here too.
"""

from enum import StrEnum
from typing import Any

import msgspec

from patra.attribution.contract.event_types import KINDS, Kind

MAX_BATCH_EVENTS = 100
SCHEMA_VERSIONS = frozenset({"1", "1.0"})
ENVELOPE_REQUIRED = ("batchId", "appId", "sdkVersion", "sentAt", "schemaVersion", "events")
ID_PATTERN = r"[A-Za-z0-9._:-]{1,128}"
EVENT_ID_SCOPES = frozenset({"batch_scoped", "global_unique"})
UNIQUENESS_PATTERNS = {
    "uuid": r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    "ulid": r"[0-7][0-9A-HJKMNP-TV-Z]{25}",
}
"""What `eventIdUniqueness` may declare, and the form that every `global_unique` id of the batch must have then."""
TERMINAL_ERROR = "terminal"
"""The `errorClass` that ends a closure as a failure (F14)."""


class Form(StrEnum):
    """What a field holds."""

    ID = "id"
    TEXT = "text"
    INSTANT = "instant"
    VERSION = "version"
    ENUM = "enum"
    """One of the listed values, nothing else."""
    OPEN_ENUM = "open enum"
    """One of the listed values; another is taken and stored as `unknown`."""
    OBJECT = "object"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the contract."""

    name: str
    form: Form
    example: Any
    purpose: str
    values: tuple[str, ...] = ()


EXAMPLE_INSTANT = "2026-01-01T00:00:00Z"

FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field(name="eventId", form=Form.ID, example="e1", purpose="The event, within its `eventIdScope`."),
        Field(
            name="eventType", form=Form.ENUM, example="click", purpose="One of the eight types.", values=tuple(KINDS)
        ),
        Field(
            name="eventAt",
            form=Form.INSTANT,
            example=EXAMPLE_INSTANT,
            purpose="When it happened: at most 24 h ahead of the server, and not before the window of its type.",
        ),
        Field(name="eventVersion", form=Form.VERSION, example="1", purpose="Version of the event's contract."),
        Field(name="traceKey", form=Form.TEXT, example="t1", purpose="The trace that the event belongs to."),
        Field(name="requestKey", form=Form.TEXT, example="r1", purpose="The ad request."),
        Field(name="attemptKey", form=Form.TEXT, example="a1", purpose="The attempt of the ad request."),
        Field(name="opportunityKey", form=Form.TEXT, example="o1", purpose="The opportunity to show an ad."),
        Field(name="responseReference", form=Form.TEXT, example="ref1", purpose="First half of the closure key."),
        Field(name="renderAttemptId", form=Form.TEXT, example="ra1", purpose="Second half of the closure key."),
        Field(name="placementKey", form=Form.TEXT, example="home", purpose="Where the ad is to be shown."),
        Field(
            name="auctionChannel",
            form=Form.OPEN_ENUM,
            example="bidding",
            purpose="How the ad was sold.",
            values=tuple(sorted(KINDS["auction_started"].values)),
        ),
        Field(name="creativeId", form=Form.TEXT, example="cr1", purpose="The creative."),
        Field(name="clickTarget", form=Form.TEXT, example="shop", purpose="Where the click leads."),
        Field(
            name="interactionType",
            form=Form.OPEN_ENUM,
            example="expand",
            purpose="What the user did.",
            values=tuple(sorted(KINDS["interaction"].values)),
        ),
        Field(name="postbackType", form=Form.TEXT, example="install", purpose="What the postback reports."),
        Field(
            name="postbackStatus",
            form=Form.OPEN_ENUM,
            example="success",
            purpose="How it ended.",
            values=tuple(sorted(KINDS["postback"].values)),
        ),
        Field(
            name="errorStage",
            form=Form.OPEN_ENUM,
            example="render",
            purpose="Where it failed.",
            values=tuple(sorted(KINDS["error"].values)),
        ),
        Field(name="errorCode", form=Form.TEXT, example="E1", purpose="The code of the failure."),
        Field(
            name="errorClass",
            form=Form.OPEN_ENUM,
            example=TERMINAL_ERROR,
            purpose="`terminal` with a complete closure key ends the closure as a failure; all else is diagnostics.",
            values=(TERMINAL_ERROR,),
        ),
        Field(
            name="idempotencyKey",
            form=Form.ID,
            example="order-17",
            purpose="The dedup key of the app's own making; it goes before `eventId`. An illegal one is ignored.",
        ),
        Field(
            name="eventIdScope",
            form=Form.ENUM,
            example="batch_scoped",
            purpose="`batch_scoped` (also if absent): `eventId` is unique in its batch. `global_unique`: in its app.",
            values=tuple(sorted(EVENT_ID_SCOPES)),
        ),
        Field(
            name="extensions", form=Form.OBJECT, example={}, purpose="Anything else; kept with the attribution record."
        ),
    )
}

ENVELOPE_FIELDS: tuple[Field, ...] = (
    Field(name="batchId", form=Form.ID, example="b1", purpose="The batch; the same for every attempt to send it."),
    Field(name="appId", form=Form.ID, example="shop", purpose="The app that sends it."),
    Field(name="sdkVersion", form=Form.TEXT, example="patra-client/1", purpose="The sender; not looked at."),
    Field(name="sentAt", form=Form.INSTANT, example=EXAMPLE_INSTANT, purpose="When it was sent; not looked at."),
    Field(
        name="schemaVersion",
        form=Form.ENUM,
        example="1",
        purpose="Version of the envelope.",
        values=tuple(sorted(SCHEMA_VERSIONS)),
    ),
)
"""The fields of the envelope beside `events`, which holds 1 to 100 events, and `extensions`."""

ALWAYS_OPTIONAL = ("idempotencyKey", "eventIdScope", "extensions")


def required_fields(kind: Kind) -> tuple[str, ...]:
    return ("eventId", "eventType", "eventAt", "eventVersion", *kind.required)


def optional_fields(kind: Kind) -> tuple[str, ...]:
    """Fields that the type may carry and that have a meaning there."""
    links = () if "responseReference" in kind.required else ("responseReference",)
    renders = () if "renderAttemptId" in kind.required else ("renderAttemptId",)
    return (*links, *renders, *(("errorClass",) if kind.name == "error" else ()), *ALWAYS_OPTIONAL)


def example_event(kind: Kind, event_id: str = "e1", at: str = EXAMPLE_INSTANT) -> dict[str, Any]:
    """A valid event of the type, with its required fields and no others."""
    values = {"eventId": event_id, "eventType": kind.name, "eventAt": at}
    return {name: values.get(name, FIELDS[name].example) for name in required_fields(kind)}


def example_batch(at: str = EXAMPLE_INSTANT, *, batch_id: str = "b1", app_id: str = "shop") -> dict[str, Any]:
    """A batch with one event of each type, which is accepted as a whole at `at`."""
    envelope = {field.name: field.example for field in ENVELOPE_FIELDS}
    events = [example_event(kind, f"e{number}", at) for number, kind in enumerate(KINDS.values(), start=1)]
    return {**envelope, "batchId": batch_id, "appId": app_id, "sentAt": at, "events": events}


def sample_events(at: str, run: str) -> list[dict[str, Any]]:
    """The example of every type under keys of its own, so that each run bills one impression and one click."""
    links = ("traceKey", "requestKey", "attemptKey", "opportunityKey", "responseReference", "renderAttemptId")
    prefixes = {"responseReference": "ref", "renderAttemptId": "ra"}
    own = {name: f"{prefixes.get(name, name.removesuffix('Key'))}-{run}" for name in links}
    events = (example_event(kind, f"{kind.name}-{run}", at) for kind in KINDS.values())
    return [{name: own.get(name, value) for name, value in event.items()} for event in events]
