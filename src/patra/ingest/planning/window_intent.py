"""Turns a snapshot, a trigger, the watermark and now into the window to plan, or why none (ch. 6, 8.1)."""

import msgspec

from patra.ingest.packs.spec import Spec
from patra.ingest.planning.slicing.windows import Span, align_span, grid_of
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Align, Operation, Overshoot
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import SECOND, format_instant

_UNITS = {Align.MIN: "minute", Align.HOUR: "hour", Align.DAY: "day"}


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing to plan now; `refused` says that the trigger asked for what cannot be."""

    code: Reason
    detail: str
    refused: bool = False


def window_note(spec: Spec, trigger: Trigger, window: Span | None, now: int) -> str:
    """The window for people who asked for one up to now: where it ends and why it does not end now."""
    if window is None or (trigger.until is not None and trigger.until <= window.end):
        return ""
    read = f"window {format_instant(window.start)} … {format_instant(window.end)}"
    if not spec.window.safety_lag_us or window.end < grid_of(spec.window).floor(now - spec.window.safety_lag_us):
        return read
    latest = (now - spec.window.safety_lag_us) // SECOND * SECOND
    return (
        f"{read}: up to the last whole {_UNITS[spec.window.align]} before {format_instant(latest)} (now minus "
        f"window.safetyLag {spec.window.safety_lag}); a later run reads the rest"
    )


def window_of(spec: Spec, trigger: Trigger, watermark: int | None, now: int, added_lag: int = 0) -> Span | Idle:
    """HARVEST goes from the watermark to now minus the lag, BACKFILL from the given start up to the watermark.

    The last so much of time, which schedules ask for, ends at now minus the lag whatever a harvest has read, and is
    counted back from there where that is earlier: `last` may be shorter than the lag or than a step of the grid.
    `added_lag`: what back-pressure adds to the safety lag, unless the trigger says where the window ends.
    """
    window, grid = spec.window, grid_of(spec.window)
    latest = now - window.safety_lag_us - (added_lag if trigger.until is None else 0)
    if trigger.until is not None and trigger.until > latest and window.overshoot is Overshoot.REJECT:
        return Idle(
            code=Reason.WINDOW_INVALID,
            detail=f"the window ends after now minus the safety lag ({format_instant(latest)})",
            refused=True,
        )
    since = trigger.since
    if since is not None and trigger.last is not None:
        since = min(since, grid.floor(latest) - trigger.last)
    if since is None and spec.operation is Operation.HARVEST:
        since = watermark if watermark is not None else window.initial_us(now)
    if since is None:
        return Idle(
            code=Reason.WINDOW_INVALID,
            detail="there is no watermark yet and the pack names no window.initial: say --from"
            if spec.operation is Operation.HARVEST
            else "a backfill must say where it begins: --from",
            refused=True,
        )
    until = trigger.until
    if until is None:
        to_watermark = spec.operation is Operation.BACKFILL and trigger.last is None
        until = watermark if to_watermark and watermark is not None else latest
    if trigger.since is not None and trigger.until is not None and trigger.since >= trigger.until:
        return Idle(code=Reason.WINDOW_INVALID, detail="the window must begin before it ends", refused=True)
    found = align_span(Span(since, max(until, since)), grid, latest)
    if found is None:
        return Idle(
            code=Reason.WINDOW_EMPTY,
            detail=f"nothing lies between {format_instant(since)} and {format_instant(grid.floor(min(until, latest)))}",
        )
    return found
