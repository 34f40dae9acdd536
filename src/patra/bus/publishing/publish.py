"""Decides from envelopes and what the store knows of them what is published, refused, or was there before.

The order of checks for one event; the first that fails decides: form of the envelope (C§1, B1), type and version
(C§4), authority and forwarding (C§5, B3), schema, canonical form, renditions of one event in two majors (C§4, B4),
idempotency (B2), freeze (B5: a duplicate is not a new publish, so it is answered as one even while the type is frozen).
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeAlias, cast

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, Contract, EventType, Status
from patra.bus.catalogue.minor_versions import later_fields
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.schema import Violation
from patra.bus.catalogue.versions import Version, parse_version
from patra.bus.publishing.envelope import (
    FIELDS,
    Envelope,
    Refused,
    check,
    defects,
    encode,
    plainly_well,
    well_formed,
)
from patra.bus.publishing.publisher_tokens import Publisher, authority_of, module, same_module
from patra.kernel.canonical import canonical, key16
from patra.kernel.errors import NotCanonical

MAX_LISTED_VIOLATIONS = 5
MAX_ENVELOPE_BYTES = 1_048_576  # bytes of an encoded envelope


class Published(msgspec.Struct, frozen=True, gc=False):
    """The event is on the bus: for the first time, or it was there before (B2) under this `event_id`."""

    event_id: str
    duplicate: bool = False


Outcome: TypeAlias = Published | Refused


class Candidate(msgspec.Struct, frozen=True, gc=False):
    """An event that passed every check that needs no store, ready to be written."""

    index: int
    envelope: Envelope
    kind: EventType
    major: int
    minor: int
    body: str
    identity: bytes
    fingerprint: bytes
    order_key: bytes | None


class Known(msgspec.Struct, frozen=True):
    """What the store holds under an idempotency key: the event, and what it said in each major version."""

    event_id: str
    fingerprints: Mapping[int, bytes]


def examine(
    catalogue: Catalogue,
    envelope: Envelope,
    publisher: Publisher | None = None,
    index: int = 0,
    *,
    elsewhere: bool = False,
) -> Candidate | Refused:
    """Every check that needs no store. `publisher` is who hands the event in, where that is known.

    With `elsewhere` it was published on another store: its version may have retired since, or be a later minor than
    this catalogue knows, of which B4 says that it only has more fields. Neither may cost a group its event.
    """
    found = _at_a_glance(catalogue, envelope, publisher) or _with_care(catalogue, envelope, publisher, elsewhere)
    if isinstance(found, Refused):
        return found if elsewhere else _with_others(catalogue, envelope, publisher, found)
    kind, contract, version = found
    if version <= contract.version and not contract.accepts(envelope.payload):
        return _payload_refused(kind, contract, envelope.payload)
    if (
        version < contract.version
        and not elsewhere
        and (later := later_fields(contract.schema, envelope.payload, version))
    ):
        place, added = later[0]
        return _refuse_event(Reason.PAYLOAD_INVALID, place, f"is a field of {added}, and the event says {version}")
    try:
        fingerprint = canonical(envelope.payload)
    except NotCanonical as error:
        return _refuse_event(Reason.PAYLOAD_NOT_CANONICAL, "/payload" + pointer(error.path), error.detail)
    body = encode(envelope)
    if len(body) > MAX_ENVELOPE_BYTES:
        return _refuse_event(
            Reason.PAYLOAD_TOO_LARGE, "", f"the envelope has {len(body)} bytes, more than {MAX_ENVELOPE_BYTES}"
        )
    return Candidate(
        index,
        envelope,
        kind,
        version[0],
        version[1],
        body.decode(),
        identity(envelope),
        sha256(fingerprint).digest(),
        order_key(kind, envelope),
    )


def _at_a_glance(
    catalogue: Catalogue, envelope: Envelope, publisher: Publisher | None
) -> tuple[EventType, Contract, Version] | None:
    """The common case: the producer itself publishes what the catalogue has, under plain names."""
    try:
        found = catalogue.current.get((envelope.event_type, envelope.event_version))
    except TypeError:  # built in code from what cannot be a key
        return None
    if found is None or envelope.producer != found[0].producer or not plainly_well(envelope):
        return None
    return found if publisher is None or authority_of(publisher, envelope) is None else None


def _with_care(
    catalogue: Catalogue, envelope: Envelope, publisher: Publisher | None, elsewhere: bool
) -> tuple[EventType, Contract, Version] | Refused:
    """Every check in its order; the first that fails decides."""
    if refusal := check(envelope):
        return refusal
    kind = catalogue.types.get(envelope.event_type)
    if kind is None:
        return _type_unknown(envelope.event_type)
    version = envelope.version
    contract = kind.contracts.get(version.major) if elsewhere else catalogue.contract(envelope.event_type, version)
    if contract is None:
        return _version_unknown(kind, version)
    if contract.status is Status.RETIRED and not elsewhere:
        return _version_retired(kind, version)
    return authority(kind, envelope, publisher) or (kind, contract, version)


def _with_others(catalogue: Catalogue, envelope: Envelope, publisher: Publisher | None, first: Refused) -> Refused:
    """The refusal with all else that is wrong with the envelope, so that its sender need not find it one by one."""
    fields = {name: getattr(envelope, name) for name in FIELDS}
    wrong = defects(fields)
    if not wrong and (kind := catalogue.types.get(envelope.event_type)) is not None:
        refused = authority(kind, envelope, publisher)
        wrong = [] if refused is None else [refused]
    wrong += objections(catalogue, well_formed(fields, wrong))
    rest = [one for one in wrong if (one.code, one.place) != (first.code, first.place)]
    return msgspec.structs.replace(first, others=tuple(rest))


def objections(catalogue: Catalogue, fields: Mapping[str, Any]) -> list[Refused]:
    """What the catalogue objects to in those fields of an envelope that are there and have their form."""
    name, text, producer = fields.get("event_type"), fields.get("event_version"), fields.get("producer")
    kind = catalogue.types.get(name) if isinstance(name, str) else None
    if kind is None:
        return [_type_unknown(name)] if isinstance(name, str) else []
    wrong: list[Refused] = []
    contract, version = None, parse_version(text) if isinstance(text, str) else None
    if version is not None:
        contract = catalogue.contract(kind.name, version)
        if contract is None:
            wrong.append(_version_unknown(kind, version))
        elif contract.status is Status.RETIRED:
            wrong.append(_version_retired(kind, version))
    if isinstance(producer, str) and (refused := _producer_refused(kind, producer)) is not None:
        wrong.append(refused)
    payload = fields.get("payload")
    if contract is not None and isinstance(payload, dict) and not contract.accepts(payload):
        wrong.append(_payload_refused(kind, contract, cast("dict[str, Any]", payload)))
    return wrong


def _type_unknown(name: str) -> Refused:
    return _refuse_event(Reason.TYPE_UNKNOWN, "/event_type", f"the catalogue has no {name}")


def _version_unknown(kind: EventType, version: Version) -> Refused:
    known = ", ".join(str(c.version) for c in kind.contracts.values())
    return _refuse_event(
        Reason.VERSION_UNKNOWN, "/event_version", f"{version} of {kind.name} is unknown; there is {known}"
    )


def _version_retired(kind: EventType, version: Version) -> Refused:
    return _refuse_event(Reason.VERSION_RETIRED, "/event_version", f"{version.major}.x of {kind.name} is retired")


def _producer_refused(kind: EventType, producer: str) -> Refused | None:
    if same_module(producer, kind.producer):
        return None
    return _refuse_event(
        Reason.PRODUCER, "/producer", f"{kind.name} is published by {kind.producer}, not by {producer}"
    )


def _payload_refused(kind: EventType, contract: Contract, payload: dict[str, Any]) -> Refused:
    broken = contract.violations(payload)
    others = [str(kind.contracts[major].version) for major in sorted(kind.live - {contract.version.major})]
    held = f" (checked as version {contract.version}; {', '.join(others)} is published, too)" if others else ""
    return _refuse_event(
        Reason.PAYLOAD_INVALID, broken[0].place if broken else "/payload", _violations_text(broken) + held
    )


def authority(kind: EventType, envelope: Envelope, publisher: Publisher | None) -> Refused | None:
    """C§5: one producer per type; a publisher that forwards an event keeps its producer and signs `forwarded_by`."""
    if (refused := _producer_refused(kind, envelope.producer)) is not None:
        return refused
    path = [module(name) for name in envelope.forwarded_by]
    if len(set(path)) != len(path) or module(envelope.producer) in path:
        return _refuse_event(Reason.FORWARD_LOOP, "/forwarded_by", "a module forwards an event once, and never its own")
    return None if publisher is None else authority_of(publisher, envelope)


def identity(envelope: Envelope) -> bytes:
    """The key of B2; lengths in front, so that no two triples run together."""
    tenant, kind = envelope.tenant_id, envelope.event_type
    return key16(f"{len(tenant)}:{tenant}{len(kind)}:{kind}{envelope.idempotency_key}")


def order_key(kind: EventType, envelope: Envelope) -> bytes | None:
    """The key within which events are handled in order, where the type asks for it."""
    if kind.ordering is None:
        return None
    text = kind.ordering.scope
    for first, rest in kind.ordering.paths:
        value = getattr(envelope, first)
        for name in rest:
            value = value[name]
        part = value if isinstance(value, str) else canonical(value).decode()
        text += f"|{type(value) is str:d}{len(part)}:{part}"
    return _kept_key16(text)


_kept_key16 = lru_cache(maxsize=4096)(key16)  # events of a key come together


def pointer(path: str) -> str:
    """`$.a[3]` as `/a/3`."""
    return re.sub(r"\[(\d+)\]|\.([^.\[]+)", lambda m: f"/{m[1] or m[2]}", path.removeprefix("$"))


class Publication(msgspec.Struct, frozen=True, gc=False):
    """One event: the renditions of it that are published together, one a major version."""

    identity: bytes
    event_id: str
    renditions: tuple[Candidate, ...]


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """Candidates of one call as events; `refused` by index; `repeats` are (index, first) of keys that stand twice."""

    publications: list[Publication]
    refused: dict[int, Refused]
    repeats: list[tuple[Candidate, Candidate]]


def gather(candidates: Sequence[Candidate]) -> Gathered:
    """Group the candidates of one call into events.

    Candidates of one idempotency key in different majors are renditions of one event (C§4: dual publishing); one that
    repeats a major is a duplicate of the first, or contradicts it.
    """
    plain = {c.identity: Publication(c.identity, c.envelope.event_id, (c,)) for c in candidates}
    if len(plain) == len(candidates) and all(len(c.kind.live) == 1 for c in candidates):
        return Gathered(publications=list(plain.values()), refused={}, repeats=[])  # each its own event, in one major
    groups: dict[bytes, dict[int, Candidate]] = {}
    refused: dict[int, Refused] = {}
    repeats: list[tuple[Candidate, Candidate]] = []
    for candidate in candidates:
        group = groups.setdefault(candidate.identity, {})
        if (first := group.setdefault(candidate.major, candidate)) is not candidate:
            repeats.append((candidate, first))
    publications: list[Publication] = []
    for key, group in groups.items():
        renditions = tuple(group.values()) if len(group) == 1 else tuple(group[major] for major in sorted(group))
        if refusal := _disagreement(renditions) or _missing_majors(renditions):
            refused |= dict.fromkeys((c.index for c in renditions), refusal)
            continue
        publications.append(Publication(identity=key, event_id=renditions[-1].envelope.event_id, renditions=renditions))
    return Gathered(publications=publications, refused=refused, repeats=repeats)


def answer_repeat(candidate: Candidate, first: Candidate, verdict: Outcome) -> Outcome:
    """What is said to the second of two equal keys in one call; `verdict` is what was said to the first."""
    if candidate.fingerprint != first.fingerprint:
        return conflict(verdict.event_id if isinstance(verdict, Published) else first.envelope.event_id)
    return Published(event_id=verdict.event_id, duplicate=True) if isinstance(verdict, Published) else verdict


def _disagreement(renditions: Sequence[Candidate]) -> Refused | None:
    first, *rest = renditions
    for other in rest:
        for name in Envelope.__struct_fields__:
            if name not in {"event_version", "payload"} and getattr(other.envelope, name) != getattr(
                first.envelope, name
            ):
                return _refuse_event(
                    Reason.RENDITIONS_DISAGREE, f"/{name}", "differs between two versions of one event"
                )
        if other.order_key != first.order_key:
            return _refuse_event(
                Reason.RENDITIONS_DISAGREE, "/payload", "two versions of one event have different ordering keys"
            )
    return None


def _missing_majors(renditions: Sequence[Candidate]) -> Refused | None:
    kind = renditions[0].kind
    if len(renditions) == len(kind.live):  # each major stands once, and none of them is retired
        return None
    if missing := sorted(kind.live - {c.major for c in renditions}):
        which = ", ".join(f"{major}.x" for major in missing)
        return _refuse_event(
            Reason.DUAL_MISSING, "/event_version", f"{which} of {kind.name} is still in use: publish it along"
        )
    return None


def decide(publication: Publication, known: Known | None, frozen: Mapping[str, str]) -> Outcome:
    """What B2 and B5 say, given what the store holds under the key and which types are frozen, and why."""
    if known is not None:
        return _again(publication, known)
    name = publication.renditions[0].kind.name
    if name in frozen:
        return _refuse_event(Reason.TYPE_FROZEN, "/event_type", f"publishing of {name} is frozen: {frozen[name]}")
    return Published(event_id=publication.event_id)


def _again(publication: Publication, known: Known) -> Outcome:
    """B2: the same content in the common versions is a duplicate, else a conflict; an upgrade may add a version."""
    said = {c.major: c.fingerprint for c in publication.renditions}
    common = said.keys() & known.fingerprints.keys()
    if common and all(said[major] == known.fingerprints[major] for major in common):
        return Published(event_id=known.event_id, duplicate=True)
    return conflict(known.event_id)


def conflict(event_id: str) -> Refused:
    return _refuse_event(
        Reason.IDEMPOTENCY_CONFLICT, "/idempotency_key", f"{event_id} was published under this key with another payload"
    )


def refuse_reuse(event_id: str) -> Refused:
    return _refuse_event(
        Reason.EVENT_ID_REUSED, "/event_id", f"{event_id} belongs to an event with another idempotency key"
    )


def types_of(publications: Collection[Publication]) -> set[str]:
    return {publication.renditions[0].kind.name for publication in publications}


def _violations_text(broken: Sequence[Violation]) -> str:
    """What is wrong with a payload, below the place of the first: up to five violations, and how many more."""
    if not broken:
        return "breaks the schema"
    listed = [broken[0].detail, *(f"{one.place}: {one.detail}" for one in broken[1:MAX_LISTED_VIOLATIONS])]
    more = len(broken) - MAX_LISTED_VIOLATIONS
    return "; ".join(listed) + (f" (and {more} more)" if more > 0 else "")


def _refuse_event(code: Reason, place: str, detail: str) -> Refused:
    return Refused(code=code, place=place, detail=detail)
