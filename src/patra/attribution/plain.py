"""An event with nothing unusual about it goes in; the same checked event as `validate` gives comes out, much sooner.

Most events pass every check and need no fallback. For these msgspec checks the required fields of the type while it
reads them, and what is left to do stands below in one piece. Fields that the contract does not know cost a second
reading. Whatever is not plain is None here and goes the careful way; a test holds the two ways to the same result.
"""

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Union

import msgspec

from patra.attribution import keys
from patra.attribution.contract import FUTURE_LIMIT, KINDS, LONGEST_FIELD, Kind
from patra.attribution.intake import Envelope, legal_id
from patra.attribution.reasons import R
from patra.attribution.validate import Event, extensions
from patra.kernel.clock import parse_instant

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_FIELD)]
MaybeText = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_FIELD)] | None


class _Plain(NamedTuple):
    """What is asked of an event of one type, beyond its shape."""

    kind: Kind
    digest: Callable[[Any], str]
    values: Callable[[Any], tuple[str, ...]]
    enum: Callable[[Any], str] | None


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
    hashed = _getter(kind.digest)

    def digest(sent: Any) -> str:
        return _semantic_digest(hashed(sent))

    return _Plain(
        kind,
        digest,
        _getter(kind.fields),
        attrgetter(kind.enum) if kind.enum else None,
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


def plain_event(raw: msgspec.Raw, index: int, envelope: Envelope, received_at: int) -> Event | None:
    """The checked event, or None where it must be looked at carefully. Raises ValueError where it is no sound JSON."""
    more = False
    try:
        sent: Any = _decode(raw)
    except msgspec.ValidationError:
        try:
            sent, more = _decode_more(raw), True
        except msgspec.ValidationError:
            return None
    kind, digest_of, values_of, enum_of = _RULES[type(sent)]
    event_id, version, reference, render = sent.eventId, sent.eventVersion, sent.responseReference, sent.renderAttemptId
    idempotency_key = sent.idempotencyKey
    at = _instant(sent.eventAt)
    if (
        at is None
        or not -FUTURE_LIMIT <= received_at - at <= kind.window
        or not legal_id(event_id)
        or not (type(version) is int or (type(version) is str and 0 < len(version) <= LONGEST_FIELD))
        or sent.eventIdScope is not None
        or not (idempotency_key is None or (type(idempotency_key) is str and legal_id(idempotency_key)))
        or (enum_of is not None and enum_of(sent) not in kind.values)
    ):
        return None
    terminal, closure, closure_key = False, None, None
    if render is not None:
        if reference is None:
            return None
        closure = f"{reference}|{render}"
        closure_key = keys.half(closure)
        terminal = kind.name == "error" and sent.errorClass == "terminal"
    app_id, request, attempt, opportunity = envelope.app_id, sent.requestKey, sent.attemptKey, sent.opportunityKey
    dedup = (
        keys.client_event_key(app_id, envelope.batch_id, event_id)
        if idempotency_key is None
        else keys.client_idempotency_key(app_id, idempotency_key)
    )
    return Event(
        index,
        event_id,
        raw,
        app_id,
        kind,
        at,
        sent.traceKey,
        request,
        attempt,
        opportunity,
        reference,
        render,
        closure,
        closure_key,
        terminal,
        dedup,
        keys.half(dedup),
        keys.computed_key(app_id, kind.name, request, attempt, opportunity, reference, render, digest_of(sent)),
        R.ACCEPTED,
        values_of(sent),
        None,
        extensions(kind, _decode_all(raw)) if more else None,
    )


def _instant(text: str) -> int | None:
    """As `parse_instant`; the events of a batch share their seconds, so a second is read once."""
    if len(text) >= 20 and text[-1] == "Z":
        second, fraction = _second(text[:19]), text[20:-1]
        if second is None or len(text) == 20:
            return second
        if text[19] == "." and fraction.isdecimal() and fraction.isascii():
            return second + int(fraction[:6].ljust(6, "0"))
    return parse_instant(text)
