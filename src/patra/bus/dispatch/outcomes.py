"""Writes the results of handled events: the queue, dead letters and freezes (C§6, B5)."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import TEMPORARY, Reason
from patra.bus.consuming.consumer import Effect, HandlerFailure, Trouble
from patra.bus.consuming.dead_letter import error_shape, letter_id
from patra.bus.consuming.delivery_order import DELIVERY, FAR_FUTURE, DeliveryState, DeliveryTransition, Waiting
from patra.bus.consuming.freeze import after_backlog, enough_counted
from patra.bus.consuming.retry_or_dead_letter import Comeback, GiveUp, Suspend, after_endpoint_failure, after_failure
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import dead_letters, deliveries, groups, hops
from patra.kernel.db import Tx
from patra.kernel.telemetry import counter, get_logger

log = get_logger()
MAX_HOP_CHARS = 500

CONSUMED = counter(
    "patra_bus_consumed_total", "Events by group and what became of them (handled, later, dead).", "group", "result"
)
FROZEN = counter("patra_bus_freezes_total", "Times that publishing of a type froze or thawed.", "event_type", "became")


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """An event that failed, how often by now, and why; with `final` it is given up whatever its retries."""

    waiting: Waiting
    failures: int
    trouble: Trouble
    final: Reason | None = None
    by: str = ""  # who refused it, where that is a program elsewhere


WAITED_FOR = frozenset(reason.value for reason in TEMPORARY)
HANDLER_LOST_FAILURE = Trouble(
    code=Reason.HANDLER_LOST, detail="the process that tried the event did not come back from it", poison=False
)


def loss_failure(waiting: Waiting) -> Failed:
    """An event whose worker was lost each time it was tried."""
    return Failed(
        waiting=waiting,
        failures=waiting.attempts + waiting.lost,
        trouble=HANDLER_LOST_FAILURE,
        final=Reason.HANDLER_LOST,
    )


def lost_ahead(tx: Tx, bus: Bus, group_id: int, waiting: Waiting, now: int, jitter: float) -> Waiting:
    """Count a loss before it can happen; a worker that survives the trial takes it back with the outcome."""
    delay = bus.catalogue.types[waiting.event_type].retry.backoff.delay(waiting.lost + 1, jitter)
    deliveries.lose_ahead(
        tx, group_id, waiting.seq, now + delay, now, code=HANDLER_LOST_FAILURE.code, detail=HANDLER_LOST_FAILURE.detail
    )
    return msgspec.structs.replace(waiting, lost=waiting.lost + 1)


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """How many came back later, how many became dead letters; `until` says when the former are due, by seq."""

    later: int
    dead: int
    until: dict[int, int]


def settle_successes(
    tx: Tx,
    bus: Bus,
    group: str,
    group_id: int,
    handled: Sequence[Waiting],
    now: int,
    *,
    effects: Mapping[str, Sequence[Effect]] | None = None,
    by: str = "",
) -> None:
    """Take handled events out of the line; what waited behind one that had failed before looks again.

    `effects` are rows that handlers declared as written, by event; `by` is the program elsewhere that handled them.
    """
    deliveries.delete_done(tx, group_id, [w.seq for w in handled])
    if effects or by:
        _record_handled(tx, group, [w.event_id for w in handled], effects or {}, by, now)
    _count(tx, group, "handled", len(handled))
    behind = {w.order_key for w in handled if w.order_key is not None and (w.attempts or w.replay or w.lost)}
    deliveries.wake_followers(tx, group_id, behind, now)
    replays = [w for w in handled if w.replay]
    if replays:
        dead_letters.mark_replayed(tx, [letter_id(group, w.event_id) for w in replays], now)
        backlog_changed(tx, bus, {w.event_type for w in replays}, now)


def _record_handled(
    tx: Tx, group: str, event_ids: Sequence[str], effects: Mapping[str, Sequence[Effect]], by: str, now: int
) -> None:
    def detail(event_id: str) -> dict[str, object]:
        found = effects.get(event_id, ())
        return {"effects": [msgspec.structs.asdict(one) for one in found]} if found else {}

    told = [event_id for event_id in event_ids if by or event_id in effects]
    rows = [hops.NewHop(event_id=i, group=group, what=hops.HopKind.HANDLED, by=by, detail=detail(i)) for i in told]
    hops.record(tx, rows, now)


def settle_failures(
    tx: Tx, bus: Bus, group: str, group_id: int, failures: Sequence[Failed], now: int, jitters: Sequence[float]
) -> Settled:
    """Each failed event comes back later, or becomes a dead letter."""
    rows: list[deliveries.Failure] = []
    burials: list[dead_letters.NewDeadLetter] = []
    gone: list[Waiting] = []
    buried: list[Waiting] = []
    until: dict[int, int] = {}
    for one, jitter in zip(failures, jitters, strict=True):
        waiting = one.waiting
        kind = bus.catalogue.types[waiting.event_type]
        ordered = kind.ordering.on_dead_letter if kind.ordering else None
        frozen = one.trouble.code in WAITED_FOR and one.final is None
        first = now if waiting.first_failed_at is None else waiting.first_failed_at
        consumer = bus.handler(group, waiting.event_type, waiting.version)
        if consumer is not None and consumer.schedule and one.final is None:
            verdict = _endpoint_verdict(tx, group, consumer.schedule, one, first, now, jitter)
        else:
            verdict = after_failure(
                kind.retry.of_error(one.trouble.kinds),
                one.failures,
                now,
                jitter,
                poison=one.trouble.poison,
                ordered=ordered,
                final=one.final,
                frozen=frozen,
                wait=one.trouble.wait,
            )
        attempts = waiting.attempts if frozen else one.failures
        match verdict:
            case Suspend():
                transition, due_at, attempts = DeliveryTransition.FAIL, now, 0  # resumed, as if for the first time
                until[waiting.seq] = due_at
                _suspend(tx, group, one.trouble, now)
            case Comeback(due_at):
                transition = DeliveryTransition.FAIL
                until[waiting.seq] = due_at
            case GiveUp(reason, keep):
                transition, due_at = DeliveryTransition.GIVE_UP, FAR_FUTURE
                buried.append(waiting)
                burials.append(_burial(group, group_id, one, reason, first, now))
                if not keep:
                    gone.append(waiting)
                    continue
        rows.append(
            deliveries.Failure(
                seq=waiting.seq,
                state=DELIVERY.target(DeliveryState.HELD, transition),
                due_at=due_at,
                attempts=attempts,
                first_failed_at=first,
                last_failed_at=now,
                error_code=one.trouble.code,
                error_detail=one.trouble.detail,
            )
        )
    deliveries.write_failures(tx, group_id, rows)
    if burials:
        deliveries.delete_done(tx, group_id, [w.seq for w in gone])
        deliveries.wake_followers(tx, group_id, {w.order_key for w in gone if w.order_key is not None}, now)
        deliveries.dead_letter(tx, group, buried, now)
        dead_letters.write(tx, burials)
        backlog_changed(tx, bus, {w.event_type for w in buried}, now)
    hops.record(tx, [_attempt(group, f, until) for f in failures if f.trouble.code not in WAITED_FOR], now)
    _report(tx, bus, group, failures, until)
    _count(tx, group, "later", len(until))
    _count(tx, group, "dead", len(buried))
    return Settled(later=len(until), dead=len(buried), until=until)


def _attempt(group: str, one: Failed, until: Mapping[int, int]) -> hops.NewHop:
    """A try that failed, as the timeline shows it; `due_at` is when the event comes back, None for a dead letter."""
    detail = {
        "attempt": one.failures,
        "error_code": one.trouble.code,
        "error_detail": one.trouble.detail[:MAX_HOP_CHARS],
        "due_at": until.get(one.waiting.seq),
    }
    what = hops.HopKind.ATTEMPT_FAILED
    return hops.NewHop(event_id=one.waiting.event_id, group=group, what=what, by=one.by, detail=detail)


def _report(tx: Tx, bus: Bus, group: str, failures: Sequence[Failed], until: Mapping[int, int]) -> None:
    """Call the registered listener, once it is committed."""
    if (tell := bus.on_failure) is not None:
        for one in failures:
            seen = HandlerFailure(
                group=group,
                event_id=one.waiting.event_id,
                event_type=one.waiting.event_type,
                attempt=one.failures,
                trouble=one.trouble,
                due_at=until.get(one.waiting.seq),
            )
            tx.after_commit(lambda seen=seen: tell(seen))


def _count(tx: Tx, group: str, result: str, count: int) -> None:
    """Counted when it is committed: what is rolled back and done again counts once."""
    if count:
        tx.after_commit(lambda: CONSUMED.labels(group, result).inc(count))


def _endpoint_verdict(
    tx: Tx, group: str, schedule: Sequence[int], one: Failed, first: int, now: int, jitter: float
) -> Comeback | GiveUp | Suspend:
    alive = False
    if one.failures > len(schedule):
        state = groups.webhook_states(tx).get(group.removeprefix(groups.WEBHOOK_PREFIX))
        alive = state is not None and (state.last_success_at or 0) > first
    why = one.trouble
    return after_endpoint_failure(schedule, one.failures, now, jitter, wait=why.wait, gone=why.gone, alive=alive)


def _suspend(tx: Tx, group: str, why: Trouble, now: int) -> None:
    if groups.suspend(tx, group, f"{why.code}: {why.detail}", now):
        log.warning("bus_endpoint_suspended", group=group, code=why.code, detail=why.detail)


def backlog_changed(tx: Tx, bus: Bus, types: Collection[str], now: int) -> None:
    """Freeze or thaw types whose open dead letters became more or fewer."""
    for event_type in sorted(types):
        threshold = bus.catalogue.types[event_type].dead_letter_threshold
        current = dead_letters.freeze_of(tx, event_type)
        backlog = dead_letters.backlog(tx, event_type, enough_counted(current, threshold))
        after = after_backlog(current, backlog, threshold, now)
        if after != current:
            dead_letters.set_freeze(tx, after)
        if after.state is not current.state:
            bus.tell_freeze(tx, after)
            FROZEN.labels(event_type, after.state.value).inc()
            log.warning("bus_type_freeze_changed", event_type=event_type, state=after.state, reason=after.reason)


def _burial(group: str, group_id: int, one: Failed, reason: str, first: int, now: int) -> dead_letters.NewDeadLetter:
    waiting = one.waiting
    body = waiting.body or ""
    envelope = decode_trusted(body)
    return dead_letters.NewDeadLetter(
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
        traceback=one.trouble.traceback,
        error_shape=error_shape(one.trouble.detail),
    )
