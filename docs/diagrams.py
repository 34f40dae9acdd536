# ruff: noqa: INP001, T201  a script of the documentation
"""Draws the diagrams of the concept pages as SVG, from the tables below: boxes on a grid, arrows between them.

python docs/diagrams.py      writes docs/images/flow-*.svg; `./dev docs` runs it, a test holds the files current
"""

from html import escape
from pathlib import Path

IMAGES = Path(__file__).parent / "images"
CELL_WIDTH, CELL_HEIGHT, BOX_WIDTH, BOX_HEIGHT, MARGIN = 196, 104, 148, 58, 20  # pixels
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
STYLES = {  # kind of box: fill, stroke, text
    "outside": ("#ffffff", "#8fa3a3", "#33474a"),
    "stage": ("#e8f3f3", "#0b6e6e", "#123a3a"),
    "store": ("#0b6e6e", "#0b6e6e", "#ffffff"),
    "refused": ("#fbeeea", "#b4482b", "#6b2512"),
}

# name: title for readers who do not see it, boxes (key: column, row, kind, lines), arrows (from, to, label)
DIAGRAMS = {
    "attribution": (
        "An event from an SDK becomes a fact that is billed once, or a rejection with a code",
        {
            "sdk": (0, 0, "outside", ["SDK", "sends batches, again"]),
            "read": (1, 0, "stage", ["Intake", "reads and validates"]),
            "dedup": (2, 0, "stage", ["Deduplication", "the same event: once"]),
            "closure": (3, 0, "stage", ["Closure", "one per render attempt"]),
            "fact": (4, 0, "store", ["Billable fact", "one per billing key"]),
            "reject": (1, 1, "refused", ["Rejected event", "code and field"]),
            "timer": (3, 1, "stage", ["Timer", "deadlines, timeouts"]),
            "settle": (4, 1, "outside", ["Settlement", "and statement"]),
        },
        [
            ("sdk", "read", ""),
            ("read", "dedup", ""),
            ("read", "reject", ""),
            ("dedup", "closure", ""),
            ("closure", "fact", ""),
            ("timer", "closure", ""),
            ("fact", "settle", ""),
        ],
    ),
    "ingest": (
        "A pack and a trigger become a plan, slices, tasks and batches; records land once, and the watermark follows",
        {
            "pack": (0, 0, "outside", ["Pack", "describes a provider"]),
            "plan": (1, 0, "stage", ["Plan", "a window, in slices"]),
            "task": (2, 0, "stage", ["Task", "one slice, leased"]),
            "batch": (3, 0, "stage", ["Batch", "one page, one commit"]),
            "record": (4, 0, "store", ["Records", "each once"]),
            "trigger": (0, 1, "outside", ["Schedule or you", "ask for a window"]),
            "gate": (2, 1, "stage", ["Rate gate", "as fast as allowed"]),
            "quarantine": (3, 1, "refused", ["Quarantine", "what cannot be read"]),
            "watermark": (4, 1, "store", ["Watermark", "read up to here"]),
        },
        [
            ("pack", "plan", ""),
            ("trigger", "plan", ""),
            ("plan", "task", ""),
            ("task", "batch", ""),
            ("gate", "task", ""),
            ("batch", "record", ""),
            ("batch", "quarantine", ""),
            ("record", "watermark", ""),
        ],
    ),
    "bus": (
        "An event is published in a transaction, held by the log, and handled once by each group",
        {
            "producer": (0, 0, "outside", ["Producer", "your transaction"]),
            "contract": (1, 0, "stage", ["Contract", "schema and producer"]),
            "log": (2, 0, "store", ["Event log", "one id, one key"]),
            "first": (3, 0, "stage", ["Group: mailer", "handler, own place"]),
            "effect": (4, 0, "store", ["Effect", "in the same commit"]),
            "refused": (1, 1, "refused", ["Refusal", "a row with a code"]),
            "second": (3, 1, "stage", ["Group: invoices", "independent of it"]),
            "dead": (4, 1, "refused", ["Dead letter", "replay or discard"]),
        },
        [
            ("producer", "contract", ""),
            ("contract", "log", ""),
            ("contract", "refused", ""),
            ("log", "first", ""),
            ("log", "second", ""),
            ("first", "effect", ""),
            ("second", "dead", ""),
        ],
    ),
    "studio": (
        "A chapter is planned into shots; each shot has jobs with leases; the clips become one film",
        {
            "chapter": (0, 0, "outside", ["Chapter", "plain text"]),
            "planner": (1, 0, "stage", ["Planner", "shots and prompts"]),
            "router": (2, 0, "stage", ["Router", "a profile per job"]),
            "workers": (3, 0, "stage", ["Workers", "voice, picture, face"]),
            "composer": (4, 0, "stage", ["Composer", "clips to one film"]),
            "failed": (2, 1, "refused", ["Failed shot", "left out, with code"]),
            "artifacts": (3, 1, "store", ["Artifacts", "files by their hash"]),
            "film": (4, 1, "store", ["Film", "MP4 and manifest"]),
        },
        [
            ("chapter", "planner", ""),
            ("planner", "router", ""),
            ("router", "workers", ""),
            ("workers", "composer", ""),
            ("workers", "artifacts", ""),
            ("workers", "failed", ""),
            ("composer", "film", ""),
        ],
    ),
}


def draw(name: str) -> str:
    """One diagram as SVG, legible on a light and on a dark page."""
    title, boxes, arrows = DIAGRAMS[name]
    columns, rows = (1 + max(box[at] for box in boxes.values()) for at in (0, 1))
    width = columns * CELL_WIDTH - (CELL_WIDTH - BOX_WIDTH) + 2 * MARGIN
    height = rows * CELL_HEIGHT - (CELL_HEIGHT - BOX_HEIGHT) + 2 * MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" width="{width}" '
            f'aria-label="{escape(title)}" font-family="{FONT}" font-size="12">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" fill="#33474a"/></marker></defs>'
        ),
        f'<rect width="{width}" height="{height}" rx="10" fill="#f7fafa"/>',
    ]
    parts += [_arrow(boxes[begin], boxes[end]) for begin, end, _ in arrows]
    parts += [_box(*box) for box in boxes.values()]
    return "\n".join([*parts, "</svg>", ""])


def _place(column: int, row: int) -> tuple[int, int]:
    return MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT


def _box(column: int, row: int, kind: str, lines: list[str]) -> str:
    (x, y), (fill, stroke, colour) = _place(column, row), STYLES[kind]
    middle = x + BOX_WIDTH / 2
    head, *rest = lines
    texts = [f'<text x="{middle}" y="{y + 25}" font-weight="600" font-size="13">{escape(head)}</text>']
    texts += [f'<text x="{middle}" y="{y + 43}" font-size="11.5">{escape(line)}</text>' for line in rest]
    return (
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" fill="{fill}" stroke="{stroke}"/>'
        f'<g text-anchor="middle" fill="{colour}">{"".join(texts)}</g>'
    )


def _arrow(begin: tuple[int, int, str, list[str]], end: tuple[int, int, str, list[str]]) -> str:
    """A line from side to side in a row, down or up in a column, an elbow otherwise."""
    (x, y), (to_x, to_y) = _place(*begin[:2]), _place(*end[:2])
    half_width, half_height = BOX_WIDTH // 2, BOX_HEIGHT // 2
    if begin[1] == end[1]:
        path = f"M{x + BOX_WIDTH} {y + half_height} H{to_x - 2}"
    elif begin[0] == end[0]:
        down = to_y > y
        path = f"M{x + half_width} {y + BOX_HEIGHT if down else y} V{to_y - 2 if down else to_y + BOX_HEIGHT + 2}"
    else:
        forward = to_x > x
        bend = (x + BOX_WIDTH + (CELL_WIDTH - BOX_WIDTH) // 2) if forward else (x - (CELL_WIDTH - BOX_WIDTH) // 2)
        start, stop = (x + BOX_WIDTH, to_x - 2) if forward else (x, to_x + BOX_WIDTH + 2)
        path = f"M{start} {y + half_height} H{bend} V{to_y + half_height} H{stop}"
    return f'<path d="{path}" fill="none" stroke="#33474a" stroke-width="1.4" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    for name in DIAGRAMS:
        (IMAGES / f"flow-{name}.svg").write_text(draw(name), encoding="utf-8")
        print(f"docs/images/flow-{name}.svg")
