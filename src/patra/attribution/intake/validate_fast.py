"""Turns an event with nothing unusual about it into the same checked event as `validate` gives, much sooner.

Most events pass every check and need no fallback. For these msgspec checks the required fields of the type while it
reads them, and what is left to do stands below in one piece. Fields that the contract does not know cost a second
reading. Whatever is not plain is None here and goes the careful way; a test holds the two ways to the same result.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Union

import msgspec

from patra.attribution.contract import keys
from patra.attribution.contract.event_types import KINDS, MAX_FIELD_CHARS, NA, Kind
from patra.attribution.contract.keys import HALF_DIGEST_BYTES
from patra.attribution.contract.reasons import Reason
from patra.attribution.contract.windows import FUTURE_LIMIT
from patra.attribution.intake.checked_event import Event, encode_stored_event
from patra.attribution.intake.envelope import Envelope, legal_id
from patra.attribution.intake.identity import FAILURE, Subject
from patra.attribution.intake.validate import extensions
from patra.kernel.clock import parse_instant

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_FIELD_CHARS)]
MaybeText = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_FIELD_CHARS)] | None


class _Plain(NamedTuple):
    """What is asked of an event of one type, beyond its shape."""

    kind: Kind
    digest: Callable[[Any], tuple[str, ...]]
    values: Callable[[Any], tuple[str, ...]]
    enum: Callable[[Any], str] | None
    says: Callable[[Any], str] | None


def _struct(kind: Kind, *, more: bool) -> type[msgspec.Struct]:
    """The shape of a type: its required fields are texts. `more`: others than the contract names may stand there."""
    required = [("eventId", str), ("eventAt", Text), ("eventVersion", Any), *[(name, Text) for name in kind.required]]
    names = {name for name, _ in required}
    optional: list[tuple[str, Any, Any]] = [
        (name, MaybeText, None) for name in ("responseReference", "renderAttemptId") if name not in names
    ]
    optional += [(name, Any, None) for name in ("idempotencyKey", "eventIdScope", "errorClass") if name in kind.known]
    return msgspec.defstruct(
        kind.name,
        [*required, *optional],
        tag=kind.name,
        tag_field="eventType",
        forbid_unknown_fields=not more,
        gc=False,
        frozen=True,
    )


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[str, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    name = next(iter(names))
    return lambda sent: (getattr(sent, name),)


def _rules(kind: Kind) -> _Plain:
    return _Plain(
        kind,
        _getter(kind.digest),
        _getter(kind.fields),
        attrgetter(kind.enum) if kind.enum else None,
        attrgetter(kind.says) if kind.says else None,
    )


_semantic_digest = lru_cache(maxsize=4096)(keys.semantic_digest)


@lru_cache(maxsize=4096)
def _second(text: str) -> int | None:
    return parse_instant(f"{text}Z")


_EXACT = {_struct(kind, more=False): _rules(kind) for kind in KINDS.values()}
_MORE = {_struct(kind, more=True): _rules(kind) for kind in KINDS.values()}
_RULES: dict[type[msgspec.Struct], _Plain] = _EXACT | _MORE
_decode = msgspec.json.Decoder(Union[tuple(_EXACT)]).decode  # noqa: UP007  (made from data)
_decode_more = msgspec.json.Decoder(Union[tuple(_MORE)]).decode  # noqa: UP007
_decode_all = msgspec.json.Decoder(dict[str, Any]).decode


def plain_reader(envelope: Envelope, received_at: int) -> Callable[[msgspec.Raw, int], Event | None]:
    """What reads the events of one batch: it gives the checked event, or None where it must be looked at carefully.

    It raises ValueError where an event is not sound JSON. What the events of a batch share is worked out once, and the
    keys of `keys` are made in line: this runs 35,000 times a second.
    """
    app_id = envelope.app_id
    by_event = keys.client_event_key(app_id, envelope.batch_id, "")
    by_idempotency = keys.client_idempotency_key(app_id, "")
    halves: dict[str, bytes] = {}  # of what many events of a batch have in common

    def plain_event(raw: msgspec.Raw, index: int) -> Event | None:
        more = False
        try:
            sent: Any = _decode(raw)
        except msgspec.ValidationError:
            try:
                sent, more = _decode_more(raw), True
            except msgspec.ValidationError:
                return None
        kind, digested, values_of, enum_of, says = _RULES[type(sent)]
        event_id, version, idempotency_key = sent.eventId, sent.eventVersion, sent.idempotencyKey
        at = _instant(sent.eventAt)
        if (
            at is None
            or not -FUTURE_LIMIT <= received_at - at <= kind.window
            or not legal_id(event_id)
            or not (type(version) is int or (type(version) is str and 0 < len(version) <= MAX_FIELD_CHARS))
            or sent.eventIdScope is not None
            or not (idempotency_key is None or (type(idempotency_key) is str and legal_id(idempotency_key)))
            or (enum_of is not None and enum_of(sent) not in kind.values)
        ):
            return None
        name, reference, render = kind.name, sent.responseReference, sent.renderAttemptId
        event_type, terminal, closure, closure_key = name, False, None, None
        if render is not None:
            if reference is None:
                return None
            closure = f"{reference}|{render}"
            closure_key = halves.get(closure)
            if closure_key is None:
                closure_key = halves[closure] = sha256(closure.encode()).digest()[:HALF_DIGEST_BYTES]
            if name == "error" and sent.errorClass == "terminal":
                event_type, terminal = FAILURE, True
        request, attempt, opportunity = sent.requestKey, sent.attemptKey, sent.opportunityKey
        opportunity_key = None
        if kind.settled:
            named = f"{app_id}|{opportunity}"
            opportunity_key = halves.get(named)
            if opportunity_key is None:
                opportunity_key = halves[named] = sha256(named.encode()).digest()[:HALF_DIGEST_BYTES]
        # The choice of `dedup_key`, in line: here the ids that are given are legal and the scope is the default one.
        dedup = by_event + event_id if idempotency_key is None else by_idempotency + idempotency_key
        key = sha256(dedup.encode()).digest()[:HALF_DIGEST_BYTES]
        computed = (
            f"{app_id}|{name}|{request}|{attempt}|{opportunity}|{reference or NA}|{render or NA}|"
            f"{_semantic_digest(digested(sent))}"
        )
        source = "fe_" + key.hex()
        subject = Subject(
            source,
            app_id,
            event_id,
            event_type,
            sent.traceKey,
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
        return Event(
            index,
            event_id,
            name,
            at,
            source,
            dedup,
            closure,
            closure_key,
            terminal,
            key,
            sha256(computed.encode()).digest()[:HALF_DIGEST_BYTES],
            Reason.ACCEPTED,
            None if says is None else says(sent),
            opportunity_key,
            encode_stored_event(subject, values_of(sent), None, extensions(kind, _decode_all(raw)) if more else None),
        )

    return plain_event


def _instant(text: str) -> int | None:
    """As `parse_instant`; the events of a batch share their seconds, so a second is read once."""
    if (
        len(text) == 24
        and text[19] == "."
        and text[23] == "Z"
        and (milli := text[20:23]).isdecimal()
        and text.isascii()
    ):
        second = _second(text[:19])
        return None if second is None else second + int(milli) * 1000
    return parse_instant(text)
