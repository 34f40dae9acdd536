"""Rejected events and refused batches, in pages, the newest first; and what is known of the rejects of a decision."""

from collections.abc import Collection
from typing import Any

import msgspec

from patra.attribution.storage.sql import Q
from patra.kernel.clock import MINUTE, format_instant, parse_instant
from patra.kernel.db import Row, Tx


class RejectView(msgspec.Struct, frozen=True, kw_only=True):
    """A rejected event: never its payload, unless it is in quarantine."""

    at: str
    appId: str  # noqa: N815
    batchId: str  # noqa: N815
    eventIndex: int  # noqa: N815
    ackReasonCode: str  # noqa: N815
    serverEventKey: str  # noqa: N815
    eventId: str | None  # noqa: N815
    """As sent, where it was text; null also of rows that an earlier version wrote."""
    fieldPath: str | None  # noqa: N815
    """The field that the check failed on; `$` is the whole event."""
    expected: str | None
    """What should have stood there."""
    alsoWrong: str | None  # noqa: N815
    """Further required fields that are missing, as the ACK names them; null also of rows of earlier versions."""
    digest: str
    count: int
    raw: msgspec.Raw | None = None


class RefusedView(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that was refused as a whole (F11); its events were not looked at."""

    number: int
    receivedAt: str  # noqa: N815
    batchId: str | None  # noqa: N815
    code: str


def list_refused(tx: Tx, *, batch_id: str = "", code: str = "", before: int = 2**62, limit: int) -> list[RefusedView]:
    """Batches that were refused as a whole, as far as the log reaches, the newest first; `before` is a number."""
    if "\x00" in batch_id or "\x00" in code:
        return []
    name = "refused_by_batch" if batch_id else "refused_page"
    asked = {"code": code, "before": before, "limit": limit} | ({"batch_id": batch_id} if batch_id else {})
    return [
        RefusedView(number=number, receivedAt=format_instant(at), batchId=batch, code=reason)
        for number, at, batch, reason in tx.fetch(Q[name], asked)
    ]


class RejectsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rejected events, the newest first; `next` stands for the last of them where there may be more."""

    rejects: list[RejectView]
    next: str | None


_AFTER_ALL = b"\xff" * 17
"""After every key: what was received at an instant itself is not before it."""
LAST_PLACE = (2**62, _AFTER_ALL)


def rejects(
    tx: Tx,
    *,
    batch_id: str | None = None,
    code: str | None = None,
    quarantined: bool = False,
    before: tuple[int, bytes] = LAST_PLACE,
    since: int = 0,
    limit: int,
) -> RejectsPage:
    """Rejected events, with their payload where they are in quarantine; `before` is an instant and a place in it."""
    params = {
        "batch_id": batch_id or "",
        "code": code or "",
        "quarantined": int(quarantined),
        "before": before[0],
        "after": before[1],
        "since": since,
        "limit": limit,
    }
    rows = tx.fetch(Q["rejects_page"], params)
    following = f"{format_instant(rows[-1][1])}~{bytes(rows[-1][0]).hex()}" if len(rows) == limit else None
    rows.sort(
        key=lambda row: (-row[1], row[2], row[3], row[4])
    )  # the page is that of the keys; within a batch, its order
    return RejectsPage(rejects=[_reject_view(row[1:]) for row in rows], next=following)


MAX_COUNTED_REJECTS = 10_000
"""So many of the latest of a span are counted for an axis of time."""
MIN_SPAN = 10 * MINUTE


class RejectCause(msgspec.Struct, frozen=True, kw_only=True):
    """The rejected events of an app with one code, in the parts of the span."""

    code: str
    appId: str  # noqa: N815
    events: int
    counts: list[int]


class RejectsOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of equal parts of a span, the most frequent cause first; `more`: earlier ones are not counted."""

    since: str
    until: str
    counts: list[int]
    causes: list[RejectCause]
    more: bool


def rejects_over_time(
    tx: Tx, *, code: str = "", quarantined: bool = False, since: int | None, until: int, parts: int
) -> RejectsOverTime:
    """How many events were rejected when: of the latest of a span so many, whatever their code."""
    bounds: dict[str, Any] = {"since": since or 0, "until": until, "most": MAX_COUNTED_REJECTS}
    first: int | None
    looked_at: int
    ((first, looked_at),) = tx.fetch(Q["rejects_reach"], bounds)
    more = looked_at >= MAX_COUNTED_REJECTS
    begin = min(until - MIN_SPAN, until if first is None else first) if since is None else since
    if more and first is not None:
        begin = first
    step = max(-(-(until - begin) // parts), 1)
    asked: dict[str, Any] = bounds | {"since": begin, "step": step, "code": code, "quarantined": int(quarantined)}
    counts = [0] * parts
    of: dict[tuple[str, str], list[int]] = {}
    for part, of_code, app_id, count in tx.fetch(Q["rejects_over_time"], asked):
        counts[part] += count
        of.setdefault((of_code, app_id), [0] * parts)[part] += count
    causes = [RejectCause(code=one, appId=app, events=sum(each), counts=each) for (one, app), each in of.items()]
    causes.sort(key=lambda cause: (-cause.events, cause.code, cause.appId))
    return RejectsOverTime(
        since=format_instant(begin), until=format_instant(until), counts=counts, causes=causes, more=more
    )


MAX_REJECTS_OF_DECISIONS = 1000
"""Rejected events that are listed with their decisions; `rejects` of the batch lists all of them."""


def rejects_of_decisions(tx: Tx, numbers: Collection[int]) -> dict[int, list[RejectView]]:
    """The rejected events that led to some decisions, by the number of the decision; without their payloads."""
    found: dict[int, list[RejectView]] = {}
    wanted: list[Row] = [(number,) for number in sorted(numbers)]
    if wanted:
        for number, *row in tx.fetch(Q["rejects_of_decisions"], {"limit": MAX_REJECTS_OF_DECISIONS}, rows=wanted):
            found.setdefault(number, []).append(_reject_view(tuple(row)))
    return found


def _reject_view(row: Row) -> RejectView:
    at, app_id, batch_id, index, reason, source, event_id, field, expected, also_wrong, digest, raw, count = row
    return RejectView(
        at=format_instant(at),
        appId=app_id,
        batchId=batch_id,
        eventIndex=index,
        ackReasonCode=reason,
        serverEventKey=source,
        eventId=event_id,
        fieldPath=field,
        expected=expected,
        alsoWrong=also_wrong,
        digest=digest,
        count=count,
        raw=msgspec.Raw(bytes(raw)) if raw is not None else None,
    )


def reject_place(text: str) -> tuple[int, bytes] | None:
    """Where a page of rejects begins: before an instant, or after what `next` of a page stands for; None if neither."""
    instant, _, key = text.partition("~")
    at = parse_instant(instant)
    try:
        return None if at is None else (at, bytes.fromhex(key) if key else _AFTER_ALL)
    except ValueError:
        return None
