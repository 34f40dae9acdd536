"""Whether the request carries the end of a window as finely as `window.precision` declares it (ruling I11).

An inclusive bound is the last millisecond, second, … of its window. Written more coarsely than the provider compares,
it is the beginning of that second or day, and what was changed later in it would never come.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from patra.ingest.expressions.template import Template
from patra.ingest.expressions.values import Context, Env, Instant, text_of
from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem, TreePath
from patra.ingest.packs.sections.paging import PRECISIONS
from patra.ingest.vocabulary.codes import Bounds
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, parse_instant
from patra.kernel.errors import Invalid

UNITS: dict[str, int] = {
    "millisecond": SECOND // 1000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "month": 31 * DAY,
    "year": 366 * DAY,
}
END = parse_instant("2026-03-10T12:34:30.500Z") or 0
"""The end of the window that is tried: one unit more stays within the same larger unit."""


def check_sent_bounds(draft: Draft, templates: Mapping[TreePath, Template]) -> Iterator[Problem]:
    window = draft.at.window
    if not draft.lists or window.bounds is None or window.precision is None:
        return
    found = _finest(draft, templates)
    declared = window.precision.value
    if found is None or UNITS[found[1]] <= PRECISIONS[window.precision]:
        return
    place, unit = found
    lost = f"the last {unit} of every window" if window.bounds is Bounds.INCLUSIVE else f"a window's part of a {unit}"
    yield draft.error(
        Reason.WINDOW_INVALID,
        place,
        f"the end of a window is sent in whole {unit}s, and window.precision says {declared}: {lost} would be lost",
        f"write it down to the {declared}; if the provider compares by the {unit}, say so in window.precision; "
        "without window.bounds the next whole one is sent, which loses nothing",
    )


def _finest(draft: Draft, templates: Mapping[TreePath, Template]) -> tuple[TreePath, str] | None:
    """Where the request follows the end of a window most finely, and by which unit; None where it does not follow it.

    What has no value yet, for want of a parameter, is judged when it has one.
    """
    plain = _values(draft, templates, END)
    for unit, length in UNITS.items():
        later = _values(draft, templates, END + length)
        for place, value in plain.items():
            if place[0] != "expr" and value is not None and later[place] is not None and later[place] != value:
                return place, unit
    return None


def _values(draft: Draft, templates: Mapping[TreePath, Template], end: int) -> dict[TreePath, Any]:
    """What the templates of the first page give for a window that ends at `end`; None where one gives nothing."""
    at = draft.at
    since, until = Instant(END - at.window.min_us), Instant(end)
    named: dict[str, Any] = {}
    pagination = at.pagination
    values: dict[str, Any] = {
        "plan": {"source": draft.pack.source, "endpoint": draft.name, "operation": draft.operation.value},
        "window": {"from": since, "to": until, "until": until},
        "page": {
            "no": pagination.first_page,
            "index": 0,
            "size": pagination.page_size,
            "offset": pagination.initial.offset,
            "token": pagination.initial.token,
            "url": None,
            "from": since,
            "to": until,
        },
        "key": {"from": None, "to": None},
        "ids": [],
        "id": None,
        "params": draft.params,
        "credential": {name: name for name in draft.secrets},
        "expr": named,
    }
    env = Env(now=END, time_format=at.expr.time_format, zone=at.expr.timezone, max_text=at.expr.max_output)
    context = Context(values, env)
    out: dict[TreePath, Any] = {}
    for place, template in templates.items():
        try:
            value = template.value(context)
            if place[:2] != ("expr", "vars") and value is not None and not isinstance(value, list | dict):
                value = text_of(value, env)
        except Invalid:
            value = None
        if place[:2] == ("expr", "vars"):
            named[str(place[2])] = value
        if place[:2] != ("http", "nextQueryTemplate"):
            out[place] = value
    return out
