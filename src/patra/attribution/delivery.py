"""Decisions are handed over in their transaction; their records reach an archive outside the store, in order (§3.8.29).

One message of the outbox stands for one decision, in the group of its closure and trace. In every call the audits go
first, then the billable facts of those whose audit is written, then the attribution facts; a group in which something
has to be tried again waits with the rest. A record that was superseded has a second message, in the group of its first,
so it is told as such only after it was told as committed (§3.8.27). What the archive cannot take now is tried again
under the same keys after 1 s, 5 s, 30 s, 120 s and so on; after 15 minutes what is still missing becomes `conflicted`,
and the row says so.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from patra.attribution.archive import Again, Archive, Never, Outcome, Written
from patra.attribution.closure import Status
from patra.attribution.commit import Hand
from patra.attribution.decide import Superseded
from patra.attribution.facts import Decision
from patra.attribution.reading import CHANNEL, Archived, decisions_by_id
from patra.attribution.reasons import R
from patra.attribution.records import (
    RANK,
    RECORD,
    On,
    Record,
    RecordType,
    Statuses,
    group_of,
    in_write_order,
    records,
    sealed,
)
from patra.attribution.statements import Q
from patra.kernel.clock import MINUTE, SECOND, Clock
from patra.kernel.db import Database, Row, Tx
from patra.kernel.errors import ConfigInvalid
from patra.kernel.machine import Move, journal
from patra.kernel.outbox import Delivered, Message, Pending, Policy, Relay, Retry, Settled, State, Untried, append
from patra.kernel.outbox import Outcome as Sent
from patra.kernel.retry import DelayTable
from patra.kernel.telemetry import counter, get_logger

POLICY = Policy(
    delays=DelayTable((SECOND, 5 * SECOND, 30 * SECOND, 120 * SECOND), cycle=True),
    window=15 * MINUTE,
    hold=150 * SECOND,
    groups=128,
)
"""A turn is over before its hold is: it makes four calls of an archive at most, and none takes longer than 35 s."""
MOST = 500
"""Decisions of one turn, so records of one call of the archive; the rest of what is held waits for the next turn."""
ALONE = 4
"""Failures after which a decision no longer goes together with those of its group that follow it."""
SUPERSEDED = b"superseded"
"""The payload of a message about a record that was superseded; that of a decision is empty."""
AFTER_ALL = len(RANK)
"""The turn of such records."""


def open_archive(where: str, key: str = "") -> Archive | None:
    """`store` (None: the store itself is the archive), `parquet:FOLDER`, or `http://…`, `https://…` with its key."""
    kind, _, place = where.partition(":")
    match kind:
        case "store":
            return None
        case "parquet":
            from patra.attribution.parquet import ParquetArchive  # noqa: PLC0415  (an extra: duckdb)

            return ParquetArchive(place)
        case "http" | "https":
            from patra.attribution.http import HttpArchive  # noqa: PLC0415  (urllib3 costs a moment to import)

            return HttpArchive(where, key=key)
        case _:
            raise ConfigInvalid(
                "config_archive_unknown",
                f"{where!r} is no archive",
                place="attribution.archive",
                advice="store, parquet:FOLDER, an http(s) URL, or bus",
            )


log = get_logger()

RECORDS = counter(
    "patra_attribution_records_total",
    "Output records by what an archive outside the store did with them: written, again, refused, given_up.",
    "outcome",
)


class Fate(NamedTuple):
    """What became of one record in the last attempt: where it stands now, and why if not as planned."""

    record: Record
    outcome: Outcome | None


def handing(clock: Clock) -> Hand:
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
    """Takes what waits in the outbox to an archive; `relay.run_once()` is one turn."""

    def __init__(self, db: Database, archive: Archive, clock: Clock) -> None:
        self._db = db
        self._archive = archive
        self._fates: dict[int, list[Fate]] = {}
        self._failing = False
        self.relay = Relay(db, CHANNEL, self._deliver, POLICY, clock, self._settled)

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
            failed = [fate.outcome for fate in fates if not isinstance(fate.outcome, Written | Never)]
            if not failed:
                sent.append(Delivered())
                continue
            stopped[message.group_key] = message.seq
            codes = [outcome.code for outcome in failed if isinstance(outcome, Again)]
            sent.append(Retry((codes or [R.ARCHIVE_UNAVAILABLE])[0].value))
        return sent

    def _tell(self, outcomes: Sequence[Outcome | None]) -> None:
        """Count, and say once that the archive has begun to fail, and once that it has stopped."""
        written = sum(isinstance(outcome, Written) for outcome in outcomes)
        refused = [outcome.code for outcome in outcomes if isinstance(outcome, Never)]
        failed = [outcome.code.value for outcome in outcomes if isinstance(outcome, Again)]
        for name, count in (("written", written), ("refused", len(refused)), ("again", len(failed))):
            RECORDS.labels(name).inc(count)
        if refused:
            log.error("attribution_archive_refused", codes=sorted(set(refused)), records=len(refused))
        if failed and not self._failing:
            log.warning("attribution_archive_failing", codes=sorted(set(failed)), records=len(failed))
        elif written and not failed and self._failing:
            log.info("attribution_archive_well_again")
        self._failing = bool(failed) or (self._failing and not written)

    def _attempt(self, messages: Sequence[Pending]) -> dict[int, list[Fate]]:
        """Write the records of all messages, type by type; a fact only after the audit of its decision.

        Nothing of a group is written once something of it has to be tried again: it comes in order or not yet.
        """
        owners = self._records(messages)
        outcomes: dict[int, Outcome] = {}  # by the record itself: two may have one key, and fare differently
        waiting: set[str] = set()
        for turn in range(AFTER_ALL + 1):
            ready = [
                record
                for found in owners.values()
                for record in found
                if _turn(record) == turn and (record is found[0] or isinstance(outcomes.get(id(found[0])), Written))
            ]
            part = [record for record in in_write_order(ready) if record.group not in waiting]
            for record, outcome in zip(part, self._archive.write(part) if part else (), strict=True):
                outcomes[id(record)] = outcome
                if isinstance(outcome, Again):
                    waiting.add(record.group)
        return {seq: [Fate(one, _outcome(one, found[0], outcomes)) for one in found] for seq, found in owners.items()}

    def _records(self, messages: Sequence[Pending]) -> dict[int, list[Record]]:
        """The records of each message, as they will stand once written; none for a decision that was purged."""
        wanted = [int(message.key) for message in messages]
        found = {one.id: one for one in self._db.read(lambda tx: decisions_by_id(tx, wanted))}
        return {
            message.seq: _superseded(archived) if message.payload == SUPERSEDED else _own(archived)
            for message in messages
            if (archived := found.get(int(message.key))) is not None
        }

    def _settled(self, tx: Tx, settled: Sequence[Settled], now: int) -> None:
        """Move the records of messages that are over, in the transaction that takes the messages out."""
        told = [(one, self._untold(one)) for one in settled if one.message.payload == SUPERSEDED]
        untold: list[Row] = [(int(one.message.key), now, code) for one, code in told if code is not None]
        tx.execute(Q["superseding_untold"], {"exhausted": _EXHAUSTED}, rows=sorted(untold))
        over = {int(one.message.key): one for one in settled if one.message.payload != SUPERSEDED}
        moved: list[tuple[Archived, dict[RecordType, Moved]]] = []
        for archived in decisions_by_id(tx, over):
            one = over[archived.id]
            own = {record.key for record in archived.records}
            fates = {f.record.type: f for f in self._of(one) if f.record.key in own}
            given_up = one.state is State.GIVEN_UP
            moved.append((archived, {kind: _move(fate, given_up=given_up) for kind, fate in fates.items()}))
        _write_moves(tx, moved, now)
        self._tell_given_up([one for one in settled if one.state is State.GIVEN_UP])

    def _tell_given_up(self, given_up: Sequence[Settled]) -> None:
        """Nobody sends these again, and settlement will never count them: somebody has to know."""
        lost = sum(not isinstance(f.outcome, Written | Never) for one in given_up for f in self._of(one))
        RECORDS.labels("given_up").inc(lost)
        if given_up:
            log.error("attribution_archive_gave_up", decisions=len(given_up), records=lost, code=_EXHAUSTED)

    def _of(self, one: Settled) -> Sequence[Fate]:
        return self._fates.get(one.message.seq, ())

    def _untold(self, one: Settled) -> str | None:
        """Why the archive does not know that a record was superseded, which it stays; None where it does."""
        if one.state is State.GIVEN_UP:
            return _EXHAUSTED
        outcomes = [fate.outcome for fate in self._of(one)]
        return next((outcome.code for outcome in outcomes if isinstance(outcome, Never)), None)


def _at_hand(messages: Sequence[Pending]) -> list[Pending]:
    """What is tried in this turn: of a group whose head has failed four times, the head alone.

    Else the audit of a later decision, which goes before the facts of all, could cost an earlier one its 15 minutes.
    """
    found: list[Pending] = []
    alone: set[bytes] = set()
    for message in messages:
        if message.group_key not in alone and len(found) < MOST:
            found.append(message)
        if message.attempt >= ALONE:
            alone.add(message.group_key)
    return found


_EXHAUSTED = R.COMPENSATION_EXHAUSTED.value


class Moved(NamedTuple):
    on: On
    code: str | None


def _move(fate: Fate, *, given_up: bool) -> Moved:
    """Which edge a record takes, and the code where it is not plainly written."""
    match fate.outcome:
        case Written():
            if fate.record.status is Status.REJECTED:  # it lacked a version anchor, and the archive knows it as such
                return Moved(On.REFUSED, R.MISSING_VERSION_ANCHOR.value)
            return Moved(On.WRITTEN, None)
        case Never(code) if code == R.RECORDKEY_MISMATCH.value:
            return Moved(On.CONFLICT, code)
        case Never(code):
            return Moved(On.REFUSED, code)
        case _:
            code = R.COMPENSATION_EXHAUSTED if given_up else R.ARCHIVE_UNAVAILABLE
            return Moved(On.CONFLICT, code.value)


def _write_moves(tx: Tx, moved: Sequence[tuple[Archived, dict[RecordType, Moved]]], now: int) -> None:
    """Move what still is `new`; a record that was born as a duplicate or a conflict stays one."""
    decisions: list[Row] = []
    billables: list[Row] = []
    unusual: list[Move] = []
    for archived, moves in moved:
        targets = {kind: RECORD.target(Status.NEW, move.on).value for kind, move in moves.items()}
        # that something is missing is said first: the aggregate state of the closure goes by it
        codes = sorted((move.code for move in moves.values() if move.code), key=_EXHAUSTED.__ne__)
        # one that was born as a duplicate or a conflict stays it
        attribution = targets.get(RecordType.ATTRIBUTION) if archived.decision.status == Status.NEW.value else None
        decisions.append((archived.id, targets.get(RecordType.AUDIT), attribution, now, codes[0] if codes else None))
        if RecordType.BILLABLE in targets:
            billables.append((archived.id, targets[RecordType.BILLABLE]))
        unusual += [
            RECORD.move(record.key, Status.NEW, move.on, reason=move.code, at=now)
            for record in archived.records
            if record.status is Status.NEW and (move := moves.get(record.type)) and move.code
        ]
    tx.execute(Q["settle_decisions"], rows=sorted(decisions))
    tx.execute(Q["settle_billables"], rows=sorted(billables))
    journal(tx, unusual)


def _planned(archived: Archived) -> Statuses:
    """What the archive is told: a record that is still on its way is committed by arriving."""
    audit, billable, attribution = archived.statuses
    committed = RECORD.target(Status.NEW, On.WRITTEN)
    born = Status(archived.decision.status)
    if attribution is not None:
        attribution = committed if born is Status.NEW else born
    return Statuses(
        committed if audit is Status.NEW else audit, committed if billable is not None else None, attribution
    )


def _own(archived: Archived) -> list[Record]:
    """The records of a decision, its audit first."""
    return [sealed(record) for record in records(archived.decision, _planned(archived))]


def _superseded(archived: Archived) -> list[Record]:
    return [record for record in archived.records if record.status is Status.SUPERSEDED]


def _turn(record: Record) -> int:
    return AFTER_ALL if record.status is Status.SUPERSEDED else RANK[record.type]


def _outcome(record: Record, first: Record, outcomes: Mapping[int, Outcome]) -> Outcome | None:
    """What became of a record; one that was not sent because the first of its decision was refused, is refused too."""
    refused = outcomes.get(id(first))
    return outcomes.get(id(record), refused if isinstance(refused, Never) else None)
