"""The log and the records past their retention over HTTP: the files, and rows out of them. For viewers."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.app.components.attribution import kept_history
from patra.attribution.history.files import Span, files_between
from patra.attribution.history.row_search import RowPage, Wanted, find_rows
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.safety.redact import redact
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

TAG = "attribution"
EVER = 2**62
Begin = Annotated[str, Meta(description="From this instant on, RFC 3339.")]
End = Annotated[str, Meta(description="Before this instant, RFC 3339.")]


class FilesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Annotated[Literal["", "log", "audits", "facts", "settled"], Meta(description="Only files of this kind.")] = ""
    begin: Begin = ""
    end: End = ""
    after: Annotated[int, Meta(ge=0, description="`next` of the page before.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to give.")] = 100


class RowsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    kind: Annotated[
        Literal["log", "audits", "facts", "settled"],
        Meta(
            description="`log`: batches as they came, without their bodies; `audits`, `facts`: output records; "
            "`settled`: billable facts of closed periods."
        ),
    ]
    begin: Begin = ""
    end: End = ""
    key: Annotated[str, Meta(description="Only rows with a column that is this key.")] = ""
    after: Annotated[str, Meta(description="`next` of the page before.")] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to give.")] = 100


class HistoryFileView(msgspec.Struct, frozen=True, kw_only=True):
    """A Parquet file of rows past their retention."""

    number: int
    file: str
    kind: str
    rows: int
    first: str
    last: str
    sha256: str
    """Of its rows."""
    rowsInStore: bool  # noqa: N815  as `patra attribution history list --json` has it
    heldUntil: str | None  # noqa: N815
    """Until when rows that were brought back stay in the store."""


class HistoryFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Files of history, the oldest of each kind first; `next` is None at the end."""

    files: list[HistoryFileView]
    next: int | None


def history_routes() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    return [
        group.get(
            "/attribution/history",
            _files,
            "Files of the log and of records past their retention",
            HistoryFiles,
            FilesQuery,
        ),
        group.get(
            "/attribution/history/rows",
            _rows,
            "Rows of history by kind, time and key; a page opens a bounded number of files, and `next` goes on",
            RowPage,
            RowsQuery,
        ),
    ]


def _files(request: Request) -> HistoryFiles | Problem:
    asked: FilesQuery = request.query
    span = _span(asked.begin, asked.end)
    if isinstance(span, Problem):
        return span
    found = request.patra.db.read(lambda tx: files_between(tx, asked.kind, *span))
    start = next((place + 1 for place, one in enumerate(found) if one.number == asked.after), 0)
    page = found[start : start + asked.limit]
    more = start + asked.limit < len(found)
    return HistoryFiles(files=[_view(one) for one in page], next=page[-1].number if more else None)


def _rows(request: Request) -> RowPage | Problem:
    asked: RowsQuery = request.query
    span = _span(asked.begin, asked.end)
    if isinstance(span, Problem):
        return span
    wanted = Wanted(kind=asked.kind, begin=span[0], end=span[1], key=asked.key)
    place = kept_history(request.patra.settings.attribution)
    found = find_rows(request.patra.db, place, wanted, after=asked.after, limit=asked.limit)
    return msgspec.structs.replace(found, rows=[_mask_row(row) for row in found.rows])


def _mask_row(row: dict[str, Any]) -> dict[str, Any]:
    """Without secrets and personal data in what SDKs wrote; keys stay, since others ask by them."""
    payload = row.get("payload")
    if not isinstance(payload, str):
        return row
    return row | {"payload": redact(msgspec.json.decode(payload))}


def _span(begin: str, end: str) -> tuple[int, int] | Problem:
    first = parse_instant(begin) if begin else -EVER
    last = parse_instant(end) if end else EVER
    if first is None or last is None:
        name = "begin" if first is None else "end"
        return Problem(400, "instant_invalid", f"{name} is not an RFC 3339 instant with an offset")
    return first, last


def _view(one: Span) -> HistoryFileView:
    return HistoryFileView(
        number=one.number,
        file=one.file or "",
        kind=one.kind,
        rows=one.rows,
        first=format_instant(one.first_at),
        last=format_instant(one.last_at),
        sha256=one.sha256,
        rowsInStore=one.deleted_at is None,
        heldUntil=format_instant(one.held_until) if one.held_until else None,
    )
