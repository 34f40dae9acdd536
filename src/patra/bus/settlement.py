"""What became of events in a group's hands goes in; lines, letters and freezes are written along (C§6, B5)."""

from collections.abc import Collection, Sequence

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Trouble
from patra.bus.deadletter import letter_id
from patra.bus.delivery import NEVER, Comeback, D, GiveUp, Waiting, after_failure
from patra.bus.envelope import decode_trusted
from patra.bus.freeze import after_backlog
from patra.bus.reasons import R
from patra.bus.store import deliveries, letters
from patra.kernel.db import Tx
from patra.kernel.telemetry import counter, get_logger

log = get_logger()

CONSUMED = counter("patra_bus_consumed_total", "Events by group and what became of them.", "group", "result")
FROZEN = counter("patra_bus_freezes_total", "Times that publishing of a type froze or thawed.", "event_type", "became")


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """An event that failed, how often by now, and why; with `final` it is given up whatever its retries."""

    waiting: Waiting
    failures: int
    trouble: Trouble
    final: R | None = None


LOST = Trouble(code=R.HANDLER_LOST, detail="the process that tried the event did not come back from it", poison=False)


def lost(waiting: Waiting) -> Failed:
    """An event whose worker was lost each time it was tried."""
    return Failed(waiting=waiting, failures=waiting.attempts + waiting.lost, trouble=LOST, final=R.HANDLER_LOST)


def lost_ahead(tx: Tx, bus: Bus, group_id: int, waiting: Waiting, now: int, jitter: float) -> Waiting:
    """Count a loss before it can happen; whoever survives the trial takes it back with the outcome."""
    delay = bus.catalogue.types[waiting.event_type].retry.backoff.delay(waiting.lost + 1, jitter)
    deliveries.lose_ahead(tx, group_id, waiting.seq, now + delay, now, code=LOST.code, detail=LOST.detail)
    return msgspec.structs.replace(waiting, lost=waiting.lost + 1)


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """How many came back later, how many became dead letters; `until` says when the former are due, by seq."""

    later: int
    dead: int
    until: dict[int, int]


def succeeded(tx: Tx, bus: Bus, group: str, group_id: int, handled: Sequence[Waiting], now: int) -> None:
    """Take handled events out of the line; what waited behind one that had failed before looks again."""
    deliveries.done(tx, group_id, [w.seq for w in handled])
    behind = {w.order_key for w in handled if w.order_key is not None and (w.attempts or w.replay or w.lost)}
    deliveries.wake_followers(tx, group_id, behind, now)
    replays = [w for w in handled if w.replay]
    if replays:
        letters.replayed(tx, [letter_id(group, w.event_id) for w in replays], now)
        backlog_changed(tx, bus, {w.event_type for w in replays}, now)


def failed(
    tx: Tx, bus: Bus, group: str, group_id: int, failures: Sequence[Failed], now: int, jitters: Sequence[float]
) -> Settled:
    """Each failed event comes back later, or becomes a dead letter."""
    rows: list[deliveries.Failure] = []
    burials: list[letters.Burial] = []
    gone: list[Waiting] = []
    buried: list[Waiting] = []
    until: dict[int, int] = {}
    for one, jitter in zip(failures, jitters, strict=True):
        waiting = one.waiting
        kind = bus.catalogue.types[waiting.event_type]
        ordered = kind.ordering.on_dead_letter if kind.ordering else None
        frozen = one.trouble.code == R.TYPE_FROZEN.value and one.final is None
        verdict = after_failure(
            kind.retry,
            one.failures,
            now,
            jitter,
            poison=one.trouble.poison,
            ordered=ordered,
            final=one.final,
            frozen=frozen,
        )
        first = now if waiting.first_failed_at is None else waiting.first_failed_at
        match verdict:
            case Comeback(due_at):
                state = D.WAITING
                until[waiting.seq] = due_at
            case GiveUp(reason, keep):
                state, due_at = D.DEAD, NEVER
                buried.append(waiting)
                burials.append(_burial(group, group_id, one, reason, first, now))
                if not keep:
                    gone.append(waiting)
                    continue
        rows.append(
            deliveries.Failure(
                seq=waiting.seq,
                state=state,
                due_at=due_at,
                attempts=waiting.attempts if frozen else one.failures,
                first_failed_at=first,
                last_failed_at=now,
                error_code=one.trouble.code,
                error_detail=one.trouble.detail,
            )
        )
    deliveries.failed(tx, group_id, rows)
    if burials:
        deliveries.done(tx, group_id, [w.seq for w in gone])
        deliveries.wake_followers(tx, group_id, {w.order_key for w in gone if w.order_key is not None}, now)
        deliveries.bury(tx, group, buried, now)
        letters.write(tx, burials)
        backlog_changed(tx, bus, {w.event_type for w in buried}, now)
    return Settled(later=len(until), dead=len(buried), until=until)


def backlog_changed(tx: Tx, bus: Bus, types: Collection[str], now: int) -> None:
    """Freeze or thaw types whose open dead letters became more or fewer."""
    for event_type in sorted(types):
        threshold = bus.catalogue.types[event_type].dead_letter_threshold
        current = letters.freeze_of(tx, event_type)
        after = after_backlog(current, letters.backlog(tx, event_type), threshold, now)
        if after != current:
            letters.set_freeze(tx, after)
        if after.state is not current.state:
            FROZEN.labels(event_type, after.state.value).inc()
            log.warning("bus_type_freeze_changed", event_type=event_type, state=after.state, reason=after.reason)


def _burial(group: str, group_id: int, one: Failed, reason: str, first: int, now: int) -> letters.Burial:
    waiting = one.waiting
    body = waiting.body or ""
    envelope = decode_trusted(body)
    return letters.Burial(
        letter_id=letter_id(group, waiting.event_id),
        group_id=group_id,
        group_name=group,
        seq=waiting.seq,
        order_key=waiting.order_key,
        event_id=waiting.event_id,
        event_type=waiting.event_type,
        event_version=str(waiting.version),
        producer=envelope.producer,
        tenant_id=envelope.tenant_id,
        trace_id=envelope.trace_id,
        correlation_id=envelope.correlation_id,
        error_code=one.trouble.code,
        error_detail=one.trouble.detail,
        reason=reason,
        attempts=one.failures,
        first_failed_at=first,
        last_failed_at=now,
        envelope=body,
    )
