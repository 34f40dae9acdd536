"""The timeline of events for a person: a line for each thing that happened, instead of its detail as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from patra.cli.terminal.options import table
from patra.cli.terminal.wrapping import say
from patra.kernel.clock import format_instant

if TYPE_CHECKING:
    from patra.bus.timeline import Entry

IDENTIFIERS = frozenset({"event_id", "events", "event_type", "event_version", "producer", "tenant_id", "trace_id"})
"""What every entry of an event has in common: it is said where the event was published."""
SHOWN = {
    "published": ("event_type", "event_version", "producer", "published_by", "body"),
    "routed": ("groups",),
    "attempt_failed": ("group", "attempt", "by", "error_code", "error_detail", "due_at"),
    "waiting": ("group", "name", "state", "attempts", "error_code", "error_detail", "due_at"),
    "dead_letter": ("group", "attempts", "error_code", "error_detail", "state"),
    "refused": ("producer", "event_type", "code", "place", "detail", "count"),
}
"""Which parts of its detail say what happened; of anything else all that is not an identifier of the event."""
BARE = frozenset({"event_type", "error_code", "error_detail", "code", "place", "detail"})
"""Parts that need no word before them."""
TOGETHER = (
    ("event_type", "event_version", " "),
    ("error_code", "error_detail", ": "),
    ("place", "detail", ": "),
    ("code", "place", ": "),
)
"""Parts that are said as one."""


def print_timeline(found: "Sequence[Entry]") -> None:
    """Lines with the instant, what happened and its detail in words; several events are numbered, with their ids."""
    numbers = {event_id: str(n) for n, event_id in enumerate(dict.fromkeys(one.event_id for one in found), 1)}
    several = len(numbers) > 1
    for event_id, number in numbers.items():
        say(f"event {number}: {event_id}" if several else f"event {event_id}")
    rows = [
        [format_instant(one.at), numbers[one.event_id], one.what.replace("_", " "), detail_words(one.what, one.detail)]
        for one in found
    ]
    if several:
        table(["when", "event", "what happened", "detail"], rows)
    else:
        table(["when", "what happened", "detail"], [[when, what, detail] for when, _, what, detail in rows])


def detail_words(what: str, detail: dict[str, Any]) -> str:
    """The parts of a detail that say something, in words; the whole of it is in `--json`."""
    names = SHOWN.get(what) or [name for name in detail if name not in IDENTIFIERS]
    parts = {name: _text(detail[name]) for name in names if detail.get(name) not in (None, "", [], {})}
    for first, second, between in TOGETHER:
        if first in parts and second in parts:
            parts[first] += between + parts.pop(second)
    return ", ".join(text if name in BARE else f"{name.replace('_', ' ')} {text}" for name, text in parts.items())


def _text(value: Any) -> str:
    return ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)
