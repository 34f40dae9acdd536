"""The navigation: by engine, with numbers only where a person is needed."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from patra.web.console.markup.formats import link


class Entry(msgspec.Struct, frozen=True):
    """A line of the navigation: its name, its path below `/console`, and the count that may stand beside it."""

    name: str
    path: str
    count: str = ""
    tone: str = "bad"
    needs: tuple[str, str] | None = None
    """The endpoint that its view asks, where not everybody may ask it."""

    spanned: bool = False
    """Whether its list takes a span of time, which then goes along from one such view to the next."""

    @property
    def href(self) -> str:
        return link(self.path)

    def href_with(self, span: Mapping[str, str]) -> str:
        return link(self.path, span) if self.spanned else self.href


SECTIONS: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    ("", (Entry("Overview", "/"), Entry("Story of a key", "/story"), Entry("Alerts", "/alerts", "alerts"))),
    (
        "Attribution",
        (
            Entry("Events", "/attribution/events", spanned=True),
            Entry("Closures", "/attribution/closures"),
            Entry("Settlement", "/attribution/settlement", spanned=True),
            Entry("Statements", "/attribution/statements"),
            Entry("Delivery", "/attribution/archive"),
            Entry("Rejects", "/attribution/rejects", spanned=True),
            Entry("History", "/attribution/history", spanned=True),
            Entry("Apps", "/attribution/apps"),
        ),
    ),
    (
        "Ingest",
        (
            Entry("Queue", "/ingest", "halts"),
            Entry("Plans", "/ingest/plans"),
            Entry("Coverage", "/ingest/coverage"),
            Entry("Cursors", "/ingest/cursors"),
            Entry("Rate and quota", "/ingest/rate"),
            Entry("Quarantine", "/ingest/quarantine"),
            Entry("Errors", "/ingest/errors"),
            Entry("Schedules", "/ingest/schedules"),
        ),
    ),
    (
        "Bus",
        (
            Entry("Flow", "/bus"),
            Entry("Groups", "/bus/groups"),
            Entry("Dead letters", "/bus/dead-letters", "dead_letters", spanned=True),
            Entry("Types", "/bus/types", "frozen", "hold"),
            Entry("Refusals", "/bus/refusals"),
            Entry("Webhooks", "/bus/webhooks"),
        ),
    ),
    ("Studio", (Entry("Films", "/studio"), Entry("New film", "/studio/new", needs=("POST", "/studio/runs")))),
    (
        "System",
        (
            Entry("Loops", "/loops", "loops"),
            Entry("Outbox", "/outbox", "outbox"),
            Entry("Audit", "/audit", needs=("GET", "/audit")),
            Entry("Settings", "/settings"),
            Entry("Doctor", "/doctor"),
        ),
    ),
)
TABS: tuple[tuple[str, str, str, str], ...] = (
    ("Overview", "/", "home", ""),
    ("Story", "/story", "story", ""),
    ("Events", "/attribution/events", "att", "Attribution"),
    ("Ingest", "/ingest", "ing", "Ingest"),
    ("Bus", "/bus", "bus", "Bus"),
    ("Studio", "/studio", "stu", "Studio"),
)


def section_of(path: str) -> str:
    """The engine that a navigation entry stands under."""
    return next((name for name, entries in SECTIONS if any(entry.path == path for entry in entries)), "")


def siblings(path: str) -> tuple[Entry, ...]:
    """The entries beside one, for screens without the navigation."""
    return next((entries for name, entries in SECTIONS if name and any(e.path == path for e in entries)), ())


def navigation(
    counts: Mapping[str, int], current: str, may: Callable[[str, str], bool], query: Mapping[str, str]
) -> dict[str, Any]:
    """What the frame needs to draw it, without the views that the role of the visitor does not allow."""
    is_spanned = any(entry.path == current and entry.spanned for _, entries in SECTIONS for entry in entries)
    span = {name: query[name] for name in ("from", "to") if query.get(name)} if is_spanned and query.get("from") else {}
    sections = [(name, [one for one in entries if one.needs is None or may(*one.needs)]) for name, entries in SECTIONS]
    return {
        "sections": sections,
        "counts": counts,
        "span": span,
        "current": current,
        "tabs": TABS,
        "engine": section_of(current),
        "siblings": [one for one in siblings(current) if one.needs is None or may(*one.needs)],
    }
