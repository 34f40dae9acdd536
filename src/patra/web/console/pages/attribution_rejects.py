"""What was refused, by which rule, from whom, and when."""

from typing import Any

from markupsafe import Markup

from patra.web.console.markup.drawings import bars, spark
from patra.web.console.markup.formats import clock_text, instant, plural, time_tag
from patra.web.console.markup.time_brush import time_brush
from patra.web.console.pages.time_span import NO_PLACE, span_values, time_span
from patra.web.console.view import PAGE_SIZE, Page, View

OVER_TIME_PARTS = 60
CAUSES_SHOWN = 12


def rejects(view: View) -> Page:
    refused = view.filter_value("refused") == "1"
    before, filters = view.filter_value("before"), view.filters("code", "batch", "quarantined")
    span, wider = time_span(view), None
    asked: dict[str, dict[str, Any]] = {
        "code": {"code": view.filter_value("code")},
        "batch": {"batchId": view.filter_value("batch")},
        "quarantined": {"quarantined": "true" if view.filter_value("quarantined") else ""},
        "time": span.as_query(),
    }

    def found_rows(more: dict[str, Any]) -> dict[str, Any]:
        return view.ask("/attribution/rejects", **more, limit=PAGE_SIZE)

    if refused:
        rows = view.ask("/attribution/refused", code=view.filter_value("code"), before=before, limit=PAGE_SIZE)[
            "refused"
        ]
        following: Any = rows[-1]["number"] if len(rows) == PAGE_SIZE else None
    else:
        every = {key: value for one in asked.values() for key, value in one.items()}
        page = found_rows({**every, "before": before})
        rows, following = page["rejects"], page["next"]
        if not rows and not before:
            wider = view.wider(asked, lambda rest: len(found_rows(rest)["rejects"]))
    counts: dict[str, int] = {}
    for row in rows:
        code = row["code"] if refused else row["ackReasonCode"]
        counts[code] = counts.get(code, 0) + 1
    has_axis = not refused and not view.filter_value("batch") and bool(rows)
    when = view.part("times of rejects", lambda: _over_time(view, span.as_query())) if has_axis else None
    return Page(
        title=rejects_title(when, is_plain=not (rows or refused or filters or span)),
        template="attribution/rejects.html",
        values={
            "rows": rows,
            "refused": refused,
            "filters": filters,
            "wider": wider,
            "counts": sorted(counts.items(), key=lambda item: -item[1]),
            "shown": rejects_shown(rows, refused=refused),
            "when": when,
            **span_values(view, span),
            "span_kept": filters,
            "older": view.here(before=following) if following else "",
        },
    )


def rejects_title(when: dict[str, Any] | None, *, is_plain: bool) -> str:
    """How many there are, where they are counted."""
    if when is None:
        return "No event was rejected" if is_plain else "Rejects"
    more = "More than " if when["more"] else ""
    return f"{more}{plural(when['count'], 'event was', 'events were')} rejected"


def _over_time(view: View, span: dict[str, str]) -> dict[str, Any]:
    """When events were rejected, as a drawing from which a span is taken, and the trend of each code of each app."""
    found = view.ask(
        "/attribution/rejects/over-time",
        code=view.filter_value("code"),
        quarantined="true" if view.filter_value("quarantined") else "false",
        parts=OVER_TIME_PARTS,
        **span,
    )
    begin, end, counts = instant(found["since"]) or 0, instant(found["until"]) or 0, found["counts"]
    first, last = (clock_text(at, view.now) for at in (begin, end))
    ends = (time_tag(at, view.now) for at in (begin, end))
    drawing = bars([float(n) for n in counts], f"rejected events, {first} to {last} UTC", "bad")
    href = view.here(**NO_PLACE, **{"from": "", "to": ""})
    axis = Markup('<p class="axis"><span>{}</span><span>{}</span></p>').format(*ends)
    return {
        "drawing": time_brush(drawing, begin, end, len(counts), href, "the rejects") + axis,
        "count": sum(counts),
        "more": found["more"],
        "first": time_tag(begin, view.now),
        "causes": [
            {
                **cause,
                "trend": spark(
                    [float(n) for n in cause["counts"]],
                    f"{cause['code']} of {cause['appId']}, {first} to {last} UTC",
                    "bad",
                ),
            }
            for cause in found["causes"][:CAUSES_SHOWN]
        ],
        "left_out": max(len(found["causes"]) - CAUSES_SHOWN, 0),
    }


def rejects_shown(rows: list[dict[str, Any]], *, refused: bool) -> str:
    """What the counts beside it count: an event that is sent again is one event."""
    if refused:
        return plural(len(rows), "batch", "batches")
    times = sum(row["count"] for row in rows)
    again = f", rejected {plural(times, 'time')}" if times > len(rows) else ""
    return f"{plural(len(rows), 'rejected event')}{again}"
