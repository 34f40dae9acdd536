"""Everything that needs a person now, each once: what is wrong, why, what follows, and the act that resolves it."""

from collections.abc import Callable
from typing import Any

from patra.kernel.clock import DAY, HOUR, MINUTE, format_instant
from patra.web.console.markup.formats import age_text, instant, link, number_text, plural
from patra.web.console.needs.alert_places import alert_need
from patra.web.console.needs.need import Need
from patra.web.console.view import View

MENDED_BY = {"bus_dead_letters": "bus.replay_all", "bus_frozen": "bus.thaw"}
"""Alerts whose cause the bus shows itself, with the act of that line."""
TIMER_LAG = MINUTE
"""So long after its deadline a closure is overdue: the timer takes each within seconds."""
LOST_SOON = 10 * MINUTE
MIN_REJECTS = 20
UNUSUAL_TIMES = 5
DAYS = range(1, 8)


def needs_now(view: View) -> list[Need]:
    parts: tuple[tuple[str, Callable[[View], list[Need]]], ...] = (
        ("ingest", _halts),
        ("alerts", _alerts),
        ("bus", _bus_needs),
        ("outbox", _outbox),
        ("archive", _archive),
        ("deadlines", _deadlines),
        ("rejects", _rejects),
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
    health = view.ask("/bus/health")
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
                    consequence=_backlog_of(health, last, view.now) if last else "",
                    door="Open dead letters",
                    act="bus.replay_all" if last else "",
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
        for one in health["frozen"]
    ]
    return found


def _backlog_of(health: dict[str, Any], last: dict[str, Any], now: int) -> str:
    """When the latest failed, and how near its type is to being frozen."""
    name = last["event_type"]
    said = f"The latest failed {age_text(last['last_failed_at'], now)}."
    limit = health["freezes_at"].get(name)
    if limit is None or any(one["event_type"] == name for one in health["frozen"]):
        return said
    count = health["dead_letters"].get(name, 0)
    return f"{said} {name} has {number_text(count)} and freezes with more than {number_text(limit)}."


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


def _archive(view: View) -> list[Need]:
    """Facts that no settlement will count, unless the archive takes them soon."""
    found = view.ask("/attribution/archive")
    if found["lost_at"] is None:
        return []
    is_soon = (instant(found["lost_at"]) or 0) < view.now + LOST_SOON
    return [
        Need(
            tone="bad" if is_soon else "warn",
            subject="archive",
            href=link("/attribution/archive"),
            what="does not take decisions",
            why=", ".join(sorted({f"`{one['reason']}`" for one in found["waiting"] if one["reason"]})),
            consequence=f"The first is lost to settlement {age_text(found['lost_at'], view.now)}.",
            since=found["failing_since"],
            door="Open delivery",
            **_waking(view, "attribution.archive", "Wake the delivery"),
        )
    ]


def _deadlines(view: View) -> list[Need]:
    """Deadlines that the timer should have taken by now."""
    page = view.ask("/attribution/closures", order="deadline", limit=1)["closures"]
    first = page[0]["nextDeadline"] if page else None
    if first is None or (instant(first) or 0) >= view.now - TIMER_LAG:
        return []
    due = view.ask("/attribution/deadlines")
    many = plural(due["overdue"], "closure is", "closures are")
    return [
        Need(
            subject="attribution timer",
            href=link("/attribution/closures"),
            what="is behind",
            why=f"{many if due['complete'] else 'Very many closures are'} past the deadline.",
            consequence="They stay open, and their clicks and failures are not decided.",
            since=first,
            door="Open closures",
            **_waking(view, "attribution.timer", "Wake the timer"),
        )
    ]


def _rejects(view: View) -> list[Need]:
    """Far more rejected events than in the same hour of the days before: a release of an app, mostly."""
    now = view.now // MINUTE * MINUTE
    latest = _count_rejected(view, now - HOUR, now)
    count = sum(latest["counts"])
    if count < MIN_REJECTS:
        return []
    usual = sum(sum(_count_rejected(view, now - HOUR - day * DAY, now - day * DAY)["counts"]) for day in DAYS) / len(
        DAYS
    )
    if count <= UNUSUAL_TIMES * usual:
        return []
    most: dict[str, Any] = latest["causes"][0]
    often = f"{number_text(round(usual, 1))} in the same hour of the last {len(DAYS)} days"
    return [
        Need(
            tone="warn",
            subject="rejects",
            href=link("/attribution/rejects", {"from": format_instant(now - HOUR)}),
            what=f"are unusually many: {number_text(count)}{' or more' if latest['more'] else ''} in an hour",
            why=f"Usual are {often}.",
            consequence=f"{number_text(most['events'])} are `{most['code']}` of {most['appId']}.",
            door="Open rejects",
        )
    ]


def _count_rejected(view: View, since: int, until: int) -> dict[str, Any]:
    span = {"since": format_instant(since), "until": format_instant(until)}
    return view.ask("/attribution/rejects/over-time", **span, parts=1)


def _waking(view: View, loop: str, label: str) -> dict[str, Any]:
    """The act that wakes a loop, where this process runs it."""
    here = any(state.name == loop for state in view.patra.supervisor.states())
    return {"act": "loop.wake", "act_label": label, "fields": {"name": loop}} if here else {}


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
