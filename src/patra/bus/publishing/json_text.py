"""JSON from outside: a key that stands twice is refused, where a parser would keep the last and drop the first."""

import json
from collections import Counter
from typing import Any

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What `decode_json` raises for a text that is not JSON."""

_decoder = msgspec.json.Decoder()


def decode_json(body: bytes | str) -> Any:
    """The value of a JSON text. Raises one of UNREADABLE."""
    value = _decoder.decode(body)
    json.loads(body, object_pairs_hook=_pairs)  # the text is JSON by now; only its keys are looked at
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise msgspec.DecodeError(f"the key {twice!r} stands twice in one object")
