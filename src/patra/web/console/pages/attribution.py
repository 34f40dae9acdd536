"""Attribution: what comes in and how it is answered, what is open, what may be billed, what was refused."""

from typing import Any

from patra.kernel.clock import DAY, format_instant
from patra.kernel.safety.untrusted_text import integer_of
from patra.web.console.calls import Refusal
from patra.web.console.markup.drawings import Part, bars, shares
from patra.web.console.markup.formats import number_text, plural
from patra.web.console.view import PAGE_SIZE, Page, Route, View
from patra.web.problem import Problem

LATEST = 2**62
ACTION_TONES = {"drop": ("bad", "bad", "rejected"), "quarantine": ("bad", "bad", "quarantined")}
ANSWERS = {"duplicate": ("off", "dup"), "conflict": ("bad", "bad")}
STATES = ("open", "closed_success", "closed_failure")
HISTORY_COLUMNS = {
    "log": ("kind", "app_id", "batch_id", "code"),
    "audits": ("record_type", "record_status", "event_id", "closure_key", "decision_reason_code"),
    "facts": ("record_type", "record_status", "event_id", "closure_key", "billing_key"),
    "settled": ("app_id", "billable_type", "period", "statement", "closure_state"),
}
"""What the page of history shows of each kind of rows, beside their time."""


def enriched(one: dict[str, Any]) -> dict[str, Any]:
    """A decision with what its row shows: the event's own id and type, its closure, its answer with a tone."""
    audit, records = one["audit"], one["records"]
    source: dict[str, str] = records[0]["sourceKeys"] if records else {}
    relation: dict[str, str] = records[0]["relationKeys"] if records else {}
    action, code = audit["decisionAction"], audit["decisionReasonCode"]
    tone, icon, word = ACTION_TONES.get(action, ("done", "ok", "accepted"))
    for part, (other_tone, other_icon) in ANSWERS.items():
        if part in code or part in action:
            tone, icon, word = other_tone, other_icon, part
    fact: dict[str, Any] = one["attribution"] or {}
    closure = relation.get("closureKeyOrNA", "NA")
    return {
        **one,
        "at": audit["decidedAt"],
        "action": action,
        "code": code,
        "event_id": source.get("eventId") or audit["sourceEventId"],
        "event_type": fact.get("eventType") or one["detail"].get("eventType") or "event",
        "closure": "" if closure == "NA" else closure,
        "tone": tone,
        "icon": icon,
        "word": word,
        "facts": [name for name in ("billable", "attribution") if one[name]],
    }


def events(view: View) -> Page:
    filters = view.filters("app", "type", "code")
    before = view.asked("before")
    page = view.ask(
        "/attribution/newest",
        appId=view.asked("app"),
        type=view.asked("type"),
        code=view.asked("code"),
        before="" if integer_of(before) is None else before,
        limit=PAGE_SIZE,
    )
    rates = view.series
    rate, rejected = rates.rate("events"), rates.rate("rejected")
    return Page(
        title="Events",
        template="attribution/events.html",
        values={
            "decisions": [enriched(one) for one in page["decisions"]],
            "filters": filters,
            "older": view.here(before=page["next"]) if page["next"] is not None else "",
            "newest": view.here(before="") if before else "",
            "rate": number_text(round(rate, 1)),
            "rejected": number_text(round(rejected, 1)),
            "all_bars": bars(rates.points("events"), "events a second, last hour"),
            "rejected_bars": bars(rates.points("rejected"), "rejected events a second, last hour", "bad", 28),
        },
    )


def event(view: View) -> Page:
    batch, event_id = view.asked("batch"), view.asked("event")
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
            "decisions": [enriched(one) for one in found["decisions"]],
            "refused": found["refused"],
            "batch": batch,
            "event_id": event_id,
        },
    )


def closures(view: View) -> Page:
    state = view.asked("state", "open")
    page = view.ask(
        "/attribution/closures", state="" if state == "all" else state, after=view.asked("after"), limit=PAGE_SIZE
    )
    rows = page["closures"]
    if state == "open":
        rows = sorted(rows, key=lambda row: row["nextDeadline"] or "9")
    many = f"{PAGE_SIZE}+ closures are" if page["next"] else plural(len(rows), "closure is", "closures are")
    first = state == "open" and not view.asked("after")
    return Page(
        title=(f"{many} open" if rows else "No closure is open") if first else "Closures",
        template="attribution/closures.html",
        values={
            "rows": rows,
            "state": state,
            "states": (*STATES, "all"),
            "older": view.here(after=page["next"]) if page["next"] else "",
        },
    )


def closure(view: View) -> Page:
    key = view.asked("key")
    found = view.ask("/attribution/closures/{key}", {"key": key})
    timeline = view.ask("/attribution/timeline/{key}", {"key": key}, limit=200)
    return Page(
        title=f"Closure {key}",
        template="attribution/closure.html",
        values={
            "closure": found,
            "decisions": [enriched(one) for one in timeline["decisions"]],
            "searched": key,
        },
    )


def settlement(view: View) -> Page:
    end = view.asked("to") or format_instant((view.now // DAY + 1) * DAY)
    begin = view.asked("from") or format_instant((view.now // DAY - 6) * DAY)
    by = view.asked("by", "day")
    found = view.ask("/attribution/settlement", begin=begin, end=end, by=by)
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
        title=f"{plural(total, 'fact')} may be billed",
        template="attribution/settlement.html",
        values={
            "found": found,
            "begin": begin,
            "end": end,
            "by": by,
            "frozen_link": view.here(**{"from": begin, "to": end, "by": by}),
        },
    )


def statements(view: View) -> Page:
    app = view.asked("app")
    found: list[dict[str, Any]] = view.ask("/attribution/statements", appId=app)["statements"]
    rates = view.ask("/attribution/rates")["rates"]
    title = f"{plural(len(found), 'period is', 'periods are')} closed" if found else "No period is closed yet"
    return Page(
        title=title,
        template="attribution/statements.html",
        values={"statements": found[::-1], "rates": rates, "filters": view.filters("app")},
    )


def statement(view: View) -> Page:
    app, period = view.asked("app"), view.asked("period")
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
    title = (
        f"{plural(pending, 'decision waits', 'decisions wait')} for the archive"
        if pending
        else "The archive is up to date"
    )
    return Page(
        title=title,
        template="attribution/archive.html",
        values={
            "states": states,
            "where": found["where"],
            "pending": pending,
            "lost": lost,
            "waiting": waiting,
            "lost_at": min((one["lost_at"] for one in waiting), default=None),
        },
    )


def rejects(view: View) -> Page:
    refused = view.asked("refused") == "1"
    before = view.asked("before")
    if refused:
        rows = view.ask("/attribution/refused", code=view.asked("code"), before=before, limit=PAGE_SIZE)["refused"]
        following: Any = rows[-1]["number"] if len(rows) == PAGE_SIZE else None
    else:
        page = view.ask(
            "/attribution/rejects",
            code=view.asked("code"),
            batchId=view.asked("batch"),
            quarantined="true" if view.asked("quarantined") else "false",
            before=before,
            limit=PAGE_SIZE,
        )
        rows, following = page["rejects"], page["next"]
    counts: dict[str, int] = {}
    for row in rows:
        code = row["code"] if refused else row["ackReasonCode"]
        counts[code] = counts.get(code, 0) + 1
    return Page(
        title="Rejects",
        template="attribution/rejects.html",
        values={
            "rows": rows,
            "refused": refused,
            "filters": view.filters("code", "batch", "quarantined"),
            "counts": sorted(counts.items(), key=lambda item: -item[1]),
            "shown": rejects_shown(rows, refused=refused),
            "older": view.here(before=following) if following else "",
        },
    )


def rejects_shown(rows: list[dict[str, Any]], *, refused: bool) -> str:
    """What the counts beside it count: an event that is sent again is one event."""
    if refused:
        return plural(len(rows), "batch", "batches")
    times = sum(row["count"] for row in rows)
    again = f", rejected {plural(times, 'time')}" if times > len(rows) else ""
    return f"{plural(len(rows), 'rejected event')}{again}"


def apps(view: View) -> Page:
    keys = view.ask("/attribution/apps")["keys"]
    return Page(title="Apps and keys", template="attribution/apps.html", values={"keys": keys})


def history(view: View) -> Page:
    """Files past their retention; of one kind, the rows in them."""
    kind, key, after = view.asked("kind"), view.asked("key"), view.asked("after")
    kind = kind if kind in HISTORY_COLUMNS else ""
    span = {"begin": view.asked("from"), "end": view.asked("to")}
    page = view.ask("/attribution/history", kind=kind, **span, after="" if kind else after, limit=PAGE_SIZE)
    rows: dict[str, Any] = {"rows": [], "next": None, "files": 0}
    if kind and page["files"]:
        rows = view.ask("/attribution/history/rows", kind=kind, **span, key=key, after=after, limit=PAGE_SIZE)
    following = rows["next"] if kind else page["next"]
    return Page(
        title="History",
        template="attribution/history.html",
        values={
            "files": page["files"],
            "rows": rows["rows"],
            "opened": rows["files"],
            "kind": kind,
            "kinds": tuple(HISTORY_COLUMNS),
            "columns": HISTORY_COLUMNS.get(kind, ()),
            "filters": view.filters("key", "from", "to"),
            "older": view.here(after=following) if following else "",
        },
    )


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
