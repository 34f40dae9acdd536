"""Counts what the rolling re-reads of a source have covered and found, and names those that never ran (I14).

A source without a time of change is harvested by the date of publication: what it indexes later is seen only when
the last months are read again. A pack declares that as a schedule with `reread`; here it is counted.
"""

from typing import Any

import msgspec

from patra.ingest.landing.store import Q
from patra.ingest.planning.store import all_schedules
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx


class Reread(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule that reads the last months again."""

    schedule: str
    endpoint: str
    last: str
    """How far back it reads."""
    enabled: bool
    windows: int = 0
    open: int = 0
    """Windows that do not add up."""
    since: str | None = None
    until: str | None = None
    found_late: int = 0
    """Records that no harvest had seen."""
    changed: int = 0
    read: str | None = None
    """When the last window was read."""


def rereads(tx: Tx, source: str, endpoint: str = "") -> list[Reread]:
    """The rolling re-reads that the pack of a source declares, with their results."""
    return [
        _reread_of(
            one.name,
            one.schedule.endpoint,
            one.schedule.last or "",
            tx.fetch_dicts(Q["ledger_reread"], {"source": source, "job": one.job})[0],
            enabled=one.enabled,
        )
        for one in all_schedules(tx)
        if one.source == source and one.schedule.reread and endpoint in {"", one.schedule.endpoint}
    ]


def _reread_of(name: str, endpoint: str, last: str, row: dict[str, Any], *, enabled: bool) -> Reread:
    declared = Reread(schedule=name, endpoint=endpoint, last=last, enabled=enabled)
    if not row["windows"]:
        return declared
    return msgspec.structs.replace(
        declared,
        windows=row["windows"],
        open=row["open"],
        since=format_instant(row["window_from"]),
        until=format_instant(row["window_to"]),
        found_late=row["inserted"],
        changed=row["updated"],
        read=format_instant(row["closed_at"]),
    )


def words(one: Reread, source: str) -> str:
    """As a person reads it under a list of windows."""
    name = f"schedule {one.schedule} (reads the last {one.last} of {one.endpoint} again)"
    if not one.windows:
        turn_on = f"`patra ingest schedule enable {source}/{one.schedule}` turns it on, with the pack's own parameters"
        state = "has not run yet" if one.enabled else f"is off ({turn_on})"
        return f"{name} {state}: what was indexed late is not seen"
    short = f", {one.open} of them do not add up" if one.open else ""
    read = f"{one.windows} windows from {one.since} to {one.until}{short}"
    found = f"{one.found_late:,} records came late, {one.changed:,} had changed"
    return f"{name}: {read}; {found}; last read {one.read}"
