"""The process itself: loops, outbox, audit, settings, doctor; what the codes mean, and what the keyboard knows."""

from typing import Any

from markupsafe import Markup

from patra.web.console.calls import Refusal
from patra.web.console.markup.formats import plural
from patra.web.console.pages.choice import choice
from patra.web.console.reads import operations as reads
from patra.web.console.reasons import reasons_by_engine
from patra.web.console.rules import rule
from patra.web.console.view import PAGE_SIZE, Page, Route, View
from patra.web.problem import Problem

ARCHIVE = "attribution.archive"
"""Its messages are sent again by the delivery itself, as long as its window lasts."""
KEYS = (
    ("/", "find a key"),
    ("g o", "overview"),
    ("g e", "events"),
    ("g i", "ingest"),
    ("g d", "dead letters"),
    ("g u", "studio"),
    ("g a", "audit"),
    ("g s", "story"),
    ("j k", "next, previous row"),
    ("Enter", "open the row"),
    ("1 \N{EN DASH} 9", "open the first to ninth thing that needs a person"),
    ("f", "to the filters"),
    ("[ ]", "newest page, next page; of a span of time earlier, later"),
    ("Home", "back to the newest page of a list"),
    ("v", "the next tab"),
    ("h", "the next window of a source that is not done; arrows go from one to the next"),
    ("x", "choose the row, where several can be handled together"),
    ("c", "copy the row's key"),
    ("s", "the story of the row's key"),
    ("n N", "next, previous problem of a story"),
    ("e", "open or close all entries of a story"),
    ("r d", "replay, discard the dead letter of the row"),
    (", .", "the shot of a film before, after; Space plays it or pauses"),
    ("p", "pause live updates"),
    ("g v", "saved views: filters under a name, in this browser"),
    ("g z", "times in UTC or in the zone of this browser"),
    ("t", "light or dark"),
    ("Esc", "close a dialog, or what stands beside a list"),
    ("?", "this list"),
)


def loops(view: View) -> Page:
    found = view.ask("/loops")["loops"]
    bad = [loop for loop in found if not loop["running"] or loop["failures_in_a_row"] or loop["overdue"]]
    title = f"{plural(len(bad), 'loop needs', 'loops need')} attention" if bad else f"All {len(found)} loops turn"
    return Page(
        title=title if found else "This process runs no loops",
        template="operations/loops.html",
        values={"loops": found},
    )


def outbox(view: View) -> Page:
    filters = view.filters("channel")
    after = view.filter_value("after")
    page = view.ask("/outbox", channel=view.filter_value("channel"), after=after, limit=PAGE_SIZE)
    found = page["messages"]
    title = (
        f"{plural(len(found), 'message was', 'messages were')} not delivered" if found else "Everything is delivered"
    )
    return Page(
        title=title,
        template="operations/outbox.html",
        values={
            "messages": found,
            **choice(view, sorted({one["channel"] for one in found} - {ARCHIVE}), "outbox.requeue"),
            "filters": filters,
            "backlog": view.ask("/outbox/backlog")["backlog"],
            "older": view.here(after=page["next"]) if page["next"] else "",
        },
    )


def audit(view: View) -> Page:
    page = view.ask(
        "/audit",
        act=view.filter_value("act"),
        subject=view.filter_value("subject"),
        before=view.filter_value("before"),
        limit=PAGE_SIZE,
    )
    return Page(
        title="Audit",
        template="operations/audit.html",
        values={
            "acts": page["acts"],
            "filters": view.filters("act", "subject"),
            "older": view.here(before=page["next"]) if page["next"] else "",
        },
    )


def settings(view: View) -> Page:
    lines: list[dict[str, Any]] = view.ask("/settings")["settings"]
    only = view.filter_value("origin")
    sections: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if not only or (line["origin_kind"] != "default") == (only == "set"):
            sections.setdefault(line["section"], []).append(line)
    changed = sum(line["origin_kind"] != "default" for line in lines)
    title = f"{plural(changed, 'setting is', 'settings are')} not the default" if changed else "Settings"
    return Page(title=title, template="operations/settings.html", values={"sections": sections, "only": only})


def doctor(view: View) -> Page:
    found = view.ask("/doctor")["checks"]
    wrong = [check for check in found if check["health"] in {"warning", "broken"}]
    title = f"{plural(len(wrong), 'check')} of {len(found)} found something" if wrong else "Every check passed"
    return Page(title=title, template="operations/doctor.html", values={"checks": found})


def reasons(view: View) -> Page:
    del view
    return Page(title="Reason codes", template="operations/reasons.html", values={"engines": reasons_by_engine()})


def rule_paragraph(view: View) -> Page:
    anchor = view.filter_value("at")
    found = rule(anchor)
    if found is None:
        raise Refusal(
            Problem(404, "rule_unknown", "There is no such rule", f"No story refers to {anchor or 'nothing'}.")
        )
    return Page(
        title=found.title,
        template="operations/rule.html",
        values={"anchor": anchor, "heading": found.title, "text": Markup(found.html)},  # noqa: S704  our own file
    )


def keys(view: View) -> Page:
    del view
    return Page(title="Keyboard", template="operations/keys.html", values={"keys": KEYS})


def about(view: View) -> Page:
    names = [part.name for part in view.patra.parts]
    return Page(
        title="About", template="operations/about.html", values={"parts": names, "vendored": reads.vendored_files()}
    )


ROUTES = (
    Route(path="/loops", handler=loops, nav="/loops"),
    Route(path="/outbox", handler=outbox, nav="/outbox"),
    Route(path="/audit", handler=audit, nav="/audit"),
    Route(path="/settings", handler=settings, nav="/settings", live=False),
    Route(path="/doctor", handler=doctor, nav="/doctor", live=False),
    Route(path="/reasons", handler=reasons, nav="", live=False),
    Route(path="/rule", handler=rule_paragraph, nav="", live=False),
    Route(path="/keys", handler=keys, nav="", live=False),
    Route(path="/about", handler=about, nav="", live=False),
)
