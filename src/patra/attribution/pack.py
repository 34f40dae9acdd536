"""The decisions on one item of the log go in, one compressed row comes out; and back again.

A hundred decisions of one batch share most of their text, so together they take a tenth of the space and one row in
place of a hundred: what is written for an event decides how many fit into a second. The row has two frames: what was
decided, and what its events are, as whoever read the batch put it together (`Batch.tales`). Rows of which something
was purged have one frame of whole decisions, and so have those of earlier versions.
"""

import struct
from collections.abc import Sequence
from operator import itemgetter

import msgspec

from patra.attribution.batch import Batch, Item
from patra.attribution.decide import ITEM_BITS
from patra.attribution.event import Told
from patra.attribution.facts import Decision, Made, decision_of
from patra.attribution.frame import compressed, decompressed
from patra.attribution.intake import shown

_TWO_FRAMES = b"\x02"
"""How such a row begins; one with a single frame begins with the mark of a frame."""
_LENGTH = struct.Struct("<I")
"""Behind it: the length of the first frame."""
_HEAD = len(_TWO_FRAMES) + _LENGTH.size

_encode = msgspec.json.Encoder(enc_hook=shown).encode
_decode = msgspec.json.Decoder(list[tuple[int, Decision]]).decode
_decode_made = msgspec.json.Decoder(list[Made]).decode
_decode_told = msgspec.json.Decoder(list[Told]).decode


def packed(made: Sequence[Made], item: Item) -> bytes:
    """Decisions on one item, as one value."""
    frame = compressed(_encode(made))
    tales = item.tales if isinstance(item, Batch) else b""
    return b"".join((_TWO_FRAMES, _LENGTH.pack(len(frame)), frame, tales))


def packed_whole(decisions: Sequence[tuple[int, Decision]]) -> bytes:
    """Decisions with their numbers, as one value, where some of their item are gone."""
    return compressed(_encode(decisions))


def unpacked(item: int, body: bytes) -> list[tuple[int, Decision]]:
    """The decisions of an item with their numbers, in their order; the oldest rows have only the places in the item."""
    if body[:1] != _TWO_FRAMES:
        first, found = item << ITEM_BITS, _decode(decompressed(body))
        return [(first | number, decision) for number, decision in sorted(found, key=itemgetter(0))]
    end = _HEAD + _LENGTH.unpack_from(body, 1)[0]
    made, tales = _decode_made(decompressed(body[_HEAD:end])), body[end:]
    told = {one.subject.index: one for one in _decode_told(decompressed(tales))} if tales else {}
    return [(one.number, decision_of(one, None if one.event is None else told[one.event])) for one in made]
