"""The span of time of a list: `from` and `to` of the address, how it is moved and dropped, and what draws it."""

from typing import Any

import msgspec
from markupsafe import Markup

from patra.kernel.clock import DAY, HOUR, MINUTE, format_instant
from patra.web.console.calls import Refusal
from patra.web.console.markup.formats import instant, time_tag
from patra.web.console.view import View
from patra.web.problem import Problem

NO_PLACE = {"before": "", "after": "", "at": ""}
"""A page of a list, or a row in it, belongs to the span that it was seen in."""


LATEST_SPANS = (("15 min", 15 * MINUTE), ("1 h", HOUR), ("24 h", DAY), ("7 d", 7 * DAY))


class TimeSpan(msgspec.Struct, frozen=True, kw_only=True):
    """Instants in µs, `until` not included; None: open on that side."""

    since: int | None
    until: int | None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    def as_query(self) -> dict[str, str]:
        """As the HTTP interface takes it."""
        given = {"since": self.since, "until": self.until}
        return {name: format_instant(at) for name, at in given.items() if at is not None}


def time_span(view: View) -> TimeSpan:
    """What the address asks for. Raises Refusal where that is no span of time."""
    ends = {name: instant(view.filter_value(name)) for name in ("from", "to")}
    wrong = next((name for name, at in ends.items() if at is None and view.filter_value(name)), None)
    if wrong:
        raise Refusal(Problem(400, "instant_invalid", f"{wrong} is not an instant such as 2026-01-31T08:00:00Z"))
    if ends["from"] is not None and ends["to"] is not None and ends["from"] >= ends["to"]:
        raise Refusal(Problem(400, "span_invalid", "The span ends before it begins"))
    return TimeSpan(since=ends["from"], until=ends["to"])


def span_values(view: View, span: TimeSpan) -> dict[str, Any]:
    """The chip of a span, the spans of the same length before and after it, and the list without one."""
    without = view.here(**NO_PLACE, **{"from": "", "to": ""})
    latest = [(name, _at(view, (view.now - length) // MINUTE * MINUTE, None)) for name, length in LATEST_SPANS]
    shared: dict[str, Any] = {"spanless": without, "latest_spans": latest}
    if not span:
        return {"span": None, "span_asked": {"from": "", "to": ""}, **shared}
    end = view.now if span.until is None else span.until
    moved: dict[str, str] = {}
    if span.since is not None:
        length = max(end - span.since, 1)
        moved["earlier"] = _at(view, span.since - length, span.since)
        if span.until is not None and span.until < view.now:
            moved["later"] = _at(view, span.until, span.until + length)
    first = "the beginning" if span.since is None else time_tag(span.since, view.now)
    last = "now" if span.until is None else time_tag(span.until, view.now)
    shown = {"text": Markup("{} to {}").format(first, last), "drop": without, "earlier": "", "later": "", **moved}
    return {"span": shown, "span_asked": {name: view.filter_value(name) for name in ("from", "to")}, **shared}


def _at(view: View, since: int, until: int | None) -> str:
    last = "" if until is None else format_instant(until)
    return view.here(**NO_PLACE, **{"from": format_instant(since), "to": last})
