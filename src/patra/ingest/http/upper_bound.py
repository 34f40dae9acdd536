"""The upper bound that the request of a window carries: what it is written as never leaves something out (ruling I11).

What a template writes may be coarser than an instant: it then stands for the beginning of a second or a day. The
request is rendered to see where that begins; where it begins too early, the next one is sent, and a little is read
twice.
"""

from collections.abc import Callable

from msgspec.structs import replace

from patra.ingest.expressions.escaping import Refused
from patra.ingest.http.request import Position, Request
from patra.ingest.packs.sections import Window
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND

STEPS = (SECOND // 1000, SECOND, MINUTE, HOUR, DAY, 2 * DAY, 32 * DAY, 367 * DAY)
"""How far the bound is moved until the request shows it; a day in a time zone may have 25 hours."""


def upper_bound(window: Window, at: Position, shown: Callable[[Position], Request | Refused]) -> int | None:
    """`window.until` of a request: the bound that the pack declares, or the next one that the request can express."""
    if at.window_to is None:
        return None
    bound = window.until_us(at.window_to)

    def sent_bound(until: int) -> Request | Refused:
        return shown(replace(at, window_until=until))

    plain = sent_bound(bound)
    if sent_bound(window.start_of_unit_us(bound) - 1) != plain:
        return bound
    return next((bound + step for step in STEPS if sent_bound(bound + step) != plain), bound)
