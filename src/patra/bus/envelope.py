"""Bytes or a mapping go in; an envelope, or a refusal that names the field, comes out (C§1, B1)."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec

from patra.bus.reasons import R
from patra.bus.versions import Version, parse_version
from patra.kernel.clock import SECOND, format_instant, parse_instant

LONGEST = 256  # characters of a name or key
MOST_FORWARDS = 32

_NAME = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]{{1,{LONGEST}}}\Z")
_is_uuid7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").fullmatch
_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z")
_SCHEMA_VERSION = re.compile(r"([0-9]{1,9})(\.[0-9]{1,9}){0,2}\Z")


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event: the fields of B1. `occurred_at` is µs inside, RFC 3339 on the wire."""

    event_id: str
    event_type: str
    event_version: str
    schema_version: str = "1.0"
    producer: str
    forwarded_by: tuple[str, ...] = ()
    tenant_id: str
    project_id: str
    trace_id: str
    correlation_id: str
    causation_id: str | None = None
    idempotency_key: str
    occurred_at: int
    payload: dict[str, Any]

    @property
    def version(self) -> Version:
        version = parse_version(self.event_version)
        assert version is not None, "an envelope is checked before its version is asked for"  # noqa: S101
        return version


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why an event is not taken: a code for machines, a place (JSON pointer into the envelope) and words for people."""

    code: R
    place: str
    detail: str


class _Head(msgspec.Struct, omit_defaults=True, gc=False):
    """All but the payload; what is required is never empty, so it is never omitted."""

    event_id: str
    event_type: str
    event_version: str
    schema_version: str
    producer: str
    forwarded_by: tuple[str, ...] = ()
    tenant_id: str = ""
    project_id: str = ""
    trace_id: str = ""
    correlation_id: str = ""
    causation_id: str | None = None
    idempotency_key: str = ""
    occurred_at: str = ""


class Wire(_Head, kw_only=True, gc=False):
    """An envelope as JSON has it: the fields of B1 in their order."""

    payload: dict[str, Any]


FIELDS: tuple[str, ...] = Envelope.__struct_fields__
REQUIRED = tuple(name for name in FIELDS if name not in {"forwarded_by", "causation_id"})
_LEGIBLE = tuple(name for name in REQUIRED if name not in {"occurred_at", "payload"})
_NAMES = ("producer", "tenant_id", "project_id", "trace_id", "correlation_id", "idempotency_key")

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


def decode(body: bytes | str) -> Envelope | Refused:
    """An envelope from its JSON text."""
    try:
        raw: Any = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _refused(R.ENVELOPE_MALFORMED, "", f"not JSON: {error}")
    return from_wire(raw)


def from_wire(raw: Any) -> Envelope | Refused:
    """An envelope from decoded JSON."""
    if not isinstance(raw, Mapping):
        return _refused(R.ENVELOPE_MALFORMED, "", "an envelope is a JSON object")
    fields = dict(cast("Mapping[str, Any]", raw))
    for name in fields:
        if name not in FIELDS:
            return _refused(R.ENVELOPE_UNKNOWN, f"/{name}", "is no field of the envelope; data belongs into `payload`")
    for name in REQUIRED:
        if fields.get(name) is None or fields[name] == "":
            return _refused(R.ENVELOPE_MISSING, f"/{name}", "is required")
    for name in ("forwarded_by", "causation_id"):  # null says the same as leaving it out
        if name in fields and fields[name] is None:
            del fields[name]
    occurred = fields["occurred_at"]
    if not isinstance(occurred, str) or (instant := parse_instant(occurred)) is None:
        return _refused(R.ENVELOPE_INVALID, "/occurred_at", "is no RFC 3339 instant with an offset")
    fields["occurred_at"] = instant
    forwarded = fields.get("forwarded_by", [])
    if not isinstance(forwarded, list):
        return _refused(R.ENVELOPE_INVALID, "/forwarded_by", "is a list of names")
    if "forwarded_by" in fields:
        if not forwarded:
            return _refused(R.ENVELOPE_INVALID, "/forwarded_by", "is absent when the event was never forwarded")
        fields["forwarded_by"] = tuple(cast("list[Any]", forwarded))
    try:
        made = Envelope(**fields)
    except TypeError as error:  # not reached by JSON: the names were checked
        return _refused(R.ENVELOPE_MALFORMED, "", str(error))
    return check(made) or made


def legible(raw: Any) -> Envelope:
    """What can be read of something that is no envelope, for the row that its refusal leaves (A4)."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else {}
    texts: dict[str, Any] = {name: value if isinstance(value := fields.get(name), str) else "" for name in _LEGIBLE}
    return Envelope(**texts, occurred_at=0, payload={})


_trusted = msgspec.json.Decoder(Wire)


def decode_wire(body: str) -> Wire:
    """An envelope from the store as its JSON has it, without checking again what was checked on the way in."""
    return _trusted.decode(body)


def decode_trusted(body: str) -> Envelope:
    """An envelope from the store."""
    return unwired(_trusted.decode(body))


def unwired(wire: Wire) -> Envelope:
    return Envelope(
        event_id=wire.event_id,
        event_type=wire.event_type,
        event_version=wire.event_version,
        schema_version=wire.schema_version,
        producer=wire.producer,
        forwarded_by=wire.forwarded_by,
        tenant_id=wire.tenant_id,
        project_id=wire.project_id,
        trace_id=wire.trace_id,
        correlation_id=wire.correlation_id,
        causation_id=wire.causation_id,
        idempotency_key=wire.idempotency_key,
        occurred_at=parse_instant(wire.occurred_at) or 0,
        payload=wire.payload,
    )


def plainly_well(e: Envelope) -> bool:
    """The common case at a glance, for an envelope whose type, version and producer are those of the catalogue."""
    if (
        e.forwarded_by != ()
        or e.causation_id is not None
        or type(e.occurred_at) is not int
        or type(e.payload) is not dict
    ):
        return False
    for name in (e.tenant_id, e.project_id, e.trace_id, e.correlation_id, e.idempotency_key):
        if type(name) is not str or not 0 < len(name) <= LONGEST or not name.isprintable() or name.isspace():
            return False
    texts = type(e.producer) is str and type(e.event_id) is str
    return texts and e.schema_version == "1.0" and _is_uuid7(e.event_id) is not None


def check(envelope: Envelope) -> Refused | None:
    """Whether the fields of an envelope have the forms of B1; also for one that was built in code."""
    given: Any = envelope  # msgspec does not check what is built in code
    for name in _NAMES:
        if defect := _name_defect(getattr(given, name)):
            missing = getattr(given, name) == ""
            return _refused(R.ENVELOPE_MISSING if missing else R.ENVELOPE_INVALID, f"/{name}", defect)
    if not isinstance(given.event_id, str) or not _is_uuid7(given.event_id):
        return _refused(R.ENVELOPE_INVALID, "/event_id", "is no UUID of version 7 in lower case")
    if not isinstance(given.event_type, str) or len(given.event_type) > LONGEST or not _TYPE.match(given.event_type):
        return _refused(R.ENVELOPE_INVALID, "/event_type", "is no event type: lower-case words joined by dots")
    if not isinstance(given.event_version, str) or parse_version(given.event_version) is None:
        return _refused(R.ENVELOPE_INVALID, "/event_version", "is not `major.minor`")
    if not isinstance(given.schema_version, str) or not (match := _SCHEMA_VERSION.match(given.schema_version)):
        return _refused(R.ENVELOPE_INVALID, "/schema_version", "is no version such as `1.0`")
    if int(match[1]) != 1:
        return _refused(
            R.SCHEMA_VERSION, "/schema_version", f"{given.schema_version}: this bus reads envelopes of version 1"
        )
    if given.causation_id is not None and (defect := _name_defect(given.causation_id)):
        return _refused(R.ENVELOPE_INVALID, "/causation_id", defect)
    path: Any = given.forwarded_by
    if not isinstance(path, tuple):
        return _refused(R.ENVELOPE_INVALID, "/forwarded_by", "is a list of names")
    names = cast("tuple[Any, ...]", path)
    if len(names) > MOST_FORWARDS:
        return _refused(R.ENVELOPE_INVALID, "/forwarded_by", f"has more than {MOST_FORWARDS} names")
    for index, name in enumerate(names):
        if defect := _name_defect(name):
            return _refused(R.ENVELOPE_INVALID, f"/forwarded_by/{index}", defect)
    if type(given.occurred_at) is not int:
        return _refused(R.ENVELOPE_INVALID, "/occurred_at", "is an instant, µs since 1970 UTC")
    if not isinstance(given.payload, dict):
        return _refused(R.ENVELOPE_INVALID, "/payload", "is a JSON object")
    return None


def encode(envelope: Envelope) -> bytes:
    """The envelope as JSON text, fields in the order of B1."""
    return _encoder.encode(
        Wire(
            envelope.event_id,
            envelope.event_type,
            envelope.event_version,
            envelope.schema_version,
            envelope.producer,
            envelope.forwarded_by,
            envelope.tenant_id,
            envelope.project_id,
            envelope.trace_id,
            envelope.correlation_id,
            envelope.causation_id,
            envelope.idempotency_key,
            _instant(envelope.occurred_at),
            payload=envelope.payload,
        )
    )


def _instant(us: int) -> str:
    """`format_instant`, with the text of a second kept: events of one second come together."""
    second, fraction = divmod(us, SECOND)
    text = _second(second)
    return f"{text[:-1]}.{fraction:06d}Z" if fraction else text


@lru_cache(maxsize=64)
def _second(second: int) -> str:
    return format_instant(second * SECOND)


def to_wire(envelope: Envelope) -> dict[str, Any]:
    """The envelope as decoded JSON."""
    return msgspec.json.decode(encode(envelope))


def rendition(envelope: Envelope, event_version: str, payload: dict[str, Any]) -> Envelope:
    """The same event in another major version, for publishing two of them together (C§4)."""
    return msgspec.structs.replace(envelope, event_version=event_version, payload=payload)


def forwarded(envelope: Envelope, by: str) -> Envelope:
    """The envelope as a module passes it on: the producer stays, the module signs (C§5)."""
    return msgspec.structs.replace(envelope, forwarded_by=(*envelope.forwarded_by, by))


def _name_defect(value: Any) -> str:
    if type(value) is not str:
        return "is no text"
    if _NAME.match(value) and not value.isspace():
        return ""
    if not value or value.isspace():
        return "is empty"
    return f"is longer than {LONGEST} characters" if len(value) > LONGEST else "holds a control character"


def _refused(code: R, place: str, detail: str) -> Refused:
    return Refused(code=code, place=place, detail=detail)
