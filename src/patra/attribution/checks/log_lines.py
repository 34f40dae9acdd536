"""The log against the decisions: every event of a line that is kept was decided, and only lines of batches were.

An event has a decision of its own in the line's item, or it repeats a drop, which is counted there and not decided
again (F20). So an event without a decision is looked for among the counted drops, under each key that it may have been
dropped by; what retention may have taken with the facts or the audits is not asked for.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, takewhile

import msgspec

from patra.attribution.checks.dedup_ledger import RecentSearch, cycles_of
from patra.attribution.checks.finding import Finding, Page
from patra.attribution.contract import keys
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Action
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.intake.batch import read_batch
from patra.attribution.intake.envelope import Refused, envelope, plain_envelope
from patra.attribution.intake.zstd import decompress_body
from patra.attribution.retention import AUDITS, FACTS
from patra.attribution.storage.decision_codec import unpack_decisions
from patra.attribution.storage.sql import Q, mark
from patra.kernel.db import Row, Tx

EVENT_BYTES = 100
"""What an event takes of a line, roughly: a page of so many events is cut by the size of its lines."""
MIN_PAGE_BYTES = 64 * 1024

DROP_REASONS = (
    Reason.TYPE_UNSUPPORTED,
    Reason.MISSING_REQUIRED,
    Reason.ID_INVALID_NO_FALLBACK,
    Reason.TIME_INVALID,
    Reason.UNIQUENESS_UNVERIFIED,
    Reason.STALE,
    Reason.DEDUP_INFLIGHT,
    Reason.DEDUP_COMMITTED,
    Reason.DEDUP_CONFLICT,
    Reason.FOREIGN_APP,
)
"""Why an event is dropped (F20)."""


class _Undecided(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a line that has no decision of its own."""

    line: int
    batch_id: str
    index: int
    source: str
    """Its `serverEventKey` if it was rejected before it had a dedup key."""
    dedup: str | None


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A page of lines, and how many of their events were dropped: the first time, or once more."""

    page: Page
    dropped: int


def line_page(tx: Tx, after: int, events: int, recent: RecentSearch) -> Lines:
    """The next lines of the log, as many as hold some events, at least one."""
    sizes = tx.fetch(Q["line_sizes"], {"after": after, "limit": events})
    most = max(events * EVENT_BYTES, MIN_PAGE_BYTES)
    fitting = sum(1 for _ in takewhile(lambda size: size <= most, accumulate(size for _, size in sizes)))
    numbers = [number for number, _ in sizes[: max(fitting, 1)]]
    if not numbers:
        return Lines(page=Page(rows=0, last=after, more=False, findings=[]), dropped=0)
    rows = tx.fetch(Q["lines_between"], {"first": numbers[0], "last": numbers[-1]})
    packs = tx.fetch(Q["packs_of_items"], rows=[(number,) for number in numbers])
    decided = {item: [one for _, one in unpack_decisions(item, bytes(body))] for item, _, body in packs}
    findings: list[Finding] = []
    undecided: list[_Undecided] = []
    first_drops = 0
    for row in rows:
        found = decided.get(row[0], [])
        if row[2] == "batch":
            own = {one.subject.index for one in found if one.batch is None}
            sent = decompress_body(bytes(row[3]))
            count = _count_events(sent)
            beyond = sorted(index for index in own if index is not None and index >= count)
            findings += [Finding(check="decision_without_an_event", key=f"event {i}, line {row[0]}") for i in beyond]
            if len(own) - len(beyond) < count:
                undecided += _undecided_events(row, sent, own)
            first_drops += sum(one.action == Action.DROP.value for one in found)
        elif row[2] == "refused" and found:
            findings.append(Finding(check="decisions_on_a_refused_batch", key=str(row[0])))
    undropped = list(_undropped_events(tx, undecided, recent))
    more = len(numbers) < len(sizes) or len(sizes) == events
    page = Page(rows=len(numbers), last=numbers[-1], more=more, findings=[*findings, *undropped])
    return Lines(page=page, dropped=first_drops + len(undecided) - len(undropped))


def _count_events(sent: bytes) -> int:
    """How many events a batch has; none where it cannot be read."""
    read = plain_envelope(sent) or envelope(sent)
    return 0 if isinstance(read, Refused) else len(read.events)


def _undecided_events(row: Row, sent: bytes, own: Collection[int | None]) -> Iterator[_Undecided]:
    """The events of a batch that have no decision of their own."""
    batch = read_batch(sent, row[1])
    if isinstance(batch.envelope, Refused):
        return
    app_id, batch_id = batch.envelope.app_id, batch.envelope.batch_id
    dedup = {event.index: event.dedup for event in batch.events}
    for index in range(len(batch.envelope.events)):
        if index not in own:
            source = keys.server_event_key_without_dedup(app_id, batch_id, index)
            yield _Undecided(line=row[0], batch_id=batch_id, index=index, source=source, dedup=dedup.get(index))


def _undropped_events(tx: Tx, undecided: Sequence[_Undecided], recent: RecentSearch) -> Iterator[Finding]:
    """Events that were neither decided nor counted with a drop; each has raised a count beyond its first."""
    if not undecided or mark(tx, AUDITS):  # the audit that it repeats may be purged
        return
    purged = mark(tx, FACTS) >> ITEM_BITS
    cycles = cycles_of(tx, {keys.half(one.dedup) for one in undecided if one.dedup}, recent)
    wanted = {i: _drop_keys(one, cycles) for i, one in enumerate(undecided) if one.line > purged}
    asked: list[Row] = [(key,) for key in sorted({key for some in wanted.values() for key in some})]
    counts = {bytes(key): count for key, count in tx.fetch(Q["drop_counts"], rows=asked)} if asked else {}
    for i, some in wanted.items():
        raised = [key for key in some if counts.get(key, 0) > 1]
        if not raised:
            one = undecided[i]
            key = f"event {one.index} of batch {one.batch_id}, line {one.line}"
            yield Finding(check="event_without_a_decision", key=key)
        elif len(raised) == 1:
            counts[raised[0]] -= 1


def _drop_keys(one: _Undecided, cycles: Mapping[bytes, int]) -> list[bytes]:
    """Under which keys the drop of an event may be counted: by each reason, in each cycle of its dedup key."""
    sources = [one.source]
    if one.dedup is not None:
        last = cycles.get(keys.half(one.dedup), 0) + 1
        sources += [keys.server_event_key(one.dedup, cycle) for cycle in range(1, last + 1)]
    return [
        keys.half(keys.audit_key(source, Action.DROP.value, reason)) for source in sources for reason in DROP_REASONS
    ]
