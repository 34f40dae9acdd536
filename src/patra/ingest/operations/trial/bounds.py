"""Asks a provider whether the bounds of a window are inclusive: a record is asked for from, and up to, its own time.

The unit is the finest part of an instant that the request carries. A record whose time has a finer part than that shows
most: if it comes for a window that ends with its unit, the provider compares by that unit and includes it; if it does
not, the bound is exclusive, or compared more finely than it is sent, and to declare `exclusive` loses nothing (I11).
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.request import Position
from patra.ingest.operations.trial.pages import walk_list
from patra.ingest.operations.trial.request import Ready
from patra.ingest.packs.sections.paging import PRECISIONS
from patra.ingest.ratelimit.limiter import Pause
from patra.ingest.vocabulary.codes import Bounds, Precision, UpdateTime
from patra.kernel.clock import DAY, format_instant

MAX_PROBE_PAGES = 2
INCLUSIVE, EXCLUSIVE, UNCLEAR = "inclusive", "exclusive", "unclear"


class Dated(msgspec.Struct, frozen=True):
    """A record that was seen, and its update time."""

    id: str
    at: int


class BoundsProbe(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider showed of its bounds, and what follows for the pack."""

    lower: str
    upper: str
    unit: str
    record: str
    updated: str
    says: str
    loses: bool = False
    """As the pack stands, records at a bound would not come."""


def can_probe(ready: Ready) -> bool:
    """Whether the list is filtered by the times that its records show."""
    response = (ready.details or ready.line).leg.response
    shows = bool(response.updated_at_path) and response.update_time in {UpdateTime.CHANGED, UpdateTime.REVISED}
    return shows and ready.spec.window.supports_updated_since and not ready.at.ids


def probe_bounds(ready: Ready, services: Runtime, seen: Sequence[Dated], pause: Pause) -> BoundsProbe | None:
    """Three short walks at most; None where no request carries the end of a window, or no record was seen."""
    precision = sent_precision(ready)
    if precision is None or not seen:
        return None
    unit = PRECISIONS[precision]
    finer = [one for one in seen if one.at % unit]
    record = (finer or list(seen))[-1]
    floor = record.at // unit * unit
    lower = _comes(ready, services, record, floor, floor + 2 * unit, pause)
    around = lower or _comes(ready, services, record, floor - unit, floor + 2 * unit, pause)
    upper = _comes(ready, services, record, floor - unit, floor, pause) if around else None
    found = BoundsProbe(
        lower=_word(lower if around else None),
        upper=_word(upper),
        unit=precision.value,
        record=record.id,
        updated=format_instant(record.at),
        says="",
    )
    if not around:
        says = "the record does not come back for the time around its own: the filter goes by another time, or the "
        return replace(found, says=says + "window holds too many records")
    says, loses = _conclusion(ready.spec.window.bounds, found)
    return replace(found, says=says, loses=loses)


def sent_precision(ready: Ready) -> Precision | None:
    """The finest part of the end of a window that the rendered request carries; None where it carries none."""
    start = (ready.at.window_to or 0) // DAY * DAY
    plain = ready.line.masked_request(_window_position(ready.at, start, start + 2 * DAY))
    for precision in (Precision.MILLISECOND, Precision.SECOND, Precision.MINUTE, Precision.DAY):
        later = _window_position(ready.at, start, start + 2 * DAY + PRECISIONS[precision])
        if ready.line.masked_request(later) != plain:
            return precision
    return None


def _window_position(at: Position, since: int, until: int) -> Position:
    """The same request for another window, its end sent as it is."""
    return replace(at, window_from=since, window_to=until, window_until=until, page_from=since, page_to=until)


def _comes(ready: Ready, services: Runtime, record: Dated, since: int, until: int, pause: Pause) -> bool | None:
    """Whether a window has the record; None where an answer was refused, or the list is longer than is looked at."""
    walk = walk_list(ready._replace(at=_window_position(ready.at, since, until)), services, MAX_PROBE_PAGES, pause)
    if record.id in walk.ids:
        return True
    return False if walk.end is not None and walk.accepted else None


def _word(comes: bool | None) -> str:
    return UNCLEAR if comes is None else INCLUSIVE if comes else EXCLUSIVE


def _conclusion(declared: Bounds | None, found: BoundsProbe) -> tuple[str, bool]:
    """What to do, and whether the pack loses records as it stands."""
    unit = found.unit
    if found.lower == EXCLUSIVE:
        return f"the lower bound is exclusive: the pack must send one {unit} less than `window.from`", True
    match found.upper, declared:
        case ("inclusive", Bounds.INCLUSIVE) | ("exclusive", Bounds.EXCLUSIVE):
            return "as the pack declares", False
        case "inclusive", None:
            return (
                f"declare `window.bounds: inclusive` and `window.precision: {unit}`: nothing is read twice then",
                False,
            )
        case "inclusive", Bounds.EXCLUSIVE:
            return "declared exclusive: records at the end of a window are read twice, which loses nothing", False
        case "exclusive", Bounds.INCLUSIVE:
            says = f"declared inclusive: the last {unit} of every window is lost; declare `window.bounds: exclusive`"
            return says, True
        case "exclusive", None:
            return "declare `window.bounds: exclusive`; undeclared bounds read too much, which loses nothing", False
        case _:
            return "the provider's answers do not show it", False
