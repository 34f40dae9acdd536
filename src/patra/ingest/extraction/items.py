"""Decides from an item as it stands in the body of an answer what the pack looks for in it.

Items of a JSON list are read some at a time, and only the parts that paths of the pack begin with: what nobody asks
for is passed over, which costs a fraction of reading it, and no large page is ever held in memory as values.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from patra.ingest.expressions.paths import Steps
from patra.ingest.extraction.body_parser import read_item
from patra.ingest.extraction.projection import decoder, wants_of


def item_reader(needs: Iterable[Steps]) -> Callable[[Any], Any]:
    """Decodes items only as far as they are used. Items that were read already stay as they are."""
    wants = wants_of(needs)
    if wants is None or None in wants:
        return _whole
    part = decoder(wants)

    def read(item: Any) -> Any:
        if type(item) is not msgspec.Raw:
            return _whole(item)
        try:
            return part(item)
        except msgspec.DecodeError:  # not what the paths expect, or a number past every bound
            return read_item(item)

    return read


def _whole(item: Any) -> Any:
    return read_item(item) if type(item) in {msgspec.Raw, bytes} else item
