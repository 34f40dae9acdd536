"""A story on an axis of time: one lane for each engine, a mark for each entry. Long quiet spans are folded."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from markupsafe import Markup

from patra.kernel.clock import SECOND
from patra.web.console.markup.formats import clock_text, instant, span_text

LANE_PX = 24
TOP_PX = 22
FOLD_SHARE = 0.06
"""The part of the axis that a folded span takes."""
FOLD_FACTOR = 10
"""A span is folded when it is this many times as long as the middle one."""
MAX_FOLDS = 5
MARKS = {"in": "in", "rule": "sq", "written": "sq", "out": "ok", "act": "who"}


class Scale:
    """Where an instant lies between 0 and 1, when the spans that are far longer than most are folded."""

    def __init__(self, instants: Sequence[int]) -> None:
        self._at = sorted(set(instants))
        spans = [later - earlier for earlier, later in pairwise(self._at)]
        line = FOLD_FACTOR * max(median(spans), SECOND / 10) if spans else 0
        longest = sorted((span for span in spans if span > line), reverse=True)[:MAX_FOLDS]
        least = longest[-1] if longest and len(spans) > len(longest) else None
        folded = [least is not None and span >= least for span in spans]
        room = 1.0 - FOLD_SHARE * sum(folded)
        plain = sum(span for span, is_folded in zip(spans, folded, strict=True) if not is_folded) or 1
        self._places = [0.0]
        self.folds: list[tuple[float, float, int]] = []
        for span, is_folded in zip(spans, folded, strict=True):
            here = self._places[-1]
            there = here + (FOLD_SHARE if is_folded else room * span / plain)
            if is_folded:
                self.folds.append((here, there, span))
            self._places.append(there)

    def place(self, at: int) -> float:
        """The place of one of the instants that the scale was made of."""
        last = self._places[-1] or 1.0
        return self._places[self._at.index(at)] / last if len(self._at) > 1 else 0.5


def axis(entries: Sequence[Mapping[str, Any]], lanes: Sequence[str], now: int) -> Markup:
    """The drawing; each mark leads to its entry by its anchor."""
    at = [instant(entry["at"]) or 0 for entry in entries]
    scale = Scale(at)
    height = TOP_PX + LANE_PX * len(lanes)
    out = [
        Markup(
            '<rect class="gap" x="{}%" width="{}%" y="{}" height="{}"><title>{} without an entry</title></rect>'
        ).format(_share(begin), _share(end - begin), TOP_PX - 6, height - TOP_PX + 6, span_text(span))
        for begin, end, span in scale.folds
    ]
    out += [
        Markup('<line class="base" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(TOP_PX + LANE_PX * row + 18)
        for row in range(len(lanes))
    ]
    for place, text, anchor in _ticks(at, scale, now):
        out.append(Markup('<text x="{}%" y="12" text-anchor="{}">{}</text>').format(_share(place), anchor, text))
    for entry, when in zip(entries, at, strict=True):
        row = lanes.index(entry["engine"])
        out.append(
            Markup(
                '<a href="#{}" aria-label="{}"><svg x="{}%" y="{}" overflow="visible">{}<title>{}</title></svg></a>'
            ).format(
                entry["anchor"],
                entry["text"],
                _share(scale.place(when)),
                TOP_PX + LANE_PX * row + 8,
                _mark(entry),
                entry["text"],
            )
        )
    return Markup(
        '<svg class="draw lanes" height="{}" role="group" aria-label="{} entries in {} engines">{}</svg>'
    ).format(height + 4, len(entries), len(lanes), Markup("").join(out))


def _mark(entry: Mapping[str, Any]) -> Markup:
    if entry["tone"] == "bad":
        return Markup('<circle class="m-bad" r="6"/>')
    if entry["tone"] == "warn":
        return Markup('<path class="m-try" d="M0 -5.500L6 5H-6Z"/>')
    if entry["tone"] == "off":
        return Markup('<circle class="m-dup" r="4.500"/>')
    kind = MARKS[entry["shape"]]
    if kind == "sq":
        return Markup('<rect class="m-sq" x="-4" y="-4" width="8" height="8"/>')
    return Markup('<circle class="m-{}" r="4.500"/>').format(kind)


def _ticks(at: Sequence[int], scale: Scale, now: int) -> list[tuple[float, str, str]]:
    """The first and the last instant, and those between where there is room for their text."""
    found: list[tuple[float, str, str]] = []
    if not at:
        return found
    ordered = sorted(set(at))
    last = scale.place(ordered[-1])
    for when in ordered:
        place = scale.place(when)
        if found and place - found[-1][0] < 0.15:
            continue
        if when != ordered[-1] and last - place < 0.15 and found:
            continue
        anchor = "start" if place < 0.05 else "end" if place > 0.95 else "middle"
        found.append((place, clock_text(when, now), anchor))
    return found


def _share(value: float) -> str:
    return f"{100 * value:.2f}".rstrip("0").rstrip(".")
