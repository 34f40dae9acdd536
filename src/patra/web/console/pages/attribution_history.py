"""What was moved out of the store: files of history, and their rows."""

from typing import Any

from patra.web.console.view import PAGE_SIZE, Page, View

HISTORY_COLUMNS = {
    "log": ("kind", "app_id", "batch_id", "code"),
    "audits": ("record_type", "record_status", "event_id", "closure_key", "decision_reason_code"),
    "facts": ("record_type", "record_status", "event_id", "closure_key", "billing_key"),
    "settled": ("app_id", "billable_type", "period", "statement", "closure_state"),
}
"""What the page of history shows of each kind of rows, beside their time."""


def history(view: View) -> Page:
    """Files past their retention; of one kind, the rows in them."""
    kind, key, after = view.filter_value("kind"), view.filter_value("key"), view.filter_value("after")
    kind = kind if kind in HISTORY_COLUMNS else ""
    span = {"begin": view.filter_value("from"), "end": view.filter_value("to")}
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
