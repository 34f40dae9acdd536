"""An operator issues records again that the archive did not take: new records, the old ones stay `conflicted` (F26).

A new record has the payload of the old one under a `recordKey` of its own, since `archiveContractVersion` has `.r2`,
`.r3` … appended, and names the old one in `conflictWithRecordKey`. It goes the way of any record. Once the archive has
a billable fact, settlement counts it, once: the fact is one row, however many records were issued for it. In a period
that is closed by then it is an adjustment of the next statement.

A record that was superseded without the archive's knowledge keeps its key; it is sent again.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import BILLABLE_IMPRESSION, Status
from patra.attribution.decision.decide import ITEM_BITS
from patra.attribution.decision.output_records import (
    RECORD,
    Record,
    RecordTransition,
    RecordType,
    Reissue,
    group_of,
    reissue_record,
)
from patra.attribution.storage.key_search import find
from patra.attribution.storage.read import CHANNEL, Archived, decisions_by_id, untold_decisions
from patra.attribution.storage.sql import Q
from patra.kernel.canonical import key16
from patra.kernel.db import Row, Tx
from patra.kernel.errors import Invalid
from patra.kernel.machine import Move, journal
from patra.kernel.outbox import Message, append

REISSUED = b"reissued"
"""The payload of a message about records that were issued again."""
RETOLD = b"retold"
"""The payload of a message that sends the state of a superseded record to the archive again."""
MAX_DECISIONS = 1000


class ReissuedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was issued again."""

    recordKey: str  # noqa: N815  names of the specification
    conflictWithRecordKey: str  # noqa: N815
    recordType: str  # noqa: N815
    archiveContractVersion: str  # noqa: N815
    recordStatus: str  # noqa: N815


def reissue(tx: Tx, key: str, now: int, *, archived: bool) -> list[ReissuedRecord]:
    """Issue every record again that carries a key and that the archive did not take; `archived`: the store is it."""
    found = _lock_decisions(tx, [one.archived.id for one in find(tx, key, limit=MAX_DECISIONS).found])
    chosen = {one.id: _refused_types(one, key) for one in found}
    waiting = {number: kinds for number, kinds in chosen.items() if kinds}
    retold = _untold_decisions(tx, found, key)
    if not waiting and not retold:
        raise Invalid(
            "reissue_nothing",
            f"{key!r} leads to no record that the archive did not take, or it was issued again and is on its way",
            advice="`patra attribution find KEY` shows the records; those that were given up or are in conflict count",
        )
    decisions = {one.id: one for one in found}
    issued: list[tuple[Archived, Record, int]] = []
    for number, kinds in waiting.items():
        one = decisions[number]
        for kind in kinds:
            issue = max((again.issue for again in one.reissues if again.type is kind), default=1) + 1
            issued.append((one, reissue_record(one.decision, Reissue(kind, issue, Status.NEW, now)), issue))
    rows: list[Row] = [(one.id, record.type.value, issue, record.key, "new") for one, record, issue in issued]
    tx.execute(Q["add_reissues"], {"now": now}, rows=rows)
    if archived:
        _take(tx, issued, now)
    else:
        messages = [Message(group=group_of(decisions[n].decision), key=str(n), payload=REISSUED) for n in waiting]
        append(tx, CHANNEL, messages, now)
    _tell_again(tx, retold, now, archived=archived)
    again = {one.id: one for one in decisions_by_id(tx, waiting)}
    made = [record for number in waiting for record in again[number].reissued_records if record.at == now]
    return [_view(record) for record in (*made, *(record for one in retold for record in _superseded_records(one)))]


def _lock_decisions(tx: Tx, numbers: Collection[int]) -> list[Archived]:
    """Decisions that retention does not delete before this transaction ends: it takes the same lock and looks again."""
    items: list[Row] = [(item,) for item in sorted({number >> ITEM_BITS for number in numbers})]
    tx.fetch(Q["packs_to_rewrite"], rows=items)
    return decisions_by_id(tx, numbers)


def _untold_decisions(tx: Tx, found: Sequence[Archived], key: str) -> list[Archived]:
    """Decisions whose record was superseded without the archive knowing, and is not on its way as such."""
    lacking = [
        one
        for one in found
        if one.is_superseded_untold
        and all(record.type is RecordType.ATTRIBUTION for record in one.records if record.key == key)
    ]
    underway = untold_decisions(tx, lacking)
    return [one for one in lacking if one.id not in underway]


def _superseded_records(one: Archived) -> list[Record]:
    return [record for record in one.own_records if record.status is Status.SUPERSEDED]


def _tell_again(tx: Tx, retold: Sequence[Archived], now: int, *, archived: bool) -> None:
    """A superseded record keeps its key: the archive gets it as committed and then as superseded (§3.8.27)."""
    if archived:
        note_superseded_told(tx, [one.id for one in retold], now)
        return
    messages = [Message(group=group_of(one.decision), key=str(one.id), payload=RETOLD) for one in retold]
    append(tx, CHANNEL, messages, now)


def note_superseded_told(tx: Tx, numbers: Collection[int], now: int) -> None:
    """The archive knows which records were superseded; a decision that lacks nothing more is no longer outstanding."""
    tx.execute(Q["superseding_told"], {"now": now}, rows=[(number,) for number in sorted(numbers)])
    complete = [one for one in decisions_by_id(tx, numbers) if not one.not_taken]
    arrived: list[Row] = [(key16(group_of(one.decision)), str(one.id)) for one in complete]
    tx.execute(Q["forget_given_up"], {"channel": CHANNEL}, rows=sorted(arrived))


def _refused_types(one: Archived, key: str) -> list[RecordType]:
    """The types of records whose last issue the archive did not take; a record's own key means that record alone."""
    if one.settled_code is None:
        return []
    named = {record.type for record in one.records if record.key == key}
    return [kind for kind in one.not_taken if not named or kind in named]


def _view(record: Record) -> ReissuedRecord:
    return ReissuedRecord(
        recordKey=record.key,
        conflictWithRecordKey=record.body.get("conflictWithRecordKey", ""),
        recordType=record.type.value,
        archiveContractVersion=record.body["versionAnchors"]["archiveContractVersion"],
        recordStatus=record.status.value,
    )


def _take(tx: Tx, issued: Sequence[tuple[Archived, Record, int]], now: int) -> None:
    """The built-in archive takes them at once, unless another payload has their keys."""
    claims: list[Row] = [(half(record.key), record.digest, one.id) for one, record, _ in issued]
    held = {bytes(key): digest for key, digest in tx.fetch(Q["claim_record_keys"], rows=sorted(claims))}
    moves: dict[int, dict[RecordType, tuple[RecordTransition, str | None]]] = {}
    for one, record, _ in issued:
        own = held[half(record.key)] == record.digest
        move = (RecordTransition.WRITTEN, None) if own else (RecordTransition.CONFLICT, Reason.RECORDKEY_MISMATCH.value)
        moves.setdefault(one.id, {})[record.type] = move
    move_reissues(tx, moves, now)


def move_reissues(
    tx: Tx, moves: Mapping[int, Mapping[RecordType, tuple[RecordTransition, str | None]]], now: int
) -> None:
    """Move records that were issued again and are `new`, by decision and type; a fact whose record arrived counts."""
    rows: list[Row] = []
    counted: list[Row] = []
    regained: list[Row] = []
    journalled: list[Move] = []
    for one in decisions_by_id(tx, moves):
        for issued in one.reissues:
            if issued.status is not Status.NEW or issued.type not in moves[one.id]:
                continue
            on, code = moves[one.id][issued.type]
            key = reissue_record(one.decision, issued).key
            rows.append((one.id, issued.type.value, issued.issue, RECORD.target(Status.NEW, on).value))
            journalled.append(RECORD.move(key, Status.NEW, on, reason=code or one.decision.reason, at=now))
            if issued.type is RecordType.BILLABLE and on is RecordTransition.WRITTEN:
                counted.append((one.id,))
                if one.decision.billable == BILLABLE_IMPRESSION:
                    regained.append((one.id,))
    tx.execute(Q["move_reissues"], rows=rows)
    tx.execute(Q["settle_reissued"], rows=counted)
    tx.execute(Q["regain_impressions"], rows=regained)
    journal(tx, journalled)
    complete = [one for one in decisions_by_id(tx, moves) if not one.not_taken]
    arrived: list[Row] = [(key16(group_of(one.decision)), str(one.id)) for one in complete]
    tx.execute(Q["forget_given_up"], {"channel": CHANNEL}, rows=sorted(arrived))
