"""Rows of history by kind, time and key, page by page: files are opened one after the other, a few for each page.

A file is read and compared with its checksum whole, so one search runs at a time in a process, beside which the intake
goes on; a row is compared with the key as it stands in the file, before it is converted.

What the apps sent (`body`, `raw`) is left out: `patra attribution history ask` and `log export` have it.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import msgspec

from patra.attribution.history.ask import VIEWS
from patra.attribution.history.files import Span, files_between, read_rows
from patra.attribution.history.parquet_rows import Columns
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.db import Database, Row
from patra.kernel.errors import Invalid, Transient
from patra.kernel.files import FilePlace
from patra.kernel.safety.untrusted_text import integer_of

MAX_FILES = 2
"""Files that one page opens; a page that finds little says where the next one goes on."""
LEFT_OUT = {"body", "raw", "closure_body"}
_SEARCH = Lock()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows: of a kind, from `begin` up to, not including, `end`, with a column that is `key`."""

    kind: str
    begin: int = -(2**62)
    end: int = 2**62
    key: str = ""


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows in the order of the files; `next` is the place to go on from, None at the end."""

    rows: list[dict[str, Any]]
    next: str | None
    files: int
    """How many were opened for this page."""


@contextmanager
def only_search() -> Generator[None]:
    """Keep other searches of this process out; raises Transient where one runs."""
    if not _SEARCH.acquire(blocking=False):
        raise Transient("attribution_history_busy", "another search of history runs in this process")
    try:
        yield
    finally:
        _SEARCH.release()


def find_rows(db: Database, place: FilePlace, wanted: Wanted, *, after: str = "", limit: int = 100) -> RowPage:
    """Raises Transient while another search runs in this process.

    Raises Invalid for a place that is none, and where a file is missing or is not what its checksum says.
    """
    with only_search():
        return _page(db, place, wanted, after, limit)


def _page(db: Database, place: FilePlace, wanted: Wanted, after: str, limit: int) -> RowPage:
    spans = db.read(lambda tx: files_between(tx, wanted.kind, wanted.begin, wanted.end))
    first, start = _place(spans, after)
    rows: list[dict[str, Any]] = []
    opened = 0
    for span in spans[first:]:
        if opened == MAX_FILES:
            return RowPage(rows=rows, next=f"{span.number}.0", files=opened)
        opened += 1
        for index, row in _matching(place, span, wanted, start):
            if len(rows) == limit:
                return RowPage(rows=rows, next=f"{span.number}.{index}", files=opened)
            rows.append(row)
        start = 0
    return RowPage(rows=rows, next=None, files=opened)


def _place(spans: list[Span], after: str) -> tuple[int, int]:
    """The place in the list of files, and that of the row in its file."""
    if not after:
        return 0, 0
    number, _, index = after.partition(".")
    found = [place for place, span in enumerate(spans) if str(span.number) == number]
    row = integer_of(index)
    if not found or row is None or row < 0:
        advice = "take `next` as it was given, with the same kind and span"
        raise Invalid(
            "attribution_history_page", f"{after!r} is not a place in this list", place="after", advice=advice
        )
    return found[0], row


def _matching(place: FilePlace, span: Span, wanted: Wanted, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    columns = VIEWS[span.kind]
    at = list(columns).index("at")
    forms = _forms_in_file(wanted.key)
    for index, row in enumerate(read_rows(place, columns, span.file or "", span.sha256)):
        if index < start or not wanted.begin <= row[at] < wanted.end:
            continue
        if wanted.key and not any(form in row for form in forms):
            continue
        shown = _display_row(columns, row)
        if not wanted.key or wanted.key in shown.values():
            yield index, shown


def _forms_in_file(key: str) -> list[Any]:
    """What may stand in a file for a value that is shown as this key: the text, bytes, an instant."""
    try:
        content = bytes.fromhex(key)
    except ValueError:
        content = None
    return [form for form in (key, content, parse_instant(key)) if form is not None]


def _display_row(columns: Columns, row: Row) -> dict[str, Any]:
    found = {name: value for name, value in zip(columns, row, strict=True) if name not in LEFT_OUT}
    return {name: _text(name, value) for name, value in found.items()}


def _text(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int) and (name == "at" or name.endswith("_at")):
        return format_instant(value)
    return value
