"""A snapshot, a trigger, the watermark and now go in; the window to plan, or why none, comes out (ch. 6, 8.1)."""

import msgspec

from patra.ingest.bits import Window
from patra.ingest.codes import Operation, Overshoot
from patra.ingest.reasons import R
from patra.ingest.slicing import Grid, Span, aligned
from patra.ingest.spec import Spec
from patra.ingest.trigger import Trigger
from patra.kernel.clock import format_instant


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing to plan now; `refused` says that the trigger asked for what cannot be."""

    code: R
    detail: str
    refused: bool = False


def grid_of(window: Window) -> Grid:
    return Grid(unit=window.unit_us, narrowest=window.min_us, widest=window.max_us)


def window_of(spec: Spec, trigger: Trigger, watermark: int | None, now: int) -> Span | Idle:
    """HARVEST goes from the watermark to now minus the lag, BACKFILL from where it is told up to the watermark."""
    window, grid = spec.window, grid_of(spec.window)
    latest = now - window.safety_lag_us
    if trigger.until is not None and trigger.until > latest and window.overshoot is Overshoot.REJECT:
        return Idle(
            code=R.WINDOW_INVALID,
            detail=f"the window ends after now minus the safety lag ({format_instant(latest)})",
            refused=True,
        )
    since = trigger.since
    if since is None and spec.operation is Operation.HARVEST:
        since = watermark if watermark is not None else window.initial_us(now)
    if since is None:
        return Idle(
            code=R.WINDOW_INVALID,
            detail="there is no watermark yet and the pack names no window.initial: say --from"
            if spec.operation is Operation.HARVEST
            else "a backfill must say where it begins: --from",
            refused=True,
        )
    until = trigger.until
    if until is None:
        until = watermark if spec.operation is Operation.BACKFILL and watermark is not None else latest
    if trigger.since is not None and trigger.until is not None and trigger.since >= trigger.until:
        return Idle(code=R.WINDOW_INVALID, detail="the window must begin before it ends", refused=True)
    found = aligned(Span(since, max(until, since)), grid, latest)
    if found is None:
        return Idle(
            code=R.WINDOW_EMPTY,
            detail=f"nothing lies between {format_instant(since)} and {format_instant(grid.floor(min(until, latest)))}",
        )
    return found
