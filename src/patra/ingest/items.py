"""An item as it stands in the body of an answer goes in; what the pack looks for in it comes out.

Items of a JSON list are read one after the other, and only the parts that paths of the pack begin with: what nobody
asks for is passed over, which costs a fraction of reading it, and no page is ever held in memory as values.
"""

from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

from patra.ingest.reading import read_item

_typed: Any = TypedDict  # type checkers know only those that are written out


def item_reader(needs: frozenset[str] | None) -> Callable[[Any], Any]:
    """A reader of items of which these parts are needed (None: all). Items that were read already stay as they are."""
    if needs is None:
        return _whole
    part = msgspec.json.Decoder(_typed("Item", dict.fromkeys(sorted(needs), Any), total=False)).decode

    def read(item: Any) -> Any:
        if type(item) is not msgspec.Raw:
            return item
        try:
            return part(item)
        except msgspec.DecodeError:  # no object, or a number past every bound
            return read_item(item)

    return read


def _whole(item: Any) -> Any:
    return read_item(item) if type(item) in {msgspec.Raw, bytes} else item


def both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """What two readers of one item need."""
    return None if one is None or other is None else one | other
