"""Long lines on a terminal, broken between words; into a pipe or a file they stay as they are."""

import shutil
import sys
import textwrap

import click


def wrap_text(text: str, *, err: bool = False, indent: str = "  ") -> str:
    """The text with lines that fit the terminal it goes to; a word, such as a path or an id, is never broken."""
    stream = sys.stderr if err else sys.stdout
    if not stream.isatty() or "\x1b" in text:  # colours and cursor movements have no width
        return text
    columns = shutil.get_terminal_size().columns
    return "\n".join(line if len(line) <= columns else _break_line(line, columns, indent) for line in text.split("\n"))


def say(text: str) -> None:
    """Print sentences on standard output; `click.echo(…, err=True)` breaks lines by itself."""
    click.echo(wrap_text(text))


def _break_line(line: str, columns: int, indent: str) -> str:
    margin = line[: len(line) - len(line.lstrip())] + indent
    return textwrap.fill(line, columns, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
