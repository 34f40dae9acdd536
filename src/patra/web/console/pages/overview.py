"""Is everything healthy, and what needs a person? Each line leads to the place where it is dealt with."""

from collections.abc import Callable
from typing import Any

import msgspec

from patra.kernel.clock import DAY, MINUTE, format_instant
from patra.web.console.markup.drawings import spark
from patra.web.console.markup.formats import NONE_TEXT, age_text, instant, link, number_text, plural, span_text
from patra.web.console.needs import Need
from patra.web.console.pages.alerts import alert_need
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


MENDED_BY = {"bus_dead_letters": "bus.replay", "bus_frozen": "bus.thaw"}
"""Alerts whose cause the bus shows itself, with the act of that line."""


FIRST_STEPS = (
    ("See it work", "Every engine filled with a thousand events, three harvests and two films.", "patra demo"),
    ("Harvest a source", "Packs of many providers come with Patra; dry runs show requests.", "patra ingest packs"),
    ("Send an event", "One of each type, as an SDK sends them.", "patra attribution send-sample"),
)  # fmt: skip
"""Of an installation that nothing has come to: three ways to begin, each with its command."""


def overview(view: View) -> Page:
    needs = _needs(view)
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


def _needs(view: View) -> list[Need]:
    parts: tuple[tuple[str, Callable[[View], list[Need]]], ...] = (
        ("ingest", _halts),
        ("alerts", _alerts),
        ("bus", _bus_needs),
        ("outbox", _outbox),
        ("loops", _loops),
    )
    found = [need for name, read in parts for need in view.part(name, lambda read=read: read(view)) or []]
    return sorted(each_once(found), key=lambda need: (need.tone != "bad", need.since or ""))


def each_once(found: list[Need]) -> list[Need]:
    """Without alerts about what has a line of its own that resolves it: one cause is one thing that needs a person."""
    offered = {need.act for need in found}
    told = {alert for alert, act in MENDED_BY.items() if act in offered}
    return [need for need in found if need.fields.get("alert") not in told]


def _halts(view: View) -> list[Need]:
    found: list[Need] = []
    for source in view.ask("/ingest/sources")["sources"]:
        for halt in source["halts"]:
            paused = halt["kind"] == "PAUSE"
            found.append(
                Need(
                    tone="hold" if paused else "bad",
                    subject=" / ".join(filter(None, (source["source"], halt["endpoint"]))),
                    href=link(f"/ingest/source/{source['source']}"),
                    what="is paused" if paused else "is halted",
                    why=halt["detail"],
                    consequence="Nothing is planned or requested until it goes on.",
                    since=halt["since"],
                    door="Open source",
                    act="ingest.resume" if paused else "ingest.lift",
                    act_label="Resume…" if paused else "Lift…",
                    fields={"source": source["source"], "endpoint": halt["endpoint"]},
                )
            )
    return found


def _alerts(view: View) -> list[Need]:
    return [alert_need(alert) for alert in view.ask("/ingest/alerts")["alerts"] if alert["state"] != "OVER"]


def _bus_needs(view: View) -> list[Need]:
    found: list[Need] = []
    for group in view.ask("/bus/groups")["groups"]:
        if group["dead"]:
            letters = view.ask("/bus/dead-letters", group=group["name"], limit=1)["dead_letters"]
            last: dict[str, Any] = letters[0] if letters else {}
            found.append(
                Need(
                    tone="bad" if last else "run",
                    subject=group["name"],
                    href=link("/bus/dead-letters", group=group["name"], state="" if last else "replaying"),
                    what=f"has {plural(group['dead'], 'dead letter')}",
                    why=last.get("error_detail", "") if last else "All of them are being replayed.",
                    code=last.get("error_code", ""),
                    consequence=f"of {last['event_type']}" if last else "",
                    since=last.get("first_failed_at"),
                    door="Open dead letters",
                    act="bus.replay" if last else "",
                    act_label="Replay…",
                    fields={"group": group["name"]},
                )
            )
        if group["state"] == "paused":
            found.append(
                Need(
                    tone="hold",
                    subject=group["name"],
                    href=link("/bus/groups"),
                    what="is paused",
                    consequence=f"{plural(group['waiting'], 'event waits', 'events wait')} for it.",
                    since=group["oldest"],
                    door="Open groups",
                    act="bus.resume",
                    act_label="Resume…",
                    fields={"group": group["name"]},
                )
            )
    found += [
        Need(
            subject=one["event_type"],
            href=link(f"/bus/type/{one['event_type']}"),
            what="is frozen",
            why=one["reason"],
            consequence="Its publishers are refused.",
            since=one["since"],
            door="Open type",
            act="bus.thaw",
            act_label="Thaw…",
            fields={"type": one["event_type"]},
        )
        for one in view.ask("/bus/health")["frozen"]
    ]
    return found


def _outbox(view: View) -> list[Need]:
    messages = view.ask("/outbox", limit=1000)["messages"]
    channels = sorted({message["channel"] for message in messages})
    found: list[Need] = []
    for channel in channels:
        of = [message for message in messages if message["channel"] == channel]
        about = "over " if len(messages) == 1000 else ""
        found.append(
            Need(
                subject=channel,
                href=link("/outbox", channel=channel),
                what=f"could not deliver {about}{plural(len(of), 'message')}",
                code=of[0]["reason"],
                since=of[0]["failed_at"],
                door="Open outbox",
            )
        )
    return found


def _loops(view: View) -> list[Need]:
    return [
        Need(
            subject=state.name,
            href=link("/loops"),
            what="is not running" if not state.running else "fails" if state.failures_in_a_row else "is overdue",
            why=state.last_error or state.trouble or "",
            since=state.last_turn_at,
            door="Open loops",
            act="loop.wake",
            act_label="Wake",
            fields={"name": state.name},
        )
        for state in view.patra.supervisor.states()
        if state.trouble
    ]


def _attribution(view: View, needs: list[Need]) -> EngineRow:
    del needs
    rates = view.series
    rejects = view.ask("/attribution/rejects", limit=100)["rejects"]
    recent = [one for one in rejects if (instant(one["at"]) or 0) > view.now - 60 * MINUTE]
    first = view.ask("/attribution/closures", state="open", limit=200)["closures"]
    due = min((one["nextDeadline"] for one in first if one["nextDeadline"]), default=None)
    late = due is not None and (instant(due) or 0) < view.now - MINUTE
    return EngineRow(
        name="Attribution",
        href=link("/attribution/events"),
        tone="warn" if late else "ok",
        word="Deadline overdue" if late else "Healthy",
        throughput=Figure(value=number_text(round(rates.rate("events"), 1)), label="events/s"),
        lag=Figure(value=age_text(due, view.now) if due else NONE_TEXT, label="earliest deadline"),
        backlog=Figure(value=_about(len(first), 200), label="closures open"),
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
        lag=Figure(value=age_text(oldest, view.now) if oldest else NONE_TEXT, label="oldest under way"),
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
