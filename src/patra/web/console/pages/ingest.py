"""Ingest: the queue board, a source on its axis of time, and the way down: plan, task, run, batch."""

from typing import Any

from markupsafe import Markup

from patra.kernel.clock import DAY, format_instant
from patra.web.console.acts.ingest_packs import parameter_lines
from patra.web.console.calls import Refusal
from patra.web.console.markup.drawings import WINDOW_WORDS, Part, Window, shares, strip
from patra.web.console.markup.formats import clock_text, instant, link, plural, span_text, time_tag
from patra.web.console.markup.time_brush import time_brush
from patra.web.console.markup.tones import tone_of
from patra.web.console.pages.choice import choice
from patra.web.console.pages.ingest_cursors import cursor, cursors, watermarks
from patra.web.console.pages.ingest_rate import rate, with_traffic
from patra.web.console.pages.ingest_runs import batch, failed_share, run, task
from patra.web.console.view import PAGE_SIZE, Page, Route, View
from patra.web.problem import Problem

DAYS_SHOWN = 30
BOARD_DAYS = 14
MAX_STRIPS = 12  # sources of the queue whose windows are drawn
LENGTHS_DAYS = (7, 30, 90, 365)
TASK_STATES = ("QUEUED", "DISPATCHED", "EXECUTING", "SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED")
OPERATIONS = ("HARVEST", "BACKFILL", "UPDATE")
QUARANTINE_STATES = ("OPEN", "RESOLVED", "DISMISSED")
ERROR_LEVELS = ("L1", "L2", "L3", "L4")
TOP_SHOWN = 8
RULER = Markup('<svg class="draw ruler" height="24" aria-hidden="true"><rect width="100%" height="100%"/></svg>')
RULER_PARTS = 240
"""Of the bar below the windows that a span of their time is taken from."""
SIGNALS_SHOWN = 20
NO_WINDOWS: dict[str, Any] = {"windows": [], "sum": {"open": 0}, "rereads": [], "after": ""}
PLAN_STATES = ("DRAFT", "SLICING", "READY", "PARTIAL", "FAILED", "CANCELLED")
WINDOW_STATES = {
    "QUEUED": "wait",
    "DISPATCHED": "run",
    "EXECUTING": "run",
    "SUCCEEDED": "done",
    "PARTIAL": "part",
    "FAILED": "bad",
    "CANCELLED": "off",
}


def board(view: View) -> Page:
    filters = view.filters("source", "operation")
    lines = view.ask("/ingest/queue", **filters)["queue"]
    sources = {source["source"]: source for source in view.ask("/ingest/sources")["sources"]}
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for line in lines:
        key = (line["source"], line["endpoint"], line["operation"])
        row = rows.setdefault(key, {"counts": {}, "earliest": None, "halt": None})
        row["counts"][line["status"]] = line["tasks"]
        if line["status"] == "QUEUED":
            row["earliest"] = line["earliest"]
        halts = sources.get(line["source"], {}).get("halts", [])
        row["halt"] = next((halt for halt in halts if halt["endpoint"] in {"", line["endpoint"]}), None)
    named = [*dict.fromkeys(of for of, _, _ in rows)][:MAX_STRIPS]
    strips = view.part("windows", lambda: _strips(view, named)) or {}
    for key, row in rows.items():
        row["bar"], row["strip"] = _task_bar(row["counts"]), strips.get(key, "")
        row["failed_share"] = failed_share(row["counts"])
    waiting = sum(line["tasks"] for line in lines if line["status"] == "QUEUED")
    running = sum(line["tasks"] for line in lines if line["status"] in {"DISPATCHED", "EXECUTING"})
    return Page(
        title=queue_title(waiting, running),
        template="ingest/board.html",
        values={
            "rows": rows,
            "sources": with_traffic(view, sources, watermarks(view)),
            "filters": filters,
            "operations": OPERATIONS,
            "days": BOARD_DAYS,
        },
    )


def _strips(view: View, sources: list[str]) -> dict[tuple[str, str, str], Markup]:
    """The last windows by source, endpoint and operation; of several namespaces, that with most of them."""
    begin = view.now - BOARD_DAYS * DAY
    found: dict[tuple[str, str, str], Markup] = {}
    for name in sources:
        for one in sorted(_windows(view, name, begin, view.now), key=lambda one: len(one["windows"])):
            drawn = _series(view, one, [], begin, view.now, ticks=1)
            found[name, one["endpoint"], one["operation"]] = drawn["drawing"]
    return found


def queue_title(waiting: int, running: int) -> str:
    queued = plural(waiting, "task is", "tasks are") if waiting else "No task is"
    return f"{queued} queued" + (f", {plural(running, 'runs', 'run')}" if running else "")


def source(view: View) -> Page:
    name = view.path["source"]
    found = next((s for s in view.ask("/ingest/sources")["sources"] if s["source"] == name), None)
    if found is None:
        raise Refusal(Problem(404, "i_source_unknown", "There is no such source", f"No pack of {name} is loaded."))
    end = instant(view.filter_value("to")) or view.now
    begin = instant(view.filter_value("from")) or end - DAYS_SHOWN * DAY
    cursors = watermarks(view, name)
    series = coverage(view, name, begin, end)
    tree = view.ask("/ingest/sources/{source}/pack", {"source": name})
    return Page(
        title=found["title"] or name,
        template="ingest/source.html",
        values={
            "source": found,
            "frozen_link": view.here(**{"from": format_instant(begin), "to": format_instant(end)}),
            "series": series,
            "cursors": cursors,
            "axis": (
                time_tag(begin, view.now, seconds=False),
                "now" if end == view.now else time_tag(end, view.now, seconds=False),
            ),
            **_spans(view, begin, end),
            "ruler": time_brush(RULER, begin, end, RULER_PARTS, view.here(**{"from": "", "to": ""}), "the windows"),
            "quarantine": view.ask("/ingest/quarantine", source=name, limit=5),
            "errors": view.ask("/ingest/errors", source=name, limit=5)["rows"],
            "schedules": [one for one in _schedules(view) if one["source"] == name and one["on"] == "yes"],
            "plans": view.ask("/ingest/plans", source=name, limit=10)["plans"],
            "pack": tree,
            "trial": _trial(view, name),
        },
    )


def _spans(view: View, begin: int, end: int) -> dict[str, Any]:
    """Links to other parts of the axis of time: lengths that end now, and the same length earlier and later."""
    length = end - begin

    def span(first: int, last: int) -> str:
        return view.here(**{"from": format_instant(first), "to": format_instant(last) if last < view.now else ""})

    days = round(length / DAY)
    return {
        "lengths": [
            (f"{n} d", span(view.now - n * DAY, view.now), n == days and end == view.now) for n in LENGTHS_DAYS
        ],
        "earlier": span(begin - length, begin),
        "later": span(end, min(end + length, view.now)) if end < view.now else "",
    }


def _trial(view: View, source: str) -> dict[str, Any] | None:
    """The version on trial beside the one in force, where one is."""
    try:
        return view.ask("/ingest/sources/{source}/trial", {"source": source})
    except Refusal as refusal:
        if refusal.problem.status == 404:
            return None
        raise


def coverage(view: View, source: str, begin: int, end: int) -> list[dict[str, Any]]:
    """The windows of a source between two instants, one drawing for each operation and namespace."""
    cursors = watermarks(view, source)
    return [_series(view, one, cursors, begin, end) for one in _windows(view, source, begin, end)]


def fullest_coverage(view: View, source: str, begin: int, end: int) -> dict[str, Any] | None:
    """The same of the operation and namespace with most windows; the others are not drawn."""
    found = max(_windows(view, source, begin, end), key=lambda one: len(one["windows"]), default=None)
    return None if found is None else _series(view, found, watermarks(view, source), begin, end)


def _windows(view: View, source: str, begin: int, end: int) -> list[dict[str, Any]]:
    span = {"since": format_instant(begin), "until": format_instant(end)}
    return view.ask("/ingest/windows", source=source, **span)["series"]


def _series(
    view: View, one: dict[str, Any], cursors: list[dict[str, Any]], begin: int, end: int, ticks: int = 4
) -> dict[str, Any]:
    cursor = next(
        (c for c in cursors if c["operation_code"] == one["operation"] and c["namespace_key"] == one["namespace"]), None
    )
    frontier = instant(cursor["cursor_value"]) if cursor else None
    windows: list[Window] = []
    for row in one["windows"]:
        state = WINDOW_STATES[row["status_code"]]
        if (
            state == "done"
            and frontier is not None
            and row["window_from"] > frontier
            and one["operation"] != "BACKFILL"
        ):
            state = "ahead"
        first, last = (clock_text(row[name], view.now, seconds=False) for name in ("window_from", "window_to"))
        windows.append(
            Window(
                begin=row["window_from"],
                end=row["window_to"],
                state=state,
                label=f"{first} to {last} UTC: {_window_words(row, state)}",
                href=link(f"/ingest/task/{row['task_id']}"),
            )
        )
    count = sum(sum(row["counts"].values()) if "counts" in row else 1 for row in one["windows"])
    label = f"{one['operation']} {one['endpoint']}, {plural(count, 'window')}"
    named = [(at, clock_text(at, 0)[:6].strip()) for at in range(begin, end + 1, max((end - begin) // ticks, 1))]
    shown = f"frontier {clock_text(frontier, view.now)} UTC" if frontier is not None else ""
    return {
        **one,
        "drawing": strip(windows, begin, end, label, frontier=frontier, frontier_label=shown, ticks=named),
        "frontier": frontier,
        "lag": span_text(view.now - frontier) if frontier is not None and one["operation"] != "BACKFILL" else "",
        "reached": time_tag(frontier, view.now, seconds=False) if frontier is not None else "",
        "table": windows,
        "count": count,
        "grouped": any("counts" in row for row in one["windows"]),
        "counts": {word: sum(1 for window in windows if window.state == state) for state, word in WINDOW_WORDS.items()},
    }


def _window_words(row: dict[str, Any], state: str) -> str:
    """The state of a window, or how many windows of each state a part of the axis holds."""
    if "counts" not in row:
        return WINDOW_WORDS[state]
    counts: dict[str, int] = row["counts"]
    return ", ".join(f"{count} {WINDOW_WORDS[WINDOW_STATES[name]]}" for name, count in counts.items())


def plans(view: View) -> Page:
    filters = view.filters("source", "operation", "status")
    page = view.ask("/ingest/plans", **filters, after=view.filter_value("after"), limit=PAGE_SIZE)
    values = {"plans": page["plans"], "filters": filters, "states": PLAN_STATES, **_pages(view, page)}
    return Page(title="Plans", template="ingest/plans.html", values=values)


def plan(view: View) -> Page:
    found = view.ask("/ingest/plans/{plan}", {"plan": view.path["plan"]})
    live = sum(found["task_counts"].get(state, 0) for state in TASK_STATES[:3])
    return Page(
        title=f"Plan {view.path['plan']}",
        template="ingest/plan.html",
        values={"found": found, "bar": _task_bar(found["task_counts"]), "live": live, "searched": view.path["plan"]},
    )


def tasks(view: View) -> Page:
    filters = view.filters("source", "endpoint", "operation", "status", "plan")
    page = view.ask("/ingest/tasks", **filters, after=view.filter_value("after"), limit=PAGE_SIZE)
    failed = ["FAILED"] if any(one["status"] == "FAILED" for one in page["tasks"]) else []
    asked = {} if page["tasks"] else {name: {name: value} for name, value in filters.items()}
    values = {
        "tasks": page["tasks"],
        "filters": filters,
        "wider": view.wider(asked, lambda rest: len(view.ask("/ingest/tasks", **rest, limit=PAGE_SIZE)["tasks"])),
        "states": TASK_STATES,
        **choice(view, failed, "ingest.requeue_tasks"),
        **_pages(view, page),
    }
    return Page(title="Tasks", template="ingest/tasks.html", values=values)


def _pages(view: View, page: dict[str, Any]) -> dict[str, str]:
    """Links to the next page and back to the first, with the filters kept."""
    return {
        "older": view.here(after=page["next"]) if page["next"] else "",
        "newest": view.here(after="") if view.filter_value("after") else "",
    }


def quarantine(view: View) -> Page:
    filters = view.filters("source", "endpoint", "reason")
    place = view.filters("source", "endpoint")
    status = view.filter_value("status", "OPEN")
    found = view.ask("/ingest/quarantine", **filters, status=status, after=view.filter_value("after"), limit=PAGE_SIZE)
    is_open = status == "OPEN"
    places = sorted({(row["provenance_code"], row["endpoint_name"]) for row in found["rows"]}) if is_open else []
    return Page(
        title=_quarantine_title(found, status, first=not view.filter_value("after")),
        template="ingest/quarantine.html",
        values={
            "rows": found["rows"],
            "filters": filters,
            "status": status,
            "signals": view.ask("/ingest/signals", **place, limit=SIGNALS_SHOWN)["rows"],
            "states": QUARANTINE_STATES,
            **choice(view, places, "ingest.signal", "ingest.dismiss"),
            **_pages(view, found),
        },
    )


def _quarantine_title(found: dict[str, Any], status: str, *, first: bool) -> str:
    """A count where the page holds all of them; a list that goes on is not counted."""
    if status != "OPEN" or not first:
        return "Quarantine"
    if found["next"]:
        return f"More than {PAGE_SIZE} records are in quarantine"
    count = len(found["rows"])
    return f"{plural(count, 'record is', 'records are')} in quarantine" if count else "Nothing is in quarantine"


def errors(view: View) -> Page:
    filters = view.filters("source", "operation", "level")
    found = view.ask("/ingest/errors", **filters, after=view.filter_value("after"), limit=PAGE_SIZE)
    top = view.ask("/ingest/errors/top", **filters, limit=TOP_SHOWN)["rows"]
    if top:
        title = f"{top[0]['provenance_code']} fails most: {plural(top[0]['errors'], 'time')} in a day"
    else:
        title = "Nothing failed in the last day" if not filters else "Errors"
    return Page(
        title=title,
        template="ingest/errors.html",
        values={
            "rows": found["rows"],
            "filters": filters,
            "levels": ERROR_LEVELS,
            "top": top,
            **_pages(view, found),
        },
    )


def windows(view: View) -> Page:
    """What each window promised and what came, as `patra ingest coverage` shows it."""
    filters = view.filters("source", "endpoint", "operation")
    sources = [one["source"] for one in view.ask("/ingest/sources")["sources"]]
    source = filters.get("source") or next(iter(sources), "")
    asked = {**filters, "source": source, "after": view.filter_value("after"), "limit": PAGE_SIZE}
    found = view.ask("/ingest/coverage", **asked) if source else NO_WINDOWS
    total = found["sum"]
    title = "Coverage" if not total.get("windows") else f"All {plural(total['windows'], 'window')} add up"
    title = f"{plural(total['open'], 'window does', 'windows do')} not add up" if total["open"] else title
    return Page(
        title=title,
        template="ingest/coverage.html",
        values={
            "windows": found["windows"],
            "two_legs": any(one["leg"] == "DETAIL" for one in found["windows"]),
            "sum": total,
            "rereads": found["rereads"],
            "source": source,
            "sources": sources,
            "filters": {name: value for name, value in filters.items() if name != "source"},
            "older": view.here(after=found["after"]) if found["after"] else "",
            "newest": view.here(after="") if view.filter_value("after") else "",
        },
    )


def schedules(view: View) -> Page:
    rows = _schedules(view)
    on = sum(one["on"] == "yes" for one in rows)
    title = f"{plural(on, 'schedule is', 'schedules are')} on" if on else "No schedule is on"
    return Page(title=title, template="ingest/schedules.html", values={"rows": rows, "off": len(rows) - on})


def _schedules(view: View) -> list[dict[str, Any]]:
    """Each with its source, whose name its job begins with."""
    return [
        {
            **one,
            "source": one["job"].partition("/")[0],
            "name": one["job"].partition("/")[2],
            "fields": {
                **{name: one[name] for name in ("endpoint", "operation", "cron", "timezone", "missed")},
                "last": one["look_back"],
                **{name: one[name] for name in ("jitter", "priority")},
                "reread": "yes" if one["reread"] else "",
                "params": parameter_lines(one["params"]),
            },
        }
        for one in view.ask("/ingest/schedules")["rows"]
    ]


def _task_bar(counts: dict[str, int]) -> Any:
    return shares(
        Part(
            count=counts.get(state, 0),
            tone=WINDOW_STATES[state],
            label=f"{counts.get(state, 0)} {tone_of('task', state).word}",
        )
        for state in ("SUCCEEDED", "PARTIAL", "EXECUTING", "DISPATCHED", "QUEUED", "FAILED", "CANCELLED")
    )


ROUTES = (
    Route(path="/ingest", handler=board, nav="/ingest"),
    Route(path="/ingest/source/{source}", handler=source, nav="/ingest"),
    Route(path="/ingest/plans", handler=plans, nav="/ingest/plans"),
    Route(path="/ingest/plan/{plan}", handler=plan, nav="/ingest/plans"),
    Route(path="/ingest/tasks", handler=tasks, nav="/ingest/plans"),
    Route(path="/ingest/task/{task}", handler=task, nav="/ingest/plans"),
    Route(path="/ingest/run/{run}", handler=run, nav="/ingest/plans"),
    Route(path="/ingest/batch/{run}/{number}", handler=batch, nav="/ingest/plans", live=False),
    Route(path="/ingest/coverage", handler=windows, nav="/ingest/coverage"),
    Route(path="/ingest/cursors", handler=cursors, nav="/ingest/cursors"),
    Route(path="/ingest/cursor", handler=cursor, nav="/ingest/cursors"),
    Route(path="/ingest/rate", handler=rate, nav="/ingest/rate"),
    Route(path="/ingest/quarantine", handler=quarantine, nav="/ingest/quarantine"),
    Route(path="/ingest/errors", handler=errors, nav="/ingest/errors"),
    Route(path="/ingest/schedules", handler=schedules, nav="/ingest/schedules"),
)
