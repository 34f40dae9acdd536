"""Says when alerts were last checked, where that is too long ago: an alert changes only while a process checks it."""

from collections.abc import Iterable, Mapping
from typing import Any

from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, parse_instant

MISSED_CHECKS = 2  # so many intervals may pass before a check counts as missed: a look takes time
UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


def late_check_text(alerts: Iterable[Mapping[str, Any]], now: int, every: int) -> str:
    """That nobody checks, for alerts as `monitor.alerts` gives them; empty where they are checked, or none is live."""
    checked = [parse_instant(one["checked"]) or 0 for one in alerts if one["state"] != "OVER"]
    if not checked or now - max(checked) <= MISSED_CHECKS * every:
        return ""
    return f"last checked {_span(now - max(checked))} ago; no process runs the alerts loop now"


def _span(duration: int) -> str:
    size, unit = next(((size, unit) for size, unit in UNITS if duration >= size), UNITS[-1])
    return f"{duration // size} {unit}"
