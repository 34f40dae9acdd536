"""Counts of dropped events against their rows: the audit of a drop, its count, and the events that were rejected so.

A drop is decided once and counted from then on (F20); each event that was rejected so raises the count of its own row
(F25), so the counts of those rows make up the count of the drop. Duplicates leave no rows but the log's. An event that
lacks its `responseReference` is kept raw, in quarantine, and no other is (F19).
"""

from collections.abc import Iterator, Sequence

import msgspec

from patra.attribution.checks.dedup_ledger import RecentSearch, past_cycles
from patra.attribution.checks.finding import Finding
from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Action
from patra.attribution.decision.decisions import Decision, audit_key_of
from patra.attribution.decision.dedup import SCOPE
from patra.attribution.retention import AUDITS, MAX_TRANSIT_TIME, REJECTS_PURGED
from patra.attribution.storage.read import Archived
from patra.attribution.storage.sql import Q, mark
from patra.kernel.db import Tx
from patra.kernel.ledger import entries

_DUPLICATES = frozenset({Reason.DEDUP_COMMITTED.value, Reason.DEDUP_INFLIGHT.value})
_LATE = frozenset({Reason.DEDUP_CONFLICT.value, Reason.FOREIGN_APP.value})
"""Rejections under a dedup key: in a later cycle of it the same event is another drop, and its row goes over."""


class _Rejects(msgspec.Struct, frozen=True, array_like=True):
    """The rows of the events that were rejected by one decision, taken together."""

    decision_id: int
    rows: int
    counted: int
    """Rows that have a count: those of earlier versions have none."""
    events: int
    first_at: int
    first_code: str
    last_code: str
    first_app: str
    last_app: str
    unkept: int
    """Rows of events that lack their `responseReference` and were not kept raw."""


def drop_findings(
    tx: Tx, page: Sequence[Archived], first: int, last: int, now: int, recent: RecentSearch
) -> Iterator[Finding]:
    """All drops and rejected events of the decisions of a page, which are all that there are from `first` to `last`."""
    counts = tx.fetch(Q["drops_between"], {"first": first, "last": last})
    drops = {number: (bytes(key), count) for number, key, count in counts}
    kept = {"first": max(first, mark(tx, AUDITS) + 1), "last": last}  # rejected events may outlive their audits
    rejects = {row[0]: msgspec.convert(row, _Rejects) for row in tx.fetch(Q["rejects_between"], kept)}
    since = mark(tx, REJECTS_PURGED) + MAX_TRANSIT_TIME  # an event may be a little older than the decision of its drop
    for one in page:
        if one.decision.action != Action.DROP.value:
            continue
        key = audit_key_of(one.decision)
        counted, count = drops.pop(one.id, (None, 0))
        found = rejects.pop(one.id, None)
        if counted != half(key) or count < 1:
            yield Finding(check="drop_without_a_count", key=key)
            continue
        if found is not None and not _is_of(found, one.decision):
            yield Finding(check="reject_and_decision_differ", key=key)
        elif _is_miscounted(found, one.decision, count, since) and not _went_over(tx, one.decision, now, recent):
            events = found.events if found else 0
            yield Finding(check="reject_counts_differ", key=f"{key}: {events} rejected events instead of {count}")
        if found is not None and found.unkept:
            yield Finding(check="quarantine_lacks_payload", key=f"{key}: {found.unkept} events")
    for number, (key, _) in sorted(drops.items()):
        yield Finding(check="drop_without_a_decision", key=f"{key.hex()} of decision {number}")
    yield from (Finding(check="reject_without_a_decision", key=str(number)) for number in sorted(rejects))


def _is_of(found: _Rejects, decision: Decision) -> bool:
    return (found.first_code, found.last_code) == (decision.reason, decision.reason) and (
        found.first_app,
        found.last_app,
    ) == (decision.subject.app, decision.subject.app)


def _is_miscounted(found: _Rejects | None, decision: Decision, count: int, since: int) -> bool:
    """Whether the rejected events of a drop are others in number than it counts, as far as their rows can tell."""
    if decision.reason in _DUPLICATES:
        return found is not None
    if found is None:
        return decision.at >= since
    whole = found.counted == found.rows and decision.at >= since
    return whole and found.first_at >= decision.at and found.events != count


def _went_over(tx: Tx, decision: Decision, now: int, recent: RecentSearch) -> bool:
    """Whether the same event may have been rejected in a later cycle since: the ledger's key is not in this one."""
    subject = decision.subject
    if decision.reason not in _LATE or subject.dedup is None:
        return False
    key = half(subject.dedup)
    entry = entries(tx, SCOPE, [key]).get(key) or recent.find_known(tx, {key}).get(key)
    if entry is None:  # an event of another app's closure holds no key
        return bool(past_cycles(tx, {key}))
    return entry.cycle != subject.cycle or entry.expires_at < now
