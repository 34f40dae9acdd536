"""The store goes in; gauges, alerts with their state, and messages about those that changed come out (ch. 14.4, 14.8).

A turn looks at the store once, sets the gauges of this process, and takes the rules of `alerts.py` one step further in
one transaction: any number of processes may watch one store, each alert is told once. It is logged here; a message for
every other way of telling goes into the outbox with the alert's change.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest import measures, store
from patra.ingest.alerts import (
    RULES,
    Alert,
    AlertState,
    Budget,
    Flow,
    Halted,
    IdlePlan,
    Lag,
    Look,
    Queue,
    Severity,
    Thresholds,
    Where,
    step,
)
from patra.ingest.budget import periods
from patra.ingest.operations import BREAKER
from patra.ingest.ratepolicy import rate_key
from patra.ingest.schedule import next_tick
from patra.ingest.spec import Spec, decode_spec
from patra.kernel import outbox
from patra.kernel.clock import DAY, MINUTE, Clock, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.telemetry import get_logger

log = get_logger()
Q = store.Q

FLOW = 5 * MINUTE  # the time over which shares are counted
HISTORY = 7 * DAY
SPECS = 256


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found."""

    queued: int = 0
    firing: int = 0
    told: int = 0


class Watch:
    """One watcher. `channels` are the outbox channels by which alerts are told, beside the log."""

    def __init__(
        self, db: Database, clock: Clock, *, thresholds: Thresholds | None = None, channels: Sequence[str] = ()
    ) -> None:
        self._db = db
        self._clock = clock
        self._thresholds = thresholds or Thresholds()
        self._channels = tuple(channels)
        self._specs: OrderedDict[str, Spec] = OrderedDict()
        self._queued: set[Where] = set()

    def run_once(self) -> Counts:
        """Look, set the gauges, take every alert a step further."""
        now = self._clock.now()
        look, live = self._db.read(lambda tx: (self._look(tx, now), _alerts(tx, "alerts_view", {"since": now})))
        self._measure(look)
        told, firing = (), 0
        if look.queues or step({alert.key: alert for alert in live}, look, self._thresholds).changed:
            told, firing = self._db.run(lambda tx: self._settle(tx, look))
        for alert in told:
            write = log.warning if alert.state is AlertState.FIRING else log.info
            write("ingest_alert", **_fields(alert))
        return Counts(queued=sum(queue.queued for queue in look.queues), firing=firing, told=len(told))

    # --- looking

    def _look(self, tx: Tx, now: int) -> Look:
        halts = store.halts(tx)
        still = {(halt.source, halt.endpoint) for halt in halts}
        queues = self._queues(tx, now)
        specs: dict[Where, Spec] = {}
        idle: list[IdlePlan] = []
        for queue in queues:
            where = queue.where
            head = tx.fetch_one(Q["watch_head"], {"partition": where.subject})
            if head is None:
                continue
            plan_id, due, taken = head
            self._remember(tx, plan_id, where, specs)
            paused = {(where.source, ""), (where.source, where.endpoint)} & still
            if due <= now and not taken and not paused and not tx.fetch(Q["watch_begun"], {"plan_id": plan_id}):
                idle.append(IdlePlan(where=where, plan_id=plan_id, waiting=now - due))
        lags = self._lags(tx, now, specs, {queue.where for queue in queues if queue.queued}, still)
        return Look(
            at=now,
            flows=[
                Flow(where=Where(*row[:3]), batches=row[3], errors=int(row[4]), throttled=int(row[5]), fatal=row[6])
                for row in tx.fetch(Q["watch_flows"], {"since": now - FLOW})
            ],
            halts=[
                Halted(where=Where(halt.source, halt.endpoint), reason=halt.reason, detail=halt.detail)
                for halt in halts
                if halt.kind == BREAKER
            ],
            lags=lags,
            queues=queues,
            idle=idle,
            budgets=_budgets(tx, specs, now),
        )

    def _queues(self, tx: Tx, now: int) -> list[Queue]:
        past = {row[0]: row[1:] for row in tx.fetch(Q["watch_queue_stats"], {"since": (now - HISTORY) // DAY})}
        found: list[Queue] = []
        for partition, queued in tx.fetch(Q["watch_queues"]):
            samples, total, squares = past.get(partition, (0, 0, 0))
            found.append(
                Queue(
                    where=where_of(partition),
                    queued=queued,
                    samples=int(samples),
                    total=int(total),
                    squares=int(squares),
                )
            )
        return found

    def _lags(
        self, tx: Tx, now: int, specs: dict[Where, Spec], waiting: set[Where], still: set[tuple[str, str]]
    ) -> list[Lag]:
        rounds: dict[Where, int] = {}
        for entry in store.schedules(tx):
            cron, schedule = entry.schedule.cron, entry.schedule
            tick = next_tick(cron, now)
            where = Where(entry.source, schedule.endpoint, schedule.operation.value)
            rounds[where] = max(rounds.get(where, 0), next_tick(cron, tick) - tick)
        found: list[Lag] = []
        for source, operation, namespace, instant, plan_id in tx.fetch(Q["watch_cursors"]):
            spec = self._spec(tx, plan_id) if plan_id else None
            if spec is None:
                continue
            where = Where(source, spec.endpoint_code, operation)
            specs.setdefault(where, spec)
            window = spec.window
            found.append(
                Lag(
                    where=where,
                    namespace=namespace,
                    lag=max(now - instant, 0),
                    expected=window.safety_lag_us + max(window.unit_us, window.min_us) + 2 * rounds.get(where, 0),
                    # what stands still is told of as such
                    watched=(where in rounds or where in waiting)
                    and not still & {(source, ""), (source, where.endpoint)},
                )
            )
        return found

    def _remember(self, tx: Tx, plan_id: str, where: Where, specs: dict[Where, Spec]) -> None:
        spec = self._spec(tx, plan_id)
        if spec is not None:
            specs[where] = spec

    def _spec(self, tx: Tx, plan_id: str) -> Spec | None:
        if (known := self._specs.get(plan_id)) is not None:
            self._specs.move_to_end(plan_id)
            return known
        row = store.plan_row(tx, plan_id)
        if row is None:
            return None
        spec = self._specs[plan_id] = decode_spec(row.expr_proto_snapshot)
        while len(self._specs) > SPECS:
            self._specs.popitem(last=False)
        return spec

    # --- telling

    def _measure(self, look: Look) -> None:
        queued = {queue.where: queue.queued for queue in look.queues}
        for where in self._queued - queued.keys():
            measures.QUEUED.labels(**_labels(where)).set(0)
        for where, count in queued.items():
            measures.QUEUED.labels(**_labels(where)).set(count)
        self._queued = set(queued) | self._queued
        for one in look.lags:
            measures.CURSOR_LAG.labels(**_labels(one.where), ns=one.namespace).set(one.lag / 1_000_000)
        for one in look.budgets:
            measures.BUDGET.labels(**_labels(one.where)).set(one.remaining)

    def _settle(self, tx: Tx, look: Look) -> tuple[Sequence[Alert], int]:
        known = {alert.key: alert for alert in _alerts(tx, "alerts_live", {})}
        found = step(known, look, self._thresholds)
        tx.execute(Q["alerts_write"], rows=[_row(alert) for alert in found.changed])
        day = look.at // DAY
        rows = [(queue.where.subject, day, queue.queued, queue.queued**2) for queue in look.queues]
        tx.execute(Q["watch_queue_add"], rows=rows)
        messages = [
            outbox.Message(
                group=alert.key,
                key=f"{alert.key}@{alert.over_at or alert.fired_at}",
                payload=msgspec.json.encode(_fields(alert)),
            )
            for alert in found.told
        ]
        for channel in self._channels:
            outbox.append(tx, channel, messages, look.at)
        after = known | {alert.key: alert for alert in found.changed}
        return found.told, sum(1 for alert in after.values() if alert.state is AlertState.FIRING)


def alerts(db: Database, now: int) -> list[dict[str, Any]]:
    """The alerts that fire, those that may, and those that were over in the last day; for people."""
    found = db.read(lambda tx: _alerts(tx, "alerts_view", {"since": now - DAY}))
    return [_fields(alert) for alert in found]


def where_of(partition: str) -> Where:
    source, endpoint, operation = partition.split("/", 2)
    return Where(source, endpoint, operation)


def _budgets(tx: Tx, specs: Mapping[Where, Spec], now: int) -> list[Budget]:
    found: list[Budget] = []
    for where, spec in sorted(specs.items()):
        kinds = periods(spec, spec.operation)
        if not kinds:
            continue
        taken = store.quota_taken(tx, rate_key(spec.provenance_code, spec, authenticated=False), now - DAY)
        left = [
            (max(kind.capacity - taken.get((kind.code, now // kind.length * kind.length), 0), 0), kind.capacity)
            for kind in kinds
        ]
        remaining, capacity = min(left, key=lambda one: one[0] / one[1])
        found.append(Budget(where=where, remaining=remaining, capacity=capacity))
    return found


def _labels(where: Where) -> dict[str, str]:
    return {"source": where.source, "endpoint": where.endpoint, "op": where.operation}


def _alerts(tx: Tx, name: str, params: Mapping[str, Any]) -> list[Alert]:
    return [
        Alert(
            rule=rule,
            subject=subject,
            severity=Severity(severity),
            state=AlertState(state),
            value=value,
            text=text,
            since=since,
            seen_at=seen,
            fired_at=fired,
            over_at=over,
            calm_since=calm,
        )
        for rule, subject, severity, state, value, text, since, seen, fired, over, calm in tx.fetch(Q[name], params)
    ]


def _row(alert: Alert) -> tuple[Any, ...]:
    return (
        alert.key,
        alert.rule,
        alert.subject,
        alert.severity.value,
        alert.state.value,
        float(alert.value),
        alert.text.replace("\0", "\ufffd"),
        alert.since,
        alert.seen_at,
        alert.fired_at,
        alert.over_at,
        alert.calm_since,
    )


def _fields(alert: Alert) -> dict[str, Any]:
    """An alert as it is logged, sent and shown."""
    advice = next((rule.advice for rule in RULES if rule.name == alert.rule), "")
    return {
        "alert": alert.rule,
        "subject": alert.subject,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "value": alert.value,
        "detail": alert.text,
        "advice": advice,
        "since": format_instant(alert.since),
        "fired": None if alert.fired_at is None else format_instant(alert.fired_at),
        "over": None if alert.over_at is None else format_instant(alert.over_at),
    }
