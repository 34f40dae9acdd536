"""Where the watermarks stand, and how each of them moved."""

from collections import Counter
from typing import Any

from patra.web.console.calls import Refusal
from patra.web.console.markup.formats import instant, span_text
from patra.web.console.view import PAGE_SIZE, Page, View
from patra.web.problem import Problem

MAX_CURSORS = 1000


def watermarks(view: View, source: str = "") -> list[dict[str, Any]]:
    return view.ask("/ingest/cursors", source=source, limit=MAX_CURSORS)["rows"]


def cursors(view: View) -> Page:
    found = watermarks(view, view.filter_value("source"))
    behind: list[tuple[int, str]] = []
    for one in found:
        at = instant(one["cursor_value"])
        is_behind = at is not None and one["operation_code"] != "BACKFILL"
        one["lag"] = span_text(view.now - at) if at is not None and is_behind else ""
        behind += [(at, one["provenance_code"])] if at is not None and is_behind else []
    last = min(behind, default=None)
    title = "Cursors" if last is None else f"{last[1]} is furthest behind: {span_text(view.now - last[0])}"
    return Page(
        title=title, template="ingest/cursors.html", values={"cursors": found, "filters": view.filters("source")}
    )


def cursor(view: View) -> Page:
    """One watermark: where it stands, and every event that moved it or did not."""
    source, operation, namespace = view.filter_value("source"), view.filter_value("op"), view.filter_value("ns")
    asked = {"source": source, "operation": operation, "namespace": namespace}
    known = all(asked.values())
    rows: list[dict[str, Any]] = view.ask("/ingest/cursors", **asked, limit=1)["rows"] if known else []
    if not rows:
        detail = "The first batch of a source, operation and namespace writes one."
        raise Refusal(Problem(404, "cursor_unknown", "There is no such cursor", detail))
    row = rows[0]
    page = view.ask("/ingest/cursor-timeline", **asked, after=view.filter_value("after"), limit=PAGE_SIZE)
    events = page["rows"]
    reasons = Counter(str(one["reason_code"]) for one in events)
    return Page(
        title=f"{source} {operation} {namespace}",
        template="ingest/cursor.html",
        values={
            "source": source,
            "operation": operation,
            "namespace": namespace,
            "row": row,
            "answer": cursor_answer(row, view.now),
            "events": events,
            "reasons": reasons.most_common(),
            "older": view.here(after=page["next"]) if page["next"] else "",
            "newest": view.here(after="") if view.filter_value("after") else "",
        },
    )


def cursor_answer(row: dict[str, Any], now: int) -> str:
    """Where a watermark stands, in a sentence."""
    at = instant(row["cursor_value"])
    if at is None:
        return f"It stands at {row['cursor_value']}."
    if row["operation_code"] == "BACKFILL":
        return f"It has reached {row['cursor_value']}."
    return f"It stands at {row['cursor_value']}, {span_text(now - at)} behind."
