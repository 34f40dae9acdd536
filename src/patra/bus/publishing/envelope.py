"""The envelope of an event (C§1, B1): its fields, their forms, its JSON; a refusal names every field that is wrong."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import Version, parse_version
from patra.bus.publishing.json_text import UNREADABLE, decode_json
from patra.bus.publishing.refusal import Refused, together
from patra.bus.publishing.submission import Submission, fill_fields
from patra.kernel.clock import SECOND, format_instant, parse_instant

MAX_NAME_CHARS = 256  # characters of a name or key
MAX_FORWARDS = 32
MAX_EXTENSIONS = 32
MAX_EXTENSION_CHARACTERS = 2048

_NAME = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]{{1,{MAX_NAME_CHARS}}}\Z")
_is_uuid7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").fullmatch
_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+\Z")
_ATTRIBUTE = re.compile(r"[a-z0-9]{1,64}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SCHEMA_VERSION = re.compile(r"([0-9]{1,9})(\.[0-9]{1,9}){0,2}\Z")


class Envelope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event: the fields of B1. `occurred_at` is µs inside, RFC 3339 on the wire.

    `extensions` are attributes of a CloudEvent that have no field here (`subject`, `traceparent` …), kept as they came.
    """

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
    extensions: dict[str, str | int | bool] = {}
    payload: dict[str, Any]

    @property
    def version(self) -> Version:
        version = parse_version(self.event_version)
        assert version is not None, "an envelope is checked before its version is asked for"  # noqa: S101
        return version


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
    extensions: dict[str, str | int | bool] = {}


class Wire(_Head, kw_only=True, gc=False):
    """An envelope as JSON has it: the fields of B1 in their order."""

    payload: dict[str, Any]


FIELDS: tuple[str, ...] = Envelope.__struct_fields__
OPTIONAL = frozenset({"forwarded_by", "causation_id", "extensions"})
REQUIRED = tuple(name for name in FIELDS if name not in OPTIONAL)
_LEGIBLE = tuple(name for name in REQUIRED if name not in {"occurred_at", "payload"})
_NAMES = ("producer", "tenant_id", "project_id", "trace_id", "correlation_id", "idempotency_key")

DELIVER_AT = "deliverat"  # the extension that says before when an event is handled by nobody

_encoder = msgspec.json.Encoder()


def is_event_id(text: str) -> bool:
    """Whether a text is a UUID of version 7, as the id of an event is."""
    return _is_uuid7(text) is not None


def decode(body: bytes | str, submission: Submission | None = None) -> Envelope | Refused:
    """An envelope from its JSON text; with `submission`, what a sender may leave out is filled in."""
    try:
        raw = decode_json(body)
    except UNREADABLE as error:
        return _refuse_envelope(Reason.ENVELOPE_MALFORMED, "", f"not JSON: {error}")
    return from_wire(raw, submission)


def from_wire(raw: Any, submission: Submission | None = None) -> Envelope | Refused:
    """An envelope from decoded JSON; with `submission`, what a sender may leave out is filled in."""
    if not isinstance(raw, Mapping):
        return _refuse_envelope(Reason.ENVELOPE_MALFORMED, "", "an envelope is a JSON object")
    given = cast("Mapping[str, Any]", raw)
    fields = dict(given) if submission is None else fill_fields(given, submission)
    wrong = [
        _refuse_envelope(
            Reason.ENVELOPE_UNKNOWN, f"/{name}", "is not a field of the envelope; data belongs into `payload`"
        )
        for name in fields
        if name not in FIELDS
    ]
    wrong += [
        _refuse_envelope(Reason.ENVELOPE_MISSING, f"/{name}", "is required")
        for name in REQUIRED
        if fields.get(name) is None or fields[name] == ""
    ]
    known = {name: fields[name] for name in FIELDS if fields.get(name) is not None and fields[name] != ""}
    if "occurred_at" in known:
        instant = parse_instant(known["occurred_at"]) if isinstance(known["occurred_at"], str) else None
        if instant is None:
            wrong.append(
                _refuse_envelope(Reason.ENVELOPE_INVALID, "/occurred_at", "is not an RFC 3339 instant with an offset")
            )
            del known["occurred_at"]
        else:
            known["occurred_at"] = instant
    if isinstance(names := known.get("forwarded_by"), list):
        if not names:
            wrong.append(
                _refuse_envelope(
                    Reason.ENVELOPE_INVALID, "/forwarded_by", "is absent when the event was never forwarded"
                )
            )
        known["forwarded_by"] = tuple(cast("list[Any]", names))
    wrong += defects(known)
    if wrong and submission is not None:
        wrong += submission.judge(well_formed(known, wrong))
    return together(wrong) if wrong else Envelope(**known)


def well_formed(fields: Mapping[str, Any], wrong: Sequence[Refused]) -> dict[str, Any]:
    """The fields to which no defect was found."""
    places = {one.place.split("/")[1] for one in wrong if one.place}
    return {name: value for name, value in fields.items() if name not in places}


def legible(raw: Any) -> Envelope:
    """What can be read of something that is not an envelope, for the row that its refusal leaves (A4)."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else {}
    texts: dict[str, Any] = {name: value if isinstance(value := fields.get(name), str) else "" for name in _LEGIBLE}
    return Envelope(**texts, occurred_at=0, payload={})


_trusted = msgspec.json.Decoder(Wire)


def decode_wire(body: str) -> Wire:
    """An envelope from the store as its JSON has it, without checking again what was checked on the way in."""
    return _trusted.decode(body)


def decode_trusted(body: str) -> Envelope:
    """An envelope from the store."""
    return parse_wire(_trusted.decode(body))


def parse_wire(wire: Wire) -> Envelope:
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
        extensions=wire.extensions,
        payload=wire.payload,
    )


def plainly_well(e: Envelope) -> bool:
    """The common case at a glance, for an envelope whose type, version and producer are those of the catalogue."""
    if (
        e.forwarded_by != ()
        or e.extensions != {}
        or e.causation_id is not None
        or type(e.occurred_at) is not int
        or type(e.payload) is not dict
    ):
        return False
    for name in (e.tenant_id, e.project_id, e.trace_id, e.correlation_id, e.idempotency_key):
        if type(name) is not str or not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable() or name.isspace():
            return False
    texts = type(e.producer) is str and type(e.event_id) is str
    return texts and e.schema_version == "1.0" and _is_uuid7(e.event_id) is not None


def check(envelope: Envelope) -> Refused | None:
    """Whether the fields of an envelope have the forms of B1; also for one that was built in code."""
    wrong = defects({name: getattr(envelope, name) for name in FIELDS})
    return together(wrong) if wrong else None


def defects(given: Mapping[str, Any]) -> list[Refused]:
    """Every field, of those that are there, that has not the form of B1."""
    wrong: list[Refused] = []

    def invalid(name: str, detail: str, code: Reason = Reason.ENVELOPE_INVALID) -> None:
        wrong.append(_refuse_envelope(code, f"/{name}", detail))

    for name in _NAMES:
        if name in given and (defect := _name_defect(given[name])):
            invalid(name, defect, Reason.ENVELOPE_MISSING if given[name] == "" else Reason.ENVELOPE_INVALID)
    if "event_id" in given and not (isinstance(given["event_id"], str) and _is_uuid7(given["event_id"])):
        invalid("event_id", "is not a UUID of version 7 in lower case")
    kind = given.get("event_type", "a.b")
    if not isinstance(kind, str) or len(kind) > MAX_NAME_CHARS or not _TYPE.match(kind):
        invalid("event_type", "is not an event type: lower-case words joined by dots")
    version = given.get("event_version", "1.0")
    if not isinstance(version, str) or parse_version(version) is None:
        invalid("event_version", "is not `major.minor`")
    schema_version = given.get("schema_version", "1.0")
    if not isinstance(schema_version, str) or not (match := _SCHEMA_VERSION.match(schema_version)):
        invalid("schema_version", "is not a version such as `1.0`")
    elif int(match[1]) != 1:
        invalid("schema_version", f"{schema_version}: this bus reads envelopes of version 1", Reason.SCHEMA_VERSION)
    if given.get("causation_id") is not None and (defect := _name_defect(given["causation_id"])):
        invalid("causation_id", defect)
    wrong += _path_defects(given.get("forwarded_by", ()))
    if type(given.get("occurred_at", 0)) is not int:
        invalid("occurred_at", "is an instant, µs since 1970 UTC")
    wrong += _extension_defects(given.get("extensions", {}))
    if not isinstance(given.get("payload", {}), dict):
        invalid("payload", "is a JSON object")
    return wrong


def _path_defects(path: Any) -> list[Refused]:
    if not isinstance(path, tuple):
        return [_refuse_envelope(Reason.ENVELOPE_INVALID, "/forwarded_by", "is a list of names")]
    names = cast("tuple[Any, ...]", path)
    if len(names) > MAX_FORWARDS:
        return [_refuse_envelope(Reason.ENVELOPE_INVALID, "/forwarded_by", f"has more than {MAX_FORWARDS} names")]
    return [
        _refuse_envelope(Reason.ENVELOPE_INVALID, f"/forwarded_by/{index}", defect)
        for index, name in enumerate(names)
        if (defect := _name_defect(name))
    ]


def _extension_defects(extensions: Any) -> list[Refused]:
    if not isinstance(extensions, dict):
        return [_refuse_envelope(Reason.ENVELOPE_INVALID, "/extensions", "is an object of names and values")]
    if len(given := cast("dict[Any, Any]", extensions)) > MAX_EXTENSIONS:
        return [_refuse_envelope(Reason.ENVELOPE_INVALID, "/extensions", f"has more than {MAX_EXTENSIONS} attributes")]
    if DELIVER_AT in given and parse_instant(str(given[DELIVER_AT])) is None:
        return [
            _refuse_envelope(
                Reason.ENVELOPE_INVALID, f"/extensions/{DELIVER_AT}", "is not an instant such as 2026-01-31T08:00:00Z"
            )
        ]
    return [
        _refuse_envelope(
            Reason.ENVELOPE_INVALID,
            f"/extensions/{name}",
            "is not an attribute: a-z, 0-9; a text, whole number or bool",
        )
        for name, value in given.items()
        if not (isinstance(name, str) and _ATTRIBUTE.match(name) and _is_attribute_value(value))
    ]


def _is_attribute_value(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MAX_EXTENSION_CHARACTERS and not _CONTROL.search(value)
    return isinstance(value, int) and -(2**31) <= value < 2**31


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
            envelope.extensions,
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


def deliver_at(envelope: Envelope) -> int:
    """Before when nobody handles the event; 0 where it says nothing of it."""
    if not envelope.extensions or (text := envelope.extensions.get(DELIVER_AT)) is None:
        return 0
    return parse_instant(str(text)) or 0


def rendition(envelope: Envelope, event_version: str, payload: dict[str, Any]) -> Envelope:
    """The same event in another major version, for publishing two of them together (C§4)."""
    return msgspec.structs.replace(envelope, event_version=event_version, payload=payload)


def _name_defect(value: Any) -> str:
    if type(value) is not str:
        return "is not text"
    if _NAME.match(value) and not value.isspace():
        return ""
    if not value or value.isspace():
        return "is empty"
    return f"is longer than {MAX_NAME_CHARS} characters" if len(value) > MAX_NAME_CHARS else "holds a control character"


def _refuse_envelope(code: Reason, place: str, detail: str) -> Refused:
    return Refused(code=code, place=place, detail=detail)
