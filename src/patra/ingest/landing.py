"""The items of an answer go in; records to store, records for the quarantine and what the page tells come out.

Pure: no store, no clock. What an item is (`reading`), what becomes of it (`mapping`) and whether it belongs to the
window are decided here, item by item; one bad item never stops the others (ch. 4.13, 11.8).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.codes import MissingIds
from patra.ingest.line import Line
from patra.ingest.mapping import Flaw, raw_of
from patra.ingest.reading import Polluted, page_digest
from patra.ingest.reasons_running import X
from patra.ingest.records import Bad, Incoming, bad, incoming
from patra.ingest.slicing import Span


class Landing(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch brings. `ids` are those of the page in its order, those of bad items too where they have one."""

    records: list[Incoming]
    bad: list[Bad]
    ids: list[str]
    digest: str
    newest: int | None = None
    outside: int = 0


def ids_of(line: Line, items: Sequence[Any]) -> Landing:
    """The first of two phases: ids only."""
    ids: list[str] = []
    wrong: list[Bad] = []
    newest: int | None = None
    for one in items:
        item = line.item(one)
        found = line.reader.identity(item, dated=False)
        if isinstance(found, Polluted) and found.id is None:
            wrong.append(bad(raw_of(one), None, found.code, found.path, found.detail))
            continue
        ids.append(found.id or "")
        if not isinstance(found, Polluted) and found.updated_at is not None:
            newest = found.updated_at if newest is None else max(newest, found.updated_at)
    unique = list(dict.fromkeys(ids))
    return Landing(records=[], bad=wrong, ids=unique, digest=_digest(ids, wrong), newest=newest)


def records_of(
    line: Line, items: Sequence[Any], now: int, plan: Mapping[str, Any], window: Span | None = None
) -> Landing:
    """Records of a page or of a group of details; `window` drops what lies outside (client filter)."""
    records: list[Incoming] = []
    wrong: list[Bad] = []
    ids: list[str] = []
    newest: int | None = None
    outside = 0
    keep_raw = line.leg.mapping.output.keep_raw
    for one in items:
        item = line.item(one)
        found = line.reader.identity(item)
        if isinstance(found, Polluted):
            wrong.append(bad(raw_of(one), found.id, found.code, found.path, found.detail))
            if found.id is not None:
                ids.append(found.id)
            continue
        ids.append(found.id)
        updated_at = found.updated_at or 0
        newest = updated_at if newest is None else max(newest, updated_at)
        if window is not None and not window.start <= updated_at < window.end:
            outside += 1
            continue
        fields = {} if found.deleted else line.mapper(item, now, plan)
        if isinstance(fields, Flaw):
            code = X.FIELD_MISSING if "required" in fields.detail else X.FIELD_INVALID
            wrong.append(bad(raw_of(one), found.id, code, fields.place, fields.detail))
            continue
        record = incoming(
            found.id, updated_at, found.version, fields, raw_of(one) if keep_raw else None, deleted=found.deleted
        )
        if record is None:
            wrong.append(bad("", found.id, X.RECORD_TOO_LARGE, line.leg.response.items_path, "the record is too large"))
        else:
            records.append(record)
    return Landing(records=records, bad=wrong, ids=ids, digest=_digest(ids, wrong), newest=newest, outside=outside)


def _digest(ids: list[str], wrong: list[Bad]) -> str:
    """What tells a page from others; where none of its records has an id, the records themselves do."""
    return page_digest(ids or [one.key for one in wrong])


def with_missing(landing: Landing, asked: Sequence[str], policy: MissingIds) -> Landing:
    """Details: ids for which no record came back are kept with a reason, unless the pack does not care (ch. 11.6)."""
    came = set(landing.ids)
    if policy is MissingIds.IGNORE:
        return landing
    lost = [
        bad({"id": one}, one, X.ID_MISSING_DETAIL, "ids", "the detail endpoint gave no record for this id")
        for one in asked
        if one not in came
    ]
    return msgspec.structs.replace(landing, bad=[*landing.bad, *lost])


def nothing() -> Landing:
    return Landing(records=[], bad=[], ids=[], digest="")
