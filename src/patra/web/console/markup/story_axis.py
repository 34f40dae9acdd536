"""A story on an axis of time: lanes of things, their states as bars, moments as marks. Long quiet spans are folded."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from markupsafe import Markup, escape

from patra.kernel.clock import SECOND
from patra.web.console.markup.formats import drawn_instant, instant, span_text
from patra.web.console.markup.story_lanes import Bar, Lane

LANE_PX = 24
TOP_PX = 22
FOLD_SHARE = 0.06
"""The part of the axis that a folded span takes."""
FOLD_FACTOR = 10
"""A span is folded when it is this many times as long as the middle one."""
MAX_FOLDS = 5
LETTER_SHARE = 0.008
"""The part of the axis that a letter of a state's name takes; a mark takes two of them."""
SHORT = 10 * SECOND
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


def axis(lanes: Sequence[Lane], now: int) -> Markup:
    """The drawing: states are bars, moments are marks; each leads to its entry by its anchor."""
    at = [instant(entry["at"]) or 0 for lane in lanes for entry in lane.entries]
    scale = Scale(at)
    height = TOP_PX + LANE_PX * len(lanes)
    out = [
        Markup(
            '<rect class="gap" x="{}%" width="{}%" y="{}" height="{}"><title>{} without an entry</title></rect>'
        ).format(_share(begin), _share(end - begin), TOP_PX - 6, height - TOP_PX + 6, span_text(span))
        for begin, end, span in scale.folds
    ]
    for place, text, anchor in _ticks(at, scale, now):
        out.append(Markup('<text x="{}%" y="12" text-anchor="{}">{}</text>').format(_share(place), anchor, text))
    for row, lane in enumerate(lanes):
        y = TOP_PX + LANE_PX * row
        out.append(Markup('<line class="base" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(y + 20))
        marked = [scale.place(instant(entry["at"]) or 0) for entry in lane.entries]
        out += [_bar(bar, scale, y, marked) for bar in lane.bars]
        out += _marks(lane, scale, y + 8)
    return Markup(
        '<svg class="draw lanes" height="{}" role="group" aria-label="{} entries in {} lanes">{}</svg>'
    ).format(height + 4, len(at), len(lanes), Markup("").join(out))


def _bar(bar: Bar, scale: Scale, y: int, marked: Sequence[float]) -> Markup:
    begin, end = scale.place(bar.begin), scale.place(bar.end)
    said = f"{bar.state}, {span_text(bar.end - bar.begin)}"
    stops = [begin, *sorted({at for at in marked if begin < at < end}), end]
    free, after = max(((right - left, left) for left, right in pairwise(stops)), key=lambda gap: (gap[0], -gap[1]))
    text = Markup('<text class="in-{}" x="{}%" dx="12" y="12">{}</text>').format(
        bar.tone, _share((after - begin) / (end - begin)) if end > begin else 0, bar.state
    )
    return Markup(
        '<a href="#{}" aria-label="{}"><svg x="{}%" y="{}" width="{}%" height="16">'
        '<rect class="b-{}" x=".5" y=".5" width="100%" height="15" rx="2"/>{}<title>{}</title></svg></a>'
    ).format(
        bar.anchor, said, _share(begin), y, _share(end - begin), bar.tone,
        text if free >= LETTER_SHARE * (len(bar.state) + 2) else "", said,
    )  # fmt: skip


def _marks(lane: Lane, scale: Scale, y: int) -> list[Markup]:
    """The moments of a lane; equal ones at one place are one mark, and where a bar begins there is none."""
    drawn: dict[tuple[str, Markup], list[Mapping[str, Any]]] = {}
    begins = {bar.anchor for bar in lane.bars}
    for entry in lane.entries:
        if entry["anchor"] not in begins or entry["tone"] in {"bad", "warn"}:
            drawn.setdefault((_share(scale.place(instant(entry["at"]) or 0)), _mark(entry)), []).append(entry)
    found: list[Markup] = []
    for (place, mark), entries in drawn.items():
        text = entries[0]["text"] + (f" and {len(entries) - 1} more" if len(entries) > 1 else "")
        found.append(
            Markup(
                '<a href="#{}" aria-label="{}"><svg x="{}%" y="{}" overflow="visible">{}<title>{}</title></svg></a>'
            ).format(entries[0]["anchor"], text, place, y, mark, text)
        )
    return found


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


def _ticks(at: Sequence[int], scale: Scale, now: int) -> list[tuple[float, Markup, str]]:
    """The first and the last instant, and those between where there is room for their text.

    Within a few seconds clocks would all say the same: there the others say how long after the first they are.
    """
    found: list[tuple[float, Markup, str]] = []
    if not at:
        return found
    ordered = sorted(set(at))
    last, is_short = scale.place(ordered[-1]), ordered[-1] - ordered[0] < SHORT
    for when in ordered:
        place = scale.place(when)
        if found and place - found[-1][0] < 0.15:
            continue
        if when != ordered[-1] and last - place < 0.15 and found:
            continue
        anchor = "start" if place < 0.05 else "end" if place > 0.95 else "middle"
        after = escape(f"+{span_text(when - ordered[0])}")
        found.append((place, after if is_short and found else drawn_instant(when, now), anchor))
    return found


def _share(value: float) -> str:
    return f"{100 * value:.2f}".rstrip("0").rstrip(".")
