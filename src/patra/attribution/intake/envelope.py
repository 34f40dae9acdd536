"""Turns the bytes of a request body into an envelope with its events or a refusal of the batch (§3.8.4, F11).

An event that cannot be read does not take its batch down: it stays in its place as something that is not an object, and
the next stage rejects it alone. JSON is read as RFC 8259 has it, a name that stands twice counts the last time, and
beyond that:

- text with half of a surrogate pair has no UTF-8 form: it is `NotText`, which no rule takes for text;
- an event that nests deeper than 256 levels is read as null, so that no answer depends on the size of a stack.
"""

import json
import re
from itertools import accumulate, pairwise
from typing import Annotated, Any, cast

import msgspec

from patra.attribution.contract.event_fields import (
    ENVELOPE_REQUIRED,
    ID_PATTERN,
    MAX_BATCH_EVENTS,
    SCHEMA_VERSIONS,
    UNIQUENESS_PATTERNS,
)
from patra.attribution.contract.event_types import MAX_FIELD_CHARS
from patra.attribution.contract.reasons import Reason

MAX_JSON_DEPTH = 256

legal_id = re.compile(ID_PATTERN).fullmatch
"""The form of `eventId`, `idempotencyKey`, `batchId` and `appId` (F3)."""

# possessive, with the closing quote optional: text that never ends is passed over once, not from each of its quotes
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_RUNS = re.compile(rb'([\[{]++)|([\]}]++)|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_NUMBER_DIGITS = 4300

_decode = msgspec.json.Decoder().decode


class NotText(str):
    """Text as sent, but for its lone surrogates: it can be shown, and it is not text to any rule."""

    __slots__ = ()


def display_text(value: object) -> str:
    """For encoders: text that no rule takes for text, as it can be shown."""
    return str(value)


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is well formed; what its events are is not known yet."""

    batch_id: str
    app_id: str
    uniqueness: str | None
    events: list[Any]


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is refused as a whole, and its id where that can be read."""

    code: Reason
    batch_id: str | None = None


class _Plain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An envelope as SDKs send it; one that is not of this shape is read with care."""

    batchId: str  # noqa: N815  names of the specification
    appId: str  # noqa: N815
    sdkVersion: Annotated[str, msgspec.Meta(min_length=1)]  # noqa: N815
    sentAt: Annotated[str, msgspec.Meta(min_length=1)]  # noqa: N815
    schemaVersion: str  # noqa: N815
    events: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_BATCH_EVENTS)]
    retrySequence: Any = None  # noqa: N815
    transportCompression: Any = None  # noqa: N815
    extensions: Any = None


_decode_plain = msgspec.json.Decoder(_Plain).decode


def plain_envelope(body: bytes) -> Envelope | None:
    """The envelope with its events as they stand there, unread; None where it must be read with care (`envelope`)."""
    if body.count(b"{") + body.count(b"[") > MAX_JSON_DEPTH:
        return None
    try:
        found = _decode_plain(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    if not (legal_id(found.batchId) and legal_id(found.appId) and found.schemaVersion in SCHEMA_VERSIONS):
        return None
    return Envelope(
        batch_id=found.batchId,
        app_id=found.appId,
        uniqueness=_uniqueness(found.extensions),
        events=found.events,
    )


def as_read(event: Any) -> Any:
    """An event of an envelope: what a plain one kept unread is read now."""
    return read_json(bytes(event)) if type(event) is msgspec.Raw else event


def envelope(body: bytes) -> Envelope | Refused:
    """Read and check the envelope of a batch; the first check that fails decides."""
    try:
        batch = read_json(body)
    except (ValueError, RecursionError):  # msgspec's and json's errors are ValueErrors, those of UTF-8 too
        return Refused(code=Reason.BATCH_MALFORMED)
    if not isinstance(batch, dict):
        return Refused(code=Reason.BATCH_MALFORMED)
    fields = cast("dict[str, Any]", batch)
    batch_id, app_id, events = fields.get("batchId"), fields.get("appId"), fields.get("events")
    code = _refusal(fields)
    if code is not None:
        legible = type(batch_id) is str and 1 <= len(batch_id) <= MAX_FIELD_CHARS
        return Refused(code=code, batch_id=batch_id if legible else None)
    return Envelope(
        batch_id=cast("str", batch_id),
        app_id=cast("str", app_id),
        uniqueness=_uniqueness(fields.get("extensions")),
        events=cast("list[Any]", events),
    )


def _refusal(fields: dict[str, Any]) -> Reason | None:
    for name in ENVELOPE_REQUIRED:
        value = fields.get(name)
        if value is None or (name != "events" and value in ("", [], {})):
            return Reason.BATCH_MISSING_REQUIRED
    for name in ("batchId", "appId"):
        value = fields[name]
        if type(value) is not str or not legal_id(value):
            return Reason.BATCH_ID_INVALID
    version = fields["schemaVersion"]
    if type(version) is not str or version not in SCHEMA_VERSIONS:
        return Reason.BATCH_SCHEMA_UNSUPPORTED
    events = fields["events"]
    if type(events) is not list or not 1 <= len(cast("list[Any]", events)) <= MAX_BATCH_EVENTS:
        return Reason.BATCH_EVENTS_INVALID
    return None


def _uniqueness(extensions: Any) -> str | None:
    """The declaration of F4; anything but its two values is none."""
    if not isinstance(extensions, dict):
        return None
    declared: Any = cast("dict[str, Any]", extensions).get("eventIdUniqueness")
    return declared if type(declared) is str and declared in UNIQUENESS_PATTERNS else None


def read_json(body: bytes) -> Any:
    """The value of a JSON text: msgspec reads what it can, the careful reader whatever is left. Raises ValueError."""
    if body.count(b"{") + body.count(b"[") <= MAX_JSON_DEPTH or _depth(body) <= MAX_JSON_DEPTH + 2:
        try:
            return _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            text = body.decode()
    else:
        body.decode()  # also where it is cut
        text = _shallow(body).decode()
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeError):  # half surrogates, numbers past the range of doubles; or no JSON
        return _sound(json.loads(text, parse_constant=_no_constant, parse_int=_integer))


def _depth(body: bytes) -> int:
    """How many levels nest at the deepest place; raises ValueError where more are opened than closed, or fewer."""
    brackets = _STRING.sub(b"", body).translate(_STEPS, delete=_NO_BRACKETS)
    if 2 * brackets.count(1) != len(brackets):
        raise ValueError("brackets do not match")
    return max(accumulate(memoryview(brackets).cast("b")), default=0)


def _shallow(text: bytes) -> bytes:
    """The text with null in the place of every value of the third level that nests deeper than `MAX_JSON_DEPTH`.

    The levels are the batch, its `events`, one event. Where the brackets do not match the text is not JSON anyway.
    """
    depth = begin = deepest = 0
    cuts: list[tuple[int, int]] = []
    for run in _RUNS.finditer(text):
        start, end = run.span()
        if run.lastindex == 1:
            if depth < 3 <= depth + end - start:
                begin, deepest = start + 2 - depth, 3
            depth += end - start
            deepest = max(deepest, depth)
        elif run.lastindex == 2:
            if depth - (end - start) < 3 <= depth and deepest > MAX_JSON_DEPTH + 2:
                cuts.append((begin, start + depth - 2))
            depth -= end - start
    kept = [text[end:begin] for (_, end), (begin, _) in pairwise([(0, 0), *cuts, (len(text), 0)])]
    return b"null".join(kept)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_NUMBER_DIGITS else float(digits)


def _sound(value: Any) -> Any:
    """The value with every text that has no UTF-8 form marked as such."""
    if isinstance(value, str):
        return NotText(_SURROGATE.sub("\ufffd", value)) if _SURROGATE.search(value) else value
    if isinstance(value, list):
        return [_sound(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_SURROGATE.sub("\ufffd", name): _sound(item) for name, item in items}
    return value
