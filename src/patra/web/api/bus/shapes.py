"""Request and response bodies of the bus's HTTP interface; instants are RFC 3339 (A1)."""

from typing import Annotated, Any, TypeVar, cast

import msgspec
from msgspec import Meta

from patra.bus.catalogue.reasons import NOT_ADOPTED, Reason
from patra.bus.catalogue.schema import Violation
from patra.bus.publishing.envelope import Refused
from patra.bus.publishing.publish import Outcome, Published
from patra.kernel.clock import format_instant
from patra.kernel.safety.redact import redact
from patra.web.problem import Problem

MAX_PAGE_ROWS = 1000
CONFLICTS = {
    Reason.IDEMPOTENCY_CONFLICT,
    Reason.EVENT_ID_REUSED,
    Reason.TYPE_FROZEN,
    Reason.LETTER_NOT_OPEN,
    Reason.WEBHOOK_EXISTS,
}
UNKNOWN = {Reason.LETTER_UNKNOWN, Reason.GROUP_UNKNOWN, Reason.BULK_ACT_UNKNOWN}
T = TypeVar("T")


class Defect(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with an event."""

    code: str
    place: str
    detail: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one event: its id, or a code with the place in the envelope."""

    event_id: str | None = None
    duplicate: bool = False
    code: str | None = None
    place: str | None = None
    detail: str | None = None
    errors: list[Defect] = []


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
    """`absent` are groups that the catalogue lists and that never subscribed here, with the types they would get."""

    groups: list[Group]
    absent: dict[str, list[str]] = {}


class FreezeState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a type can be published, since when, why, by whom."""

    event_type: str
    state: str
    since: str
    reason: str
    by: str
    tolerated: int


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What needs a hand; `troubles` in words. A type freezes when it has more dead letters than `freezes_at` says."""

    frozen: list[FreezeState]
    dead_letters: dict[str, int]
    freezes_at: dict[str, int]
    troubles: list[str]


class Letters(msgspec.Struct, frozen=True, kw_only=True):
    """The latest to fail first; `next` is the `before` of the next page."""

    dead_letters: list[dict[str, Any]]
    next: str | None


class LetterDetail(msgspec.Struct, frozen=True, kw_only=True):
    dead_letter: dict[str, Any]
    violations: list[Violation]


class LetterFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: every part that is given must hold."""

    group: Annotated[str, Meta(description="Only dead letters of this consumer group.")] = ""
    type: Annotated[str, Meta(description="Only dead letters of this event type.")] = ""
    event_id: Annotated[str, Meta(description="Only dead letters of this event.")] = ""
    error_code: Annotated[str, Meta(description="Only dead letters with this error code.")] = ""
    trace_id: Annotated[str, Meta(description="Only dead letters of this trace.")] = ""
    tenant_id: Annotated[str, Meta(description="Only dead letters of this tenant.")] = ""
    error_shape: Annotated[str, Meta(description="Only dead letters with this error, as they are grouped.")] = ""
    state: Annotated[str, Meta(description="open (default), replaying, replayed, discarded, or all.")] = "open"
    since: Annotated[str, Meta(description="Only those that last failed at this instant or later.")] = ""
    until: Annotated[str, Meta(description="Only those that last failed before this instant.")] = ""


class LetterQuery(LetterFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    before: Annotated[str, Meta(description="Continue after this letter_id.")] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS, description="How many dead letters to give.")] = 100


class ReplayAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which dead letters: by `event_ids`, or every open one of the group that `type` and `error_code` find."""

    group: str
    confirm: Annotated[str, Meta(description="The name of the group once more: the confirmation of C§6.")]
    event_ids: Annotated[list[str], Meta(max_length=MAX_PAGE_ROWS)] | None = None
    type: str = ""
    error_code: str = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ROWS)] = MAX_PAGE_ROWS


class DiscardAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    group: str
    event_ids: Annotated[list[str], Meta(min_length=1, max_length=MAX_PAGE_ROWS)]
    reason: str


class LetterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    letters: list[str]
    refused: dict[str, Answer]


class StageAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the newest major version of a type goes; `tenants` or `share` (percent) with `dual`."""

    stage: Annotated[str, Meta(pattern="^(shadow|dual|retiring)$")]
    tenants: list[str] = []
    share: Annotated[int, Meta(ge=0, le=100)] = 0


class StageState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a new major version has come (B8)."""

    event_type: str
    major: int
    stage: str
    tenants: list[str]
    share: int
    changed_by: str
    changed_at: str


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    stages: list[StageState]


class Reasoned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: str = ""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    changed: bool


class HookAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An endpoint and the event types it wants, each with a range of versions."""

    name: str
    url: str
    types: Annotated[dict[str, str], Meta(min_length=1, description='Such as {"artifact.published": ">=1,<2"}.')]
    tenants: Annotated[list[str], Meta(description="Only events of these tenants; empty: of all.")] = []


class Hook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An endpoint; `secret` is shown once, when it is made."""

    name: str
    url: str
    group: str
    secret: str | None = None
    tenants: list[str] = []
    last_success_at: str | None = None
    suspended_at: str | None = None
    suspended_reason: str = ""


class RotateAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For how long the old secret signs along with the new one."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=30 * 86400)] = 86400


class Rotated(msgspec.Struct, frozen=True, kw_only=True):
    """The new secret, shown this once."""

    secret: str


class Hooks(msgspec.Struct, frozen=True, kw_only=True):
    webhooks: list[Hook]


class RefusalQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: Annotated[str, Meta(description="Only refusals with this code.")] = ""
    tenant_id: Annotated[str, Meta(description="Only refusals of events that name this tenant.")] = ""
    before: Annotated[int, Meta(ge=0, le=2**62, description="Only older ones: the `next` of the page before.")] = 2**62
    limit: Annotated[
        int, Meta(ge=1, le=MAX_PAGE_ROWS, description="How many; those of the last instant are given all the same.")
    ] = 100


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
    published_by: str | None = None


class Refusals(msgspec.Struct, frozen=True, kw_only=True):
    """The latest first; `next` is the `before` of the next page."""

    refusals: list[Refusal]
    next: int | None = None


MAX_PULLED_EVENTS = 1000


class PullAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which events a group wants (once is enough), how many at most, and how long the answer may wait for the first."""

    types: Annotated[dict[str, str], Meta(description='Such as {"artifact.published": ">=1,<2"}.')] = {}
    max: Annotated[int, Meta(ge=1, le=MAX_PULLED_EVENTS)] = 10
    wait_seconds: Annotated[float, Meta(ge=0, le=60)] = 0
    lease_seconds: Annotated[int, Meta(ge=1, le=3600, description="How long the events are the caller's.")] = 60
    from_beginning: Annotated[bool, Meta(description="A new group begins at the oldest event that is kept.")] = False


class PulledEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the caller's hands until `lease_until`; `delivery` is what ack, nack and extend name."""

    delivery: str
    event: dict[str, Any]
    attempt: int
    replay: bool
    lease_until: str


class Deliveries(msgspec.Struct, frozen=True, kw_only=True):
    deliveries: list[PulledEvent]


_Tokens = Annotated[list[str], Meta(min_length=1, max_length=MAX_PULLED_EVENTS)]


class AckAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The events are handled. `publish` are envelopes that exist if, and only if, the acknowledgement counts."""

    deliveries: _Tokens
    publish: Annotated[list[dict[str, Any]], Meta(max_length=MAX_PULLED_EVENTS)] = []


class NackAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The events failed: they come back by the type's retries, or with `dead` are dead letters at once."""

    deliveries: _Tokens
    code: Annotated[str, Meta(max_length=200)] = ""
    detail: Annotated[str, Meta(max_length=4000)] = ""
    dead: bool = False
    retry_after_seconds: Annotated[int, Meta(ge=0, le=86400)] = 0


class ExtendAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    deliveries: _Tokens
    lease_seconds: Annotated[int, Meta(ge=1, le=3600)] = 60


class SettledDeliveries(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each: handled, later, dead, extended, or lost: the lease ran out, and another has the event."""

    deliveries: dict[str, str]
    published: list[Answer] = []


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
        case Refused(code=code, place=place, detail=detail, others=others):
            return Answer(code=code.value, place=place, detail=detail, errors=errors(outcome) if others else [])


def errors(refused: Refused) -> list[Defect]:
    """Everything that is wrong, the first included, where there is more than one."""
    return [Defect(code=one.code.value, place=one.place, detail=one.detail) for one in (refused, *refused.others)]


def problem(refused: Refused) -> Problem:
    """A refusal of the bus as the one who asked sees it."""
    if refused.code in NOT_ADOPTED:  # the fault of this process, not of the one who asked: another may take it
        return Problem(503, refused.code.value, refused.code.text, refused.detail, {"place": refused.place})
    if refused.code in (Reason.PUBLISHER, Reason.CONSUMER):
        return Problem(403, refused.code.value, refused.code.text, refused.detail, {"place": refused.place})
    status = 409 if refused.code in CONFLICTS else 404 if refused.code in UNKNOWN else 400
    more: dict[str, Any] = {"errors": msgspec.to_builtins(errors(refused))} if refused.others else {}
    return Problem(status, refused.code.value, refused.code.text, refused.detail, {"place": refused.place, **more})


def to_shape(value: Any, kind: type[T], **more: Any) -> T:
    """A struct of the bus as one of the above, with more fields: instants become text, what people wrote is masked."""
    return msgspec.convert(mask_fields(instants(msgspec.to_builtins(value))) | more, kind)


MASKED = frozenset({"detail", "error_detail", "reason", "suspended_reason", "payload", "extensions"})
"""Fields that hold what handlers, people and senders wrote; ids are left as they are, since others ask by them."""


def mask_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Plain data without secrets and personal data in what others wrote, as the rest of the product shows it."""
    return {name: redact(value) if name in MASKED else value for name, value in fields.items()}


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
