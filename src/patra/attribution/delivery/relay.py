"""Decisions are handed over in their transaction; their records reach an archive outside the store, in order (§3.8.29).

One message of the outbox stands for one decision, in the group of its closure and trace. In every call the audits go
first, then the billable facts of those whose audit is written, then the attribution facts; a group in which something
has to be tried again waits with the rest. A record that was superseded has a second message, in the group of its first,
so it is sent as such only after it was sent as committed (§3.8.27). What the archive cannot take now is tried again
under the same keys after 1 s, 5 s, 30 s, 120 s and so on. Fifteen minutes after the first failure in a group, all of it
that is pending becomes `conflicted`, and the rows say so (F26): what the archive has not confirmed by then counts as
missing. No click is written whose impression was given up, whichever group it is in.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION, Status
from patra.attribution.decision.decide import Superseded
from patra.attribution.decision.decisions import Decision
from patra.attribution.decision.output_records import (
    RANK,
    RECORD,
    Record,
    RecordTransition,
    RecordType,
    Statuses,
    group_of,
    in_write_order,
    record_keys,
    records,
    reissue_record,
    seal_record,
)
from patra.attribution.delivery.port import (
    Archive,
    ArchiveForbiddenError,
    EnqueueForArchive,
    Outcome,
    Rejected,
    Written,
)
from patra.attribution.delivery.port import Retry as ArchiveRetry
from patra.attribution.delivery.record_status import EXHAUSTED, DeliveryResult, Moved, move_of, write_moves
from patra.attribution.delivery.reissue import REISSUED, RETOLD, move_reissues, note_superseded_told
from patra.attribution.storage.read import CHANNEL, Archived, decisions_by_id
from patra.attribution.storage.sql import Q
from patra.kernel.clock import MINUTE, SECOND, Clock
from patra.kernel.db import Database, Row, Tx
from patra.kernel.errors import ConfigInvalid
from patra.kernel.outbox import (
    Counts,
    Delivered,
    Message,
    Pending,
    Policy,
    Relay,
    Retry,
    Settled,
    State,
    Untried,
    append,
)
from patra.kernel.outbox import Outcome as Sent
from patra.kernel.retry import DelayTable
from patra.kernel.telemetry import counter, get_logger

if TYPE_CHECKING:
    from patra.kernel.safety.networks import Network

POLICY = Policy(
    delays=DelayTable((SECOND, 5 * SECOND, 30 * SECOND, 120 * SECOND), cycle=True),
    window=15 * MINUTE,
    group_window=True,
    hold=150 * SECOND,
    groups=128,
)
"""A turn is over before its hold is: it makes four calls of an archive at most, and none takes longer than 35 s."""
MAX_TURN_DECISIONS = 500
"""Decisions of one turn, so records of one call of the archive; the rest of what is held waits for the next turn."""
FAILURES_BEFORE_ALONE = 4
"""Failures after which a decision no longer goes together with those of its group that follow it."""
SUPERSEDED = b"superseded"
"""The payload of a message about a record that was superseded; that of a decision is empty."""
AFTER_ALL = len(RANK)
"""The turn of such records."""


def open_archive(where: str, key: str = "", networks: "Sequence[Network]" = ()) -> Archive | None:
    """`store` (None: the store itself is the archive), `parquet:FOLDER`, or `http://…`, `https://…` with its key."""
    kind, _, place = where.partition(":")
    match kind:
        case "store":
            return None
        case "parquet":
            from patra.attribution.delivery.parquet_archive import ParquetArchive  # noqa: PLC0415  (an extra: duckdb)

            return ParquetArchive(place)
        case "http" | "https":
            from patra.attribution.delivery.http_archive import HttpArchive  # noqa: PLC0415  (urllib3 costs a moment to import)

            return HttpArchive(where, key=key, networks=networks)
        case _:
            raise ConfigInvalid(
                "config_archive_unknown",
                f"{where!r} is not an archive",
                place="attribution.archive",
                advice="store, parquet:FOLDER, an http(s) URL, or bus",
            )


log = get_logger()

RECORDS = counter(
    "patra_attribution_records_total",
    "Output records by what an archive outside the store did with them: written, again, refused, given_up.",
    "outcome",
)


def handing(clock: Clock) -> EnqueueForArchive:
    """Hand new decisions to the outbox, and behind them the records that late impressions superseded."""

    def hand(tx: Tx, decisions: Sequence[tuple[int, Decision]], superseded: Sequence[Superseded]) -> None:
        messages = [Message(group=group_of(decision), key=str(number), payload=b"") for number, decision in decisions]
        messages += [
            Message(group=group_of(gone.decision), key=str(gone.id), payload=SUPERSEDED)
            for gone in decisions_by_id(tx, [record.decision_id for record in superseded])
            if gone.statuses.attribution is Status.SUPERSEDED
        ]
        append(tx, CHANNEL, messages, clock.now())

    return hand


class Delivery:
    """Takes what waits in the outbox to an archive; `run_once()` is one turn.

    While the archive may not be called as it is configured, nothing is taken and every turn fails, so that `/ready`
    and the log say why: a configuration is fixed by people, and costs no record its fifteen minutes.
    """

    def __init__(self, db: Database, archive: Archive, clock: Clock) -> None:
        self._db = db
        self._archive = archive
        self._fates: dict[int, list[DeliveryResult]] = {}
        self._failing = False
        self._forbidden: ArchiveForbiddenError | None = None
        self.relay = Relay(db, CHANNEL, self._deliver, POLICY, clock, self._settle_messages)

    def run_once(self) -> Counts:
        if self._forbidden is not None:
            self._forbidden.check()
            self._forbidden = None
        try:
            return self.relay.run_once()
        except ArchiveForbiddenError as error:
            self._forbidden = error
            raise

    def _deliver(self, messages: Sequence[Pending]) -> list[Sent]:
        at_hand = _at_hand(messages)
        self._fates = self._attempt(at_hand)
        self._tell([fate.outcome for fates in self._fates.values() for fate in fates])
        stopped: dict[bytes, int] = {}
        sent: list[Sent] = []
        tried = {message.seq for message in at_hand}
        for message in messages:
            if message.seq not in tried or message.group_key in stopped:
                sent.append(Untried())
                continue
            fates = self._fates.get(message.seq, [])
            failed = [fate.outcome for fate in fates if not isinstance(fate.outcome, Written | Rejected)]
            if not failed:
                sent.append(Delivered())
                continue
            stopped[message.group_key] = message.seq
            codes = [outcome.code for outcome in failed if isinstance(outcome, ArchiveRetry)]
            sent.append(Retry((codes or [Reason.ARCHIVE_UNAVAILABLE])[0].value))
        return sent

    def _tell(self, outcomes: Sequence[Outcome | None]) -> None:
        """Count, and say once that the archive has begun to fail, and once that it has stopped."""
        written = sum(isinstance(outcome, Written) for outcome in outcomes)
        refused = [outcome.code for outcome in outcomes if isinstance(outcome, Rejected)]
        failed = [outcome.code.value for outcome in outcomes if isinstance(outcome, ArchiveRetry)]
        for name, count in (("written", written), ("refused", len(refused)), ("again", len(failed))):
            RECORDS.labels(name).inc(count)
        if refused:
            log.error("attribution_archive_refused", codes=sorted(set(refused)), records=len(refused))
        if failed and not self._failing:
            log.warning("attribution_archive_failing", codes=sorted(set(failed)), records=len(failed))
        elif written and not failed and self._failing:
            log.info("attribution_archive_recovered")
        self._failing = bool(failed) or (self._failing and not written)

    def _attempt(self, messages: Sequence[Pending]) -> dict[int, list[DeliveryResult]]:
        """Write the records of all messages, type by type; a fact only after the audit of its decision.

        Nothing of a group is written once something of it has to be tried again: it comes in order or not yet.
        """
        owners = self._records(messages)
        outcomes = self._unbilled_clicks(owners.values())
        waiting = {r.group for found in owners.values() for r in found if isinstance(outcomes.get(id(r)), ArchiveRetry)}
        for turn in range(AFTER_ALL + 1):
            ready = [
                record
                for found in owners.values()
                for record in found
                if _turn(record) == turn
                and id(record) not in outcomes
                and (record is found[0] or isinstance(outcomes.get(id(found[0])), Written))
            ]
            part = [record for record in in_write_order(ready) if record.group not in waiting]
            for record, outcome in zip(part, self._archive.write(part) if part else (), strict=True):
                outcomes[id(record)] = outcome
                if isinstance(outcome, ArchiveRetry):
                    waiting.add(record.group)
        return {
            seq: [DeliveryResult(one, _outcome(one, found[0], outcomes)) for one in found]
            for seq, found in owners.items()
        }

    def _records(self, messages: Sequence[Pending]) -> dict[int, list[Record]]:
        """The records of each message, as they will stand once written; none for a decision that was purged."""
        wanted = [int(message.key) for message in messages]
        found = {one.id: one for one in self._db.read(lambda tx: decisions_by_id(tx, wanted))}
        return {
            message.seq: _RECORDS_OF.get(message.payload, _own)(archived)
            for message in messages
            if (archived := found.get(int(message.key))) is not None
        }

    def _unbilled_clicks(self, owners: Iterable[Sequence[Record]]) -> dict[int, Outcome]:
        """Billable clicks whose impression was lost are not written, now or ever; where it was issued again, not yet.

        By the record itself: two may have one key, and fare differently.
        """
        bills = [record for found in owners for record in found if record.type is RecordType.BILLABLE]
        clicks = {
            id(record): (_closure(record), record) for record in bills if _billing_key_of(record) == BILLABLE_CLICK
        }
        if not clicks:
            return {}
        closures: list[Row] = [(closure,) for closure in sorted({closure for closure, _ in clicks.values()})]
        lost, underway = (
            {bytes(closure) for (closure,) in self._db.read(lambda tx, name=name: tx.fetch(Q[name], rows=closures))}
            for name in ("lost_impressions", "impressions_underway")
        )
        together = {
            (_closure(record), record.group) for record in bills if _billing_key_of(record) == BILLABLE_IMPRESSION
        }
        later = ArchiveRetry(Reason.ARCHIVE_UNAVAILABLE)
        return {
            number: later if closure in underway else Rejected(EXHAUSTED)
            for number, (closure, record) in clicks.items()
            if closure in lost and not (closure in underway and (closure, record.group) in together)
        }

    def _settle_messages(self, tx: Tx, settled: Sequence[Settled], now: int) -> None:
        """Move the records of messages that are over, in the transaction that takes the messages out."""
        told = [(one, self._why_untold(one)) for one in settled if one.message.payload in {SUPERSEDED, RETOLD}]
        untold: list[Row] = [(int(one.message.key), now, code) for one, code in told if code is not None]
        tx.execute(Q["superseding_untold"], {"exhausted": EXHAUSTED}, rows=sorted(untold))
        retold = [int(one.message.key) for one, code in told if code is None and one.message.payload == RETOLD]
        note_superseded_told(tx, retold, now)
        again = [one for one in settled if one.message.payload == REISSUED]
        move_reissues(tx, {int(one.message.key): self._moves_of(one) for one in again}, now)
        over = {int(one.message.key): one for one in settled if one.message.payload not in _RECORDS_OF}
        moved: list[tuple[Archived, dict[RecordType, Moved]]] = []
        for archived in decisions_by_id(tx, over):
            one = over[archived.id]
            own = {record.key for record in archived.own_records}
            fates = {f.record.type: f for f in self._of(one) if f.record.key in own}
            given_up = one.state is State.GIVEN_UP
            if given_up:  # also what was not tried in this turn ends with its group
                fates |= {r.type: DeliveryResult(r, None) for r in archived.own_records if r.type not in fates}
            moved.append((archived, {kind: move_of(fate, given_up=given_up) for kind, fate in fates.items()}))
        write_moves(tx, moved, now)
        given_up = [one for one in settled if one.state is State.GIVEN_UP]
        numbers = {int(one.message.key) for one in given_up if one.message.payload not in _RECORDS_OF}
        self._tell_given_up(given_up, [archived for archived, _ in moved if archived.id in numbers])

    def _tell_given_up(self, given_up: Sequence[Settled], decisions: Sequence[Archived]) -> None:
        """These are not sent again, and settlement will never count them: an operator has to know."""
        told = sum(isinstance(f.outcome, Written | Rejected) for one in given_up for f in self._of(one))
        lost = sum(len(record_keys(one.decision)) for one in decisions) - told
        RECORDS.labels("given_up").inc(lost)
        if given_up:
            log.error("attribution_archive_gave_up", decisions=len(given_up), records=lost, code=EXHAUSTED)

    def _moves_of(self, one: Settled) -> dict[RecordType, Moved]:
        """The edges that records which were issued again take; what was not tried ends with its group."""
        given_up = one.state is State.GIVEN_UP
        missing = Moved(RecordTransition.CONFLICT, EXHAUSTED)
        tried = {fate.record.type: move_of(fate, given_up=given_up) for fate in self._of(one)}
        return dict.fromkeys(RecordType, missing) | tried if given_up else tried

    def _of(self, one: Settled) -> Sequence[DeliveryResult]:
        return self._fates.get(one.message.seq, ())

    def _why_untold(self, one: Settled) -> str | None:
        """Why the archive does not know that a record was superseded, which it stays; None where it does."""
        if one.state is State.GIVEN_UP:
            return EXHAUSTED
        outcomes = [fate.outcome for fate in self._of(one)]
        return next((outcome.code for outcome in outcomes if isinstance(outcome, Rejected)), None)


def _at_hand(messages: Sequence[Pending]) -> list[Pending]:
    """What is tried in this turn: of a group whose head has failed four times, the head alone.

    Else the audit of a later decision, which goes before the facts of all, could cost an earlier one its 15 minutes.
    """
    found: list[Pending] = []
    alone: set[bytes] = set()
    for message in messages:
        if message.group_key not in alone and len(found) < MAX_TURN_DECISIONS:
            found.append(message)
        if message.attempt >= FAILURES_BEFORE_ALONE:
            alone.add(message.group_key)
    return found


def _planned_statuses(archived: Archived) -> Statuses:
    """The status that the archive gets: a record that is still on its way is committed by arriving."""
    audit, billable, attribution = archived.statuses
    committed = RECORD.target(Status.NEW, RecordTransition.WRITTEN)
    born = Status(archived.decision.status)
    if attribution is not None:
        attribution = committed if born is Status.NEW else born
    return Statuses(
        committed if audit is Status.NEW else audit, committed if billable is not None else None, attribution
    )


def _own(archived: Archived) -> list[Record]:
    """The records of a decision, its audit first."""
    return [seal_record(record) for record in records(archived.decision, _planned_statuses(archived))]


def _superseded_records(archived: Archived) -> list[Record]:
    return [record for record in archived.own_records if record.status is Status.SUPERSEDED]


def _reissued_records(archived: Archived) -> list[Record]:
    """Records that were issued again and are on their way, as they will stand once written."""
    committed = RECORD.target(Status.NEW, RecordTransition.WRITTEN)
    waiting = [issued for issued in archived.reissues if issued.status is Status.NEW]
    return [seal_record(reissue_record(archived.decision, issued._replace(status=committed))) for issued in waiting]


def _retold(archived: Archived) -> list[Record]:
    """A superseded record as it was committed, and then as it stands: the archive may know neither (§3.8.27)."""
    own = [
        record
        for record in records(archived.decision, _planned_statuses(archived))
        if record.type is RecordType.ATTRIBUTION
    ]
    return [*map(seal_record, own), *_superseded_records(archived)]


_RECORDS_OF = {SUPERSEDED: _superseded_records, REISSUED: _reissued_records, RETOLD: _retold}
"""Records by the payload of their message; that of a decision's own is empty."""


def _closure(record: Record) -> bytes:
    return half(record.body["relationKeys"]["closureKeyOrNA"])


def _billing_key_of(record: Record) -> str:
    return str(record.payload["billableType"])


def _turn(record: Record) -> int:
    return AFTER_ALL if record.status is Status.SUPERSEDED else RANK[record.type]


def _outcome(record: Record, first: Record, outcomes: Mapping[int, Outcome]) -> Outcome | None:
    """What became of a record; one that was not sent because the first of its decision was refused, is refused too."""
    refused = outcomes.get(id(first))
    return outcomes.get(id(record), refused if isinstance(refused, Rejected) else None)
