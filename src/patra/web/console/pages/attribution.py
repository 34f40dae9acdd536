"""Attribution: what comes in and how it is answered, what is open, what may be billed, what was refused."""

from typing import Any

from markupsafe import Markup

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_state import CLOSURE
from patra.attribution.intake.identity import FAILURE
from patra.attribution.queries.archive_delivery import MAX_COUNTED
from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.safety.untrusted_text import integer_of
from patra.web.console.calls import Refusal
from patra.web.console.markup.drawings import Part, bars, shares
from patra.web.console.markup.formats import instant, number_text, plural, span_text
from patra.web.console.markup.machine_drawing import machine_drawing
from patra.web.console.markup.time_brush import time_brush
from patra.web.console.pages.attribution_history import history
from patra.web.console.pages.attribution_rejects import rejects
from patra.web.console.pages.time_span import NO_PLACE, span_values, time_span
from patra.web.console.view import PAGE_SIZE, Download, Page, Route, View
from patra.web.problem import Problem

LATEST = 2**62
MAX_DAYS = 62
"""Of a settlement by day: so many are shown one by one."""
ANSWERS = {
    "accepted": ("done", "ok"),
    "duplicate": ("off", "dup"),
    "rejected": ("bad", "bad"),
    "timer": ("warn", "due"),
}
"""Tone and shape of each answer; what a deadline decided nobody was answered."""
STEP_TONES = {
    "passed": ("done", "ok"),
    "failed": ("bad", "bad"),
    "duplicate": ("off", "dup"),
    "waiting": ("wait", "wait"),
    "not_reached": ("off", "off"),
}
SUGGESTED = {"types": (*sorted(KINDS), FAILURE), "codes": tuple(sorted(reason.value for reason in Reason))}
"""What the filters of the list suggest."""
EDGES = {(str(was), str(on)): str(to) for (was, on), to in CLOSURE.edges.items()}
FILES = ("csv", "json", "parquet")
"""What a settlement can be saved as."""
STATES = ("open", "closed_success", "closed_failure")


def enrich_decision(one: dict[str, Any]) -> dict[str, Any]:
    """A decision with what its row shows: the event's own id and type, its closure, its answer with a tone."""
    audit, records = one["audit"], one["records"]
    source: dict[str, str] = records[0]["sourceKeys"] if records else {}
    relation: dict[str, str] = records[0]["relationKeys"] if records else {}
    tone, icon = ANSWERS[one["answer"]]
    closure = relation.get("closureKeyOrNA", "NA")
    return {
        **one,
        "at": audit["decidedAt"],
        "action": audit["decisionAction"],
        "code": audit["decisionReasonCode"],
        "event_id": source.get("eventId") or audit["sourceEventId"],
        "event_type": "no type" if one["eventType"] == "NA" else one["eventType"],
        "closure": "" if closure == "NA" else closure,
        "tone": tone,
        "icon": icon,
        "word": one["answer"],
        "ladder": [{**step, "tone": STEP_TONES[step["outcome"]]} for step in one["steps"]],
        "facts": [name for name in ("billable", "attribution") if one[name]],
    }


def events(view: View) -> Page:
    filters = view.filters("app", "type", "code", "answer")
    before, at = view.filter_value("before"), integer_of(view.filter_value("at"))
    span = time_span(view)
    answer = view.filter_value("answer")
    asked: dict[str, dict[str, Any]] = {
        "app": {"appId": view.filter_value("app")},
        "type": {"type": view.filter_value("type")},
        "code": {"code": view.filter_value("code")},
        "answer": {"answer": answer if answer in ANSWERS else ""},
        "time": span.as_query(),
    }

    def found_rows(more: dict[str, Any]) -> dict[str, Any]:
        return view.ask("/attribution/newest", **more, limit=PAGE_SIZE)

    every = {key: value for one in asked.values() for key, value in one.items()}
    page = found_rows({**every, "before": "" if integer_of(before) is None else before})
    rates = view.series
    rate, rejected = rates.rate("events"), rates.rate("rejected")
    columns, seconds = rates.columns("events")
    reach = span_text(seconds * SECOND)
    rows = [enrich_decision(one) for one in page["decisions"]]
    refused = f", {number_text(round(rejected, 1))} of them rejected" if rejected else ""
    return Page(
        title=f"{number_text(round(rate, 1))} events a second{refused}",
        template="attribution/events.html",
        values={
            "decisions": rows,
            "wider": None if rows or before else view.wider(asked, lambda rest: len(found_rows(rest)["decisions"])),
            "filters": filters,
            "answer": answer,
            "answers": ("", *ANSWERS),
            "suggested": SUGGESTED,
            "chosen": at,
            "one": None if at is None else view.part("event", lambda: _inspect_decision(view, at)),
            "frozen_link": view.here(before=before or (rows[0]["number"] + 1 if rows else "")),
            "older": view.here(before=page["next"]) if page["next"] is not None else "",
            "newest": view.here(before="") if before else "",
            "rate": number_text(round(rate, 1)),
            "rejected": number_text(round(rejected, 1)),
            "all_bars": time_brush(
                bars(columns, f"events a second, last {reach}"),
                view.now - seconds * SECOND,
                view.now,
                len(columns),
                view.here(**NO_PLACE, **{"from": "", "to": ""}),
                "the events",
            ),
            **span_values(view, span),
            "span_kept": filters,
            "rejected_bars": bars(rates.columns("rejected")[0], f"rejected events a second, last {reach}", "bad", 28),
            "reach": reach,
        },
    )


def _inspect_decision(view: View, number: int) -> dict[str, Any] | None:
    """The decision of a number with its checks and its closure, for the part beside the list."""
    newest = view.ask("/attribution/newest", before=number + 1, limit=1)["decisions"]
    if not newest or newest[0]["number"] != number:
        return None
    found = enrich_decision(newest[0])
    if found["batchId"]:
        event_id = "" if found["event_id"] == "NA" else found["event_id"]
        of_batch = view.ask(
            "/attribution/events", batchId=found["batchId"], eventId=event_id, after=number - 1, limit=1
        )
        found = next((enrich_decision(one) for one in of_batch["decisions"] if one["number"] == number), found)
    return found | {"machine": _machine_of(view, found)}


def _machine_of(view: View, decision: dict[str, Any]) -> dict[str, Any] | None:
    """The closure of a decision, drawn with the way that the decision took."""
    if not decision["closure"]:
        return None
    try:
        closure = view.ask("/attribution/closures/{key}", {"key": decision["closure"]})
    except Refusal:
        return None
    taken = [step["transition"] for step in decision["steps"] if step["transition"]]
    return {"closure": closure, "drawing": _machine(closure, taken)}


def _machine(closure: dict[str, Any], taken: list[str]) -> Markup:
    return machine_drawing("closure", EDGES, str(CLOSURE.initial), closure["state"], taken)


def event(view: View) -> Page:
    batch, event_id = view.filter_value("batch"), view.filter_value("event")
    found: dict[str, Any] = {"decisions": [], "refused": []}
    if batch:
        found = view.ask("/attribution/events", batchId=batch, eventId=event_id, limit=100)
    if not found["decisions"] and not found["refused"]:
        detail = f"Batch {batch!r}, event {event_id!r}. What is older than its retention was purged."
        raise Refusal(Problem(404, "event_unknown", "Nothing was decided about this event", detail))
    return Page(
        title=f"Event {event_id or batch}",
        template="attribution/event.html",
        values={
            "decisions": [
                one | {"machine": _machine_of(view, one)} for one in map(enrich_decision, found["decisions"])
            ],
            "refused": found["refused"],
            "batch": batch,
            "event_id": event_id,
        },
    )


def closures(view: View) -> Page:
    state, app, after = view.filter_value("state", "open"), view.filter_value("app"), view.filter_value("after")
    is_open = state == "open"
    asked = (
        {"order": "deadline", "appId": app, "dueBefore": view.filter_value("due")}
        if is_open
        else {"state": "" if state == "all" else state}
    )
    page = view.ask("/attribution/closures", **asked, after=after, limit=PAGE_SIZE)
    rows = page["closures"]
    due = view.part("deadlines", lambda: view.ask("/attribution/deadlines")) if is_open else None
    waiting = due["overdue"] + sum(part["count"] for part in due["due"]) + due["later"] if due else 0
    many = plural(waiting, "closure is", "closures are") if due and due["complete"] else "Very many closures are"
    return Page(
        title=(f"{many} open" if waiting else "No closure is open") if due else "Closures",
        template="attribution/closures.html",
        values={
            "rows": rows,
            "state": state,
            "states": (*STATES, "all"),
            "filters": view.filters("app", "due") if is_open else {},
            "due": due,
            "open_count": waiting,
            "due_bars": bars(
                [float(part["count"]) for part in due["due"]], "closures due in the next 2 min, by 5 s", "done", 56
            )
            if due
            else "",
            "older": view.here(after=page["next"]) if page["next"] else "",
        },
    )


def closure(view: View) -> Page:
    key = view.filter_value("key")
    found = view.ask("/attribution/closures/{key}", {"key": key})
    timeline = view.ask("/attribution/timeline/{key}", {"key": key}, limit=200)
    return Page(
        title=f"Closure {key}",
        template="attribution/closure.html",
        values={
            "closure": found,
            "machine": _machine(found, found["way"]),
            "decisions": [enrich_decision(one) for one in timeline["decisions"]],
            "searched": key,
        },
    )


def settlement(view: View) -> Page:
    end = view.filter_value("to") or format_instant((view.now // DAY + 1) * DAY)
    begin = view.filter_value("from") or format_instant((view.now // DAY - 6) * DAY)
    by = view.filter_value("by", "day")
    asked = {"begin": begin, "end": end, "by": by}
    if (form := view.filter_value("file")) in FILES:
        content = view.ask("/attribution/settlement/file", **asked, format=form)
        name = f"settlement-{begin[:10]}-{end[:10]}-by-{by}.{form}"
        return Page(title="", template="attribution/settlement.html", file=Download(name=name, content=content))
    found = view.ask("/attribution/settlement", **asked)
    if by == "day":
        found["lines"] = every_day(found["lines"], begin, end)
    most = max((line["impressions"] + line["clicks"] for line in found["lines"]), default=0)
    for line in found["lines"]:
        parts = [
            Part(count=line["impressions"], tone="done", label=plural(line["impressions"], "impression")),
            Part(count=line["clicks"], tone="run", label=plural(line["clicks"], "click")),
            Part(count=most - line["impressions"] - line["clicks"], tone="none", label=""),
        ]
        line["bar"] = shares(parts)
    total = found["impressions"] + found["clicks"]
    return Page(
        title=f"{plural(total, 'fact')} may be billed" if total else "No fact may be billed",
        template="attribution/settlement.html",
        values={
            "found": found,
            "begin": begin,
            "end": end,
            "by": by,
            "files": FILES,
            "drawing": bars(
                [float(line["impressions"] + line["clicks"]) for line in found["lines"]], "facts by day", "done", 72
            )
            if by == "day" and len(found["lines"]) > 1
            else "",
            "frozen_link": view.here(**{"from": begin, "to": end, "by": by}),
        },
    )


def every_day(lines: list[dict[str, Any]], begin: str, end: str) -> list[dict[str, Any]]:
    """Lines by day, those without a fact too, so that a chart of them is an axis of time; not of a longer span."""
    first, last = instant(begin), instant(end)
    if first is None or last is None or (last - first) // DAY > MAX_DAYS:
        return lines
    of_day = {line["day"]: line for line in lines}
    days = [format_instant(at)[:10] for at in range(first // DAY * DAY, last, DAY)]
    nothing = {"app_id": "", "placement": "", "impressions": 0, "clicks": 0}
    return [of_day.get(day) or {**nothing, "day": day} for day in days]


def statements(view: View) -> Page:
    app = view.filter_value("app")
    found: list[dict[str, Any]] = view.ask("/attribution/statements", appId=app)["statements"]
    rates = view.ask("/attribution/rates")["rates"]
    title = f"{plural(len(found), 'period is', 'periods are')} closed" if found else "No period is closed yet"
    return Page(
        title=title,
        template="attribution/statements.html",
        values={"statements": found[::-1], "rates": rates, "filters": view.filters("app")},
    )


def statement(view: View) -> Page:
    app, period = view.filter_value("app"), view.filter_value("period")
    of_app: list[dict[str, Any]] = view.ask("/attribution/statements", appId=app)["statements"] if app else []
    found = next((one for one in of_app if one["period"] == period), None)
    if found is None:
        detail = f"{app or 'No app'} has none of {period or 'no period'}."
        raise Refusal(Problem(404, "statement_unknown", "There is no such statement", detail))
    counts = [line["count"] for line in found["lines"]]
    return Page(
        title=f"Statement of {app}, {period}",
        template="attribution/statement.html",
        values={
            "found": found,
            "drawing": bars(counts, f"facts by line, {app} {period}", "done", 48) if counts else "",
        },
    )


def archive(view: View) -> Page:
    found = view.ask("/attribution/archive")
    states, waiting = found["states"], found["waiting"]
    pending, lost = states.get("pending", 0), states.get("given_up", 0) + states.get("refused", 0)
    count = plural(pending, "decision waits", "decisions wait") if pending < MAX_COUNTED else "Very many decisions wait"
    title = f"{count} for the archive" if pending else "The archive is up to date"
    return Page(
        title=title,
        template="attribution/archive.html",
        values={
            "states": states,
            "where": found["where"],
            "pending": pending,
            "lost": lost,
            "waiting": waiting,
            "failing_since": found["failing_since"],
            "lost_at": found["lost_at"],
        },
    )


def apps(view: View) -> Page:
    keys = view.ask("/attribution/apps")["keys"]
    count = sum(1 for key in keys if not key["revoked_at"])
    title = f"{plural(count, 'app key is', 'app keys are')} in force" if count else "No app key is in force"
    return Page(title=title, template="attribution/apps.html", values={"keys": keys})


ROUTES = (
    Route(path="/attribution/events", handler=events, nav="/attribution/events"),
    Route(path="/attribution/event", handler=event, nav="/attribution/events"),
    Route(path="/attribution/closures", handler=closures, nav="/attribution/closures"),
    Route(path="/attribution/closure", handler=closure, nav="/attribution/closures"),
    Route(path="/attribution/settlement", handler=settlement, nav="/attribution/settlement"),
    Route(path="/attribution/statements", handler=statements, nav="/attribution/statements"),
    Route(path="/attribution/statement", handler=statement, nav="/attribution/statements", live=False),
    Route(path="/attribution/archive", handler=archive, nav="/attribution/archive"),
    Route(path="/attribution/rejects", handler=rejects, nav="/attribution/rejects"),
    Route(path="/attribution/history", handler=history, nav="/attribution/history", live=False),
    Route(path="/attribution/apps", handler=apps, nav="/attribution/apps"),
)
