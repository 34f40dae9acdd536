"""A state machine as a drawing, from its table: the states, the ways between them, and the way that was taken."""

from collections.abc import Collection, Mapping

from markupsafe import Markup

from patra.web.console.markup.tones import tone_of

BOX_WIDTH, BOX_HEIGHT = 112, 26
COLUMN_PX, ROW_PX = 238, 62
MARGIN_PX = 12
"""Above and below the boxes, for the words on the ways."""
TIP_PX = 7

Edges = Mapping[tuple[str, str], str]


def machine_drawing(machine: str, edges: Edges, initial: str, now: str, taken: Collection[str] = ()) -> Markup:
    """States in columns by how far they are from the first; `taken` names the transitions that happened."""
    places = _places(edges, initial)
    past = {initial, now, *(state for (was, on), to in edges.items() if on in taken for state in (was, to))}
    ways: dict[tuple[str, str], list[str]] = {}
    for (was, on), to in edges.items():
        ways.setdefault((was, to), []).append(on)
    lines = Markup("").join(_way(places[was], places[to], ons, taken) for (was, to), ons in ways.items())
    boxes = Markup("").join(
        _box(place, state, tone_of(machine, state).tone if state == now else "", is_past=state in past)
        for state, place in places.items()
    )
    width = max(x for x, _ in places.values()) + BOX_WIDTH + 2
    height = max(y for _, y in places.values()) + BOX_HEIGHT + MARGIN_PX
    how = f", by {', '.join(on.replace('_', ' ') for on in taken)}" if taken else ""
    return Markup(
        '<svg class="machine" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">{}{}</svg>'
    ).format(width, height, width, height, f"It is {now}{how}", lines, boxes)


def _places(edges: Edges, initial: str) -> dict[str, tuple[int, int]]:
    """Where the box of each state begins; the first one stands in the middle of the second column."""
    columns: list[list[str]] = [[initial]]
    known = {initial}
    while columns[-1]:
        following = [to for (was, _), to in edges.items() if was in columns[-1]]
        columns.append([to for to in dict.fromkeys(following) if to not in known])
        known |= {*columns[-1]}
    most = max(len(column) for column in columns)
    return {
        state: (1 + COLUMN_PX * x, MARGIN_PX + ROW_PX * (most - len(column)) // 2 + ROW_PX * y)
        for x, column in enumerate(columns)
        for y, state in enumerate(column)
    }


def _box(place: tuple[int, int], state: str, tone: str, *, is_past: bool) -> Markup:
    x, y = place
    return Markup(
        '<rect class="s {}" x="{}" y="{}" width="{}" height="{}" rx="6"/>'
        '<text class="{}" x="{}" y="{}" text-anchor="middle">{}</text>'
    ).format(
        f"now {tone}" if tone else "past" if is_past else "",
        x,
        y,
        BOX_WIDTH,
        BOX_HEIGHT,
        f"now {tone}" if tone else "on" if is_past else "",
        x + BOX_WIDTH // 2,
        y + 17,
        state,
    )


def _way(was: tuple[int, int], to: tuple[int, int], ons: list[str], taken: Collection[str]) -> Markup:
    happened = [on for on in ons if on in taken]
    label = " or ".join(on.replace("_", " ") for on in happened or ons)
    half = BOX_HEIGHT // 2
    if was[0] == to[0]:  # up or down in a column
        down = to[1] > was[1]
        x, y1, y2 = was[0] + BOX_WIDTH - 16, was[1] + (BOX_HEIGHT if down else 0), to[1] + (0 if down else BOX_HEIGHT)
        x1 = x2 = x
        tip = f"M{x} {y2}l-4 {-TIP_PX if down else TIP_PX}h8z"
        at, anchor = (x - 8, (y1 + y2) // 2 + 4), "end"
    else:
        x1, y1, x2, y2 = was[0] + BOX_WIDTH, was[1] + half, to[0], to[1] + half
        tip = f"M{x2} {y2}l{-TIP_PX} -4v8z"
        at, anchor = (x2 - 12, y2 - 5 if y2 <= y1 else y2 + 14), "end"
        x2 -= TIP_PX
    on = " on" if happened else ""
    return Markup(
        '<line class="e{}" x1="{}" y1="{}" x2="{}" y2="{}"/><path class="{}" d="{}"/>'
        '<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>'
    ).format(on, x1, y1, x2, y2, "ar" if happened else "ar2", tip, on.strip(), *at, anchor, label)
