"""Turns the decisions on one item of the log into one compressed row; and back again.

A hundred decisions of one batch share most of their text, so together they take a tenth of the space and one row in
place of a hundred: what is written for an event decides how many fit into a second. The row has two frames: what was
decided, and what its events are, as the reader of the batch encoded them (`Batch.tales`). Rows of which something
was purged have one frame of whole decisions, and so have those of earlier versions.
"""

import struct
from collections.abc import Sequence
from operator import itemgetter

import msgspec

from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.decisions import Decision, PendingDecision, decision_of
from patra.attribution.intake.batch import Batch, Item
from patra.attribution.intake.checked_event import StoredEvent
from patra.attribution.intake.envelope import display_text
from patra.attribution.intake.zstd import compress_body, decompress_body
from patra.kernel.errors import StoreCorrupt

TWO_FRAMES = b"\x02"
"""How such a row begins; one with a single frame begins with the mark of a frame."""
LENGTH = struct.Struct("<I")
"""Behind it: the length of the first frame."""
HEAD_BYTES = len(TWO_FRAMES) + LENGTH.size

_encode = msgspec.json.Encoder(enc_hook=display_text).encode
_decode = msgspec.json.Decoder(list[tuple[int, Decision]]).decode
_decode_made = msgspec.json.Decoder(list[PendingDecision]).decode
_decode_told = msgspec.json.Decoder(list[StoredEvent]).decode
_decode_each = msgspec.json.Decoder(list[tuple[int, msgspec.Raw]]).decode
_decode_each_told = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_one = msgspec.json.Decoder(Decision).decode
_decode_one_told = msgspec.json.Decoder(StoredEvent).decode


def pack_decisions(made: Sequence[PendingDecision], item: Item) -> bytes:
    """Decisions on one item, as one value."""
    frame = compress_body(_encode(made))
    tales = item.tales if isinstance(item, Batch) else b""
    return b"".join((TWO_FRAMES, LENGTH.pack(len(frame)), frame, tales))


def packed_whole(decisions: Sequence[tuple[int, Decision]]) -> bytes:
    """Decisions with their numbers, as one value, where some of their item are gone."""
    return compress_body(_encode(decisions))


def unpack_decisions(item: int, body: bytes, text: bytes | None = None) -> list[tuple[int, Decision]]:
    """The decisions of an item with their numbers, in their order; the oldest rows have only the places in the item.

    With a text, those that can hold it and perhaps some others: reading few of a hundred takes a fraction of the time.
    """
    try:
        return _unpack_body(item, body) if text is None else _unpacked_with(item, body, text)
    except (StoreCorrupt, msgspec.DecodeError, UnicodeDecodeError, struct.error, LookupError) as error:
        detail = error.detail if isinstance(error, StoreCorrupt) else f"{type(error).__name__}: {error}"
        raise StoreCorrupt("store_corrupt", f"att_decision, item={item}: {detail}") from error


def may_hold(body: bytes, text: bytes) -> bool:
    """Whether a text occurs in a row at all: a fraction of what it costs to read its decisions."""
    try:
        if body[:1] != TWO_FRAMES:
            return text in decompress_body(body)
        end = HEAD_BYTES + LENGTH.unpack_from(body, 1)[0]
        return text in decompress_body(body[HEAD_BYTES:end]) or (
            end < len(body) and text in decompress_body(body[end:])
        )
    except (StoreCorrupt, struct.error):
        return True  # reading it says what is wrong, and where


def _unpack_body(item: int, body: bytes) -> list[tuple[int, Decision]]:
    if body[:1] != TWO_FRAMES:
        first, found = item << ITEM_BITS, _decode(decompress_body(body))
        return [(first | number, decision) for number, decision in sorted(found, key=itemgetter(0))]
    end = HEAD_BYTES + LENGTH.unpack_from(body, 1)[0]
    made, tales = _decode_made(decompress_body(body[HEAD_BYTES:end])), body[end:]
    told = {one.subject.index: one for one in _decode_told(decompress_body(tales))} if tales else {}
    return [(one.number, decision_of(one, told[one.event] if isinstance(one.event, int) else None)) for one in made]


def _unpacked_with(item: int, body: bytes, text: bytes) -> list[tuple[int, Decision]]:
    if body[:1] != TWO_FRAMES:
        first, each = item << ITEM_BITS, _decode_each(decompress_body(body))
        held = [(first | number, _decode_one(raw)) for number, raw in each if text in bytes(raw)]
        return sorted(held, key=itemgetter(0))
    end = HEAD_BYTES + LENGTH.unpack_from(body, 1)[0]
    made, tales = _decode_made(decompress_body(body[HEAD_BYTES:end])), body[end:]
    raws = _decode_each_told(decompress_body(tales)) if tales else []
    told = _by_place([raw for raw in raws if text in bytes(raw)])
    wanted = [one for one in made if _says_itself(one) or one.event in told]
    if any(isinstance(one.event, int) and one.event not in told for one in wanted):
        told = _by_place(raws)
    return [(one.number, decision_of(one, told[one.event] if isinstance(one.event, int) else None)) for one in wanted]


def _says_itself(made: PendingDecision) -> bool:
    """Whether a decision names a subject or batch of its own, which the text may be of."""
    return made.subject is not None or not isinstance(made.event, int)


def _by_place(raws: Sequence[msgspec.Raw]) -> dict[int | None, StoredEvent]:
    return {one.subject.index: one for one in map(_decode_one_told, raws)}
