"""The built-in archive refuses another payload under a `recordKey` that it has, as any archive does (§3.8.29.1, F26).

A `recordKey` is unique by the way it is built, with one exception: the failures that the system writes for two closures
get the same computed key where fields that contain `|` join to the same text. Only these are looked up, so that no
event costs a statement; whichever was committed first keeps the key, the other is `conflicted`.
"""

from collections.abc import Sequence

from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import Status
from patra.attribution.decision.decisions import PendingDecision, decision_of
from patra.attribution.decision.output_records import RECORD, Record, RecordTransition, RecordType, Statuses, records
from patra.attribution.storage.sql import Q
from patra.kernel.db import Row, Tx
from patra.kernel.machine import journal

_COMMITTED = Statuses(Status.COMMITTED, None, Status.COMMITTED)


def check_record_keys(tx: Tx, made: Sequence[PendingDecision]) -> None:
    """Claim the record keys of synthesised failures; those that another payload holds become `conflicted`."""
    found = [(one, record) for one in made for record in records(decision_of(one, None), _COMMITTED)]
    owners: dict[bytes, tuple[str, int]] = {}
    for one, record in found:
        owners.setdefault(half(record.key), (record.digest, one.number))
    rows: list[Row] = [(key, digest, number) for key, (digest, number) in sorted(owners.items())]
    held = {bytes(key): digest for key, digest in tx.fetch(Q["claim_record_keys"], rows=rows)}
    conflicted: dict[int, tuple[PendingDecision, list[Record]]] = {}
    for one, record in found:
        if held[half(record.key)] != record.digest:
            conflicted.setdefault(one.number, (one, []))[1].append(record)
    statuses: list[Row] = []
    to, code = RECORD.target(Status.NEW, RecordTransition.CONFLICT).value, Reason.RECORDKEY_MISMATCH.value
    for number, (one, refused) in sorted(conflicted.items()):
        types = {record.type for record in refused}
        audit = to if RecordType.AUDIT in types else None
        statuses.append((number, audit, to if RecordType.ATTRIBUTION in types else None, one.at, code))
        journal(
            tx,
            [
                RECORD.move(record.key, Status.NEW, RecordTransition.CONFLICT, reason=code, at=one.at)
                for record in refused
            ],
        )
    tx.execute(Q["settle_decisions"], rows=statuses)
