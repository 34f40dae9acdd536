"""The status of a record after the archive has answered or was given up (§3.8.27, F26), and the rows that say so."""

from collections.abc import Sequence
from typing import NamedTuple

from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import BILLABLE_IMPRESSION, Status
from patra.attribution.decision.output_records import RECORD, Record, RecordTransition, RecordType
from patra.attribution.delivery.port import Outcome, Rejected, Written
from patra.attribution.storage.read import Archived
from patra.attribution.storage.sql import Q
from patra.kernel.db import Row, Tx
from patra.kernel.machine import Move, journal

EXHAUSTED = Reason.COMPENSATION_EXHAUSTED.value


class DeliveryResult(NamedTuple):
    """What became of one record in the last attempt: where it stands now, and why if not as planned."""

    record: Record
    outcome: Outcome | None


class Moved(NamedTuple):
    on: RecordTransition
    code: str | None


def move_of(fate: DeliveryResult, *, given_up: bool) -> Moved:
    """Which edge a record takes, and the code where it is not plainly written."""
    match fate.outcome:
        case Written():
            if fate.record.status is Status.REJECTED:  # it lacked a version anchor, and the archive knows it as such
                return Moved(RecordTransition.REFUSED, Reason.MISSING_VERSION_ANCHOR.value)
            return Moved(RecordTransition.WRITTEN, None)
        case Rejected(code) if code in {Reason.RECORDKEY_MISMATCH.value, EXHAUSTED}:
            return Moved(RecordTransition.CONFLICT, code)
        case Rejected(code):
            return Moved(RecordTransition.REFUSED, code)
        case _:
            code = Reason.COMPENSATION_EXHAUSTED if given_up else Reason.ARCHIVE_UNAVAILABLE
            return Moved(RecordTransition.CONFLICT, code.value)


def write_moves(tx: Tx, moved: Sequence[tuple[Archived, dict[RecordType, Moved]]], now: int) -> None:
    """Move what still is `new`; a record that was born as a duplicate or a conflict stays one."""
    decisions: list[Row] = []
    billables: list[Row] = []
    lost: list[Row] = []
    unusual: list[Move] = []
    for archived, moves in moved:
        targets = {kind: RECORD.target(Status.NEW, move.on).value for kind, move in moves.items()}
        # that something is missing is said first: the aggregate state of the closure goes by it
        codes = sorted((move.code for move in moves.values() if move.code), key=EXHAUSTED.__ne__)
        # one that was born as a duplicate or a conflict stays it
        attribution = targets.get(RecordType.ATTRIBUTION) if archived.decision.status == Status.NEW.value else None
        decisions.append((archived.id, targets.get(RecordType.AUDIT), attribution, now, codes[0] if codes else None))
        if RecordType.BILLABLE in targets:
            billables.append((archived.id, targets[RecordType.BILLABLE]))
            subject = archived.decision.subject
            if (
                archived.decision.billable == BILLABLE_IMPRESSION
                and moves[RecordType.BILLABLE].code
                and subject.closure
            ):
                lost.append((half(subject.closure), archived.id))
        unusual += [
            RECORD.move(record.key, Status.NEW, move.on, reason=move.code, at=now)
            for record in archived.own_records
            if record.status is Status.NEW and (move := moves.get(record.type)) and move.code
        ]
    tx.execute(Q["settle_decisions"], rows=sorted(decisions))
    tx.execute(Q["settle_billables"], rows=sorted(billables))
    tx.execute(Q["lose_impressions"], rows=sorted(lost))
    journal(tx, unusual)
