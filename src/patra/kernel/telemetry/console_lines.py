"""Log lines for people at a terminal: time, level, event and the few fields that matter, one line each.

Lines of routine work leave out the ids that tie them together and end at the edge of the terminal; `log.format: json`
has everything. Warnings and errors are whole: what went wrong, what to do, and the ids to look for it.
"""

import os
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TextIO, cast

from patra.kernel.safety.untrusted_text import without_controls

FIRST = ("url", "outcome", "reason", "detail", "error", "advice")
"""Fields that stand in front of the others; after them come numbers, then texts."""
WHERE = ("source", "endpoint", "op")
"""Written without their names: `crossref/works BACKFILL`."""
IDS = frozenset(
    {
        "correlation_id",
        "trace_id",
        "schedule_instance_id",
        "plan_id",
        "slice_id",
        "task_id",
        "run_id",
        "span_id",
        "loop",
    }
)
"""Left out of lines of routine work."""
MACHINERY = frozenset({"holder", "leased_until", "fence", "slot", "late_ms", "pause_us", "pid", "sample_rate"})
"""Left out everywhere."""
COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
MAX_ITEMS_SHOWN = 3
GRAVE = frozenset({"warning", "error", "critical"})


def console_renderer(out: TextIO) -> Callable[[Any, str, MutableMapping[str, Any]], str]:
    """Renders events for a terminal; colours only there, and not where NO_COLOR asks for none."""
    coloured = out.isatty() and not os.environ.get("NO_COLOR")

    def render(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
        level = str(event.get("level", ""))
        line = console_line(event)
        if level not in GRAVE and (width := _width(out)) is not None and len(line) > width:
            line = f"{line[: width - 1]}…"
        if coloured:
            line = line.replace(level, f"\x1b[{COLOURS.get(level, '0')}m{level}\x1b[0m", 1)
        trace = event.get("exception")
        return f"{line}\n{trace}" if trace else line

    return render


def console_line(event: Mapping[str, Any]) -> str:
    """An event as one line, without its traceback."""
    level = str(event.get("level", ""))
    hidden = MACHINERY | {"at", "level", "event", "exception"} | (frozenset[str]() if level in GRAVE else IDS)
    shown = {name: value for name, value in event.items() if name not in hidden and value is not None}
    source, endpoint, op = (shown.pop(name, "") for name in WHERE)
    place = [str(part) for part in (f"{source}/{endpoint}" if endpoint else source, op) if part]
    shown = _each_id_once(shown)
    written = _whole if level in GRAVE else _short
    fields = [f"{name}={written(shown[name])}" for name in sorted(shown, key=lambda name: _rank(name, shown[name]))]
    return " ".join([str(event.get("at", ""))[11:19], f"{level:<7}", str(event.get("event", "")), *place, *fields])


def _each_id_once(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Without an id that stands in another one: the run `p1.t2.r1` names its task and its plan, too."""
    ids = {name: value for name, value in fields.items() if name in IDS or name == "task"}
    longest = {str(value): name for name, value in sorted(ids.items(), key=lambda one: one[0] != "run_id")[::-1]}
    return {
        name: value
        for name, value in fields.items()
        if name not in ids
        or (longest[str(value)] == name and not any(whole.startswith(f"{value}.") for whole in longest))
    }


def _rank(name: str, value: Any) -> int:
    if name in FIRST:
        return FIRST.index(name)
    return len(FIRST) if isinstance(value, int | float) else len(FIRST) + 1


def _short(value: Any) -> str:
    """A list is its length where it is long."""
    if isinstance(value, list) and (count := len(cast("list[Any]", value))) > MAX_ITEMS_SHOWN:
        return str(count)
    return _whole(value)


def _whole(value: Any) -> str:
    """Text with blanks stands in quotes."""
    if isinstance(value, str):
        return f'"{value}"' if " " in value or not value else value
    return without_controls(str(value))


def _width(out: TextIO) -> int | None:
    """Columns of the terminal; None where it is none."""
    try:
        return os.get_terminal_size(out.fileno()).columns or None
    except (OSError, ValueError):
        return None
