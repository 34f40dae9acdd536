"""Turns one event as sent into a checked event with its keys, or the code of the first check that fails.

Checks 1 to 6 of F2 (§3.8.5, §3.8.10, §3.8.12 to §3.8.14). They need nothing but the event, its envelope and the instant
at which the batch was received, so they run before any transaction.
"""

import re
from typing import Any, cast

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_fields import EVENT_ID_SCOPES, TERMINAL_ERROR, UNIQUENESS_PATTERNS
from patra.attribution.contract.event_types import KINDS, MAX_FIELD_CHARS, NA, UNKNOWN, Kind
from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.rules import LIVE_RULES, Rules
from patra.attribution.intake.checked_event import Event, encode_stored_event
from patra.attribution.intake.dedup_key import dedup_key
from patra.attribution.intake.envelope import Envelope, NotText, legal_id
from patra.attribution.intake.identity import FAILURE, Subject
from patra.kernel.clock import DAY, parse_instant

_UNIQUE = {form: re.compile(pattern).fullmatch for form, pattern in UNIQUENESS_PATTERNS.items()}

WHOLE_EVENT = "$"
"""The `fieldPath` of an event that is wrong as a whole."""
EXPECTED_TEXT = "text of 1 to 1,024 characters"
EXPECTED_VERSION = "an integer, or text of 1 to 1,024 characters"
EXPECTED_ID = "text of 1 to 128 characters of A-Z a-z 0-9 . _ : -"
EXPECTED_INSTANT = "an RFC 3339 instant with an offset, at most 24 h ahead of receivedAt"
EXPECTED_TYPE = f"one of {', '.join(sorted(KINDS))}"
EXPECTED_SCOPE = f"one of {', '.join(sorted(EVENT_ID_SCOPES))}, or nothing"
EXPECTED_UNIQUE_ID = "an id of the form that the batch declares in extensions.eventIdUniqueness: uuid or ulid"


class Rejected(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """An event that failed one of the checks 1 to 6."""

    index: int
    sent_id: Any
    app_id: str
    code: Reason
    event: Any
    lacks_reference: bool
    """It lacks the `responseReference` that its type requires: kept raw in the quarantine (F19)."""
    field: str = WHOLE_EVENT
    """The field that the check failed on."""
    expected: str = ""
    also_wrong: str = ""
    """Further required fields that are missing, for the sender to fix at once."""


def check_event(
    event: Any, index: int, envelope: Envelope, received_at: int, rules: Rules = LIVE_RULES
) -> Event | Rejected:
    """Decide checks 1 to 6 in their order; the first that fails decides."""
    if type(event) is not dict:
        return _reject_event(Reason.MISSING_REQUIRED, None, event, index, envelope, expected="a JSON object")
    fields = cast("dict[str, Any]", event)
    get = fields.get
    event_id, event_type = get("eventId"), get("eventType")

    kind = KINDS.get(event_type) if type(event_type) is str else None
    if kind is None:
        code = Reason.TYPE_UNSUPPORTED if is_text(event_type) else Reason.MISSING_REQUIRED
        return _reject_event(code, event_id, event, index, envelope, field="eventType", expected=EXPECTED_TYPE)

    sent_at, version = get("eventAt"), get("eventVersion")
    whole = type(version) is int or (type(version) is str and 0 < len(version) <= MAX_FIELD_CHARS)
    for name in kind.required:
        value = get(name)
        if type(value) is not str or not 0 < len(value) <= MAX_FIELD_CHARS:
            whole = False
    legal = type(event_id) is str and legal_id(event_id) is not None
    if not whole or _no_instant_given(sent_at) or (kind.name == "error" and _lacks_reference(kind, fields)):
        code = Reason.MISSING_REQUIRED if legal or event_id is None else Reason.ID_INVALID_NO_FALLBACK
        lacks_reference = _lacks_reference(kind, fields)
        (field, expected), *others = _missing_fields(kind, fields)
        return _reject_event(
            code,
            event_id,
            event,
            index,
            envelope,
            lacks_reference=lacks_reference,
            field=field,
            expected=expected,
            also_wrong=", ".join(name for name, _ in others),
        )
    if event_id is None:
        return _reject_event(
            Reason.MISSING_REQUIRED, event_id, event, index, envelope, field="eventId", expected=EXPECTED_ID
        )

    at = parse_instant(sent_at) if type(sent_at) is str else None
    if at is None or at - received_at > rules.future_limit:
        return _reject_event(
            Reason.TIME_INVALID, event_id, event, index, envelope, field="eventAt", expected=EXPECTED_INSTANT
        )

    scope = get("eventIdScope")
    if scope is not None and (type(scope) is not str or scope not in EVENT_ID_SCOPES):
        return _reject_event(
            Reason.MISSING_REQUIRED, event_id, event, index, envelope, field="eventIdScope", expected=EXPECTED_SCOPE
        )
    if scope == "global_unique" and not _verify_event_id(event_id, envelope.uniqueness):
        return _reject_event(
            Reason.UNIQUENESS_UNVERIFIED,
            event_id,
            event,
            index,
            envelope,
            field="eventId",
            expected=EXPECTED_UNIQUE_ID,
        )

    if received_at - at > rules.windows[kind.name]:
        expected = f"an instant at most {rules.windows[kind.name] // DAY} days before receivedAt"
        return _reject_event(Reason.STALE, event_id, event, index, envelope, field="eventAt", expected=expected)
    return _event(kind, fields, index, envelope, at, legal=legal, everywhere=scope == "global_unique")


def _event(
    kind: Kind, fields: dict[str, Any], index: int, envelope: Envelope, at: int, *, legal: bool, everywhere: bool
) -> Event:
    """The checked event: optional keys, sub-enum, fingerprint, and the one dedup key that it goes by (§3.8.13)."""
    app_id = envelope.app_id
    reference, render = fields.get("responseReference"), fields.get("renderAttemptId")
    if type(reference) is not str or not 0 < len(reference) <= MAX_FIELD_CHARS:
        reference = None
    if type(render) is not str or not 0 < len(render) <= MAX_FIELD_CHARS:
        render = None
    request, attempt, opportunity = fields["requestKey"], fields["attemptKey"], fields["opportunityKey"]
    digest = keys.semantic_digest([fields[name] for name in kind.digest])
    computed = keys.computed_key(app_id, kind.name, request, attempt, opportunity, reference, render, digest)

    event_id, idempotency_key = fields["eventId"], fields.get("idempotencyKey")
    code = Reason.ACCEPTED
    said = {name: fields[name] for name in kind.fields}
    raw: tuple[str, str] | None = None
    if kind.enum and (value := fields[kind.enum]) not in kind.values:
        code = Reason.ACCEPTED_UNKNOWN_ENUM
        raw = (kind.enum, value)
        said[kind.enum] = UNKNOWN

    if idempotency_key is not None and not (type(idempotency_key) is str and legal_id(idempotency_key)):
        code = Reason.IDEMPOTENCY_KEY_FALLBACK
        idempotency_key = None
    dedup = dedup_key(
        app_id,
        envelope.batch_id,
        idempotency_key=idempotency_key,
        event_id=event_id if legal else None,
        everywhere=everywhere,
        computed=computed,
    )

    closure = None if reference is None or render is None else keys.closure_key(reference, render)
    terminal = closure is not None and kind.name == "error" and fields.get("errorClass") == TERMINAL_ERROR
    key = keys.half(dedup)
    subject = Subject(
        f"fe_{key.hex()}",
        app_id,
        text_or_na(event_id),
        FAILURE if terminal else kind.name,
        fields["traceKey"],
        request,
        attempt,
        opportunity,
        reference,
        render,
        dedup,
        1,
        at,
        index,
    )
    extra = None if fields.keys() <= kind.known else extensions(kind, fields)
    return Event(
        index,
        event_id,
        kind.name,
        at,
        subject.source,
        dedup,
        closure,
        None if closure is None else keys.half(closure),
        terminal,
        key,
        computed[: keys.HALF_DIGEST_BYTES],
        code,
        said[kind.says] if kind.says else None,
        keys.opportunity(app_id, opportunity) if kind.settled else None,
        encode_stored_event(subject, tuple(said.values()), raw, extra),
    )


def is_text(value: Any) -> bool:
    """Whether a field is there as F2.2 has it: text of 1 to 1,024 characters."""
    return type(value) is str and 1 <= len(value) <= MAX_FIELD_CHARS


def text_or_na(value: Any) -> str:
    return value if is_text(value) else NA


def _lacks_reference(kind: Kind, fields: dict[str, Any]) -> bool:
    """Whether the event lacks the `responseReference` that its type, or the render attempt of an error, asks for."""
    needed = kind.reference or (kind.name == "error" and fields.get("renderAttemptId") is not None)
    return needed and not is_text(fields.get("responseReference"))


def _no_instant_given(value: Any) -> bool:
    """Whether `eventAt` is missing; one of another type than text is wrong, which check 4 says."""
    return value is None or (isinstance(value, str) and type(value) is not NotText and not is_text(value))


def _verify_event_id(event_id: Any, uniqueness: str | None) -> bool:
    return uniqueness is not None and type(event_id) is str and _UNIQUE[uniqueness](event_id) is not None


def extensions(kind: Kind, fields: dict[str, Any]) -> dict[str, Any]:
    """What the contract of the type does not name, kept and never looked at (F6)."""
    extra = {name: value for name, value in fields.items() if name not in kind.known}
    own = extra.get("extensions")
    if isinstance(own, dict):
        del extra["extensions"]
        return {**cast("dict[str, Any]", own), **extra}
    return extra


def _missing_fields(kind: Kind, fields: dict[str, Any]) -> list[tuple[str, str]]:
    """The required fields that are missing, in the order of the contract, and what each should have been."""
    found = [("eventAt", EXPECTED_INSTANT)] if _no_instant_given(fields.get("eventAt")) else []
    found += [(name, EXPECTED_TEXT) for name in kind.required if not is_text(fields.get(name))]
    if kind.name == "error" and _lacks_reference(kind, fields):
        found.append(("responseReference", f"{EXPECTED_TEXT}, since renderAttemptId is given"))
    version = fields.get("eventVersion")
    if type(version) is not int and not is_text(version):
        found.append(("eventVersion", EXPECTED_VERSION))
    if fields.get("eventId") is None:
        found.append(("eventId", EXPECTED_ID))
    return found


def _reject_event(
    code: Reason,
    sent_id: Any,
    event: Any,
    index: int,
    envelope: Envelope,
    *,
    lacks_reference: bool = False,
    field: str = WHOLE_EVENT,
    expected: str,
    also_wrong: str = "",
) -> Rejected:
    return Rejected(
        index=index,
        sent_id=sent_id,
        app_id=envelope.app_id,
        code=code,
        event=event,
        lacks_reference=lacks_reference,
        field=field,
        expected=expected,
        also_wrong=also_wrong,
    )


def subject_of_rejected(rejected: Rejected, batch_id: str) -> Subject:
    """What can be read of an event that failed the checks; it has no dedup key (F7)."""
    sent: Any = rejected.event
    fields = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
    reference, render = fields.get("responseReference"), fields.get("renderAttemptId")
    return Subject(
        keys.server_event_key_without_dedup(rejected.app_id, batch_id, rejected.index),
        rejected.app_id,
        text_or_na(rejected.sent_id),
        text_or_na(fields.get("eventType")),
        text_or_na(fields.get("traceKey")),
        text_or_na(fields.get("requestKey")),
        text_or_na(fields.get("attemptKey")),
        text_or_na(fields.get("opportunityKey")),
        reference if is_text(reference) else None,
        render if is_text(render) else None,
        None,
        1,
        None,
        rejected.index,
    )
