"""Is everything healthy, and what needs a person? Each line leads to the place where it is dealt with."""

from collections.abc import Callable
from typing import Any

import msgspec

from patra.kernel.clock import DAY, MINUTE, format_instant
from patra.web.console.markup.drawings import spark
from patra.web.console.markup.formats import NONE_TEXT, age_text, instant, link, number_text, plural, span_text
from patra.web.console.needs.need import Need
from patra.web.console.needs.needs_now import TIMER_LAG, needs_now
from patra.web.console.pages.ingest import fullest_coverage
from patra.web.console.pages.ingest_cursors import watermarks
from patra.web.console.view import Page, Route, View

FEW = 6
COVERAGE_DAYS = 14
MAX_STRIPS = 12
WORDS = ("Nothing needs", "One thing needs", "Two things need", "Three things need", "Four things need")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    value: str
    label: str
    tone: str = ""


class EngineRow(msgspec.Struct, frozen=True, kw_only=True):
    """The same four questions of every engine: throughput, lag, backlog, errors."""

    name: str
    href: str
    tone: str
    word: str
    throughput: Figure
    lag: Figure
    backlog: Figure
    errors: Figure
    drawing: Any


FIRST_STEPS = (
    ("See it work", "Every engine filled with a thousand events, three harvests and two films.", "patra demo"),
    ("Harvest a source", "Packs of many providers come with Patra; dry runs show requests.", "patra ingest packs"),
    ("Send an event", "One of each type, as an SDK sends them.", "patra attribution send-sample"),
)  # fmt: skip
"""Of an installation that nothing has come to: three ways to begin, each with its command."""


def overview(view: View) -> Page:
    needs = needs_now(view)
    urgent = [need for need in needs if need.tone == "bad"]
    engines = [
        row
        for make in (_attribution, _ingest, _bus, _studio)
        if (row := view.part(make.__name__[1:], _of(make, view, needs)))
    ]
    loops = view.ask("/loops")["loops"]
    acts = view.part("audit", lambda: view.ask("/audit", limit=FEW)["acts"]) if view.may("GET", "/audit") else None
    ready = view.part("readiness", view.patra.readiness)
    sources = view.part("sources", lambda: _sources(view)) or []
    first_steps = not needs and not sources and not view.partial and is_untouched(view)
    return Page(
        title="Nothing has come in yet" if first_steps else _title(len(urgent)),
        template="overview.html",
        values={
            "notice": view.patra.notice,
            "urgent": urgent,
            "watch": [need for need in needs if need.tone != "bad"],
            "engines": engines,
            "loops": loops,
            "loops_well": sum(1 for loop in loops if loop["running"] and not loop["failures_in_a_row"]),
            "acts": acts,
            "reasons": ready.reasons if ready else [],
            "sources": sources,
            "first_steps": FIRST_STEPS if first_steps else (),
            "days": COVERAGE_DAYS,
        },
    )


def is_untouched(view: View) -> bool:
    """Whether no event came in and no film was asked for."""
    events = view.part("events", lambda: view.ask("/attribution/newest", limit=1)["decisions"])
    films = view.part("films", lambda: view.ask("/studio/runs", limit=1)["runs"])
    return not events and not films


def _of(make: Callable[[View, list[Need]], EngineRow], view: View, needs: list[Need]) -> Callable[[], EngineRow]:
    return lambda: make(view, needs)


def _title(count: int) -> str:
    if not count:
        return "Everything is healthy"
    return f"{WORDS[count] if count < len(WORDS) else f'{count} things need'} a person"


def _attribution(view: View, needs: list[Need]) -> EngineRow:
    del needs
    rates = view.series
    rejects = view.ask("/attribution/rejects", limit=100)["rejects"]
    recent = [one for one in rejects if (instant(one["at"]) or 0) > view.now - 60 * MINUTE]
    first = view.ask("/attribution/closures", order="deadline", limit=1)["closures"]
    due = first[0]["nextDeadline"] if first else None
    late = due is not None and (instant(due) or 0) < view.now - TIMER_LAG
    deadlines = view.ask("/attribution/deadlines")
    waiting = deadlines["overdue"] + sum(part["count"] for part in deadlines["due"]) + deadlines["later"]
    return EngineRow(
        name="Attribution",
        href=link("/attribution/events"),
        tone="warn" if late else "ok",
        word="Deadline overdue" if late else "Healthy",
        throughput=Figure(value=number_text(round(rates.rate("events"), 1)), label="events/s"),
        lag=Figure(
            value=age_text(due, view.now) if due else NONE_TEXT,
            label="earliest deadline" if due else "no deadline is open",
        ),
        backlog=Figure(value=f"{number_text(waiting)}{'' if deadlines['complete'] else '+'}", label="closures open"),
        errors=Figure(value=_about(len(recent), 100), label="events rejected in the last hour"),
        drawing=spark(rates.points("events"), "events a second, last hour"),
    )


def _ingest(view: View, needs: list[Need]) -> EngineRow:
    rates = view.series
    queue = view.ask("/ingest/queue")["queue"]
    waiting = sum(line["tasks"] for line in queue if line["status"] == "QUEUED")
    failed = sum(line["tasks"] for line in queue if line["status"] == "FAILED")
    harvests = [one for one in watermarks(view) if one["operation_code"] == "HARVEST"]
    cursors = [(instant(one["cursor_value"]), one) for one in harvests]  # a backfill goes backwards: it has no lag
    behind = [(at, one) for at, one in cursors if at is not None]
    slowest = min(behind, key=lambda found: found[0], default=None)
    halted = sum(1 for need in needs if need.what == "is halted")
    return EngineRow(
        name="Ingest",
        href=link("/ingest"),
        tone="bad" if halted else "warn" if failed else "ok",
        word=f"{halted} halted" if halted else plural(failed, "failed task") if failed else "Healthy",
        throughput=Figure(value=number_text(round(rates.rate("records"), 1)), label="records/s"),
        lag=Figure(
            value=span_text(view.now - slowest[0]) if slowest else NONE_TEXT,
            label=f"{slowest[1]['provenance_code']}, furthest behind" if slowest else "nothing is harvested",
        ),
        backlog=Figure(value=number_text(waiting), label="tasks queued"),
        errors=Figure(value=number_text(failed), label="tasks failed", tone="bad" if failed else ""),
        drawing=spark(rates.points("records"), "records a second, last hour"),
    )


def _bus(view: View, needs: list[Need]) -> EngineRow:
    del needs
    rates = view.series
    groups = view.ask("/bus/groups")["groups"]
    dead = sum(group["dead"] for group in groups)
    oldest = min(((g["oldest"], g["name"]) for g in groups if g["oldest"] and g["waiting"] > g["dead"]), default=None)
    return EngineRow(
        name="Bus",
        href=link("/bus"),
        tone="bad" if dead else "ok",
        word=plural(dead, "dead letter") if dead else "Healthy",
        throughput=Figure(value=number_text(round(rates.rate("published"), 1)), label="events/s"),
        lag=Figure(
            value=span_text(view.now - (instant(oldest[0]) or view.now)) if oldest else "0 s",
            label=f"oldest in {oldest[1]}" if oldest else "nothing waits",
        ),
        backlog=Figure(value=number_text(sum(group["waiting"] for group in groups)), label="events waiting"),
        errors=Figure(
            value=number_text(dead),
            label="dead letter unresolved" if dead == 1 else "dead letters unresolved",
            tone="bad" if dead else "",
        ),
        drawing=spark(rates.points("published"), "events a second, last hour"),
    )


def _studio(view: View, needs: list[Need]) -> EngineRow:
    del needs
    runs = view.ask("/studio/runs", limit=100)["runs"]
    today = format_instant(view.now)[:10]
    under_way = [run for run in runs if run["stage"] not in {"completed", "failed", "cancelled"}]
    failed = [run for run in runs if run["stage"] == "failed" and run["submitted_at"][:10] == today]
    oldest = min((run["submitted_at"] for run in under_way), default=None)
    return EngineRow(
        name="Studio",
        href=link("/studio"),
        tone="warn" if failed else "ok",
        word=plural(len(failed), "failed run") if failed else "Healthy",
        throughput=Figure(
            value=number_text(sum(1 for r in runs if r["stage"] == "completed" and r["submitted_at"][:10] == today)),
            label="films today",
        ),
        lag=Figure(
            value=age_text(oldest, view.now) if oldest else NONE_TEXT,
            label="oldest under way" if oldest else "nothing is being made",
        ),
        backlog=Figure(value=number_text(len(under_way)), label="runs under way"),
        errors=Figure(value=number_text(len(failed)), label="failed today"),
        drawing=spark([1.0 if run["stage"] == "completed" else 0.0 for run in reversed(runs)], "films completed"),
    )


def _about(count: int, bound: int) -> str:
    return f"{bound}+" if count >= bound else number_text(count)


def _sources(view: View) -> list[dict[str, Any]]:
    """Every source with the windows of the last days on one axis, the operation with most of them."""
    begin = view.now - COVERAGE_DAYS * DAY
    found: list[dict[str, Any]] = view.ask("/ingest/sources")["sources"]
    for one in found[:MAX_STRIPS]:
        fullest = fullest_coverage(view, one["source"], begin, view.now)
        one["strip"], one["operation"] = (fullest["drawing"], fullest["operation"]) if fullest else ("", "")
        one["behind"] = fullest["lag"] if fullest else ""
        one["reached"] = fullest["reached"] if fullest else ""
    return found


ROUTES = (Route(path="/", handler=overview, nav="/"),)
