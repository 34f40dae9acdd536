"""Turns an envelope into a CloudEvent 1.0 in structured or binary mode, and back: one to one (B1).

| envelope | CloudEvents attribute |
|---|---|
| event_id, event_type, occurred_at | id, type, time |
| producer | source: `urn:patra:producer:` and the name, percent-encoded |
| the other texts: event_version, tenant_id … | the same names without the underscore: eventversion, tenantid … |
| forwarded_by | forwardedby: the names, percent-encoded, joined by commas |
| payload | data, `datacontenttype` application/json |
| extensions | every other attribute, under its name: subject, dataschema, traceparent … |
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import Envelope, Refused, from_wire, legible, to_wire
from patra.bus.publishing.foreign_cloudevents import SOURCE, Completion
from patra.bus.publishing.json_text import UNREADABLE, decode_json
from patra.bus.publishing.submission import Submission

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"

_TO_ATTRIBUTE = {
    "event_id": "id",
    "event_type": "type",
    "occurred_at": "time",
    "event_version": "eventversion",
    "schema_version": "schemaversion",
    "tenant_id": "tenantid",
    "project_id": "projectid",
    "trace_id": "traceid",
    "correlation_id": "correlationid",
    "causation_id": "causationid",
    "idempotency_key": "idempotencykey",
}
_TO_FIELD = {attribute: field for field, attribute in _TO_ATTRIBUTE.items()}
_SENT_AS = {**_TO_ATTRIBUTE, "producer": "source", "forwarded_by": "forwardedby", "payload": "data"}
_OWN = frozenset({*_TO_FIELD, "source", "forwardedby"})
RESERVED = _OWN | {"specversion", "datacontenttype", "data", "data_base64"}  # no names for extensions
_JSON_TYPE = re.compile(r"application/(json|[a-z0-9.+-]+\+json)\s*(;.*)?\Z", re.IGNORECASE)
_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")


def structure_event(envelope: Envelope) -> dict[str, Any]:
    """The CloudEvent as one JSON object."""
    return {**_attributes(envelope), "datacontenttype": "application/json", "data": envelope.payload}


def from_structured(raw: Any, submission: Submission | None = None, complete: Completion = dict) -> Envelope | Refused:
    """An envelope from a decoded CloudEvent in structured mode; `complete` fills in what other senders do not know."""
    if not isinstance(raw, Mapping):
        return _refuse_event("", "a CloudEvent is a JSON object")
    attributes = dict(cast("Mapping[str, Any]", raw))
    content = attributes.pop("datacontenttype", "application/json")
    if not isinstance(content, str) or not _JSON_TYPE.match(content):
        return _refuse_event("/datacontenttype", "is not a JSON type")
    if "data_base64" in attributes:
        if "data" in attributes:
            return _refuse_event("/data_base64", "stands beside `data`")
        try:
            attributes["data"] = decode_json(base64.b64decode(str(attributes.pop("data_base64")), validate=True))
        except (binascii.Error, *UNREADABLE) as error:
            return _refuse_event("/data_base64", f"is not JSON in base64: {error}")
    data = attributes.pop("data", None)
    return _envelope(complete(attributes), data, submission)


def binary(envelope: Envelope) -> tuple[dict[str, str], bytes]:
    """The CloudEvent as HTTP headers and a body."""
    headers = {f"ce-{name}": _header(_text(value)) for name, value in _attributes(envelope).items()}
    return {"content-type": "application/json", **headers}, msgspec.json.encode(envelope.payload)


def from_binary(
    headers: Mapping[str, str], body: bytes, submission: Submission | None = None, complete: Completion = dict
) -> Envelope | Refused:
    """An envelope from a CloudEvent in binary mode. Header names are taken in any case."""
    lowered = {name.lower(): value for name, value in headers.items()}
    if not _JSON_TYPE.match(lowered.get("content-type", "application/json")):
        return _refuse_event("/datacontenttype", "is not a JSON type")
    attributes: dict[str, Any] = {}
    for name, value in lowered.items():
        if name.startswith("ce-"):
            try:
                attributes[name[3:]] = unquote_to_bytes(value).decode()
            except UnicodeDecodeError:
                return _refuse_event(f"/{name[3:]}", "is not percent-encoded UTF-8")
    try:
        data = decode_json(body)
    except UNREADABLE as error:
        return _refuse_event("/data", f"is not JSON: {error}")
    return _envelope(complete(attributes), data, submission)


def legible_event(raw: Any) -> Envelope:
    """What can be read of something that is not a CloudEvent; of binary mode, of its headers (A4)."""
    attributes: Mapping[str, Any] = cast("Mapping[str, Any]", raw) if isinstance(raw, Mapping) else {}
    bare = {name.lower().removeprefix("ce-"): value for name, value in attributes.items()}
    fields = {field: bare.get(attribute) for attribute, field in _TO_FIELD.items()}
    return legible(fields | {"producer": bare.get("source")})


def is_binary(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == "ce-specversion" for name in headers)


def _attributes(envelope: Envelope) -> dict[str, str | int | bool]:
    wire = to_wire(envelope)
    found: dict[str, str | int | bool] = {name: v for name, v in envelope.extensions.items() if name not in RESERVED}
    found |= {"specversion": "1.0", "source": SOURCE + quote(envelope.producer, safe="")}
    found |= {attribute: wire[field] for field, attribute in _TO_ATTRIBUTE.items() if field in wire}
    if envelope.forwarded_by:
        found["forwardedby"] = ",".join(quote(name, safe="") for name in envelope.forwarded_by)
    return found


def _envelope(attributes: dict[str, Any], data: Any, submission: Submission | None) -> Envelope | Refused:
    if attributes.pop("specversion", None) != "1.0":
        return _refuse_event("/specversion", "is not 1.0")
    wire: dict[str, Any] = {"payload": data}
    extensions: dict[str, Any] = {}
    for name, value in attributes.items():
        if value is None:  # in JSON null says the same as leaving it out
            continue
        if name not in _OWN:
            extensions[name] = value
        elif not isinstance(value, str):
            return _refuse_event(f"/{name}", "is not text")
        elif name == "source":
            producer = _unquote_text(value.removeprefix(SOURCE)) if value.startswith(SOURCE) else None
            if producer is None:
                return _refuse_event("/source", f"is not {SOURCE}NAME, percent-encoded")
            wire["producer"] = producer
        elif name == "forwardedby":
            names = [_unquote_text(part) for part in value.split(",")]
            if None in names:
                return _refuse_event("/forwardedby", "is not a list of percent-encoded names")
            wire["forwarded_by"] = names
        else:
            wire[_TO_FIELD[name]] = value
    if extensions:
        wire["extensions"] = extensions
    found = from_wire(wire, submission)
    return _with_attributes(found) if isinstance(found, Refused) else found


def _with_attributes(refused: Refused) -> Refused:
    """Each place with the attribute that its sender knows it by."""
    field = refused.place.removeprefix("/").partition("/")[0]
    attribute = _SENT_AS.get(field)
    detail = refused.detail if attribute is None else f"{refused.detail} (attribute `{attribute}`)"
    others = tuple(_with_attributes(one) for one in refused.others)
    return msgspec.structs.replace(refused, detail=detail, others=others)


def _unquote_text(text: str) -> str | None:
    if "%" in _PERCENT.sub("", text):
        return None
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return None


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _header(value: str) -> str:
    """As the HTTP binding asks: everything but printable ASCII, and also space, quote and percent, is encoded."""
    return "".join(c if "!" <= c <= "~" and c not in '"%' else quote(c, safe="") for c in value)


def _refuse_event(place: str, detail: str) -> Refused:
    return Refused(code=Reason.CLOUDEVENT_INVALID, place=place, detail=detail)
