"""A state machine as a picture: a row for each state, a column with an arrow for each transition; nothing overlaps."""

from collections.abc import Mapping
from html import escape
from typing import Any

from patra.kernel.machine import Machine

ROW, COLUMN, TOP, CHARACTER = 44, 34, 150, 7.4  # pixels
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def machine_svg(machine: Machine[Any, Any]) -> str:
    """The picture as SVG: legible on a light and on a dark page."""
    rows = {state: TOP + ROW * number for number, state in enumerate(machine.states)}
    left = max(len(str(state)) for state in machine.states) * CHARACTER + 40
    arrows = _arrows(machine)
    width = left + COLUMN * len(arrows) + 130
    height = TOP + ROW * len(rows)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
            f'width="{width:.0f}" aria-label="{escape(machine.name)}" font-family="{FONT}" font-size="12">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#0b6e6e"/></marker></defs>'
        ),
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#ffffff"/>',
    ]
    for state, y in rows.items():
        parts.append(f'<path d="M{left} {y} H{width - 20:.0f}" stroke="#d5dde0"/>')
        final = state in machine.terminal
        style = 'fill="#0b6e6e"' if final else 'fill="#e8f3f3" stroke="#0b6e6e"'
        colour = "#ffffff" if final else "#123a3a"
        parts.append(f'<rect x="16" y="{y - 14}" width="{left - 16:.0f}" height="28" rx="6" {style}/>')
        parts.append(f'<text x="26" y="{y + 4}" fill="{colour}">{escape(str(state))}</text>')
        if state == machine.initial:
            parts.append(f'<circle cx="7" cy="{y}" r="5" fill="#123a3a"/>')
    for number, ((was, to), event) in enumerate(arrows):
        x = left + COLUMN * (number + 0.7)
        begin, end = rows[was], rows[to]
        if begin == end:
            path = f"M{x} {begin} c-14 -22 14 -22 0 0"
        else:
            path = f"M{x} {begin} V{end + (2 if end < begin else -2)}"
        parts.append(f'<circle cx="{x}" cy="{begin}" r="3" fill="#0b6e6e"/>')
        parts.append(f'<path d="{path}" fill="none" stroke="#0b6e6e" stroke-width="1.5" marker-end="url(#tip)"/>')
        parts.append(f'<text transform="translate({x} {TOP - 26}) rotate(-45)" fill="#123a3a">{escape(event)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _arrows(machine: Machine[Any, Any]) -> list[tuple[tuple[Any, Any], str]]:
    edges: Mapping[tuple[Any, Any], Any] = machine.edges
    return [((was, to), str(event)) for (was, event), to in edges.items()]
