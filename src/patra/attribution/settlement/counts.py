"""Decides from a span of time how many committed billable facts fall into it, by app, day or placement.

§3.8.29.5: only facts whose record the archive has taken count; `factAt` decides, the beginning included, the end not.
How many were left out, and the states of their records, is reported too: for settlement it matters.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION
from patra.attribution.history.settled_facts import facts_in_history
from patra.attribution.settlement.export import rows_as_csv, rows_as_parquet
from patra.attribution.storage.running_sums import MARKS, Sums, waiting_placements_of
from patra.attribution.storage.sql import Q, mark
from patra.kernel.clock import DAY, HOUR, format_instant
from patra.kernel.db import Row, Tx
from patra.kernel.errors import Invalid
from patra.kernel.safety.redact import masked_label

By = Literal["app", "day", "placement"]

HOURS_PER_DAY = 24
WITHOUT_IMPRESSION = "impression_not_archived"
"""Clicks that are committed, and whose impression no archive took: they are not counted (F26)."""


BILLED_TWICE = "billed_twice"
"""Facts whose billing key was billed before, which the writer should never let happen (`storage/billing_tree`)."""


class SettlementLine(msgspec.Struct, frozen=True, kw_only=True):
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
    lines: list[SettlementLine]
    impressions: int
    clicks: int
    uncounted: dict[str, int] = {}
    """Billable facts of the span whose record is not `committed`, by its status; clicks whose impression is lost."""


def settle(tx: Tx, begin: int, end: int, by: By) -> Settlement:
    """Count committed billable facts from `begin` up to, not including, `end`.

    Whole hours come from the running sums (`running_sums`), what is left at both ends from the facts.
    """
    rows: list[Row] = []
    first, last = -(-begin // HOUR), end // HOUR
    if first < last:
        rows += _hours(tx, first, last, by)
        rows += _facts(tx, begin, first * HOUR, by)
        rows += _facts(tx, last * HOUR, end, by)
    else:
        rows += _facts(tx, begin, end, by)
    lines = _lines(tx, rows, by)
    made = [
        SettlementLine(app_id=app_id, day=day, placement=placement, impressions=impressions, clicks=clicks)
        for (app_id, day, placement), counts in sorted(lines.items())
        for impressions, clicks in [(counts.get(BILLABLE_IMPRESSION, 0), counts.get(BILLABLE_CLICK, 0))]
        if impressions or clicks
    ]
    return Settlement(
        begin=format_instant(begin),
        end=format_instant(end),
        by=by,
        lines=made,
        impressions=sum(line.impressions for line in made),
        clicks=sum(line.clicks for line in made),
        uncounted=_count_uncounted(tx, begin, end),
    )


def refuse_history(tx: Tx, begin: int, end: int, app_id: str = "") -> None:
    """Refuse to count facts one by one where some of their hours left the store: the result would lack them."""
    if gone := facts_in_history(tx, begin, end, app_id):
        raise Invalid(
            "settle_facts_in_history",
            f"{gone} facts between {format_instant(begin)} and {format_instant(end)} left the store for history",
            advice="settle whole hours by app, day or placement, use the statement, or `patra attribution history ask`",
        )


Lines = dict[tuple[str, str, str], dict[str, int]]
"""Counts by type of each line: app, day and placement."""


def _lines(tx: Tx, rows: Sequence[Row], by: By) -> Lines:
    """Rows of app, day or placement, type, count, and the opportunity where no placement was carried, as lines.

    Its placement may be among those that wait to be carried.
    """
    waiting = waiting_placements_of(tx, {bytes(row[4]) for row in rows if row[4] is not None and row[1] is None})
    lines: Lines = {}
    for app_id, group, kind, count, opportunity in rows:
        place = waiting.get(bytes(opportunity)) if group is None and opportunity is not None else group
        line = lines.setdefault(_line_key(by, app_id, place), {})
        line[kind] = line.get(kind, 0) + int(count)
    return lines


def _facts(tx: Tx, begin: int, end: int, by: By) -> list[Row]:
    """Facts of a span, one by one."""
    if begin >= end:
        return []
    refuse_history(tx, begin, end)
    span = {"begin": begin, "end": end, "first": begin // HOUR, "last": end // HOUR, "day": DAY}
    return tx.fetch(Q[f"settle_by_{by}"], span)


def _hours(tx: Tx, first: int, last: int, by: By) -> list[Row]:
    """Whole hours: the sums, what is in none yet, less what they hold and does not count."""
    sums: Sums = "placement" if by == "placement" else "hour"
    asked = {"first": first, "last": last}
    unsummed = {**asked, "sums": sums, "mark": mark(tx, MARKS[sums])}
    wrong = tx.fetch(Q["wrongly_summed"], {**asked, "mark": unsummed["mark"]})
    if by == "placement":
        return [
            *tx.fetch(Q["sums_by_placement"], asked),
            *tx.fetch(Q["unsummed_by_placement"], unsummed),
            *((app_id, placement, kind, -1, opportunity) for app_id, _, kind, opportunity, placement, _ in wrong),
        ]
    return [
        *((app_id, day, kind, count, None) for app_id, day, kind, count in tx.fetch(Q[f"sums_by_{by}"], asked)),
        *(
            (app_id, hour // HOURS_PER_DAY, kind, count, None)
            for app_id, hour, kind, count in tx.fetch(Q["unsummed_by_hour"], unsummed)
        ),
        *((app_id, hour // HOURS_PER_DAY, kind, -1, None) for app_id, hour, kind, *_ in wrong),
    ]


def _count_uncounted(tx: Tx, begin: int, end: int) -> dict[str, int]:
    span = {"begin": begin, "end": end}
    pending = {**span, "sums": "hour", "mark": mark(tx, MARKS["hour"])}
    uncounted: dict[str, int] = dict(tx.fetch(Q["uncounted"], pending))
    if clicks := tx.fetch(Q["uncounted_clicks"], span)[0][0]:
        uncounted[WITHOUT_IMPRESSION] = clicks
    if twice := tx.fetch(Q["billed_twice_between"], span)[0][0]:
        uncounted[BILLED_TWICE] = twice
    return dict(sorted(uncounted.items()))


def waiting_placements(tx: Tx) -> dict[bytes, bytes]:
    """Placements that are not carried yet (`placements`); of an opportunity's, the earliest decision says."""
    found: dict[bytes, bytes] = {}
    for key, placement in tx.fetch(Q["waiting_placements"]):
        found.setdefault(bytes(key), bytes(placement))
    return found


def _line_key(by: By, app_id: str, group: Any) -> tuple[str, str, str]:
    match by:
        case "app":
            return app_id, "", ""
        case "day":
            return "", format_instant(int(group or 0) * DAY)[:10], ""
        case "placement":
            return app_id, "", masked_label(bytes(group).decode()) if group else ""


COLUMN_TYPES = {
    "app_id": "VARCHAR",
    "day": "VARCHAR",
    "placement": "VARCHAR",
    "impressions": "BIGINT",
    "clicks": "BIGINT",
}
"""The columns of a settlement's lines, with their SQL types."""


def as_csv(settlement: Settlement) -> str:
    """The lines with a header, for spreadsheets."""
    return rows_as_csv(list(COLUMN_TYPES), _rows(settlement))


def as_parquet(settlement: Settlement, path: str) -> None:
    """The lines as a Parquet file; needs the extra `patra[parquet]`."""
    rows_as_parquet(COLUMN_TYPES, _rows(settlement), path)


def _rows(settlement: Settlement) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(line) for line in settlement.lines]
