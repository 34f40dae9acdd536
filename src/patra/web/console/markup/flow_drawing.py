"""The flow of events drawn in three columns: producers, types, groups; a line is as thick as its rate."""

from collections.abc import Sequence
from math import log2

import msgspec
from markupsafe import Markup

ROW_PX = 26
TOP_PX = 22
WIDTH = 1000
COLUMNS = (8, 330, 740)
"""Where the names of each column begin."""
CURVES = ((210, 322), (640, 732))
"""From where to where the lines between two columns go."""
MAX_LINE_PX = 8.0


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A type with its producer and its readers; `tone` of each reader says how it fares."""

    producer: str
    type: str
    href: str
    per_minute: float
    rate_text: str
    tone: str
    readers: tuple[tuple[str, str], ...]


def flow_drawing(streams: Sequence[Stream]) -> Markup:
    """Types in their order; producers and groups stand at the middle of what they send or read."""
    rows = {stream.type: number for number, stream in enumerate(streams)}
    producers = _place_names(
        {one.producer: [rows[x.type] for x in streams if x.producer == one.producer] for one in streams}
    )
    readers = {name: tone for one in streams for name, tone in one.readers}
    groups = _place_names({name: [rows[x.type] for x in streams if name in dict(x.readers)] for name in readers})
    height = TOP_PX + ROW_PX * max(len(rows), max([*groups.values(), *producers.values(), 0]) + 1)
    lines, names = Markup(""), Markup("")
    for title, at in zip(("Producer", "Type, events a minute", "Group"), COLUMNS, strict=True):
        names += Markup('<text class="head" x="{}" y="12">{}</text>').format(at, title)
    for stream in streams:
        at, width = rows[stream.type], _width(stream.per_minute)
        lines += _curve(CURVES[0], producers[stream.producer], at, width, "wait" if not stream.per_minute else "done")
        for name, tone in stream.readers:
            lines += _curve(CURVES[1], at, groups[name], width, tone if stream.per_minute or tone != "done" else "wait")
        names += Markup('<a href="{}"><text class="{}" x="{}" y="{}">{}</text></a>').format(
            stream.href, stream.tone, COLUMNS[1], _y(at) + 4, stream.type
        )
        names += Markup('<text class="rate" x="{}" y="{}">{}</text>').format(
            CURVES[1][0] - 8, _y(at) + 4, stream.rate_text
        )
    for column, placed in ((0, producers), (2, groups)):
        for name, at in placed.items():
            tone = readers.get(name, "") if column else ""
            names += Markup('<text class="{}" x="{}" y="{}">{}</text>').format(tone, COLUMNS[column], _y(at) + 4, name)
    busy = sum(1 for stream in streams if stream.per_minute)
    label = f"{len(streams)} types from {len(producers)} producers to {len(groups)} groups; {busy} of them flow now"
    return Markup('<svg class="flowgraph" viewBox="0 0 {} {}" role="group" aria-label="{}">{}{}</svg>').format(
        WIDTH, height, label, lines, names
    )


def _place_names(wanted: dict[str, list[int]]) -> dict[str, int]:
    """A row for each name, near the middle of what it belongs to, no two in one row."""
    placed: dict[str, int] = {}
    following = 0
    for name, rows in sorted(wanted.items(), key=lambda item: (sum(item[1]) / len(item[1]), item[0])):
        placed[name] = max(following, round(sum(rows) / len(rows)))
        following = placed[name] + 1
    return placed


def _curve(span: tuple[int, int], begin: int, end: int, width: float, tone: str) -> Markup:
    left, right = span
    middle = (left + right) // 2
    path = f"M{left} {_y(begin)}C{middle} {_y(begin)} {middle} {_y(end)} {right} {_y(end)}"
    return Markup('<path class="{}" d="{}" stroke-width="{:.1f}"/>').format(tone, path, width)


def _y(row: int) -> int:
    return TOP_PX + row * ROW_PX + ROW_PX // 2


def _width(per_minute: float) -> float:
    """One pixel for what rests, more for each doubling of the rate."""
    return min(MAX_LINE_PX, 1 + log2(1 + per_minute) * 0.8) if per_minute else 1.0
