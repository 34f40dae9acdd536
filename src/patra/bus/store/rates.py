"""How many events of each type were published lately, by whatever process: a bounded count by an index."""

from collections.abc import Collection

from patra.bus.store.events import Q
from patra.kernel.clock import MINUTE
from patra.kernel.db import Tx

RATE_WINDOW = 5 * MINUTE
MAX_COUNTED = 20_000
"""Of one type; a type that has more is shown to have at least so many."""


def published_lately(tx: Tx, types: Collection[str], now: int) -> dict[str, int]:
    """Events of the last `RATE_WINDOW` by type, at most `MAX_COUNTED` each."""
    params = {"since": now - RATE_WINDOW, "most": MAX_COUNTED}
    return dict(tx.fetch(Q["published_since"], params, rows=[(one,) for one in sorted(set(types))]))
