"""What goes in and out of the bus's HTTP interface; instants are RFC 3339 (A1)."""

from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from patra.bus.envelope import Refused
from patra.bus.publish import Outcome, Published
from patra.bus.reasons import R
from patra.bus.schema import Violation
from patra.kernel.clock import format_instant
from patra.web.problem import Problem

MOST = 1000
CONFLICTS = {R.IDEMPOTENCY_CONFLICT, R.EVENT_ID_REUSED, R.TYPE_FROZEN, R.LETTER_NOT_OPEN, R.WEBHOOK_EXISTS}
UNKNOWN = {R.LETTER_UNKNOWN, R.GROUP_UNKNOWN}
T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one event: its id, or a code with the place in the envelope."""

    event_id: str | None = None
    duplicate: bool = False
    code: str | None = None
    place: str | None = None
    detail: str | None = None


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of the request."""

    events: list[Answer]


class TypeSummary(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    title: str
    producer: str
    consumers: list[str]
    versions: dict[str, str]
    ordered: bool


class Types(msgspec.Struct, frozen=True, kw_only=True):
    types: list[TypeSummary]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """How a group fares; `oldest` is when the oldest event that it has not handled was published."""

    name: str
    state: str
    waiting: int
    failing: int
    held: int
    dead: int
    oldest: str | None
    subscriptions: dict[str, list[str]]


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    groups: list[Group]


class FreezeState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a type can be published, since when, why, by whom."""

    event_type: str
    state: str
    since: str
    reason: str
    by: str
    tolerated: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What needs a hand; `troubles` in words."""

    frozen: list[FreezeState]
    dead_letters: dict[str, int]
    troubles: list[str]


class Letters(msgspec.Struct, frozen=True, kw_only=True):
    """The latest to fail first; `next` is the `before` of the next page."""

    dead_letters: list[dict[str, Any]]
    next: str | None


class LetterDetail(msgspec.Struct, frozen=True, kw_only=True):
    dead_letter: dict[str, Any]
    violations: list[Violation]


class LetterQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    group: Annotated[str, Meta(description="Only letters of this consumer group.")] = ""
    type: Annotated[str, Meta(description="Only letters of this event type.")] = ""
    event_id: Annotated[str, Meta(description="Only letters of this event.")] = ""
    error_code: Annotated[str, Meta(description="Only letters with this error code.")] = ""
    trace_id: Annotated[str, Meta(description="Only letters of this trace.")] = ""
    tenant_id: Annotated[str, Meta(description="Only letters of this tenant.")] = ""
    state: Annotated[str, Meta(description="open (default), replaying, replayed, discarded, or all.")] = "open"
    before: Annotated[str, Meta(description="Continue after this letter_id.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST, description="How many letters to give.")] = 100


class ReplayAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which letters: by `event_ids`, or every open one of the group that `type` and `error_code` find."""

    group: str
    confirm: Annotated[str, Meta(description="The name of the group once more: the confirmation of C§6.")]
    event_ids: Annotated[list[str], Meta(max_length=MOST)] | None = None
    type: str = ""
    error_code: str = ""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = MOST


class DiscardAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    group: str
    event_ids: Annotated[list[str], Meta(min_length=1, max_length=MOST)]
    reason: str


class LetterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    letters: list[str]
    refused: dict[str, Answer]


class Reasoned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str = ""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    changed: bool


class HookAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint and the event types it wants, each with a range of versions."""

    name: str
    url: str
    types: Annotated[dict[str, str], Meta(min_length=1, description='Such as {"artifact.published": ">=1,<2"}.')]


class Hook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An endpoint; `secret` is shown once, when it is made."""

    name: str
    url: str
    group: str
    secret: str | None = None


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    webhooks: list[Hook]


class RefusalQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(description="Only refusals with this code.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 100


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A publish that was refused, and how often."""

    event_id: str
    event_type: str
    producer: str
    tenant_id: str
    trace_id: str
    idempotency_key: str
    code: str
    place: str
    detail: str
    first_at: str
    last_at: str
    count: int


class Refusals(msgspec.Struct, frozen=True, kw_only=True):
    refusals: list[Refusal]


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to an event."""

    at: str
    what: str
    event_id: str
    detail: dict[str, Any]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    entries: list[Happened]


def answer(outcome: Outcome) -> Answer:
    match outcome:
        case Published(event_id=event_id, duplicate=duplicate):
            return Answer(event_id=event_id, duplicate=duplicate)
        case Refused(code=code, place=place, detail=detail):
            return Answer(code=code.value, place=place, detail=detail)


def problem(refused: Refused) -> Problem:
    """A refusal of the bus as the one who asked sees it."""
    status = 409 if refused.code in CONFLICTS else 404 if refused.code in UNKNOWN else 400
    return Problem(status, refused.code.value, refused.code.text, refused.detail, {"place": refused.place})


def shown(value: Any, kind: type[T]) -> T:
    """A struct of the bus as one of the above: instants become text."""
    return msgspec.convert(instants(msgspec.to_builtins(value)), kind)


def instants(value: Any) -> Any:
    """Plain data with the instants in it, known by their names, as RFC 3339."""
    match value:
        case dict():
            fields = cast("dict[str, Any]", value)
            return {name: _instant(name, instants(inner)) for name, inner in fields.items()}
        case list():
            return [instants(inner) for inner in cast("list[Any]", value)]
        case _:
            return value


def _instant(name: str, value: Any) -> Any:
    is_instant = name in {"at", "since", "oldest"} or name.endswith("_at")
    return format_instant(value) if is_instant and type(value) is int else value
