"""Drawings as SVG with percentages: no script, no inline style, a label that states what is to be seen."""

from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup, escape

from patra.web.console.markup.element import element

BURST_VALUES = 12
BURST_TIMES = 2.5
PATTERNS = {"run": "url(#h-run)", "part": "url(#h-part)", "hold": "url(#h-hold)"}
WINDOW_WORDS = {
    "done": "done",
    "ahead": "done, behind a hole",
    "run": "running",
    "wait": "queued",
    "bad": "failed",
    "part": "incomplete",
    "off": "cancelled",
    "hold": "paused",
}


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A part of time and its state, in µs; `href` leads to the task that answers for it."""

    begin: int
    end: int
    state: str
    label: str
    href: str


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of a bar that shows shares of a whole."""

    count: int
    tone: str
    label: str


def scale_top(values: Sequence[float]) -> float:
    """The top of a scale: the highest value, unless it stands far above nearly all others; then it is cut off there."""
    ordered = sorted(values)
    if len(ordered) < BURST_VALUES:
        return max([*values, 0]) or 1
    usual = ordered[len(ordered) * 9 // 10]
    return (min(ordered[-1], BURST_TIMES * usual) if usual else ordered[-1]) or 1


def spark(values: Sequence[float], label: str, tone: str = "") -> Markup:
    """A line on a scale of its own that begins at zero."""
    points = list(values) if len(values) > 1 else [0.0, *(values or [0.0])]
    top, last = scale_top(points), len(points) - 1
    label = f"{label}, highest {max(points):.1f}"
    path = "M" + "L".join(f"{100 * i / last:.1f} {22 - 20 * min(v / top, 1):.1f}" for i, v in enumerate(points))
    return Markup(
        '<svg class="spark {}" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<path class="area" d="{}L100 24L0 24Z"/><path d="{}"/></svg>'
    ).format(tone, label, path, path)


def bars(values: Sequence[float], label: str, tone: str = "done", height: int = 48) -> Markup:
    """One bar for each value on a scale that begins at zero."""
    count, top = len(values) or 1, scale_top(values)
    room = height - 3
    label = f"{label}, highest {max([*values, 0]):.1f}"
    drawn = Markup("").join(
        Markup('<rect class="bar-{}" x="{}" width="{}" y="{:.1f}" height="{:.1f}"/>').format(
            tone,
            _percent((i + 0.1) / count),
            _percent(0.8 / count),
            1 + room - room * min(v / top, 1),
            room * min(v / top, 1),
        )
        for i, v in enumerate(values)
        if v > 0
    )
    return Markup(
        '<svg class="draw bars" height="{}" role="img" aria-label="{}">{}'
        '<line class="base0" x1="0" x2="100%" y1="{}" y2="{}"/></svg>'
    ).format(height, label, drawn, height - 1.5, height - 1.5)


def shares(parts: Iterable[Part], height: int = 14) -> Markup:
    """A bar whose pieces are shares of a whole, in the order given."""
    shown = [part for part in parts if part.count > 0]
    total, left = sum(part.count for part in shown) or 1, 0
    pieces: list[Markup] = []
    for part in shown:
        pieces.append(
            Markup('<rect class="w w-{}" x="{}" width="{}" y="0.5" height="{}"{}><title>{}</title></rect>').format(
                part.tone,
                _percent(left / total),
                _percent(part.count / total),
                height - 1,
                _fill(part.tone),
                part.label,
            )
        )
        left += part.count
    label = ", ".join(part.label for part in shown if part.label) or "nothing yet"
    return Markup('<svg class="draw" height="{}" role="img" aria-label="{}">{}</svg>').format(
        height, label, Markup("").join(pieces)
    )


def strip(
    windows: Sequence[Window],
    begin: int,
    end: int,
    label: str,
    *,
    frontier: int | None = None,
    frontier_label: str = "",
    height: int = 18,
    ticks: Sequence[tuple[int, str]] = (),
) -> Markup:
    """Windows on one axis of time: state by fill and pattern, the watermark's frontier as a line with a tip."""
    length = max(end - begin, 1)

    def place(at: int) -> float:
        return min(max((at - begin) / length, 0.0), 1.0)

    top = 8
    low = top + height
    out = [Markup('<rect class="w-none" x="0" y="{}" width="100%" height="{}"/>').format(top, height)]
    for at, text in ticks:
        x = place(at)
        anchor = "start" if x < 0.02 else "end" if x > 0.98 else "middle"
        out.append(
            Markup(
                '<line class="tick" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>'
                '<text x="{0}" y="{3}" text-anchor="{4}">{5}</text>'
            ).format(_percent(x), low, low + 4, low + 16, anchor, text)
        )
    fills = {state: _fill(state) for state in PATTERNS}
    for window in windows:
        x = place(window.begin)
        width = max(place(window.end) - x, 0.001)
        label_of = escape(window.label)
        out.append(
            element(
                '<a href="{}" aria-label="{}"><rect class="w w-{}" x="{}" y="{}" width="{}" height="{}"{}>'
                "<title>{}</title></rect></a>",
                window.href,
                label_of,
                window.state,
                _percent(x),
                top,
                _percent(width),
                height,
                fills.get(window.state, ""),
                label_of,
            )
        )
        if window.state == "bad" and width > 0.01:
            out.append(
                Markup(
                    '<svg x="{}" y="{}" overflow="visible"><path class="w-x" d="M-3 -3L3 3M3 -3L-3 3"/></svg>'
                ).format(_percent(x + width / 2), top + height / 2)
            )
    if frontier is not None:
        x = _percent(place(frontier))
        out.append(
            Markup(
                '<line class="front" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/><svg x="{0}" y="{1}" overflow="visible">'
                '<path class="front-tip" d="M-4 -4H4L0 2Z"/><title>{3}</title></svg>'
            ).format(x, top - 4, low + 3, frontier_label)
        )
    total = low + (20 if ticks else 3)
    return Markup('<svg class="draw" height="{}" role="group" aria-label="{}">{}</svg>').format(
        total, escape(label), Markup("").join(out)
    )


def _fill(tone: str) -> Markup:
    return Markup(' fill="{}"').format(PATTERNS[tone]) if tone in PATTERNS else Markup("")


def _percent(share: float) -> str:
    return f"{100 * share:.3f}".rstrip("0").rstrip(".") + "%"
