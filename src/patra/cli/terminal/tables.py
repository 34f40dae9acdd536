"""Rows for people: a table where it fits the terminal, a card for each row where it does not; no value is ever cut.

Into a pipe the same rows go as tab-separated text, with every column and exact instants.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import click

GAP = 2  # blanks between two columns
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
PART_OF_JSON = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*(?:"|$))*(?:,|$)', re.DOTALL)
STATE_COLUMNS = frozenset({"state", "status", "result", "severity", "health", "stage", "recordStatus"})
COLOURS = {
    "green": "ok active enabled succeeded success completed done closed_success committed replayed published ready "
    "accept",
    "yellow": "warning waiting open paused pending later replaying queued leased running held duplicate partial",
    "red": "broken failed error dead firing closed_failure rejected refused frozen suspended cancelled conflicted",
}
COLOUR_BY_STATE = {state: colour for colour, states in COLOURS.items() for state in states.split()}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class Styled(str):
    """Text with escape sequences of our own; whatever others wrote in it went through `without_controls`."""

    __slots__ = ()


def print_table(
    names: Sequence[str], cells: Sequence[Sequence[str]], *, header: bool, wide: bool, exact: bool = False
) -> None:
    """Print rows of text; `wide` keeps empty columns and exact instants, `exact` the latter alone."""
    if not sys.stdout.isatty():
        for row in [list(names), *cells] if header else cells:
            click.echo("\t".join(row))
        return
    if header and not cells:
        return  # column names alone say nothing to a person
    now = datetime.now(UTC)
    shown = [[cell if wide or exact else relative(cell, now) for cell in row] for row in cells]
    for line in layout(names, shown, shutil.get_terminal_size().columns, header=header, keep_empty=wide):
        click.echo(Styled(line))  # the cells came without control characters: what is left is ours


def layout(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, header: bool = True, keep_empty: bool = False
) -> list[str]:
    """The lines of a table, or of cards where even columns wrapped at their blanks are wider than the terminal.

    Before cards are made, columns with the same value in every row are taken out and stated once, above the table.
    """
    if header and rows and not keep_empty:
        kept = [at for at in range(len(names)) if any(row[at] for row in rows)]
        names, rows = [names[at] for at in kept], [[row[at] for at in kept] for row in rows]
    if not header and not keep_empty:
        rows = [row for row in rows if len(row) < 2 or any(row[1:])]
    grid = [list(names), *rows] if header else list(rows)
    if not grid:
        return []
    widths = _widths(grid, width)
    if widths is None:
        if not header:
            return _card([row[0] for row in rows], [" ".join(filter(None, row[1:])) for row in rows], width)
        return _without_constants(names, rows, width) or _cards(names, rows, width)
    lines: list[str] = []
    for number, row in enumerate(grid):
        heading = header and number == 0
        wrapped = [_wrap(cell, space) for cell, space in zip(row, widths, strict=True)]
        for part in range(max(map(len, wrapped))):
            texts = [lines_of[part] if part < len(lines_of) else "" for lines_of in wrapped]
            padded = [
                _style_cell(name, text, heading=heading) + " " * (space - _cells(text))
                for name, text, space in zip(names, texts, widths, strict=True)
            ]
            lines.append((" " * GAP).join(padded).rstrip())
        if heading:
            lines.append((" " * GAP).join("─" * space for space in widths))
    return lines


def relative(cell: str, now: datetime) -> str:
    """An instant as the time since it, or until it; anything else as it is."""
    if not INSTANT.fullmatch(cell):
        return cell
    seconds = (now - datetime.fromisoformat(cell)).total_seconds()
    if abs(seconds) < 1:
        return "now"
    size, unit = next((size, unit) for size, unit in UNITS if abs(seconds) >= size)
    span = f"{int(abs(seconds) // size)} {unit}"
    return f"{span} ago" if seconds > 0 else f"in {span}"


def _widths(grid: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """A width for each column: what it wants, or less where its text can be wrapped; None where it cannot.

    Columns that want little more than their longest word are served first: a time or a cron expression stays on one
    line, and the long texts share what is left.
    """
    columns = list(zip(*grid, strict=True))
    wanted = [max(_cells(cell) for cell in column) for column in columns]
    least = [max((_cells(word) for cell in column for word in cell.split(" ")), default=0) for column in columns]
    room = width - GAP * (len(columns) - 1)
    if sum(wanted) <= room:
        return wanted
    if sum(least) > room:
        return None
    spare = room - sum(least)
    given = list(least)
    for at in sorted(range(len(columns)), key=lambda at: wanted[at] - least[at]):
        more = min(wanted[at] - least[at], spare)
        given[at] += more
        spare -= more
    return given


def _without_constants(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A table of the columns that differ, below a line with the values that do not; nothing where that is too wide."""
    constant = [at for at, column in enumerate(zip(*rows, strict=True)) if len(set(column)) == 1]
    kept = [at for at in range(len(names)) if at not in constant]
    if len(rows) < 2 or not constant or not kept:
        return []
    part = [[row[at] for at in kept] for row in rows]
    if _widths([[names[at] for at in kept], *part], width) is None:
        return []
    above = _fill_lines([f"{names[at]}: {rows[0][at]}" for at in constant if rows[0][at]], width, " " * GAP)
    return ["in every row:", *above, "", *layout([names[at] for at in kept], part, width)]


def _cards(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A card for each row."""
    lines: list[str] = []
    for row in rows:
        lines += ["", *_card(names, row, width)]
    return lines[1:]


def _card(names: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """A line for each value that is there; a long text goes on below itself, a word or a part of JSON is whole."""
    space = max(map(_cells, names), default=0)
    room = max(width - space - GAP, 1)
    lines: list[str] = []
    for name, cell in zip(names, row, strict=True):
        if cell:
            first, *more = _fill_lines(_parts_of_json(cell), room, "") if cell[0] in "{[" else _wrap(cell, room)
            lines.append(f"{name:<{space}}{' ' * GAP}{_style_cell(name, first)}")
            lines += [" " * (space + GAP) + part for part in more]
    return lines


def _parts_of_json(text: str) -> list[str]:
    """The text in parts that end with a comma outside strings: with line breaks between them it is the same JSON."""
    parts = [part for part in PART_OF_JSON.findall(text) if part]
    return parts if "".join(parts) == text else [text]  # a text that only begins like JSON stays as it is


def _wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` cells, broken at blanks only."""
    return _fill_lines(text.split(" "), width, " ")


def _fill_lines(pieces: Sequence[str], width: int, gap: str) -> list[str]:
    """The pieces in lines of at most `width` cells, each piece whole."""
    lines = [""]
    for piece in pieces:
        longer = f"{lines[-1]}{gap}{piece}" if lines[-1] else piece
        if lines[-1] and _cells(longer) > width:
            lines.append(piece)
        else:
            lines[-1] = longer
    return lines


def _style_cell(name: str, text: str, *, heading: bool = False) -> str:
    if heading:
        return click.style(text, bold=True) if text else ""
    colour = COLOUR_BY_STATE.get(text.lower()) if name in STATE_COLUMNS else None
    return click.style(text, fg=colour) if colour else text


def _cells(text: str) -> int:
    """How wide the text is on a terminal, where some characters take two places."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
