"""A span of time goes in; how many committed billable facts fall into it, by app, day or placement, comes out.

§3.8.29.5: only facts whose record the archive has taken count; `factAt` decides, the beginning included, the end not.
How many were left out, and where their records stand, is told too: who settles money should know.
"""

import csv
import io
from pathlib import Path
from typing import Any, Literal

import msgspec

from patra.attribution.statements import Q
from patra.kernel.clock import DAY, HOUR, format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid

By = Literal["app", "day", "placement"]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a settlement; what was not asked for is empty."""

    app_id: str
    day: str
    placement: str
    impressions: int
    clicks: int


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of billable facts between two instants."""

    begin: str
    end: str
    by: str
    lines: list[Line]
    impressions: int
    clicks: int
    uncounted: dict[str, int] = {}
    """Billable facts of the span whose record is not `committed`, by its status."""


def settle(tx: Tx, begin: int, end: int, by: By) -> Settlement:
    """Count committed billable facts from `begin` up to, not including, `end`."""
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    span = {"begin": begin, "end": end, "first": begin // HOUR, "last": end // HOUR, "day": DAY}
    waiting = _waiting(tx) if by == "placement" else {}
    for app_id, group, kind, count, opportunity in tx.fetch(Q[f"settle_by_{by}"], span):
        of = group if opportunity is None else waiting.get(bytes(opportunity))
        line = found.setdefault(_line_key(by, app_id, of), {})
        line[kind] = line.get(kind, 0) + count
    lines = [
        Line(
            app_id=app_id,
            day=day,
            placement=placement,
            impressions=counts.get("billable_impression", 0),
            clicks=counts.get("billable_click", 0),
        )
        for (app_id, day, placement), counts in sorted(found.items())
    ]
    return Settlement(
        begin=format_instant(begin),
        end=format_instant(end),
        by=by,
        lines=lines,
        impressions=sum(line.impressions for line in lines),
        clicks=sum(line.clicks for line in lines),
        uncounted=dict(sorted(tx.fetch(Q["uncounted"], span))),
    )


def _waiting(tx: Tx) -> dict[bytes, bytes]:
    """Placements that are not carried yet (`placements`); of an opportunity's, the earliest decision says."""
    found: dict[bytes, bytes] = {}
    for key, placement in tx.fetch(Q["waiting_placements"]):
        found.setdefault(bytes(key), bytes(placement))
    return found


def _line_key(by: By, app_id: str, group: int | bytes | None) -> tuple[str, str, str]:
    match by:
        case "app":
            return app_id, "", ""
        case "day":
            return "", format_instant(int(group or 0) * DAY)[:10], ""
        case "placement":
            return app_id, "", bytes(group).decode() if isinstance(group, bytes | memoryview) else ""


COLUMNS = ("app_id", "day", "placement", "impressions", "clicks")


def as_csv(settlement: Settlement) -> str:
    """The lines with a header, for spreadsheets."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([getattr(line, name) for name in COLUMNS] for line in settlement.lines)
    return text.getvalue()


def as_parquet(settlement: Settlement, path: str) -> None:
    """The lines as a Parquet file; needs the extra `patra[parquet]`."""
    try:
        import duckdb  # noqa: PLC0415  (an extra)
    except ModuleNotFoundError as error:
        raise ConfigInvalid(
            "config_extra_missing", "Parquet files need the extra: pip install 'patra[parquet]'"
        ) from error
    Path(path).touch()  # what is wrong with the file is said as of any other
    columns = [[getattr(line, name) for line in settlement.lines] for name in COLUMNS]
    names = ", ".join(f"unnest(?::{kind}[]) AS {name}" for name, kind in zip(COLUMNS, _TYPES, strict=True))
    connection: Any = duckdb.connect()
    try:
        connection.execute(f"CREATE TABLE settlement AS SELECT {names}", columns)
        connection.execute(f"COPY settlement TO '{path.replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
    finally:
        connection.close()


_TYPES = ("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "BIGINT")
