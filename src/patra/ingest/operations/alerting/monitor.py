"""Turns the store into gauges, alerts with their state, and messages about those that changed (ch. 14.4, 14.8).

A turn looks at the store once, sets the gauges of this process, and takes the rules of `alerts.py` one step further in
one transaction: any number of processes may watch one store, each alert is notified once. It is logged here; a message
for every other notification channel is written to the outbox with the alert's change.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.fetching import metrics
from patra.ingest.operations.alerting import failed_windows
from patra.ingest.operations.alerting.acknowledgements import (
    Notes,
    acknowledgement,
    alert_notes,
    is_owed,
    purge_notes,
    silence,
    telling,
    write_held,
)
from patra.ingest.operations.alerting.alert_state import Alert, AlertState, step
from patra.ingest.operations.alerting.alerts import (
    RULES,
    Budget,
    Flow,
    Halted,
    IdlePlan,
    Lag,
    Look,
    Queue,
    Reading,
    Severity,
    Thresholds,
    Where,
)
from patra.ingest.operations.alerting.bus_rules import ALL_RULES, engine_of, name_subject
from patra.ingest.packs.spec import Spec, decode_spec
from patra.ingest.planning import store
from patra.ingest.planning.limits.leg_quotas import legs_by_key, taken_of
from patra.ingest.planning.limits.quota import periods
from patra.ingest.planning.operations import BREAKER
from patra.kernel import outbox
from patra.kernel.clock import DAY, MINUTE, SECOND, Clock, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.safety.redact import redact_text
from patra.kernel.telemetry import get_logger

log = get_logger()
Q = store.Q

FLOW = 5 * MINUTE  # the time over which shares are counted
FLOW_BUCKET = 15 * SECOND
UNSETTLED_BUCKETS = 4  # read again with each look: transactions that were open at the last one
HISTORY = 7 * DAY
SPECS = 256


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found."""

    queued: int = 0
    firing: int = 0
    told: int = 0


class FlowWindow:
    """Batches of the last minutes by partition, added up by quarter minutes: a look reads what came since the last.

    A batch is dated before it is committed, so that the last quarters are read again.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[int, Where], Flow] = {}
        self._read_from = 0

    def look(self, tx: Tx, now: int) -> list[Flow]:
        """The flows of the last five minutes."""
        oldest = (now - FLOW) // FLOW_BUCKET + 1
        first = max(oldest, self._read_from)
        self._sums = {key: one for key, one in self._sums.items() if oldest <= key[0] < first}
        for *place, bucket, batches, errors, throttled, fatal in tx.fetch(
            Q["watch_flows"], {"since": first * FLOW_BUCKET, "width": FLOW_BUCKET}
        ):
            where = Where(*place)
            self._sums[bucket, where] = Flow(
                where=where, batches=batches, errors=int(errors), throttled=int(throttled), fatal=int(fatal)
            )
        self._read_from = now // FLOW_BUCKET - UNSETTLED_BUCKETS
        wheres = sorted({where for _, where in self._sums})
        return [_add_flows([one for (_, of), one in self._sums.items() if of == where]) for where in wheres]


def _add_flows(flows: Sequence[Flow]) -> Flow:
    return Flow(
        where=flows[0].where,
        batches=sum(one.batches for one in flows),
        errors=sum(one.errors for one in flows),
        throttled=sum(one.throttled for one in flows),
        fatal=sum(one.fatal for one in flows),
    )


class Watch:
    """One watcher. `channels` are the outbox channels for notifications, beside the log.

    `handed_in` reads what other engines have to say, by the name of a rule of theirs.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        thresholds: Thresholds | None = None,
        channels: Sequence[str] = (),
        handed_in: Callable[[Tx, int], Mapping[str, Sequence[Reading]]] | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._thresholds = thresholds or Thresholds()
        self._channels = tuple(channels)
        self._handed_in = handed_in
        self._rules = RULES if handed_in is None else ALL_RULES
        self._specs: OrderedDict[str, Spec] = OrderedDict()
        self._queued: set[Where] = set()
        self._flows = FlowWindow()

    def run_once(self) -> Counts:
        """Look, set the gauges, take every alert a step further."""
        now = self._clock.now()
        look, live, notes = self._db.read(
            lambda tx: (self._look(tx, now), _alerts(tx, "alerts_view", {"since": now}), alert_notes(tx))
        )
        self._measure(look)
        told, firing = (), 0
        changed = step({alert.key: alert for alert in live}, look, self._thresholds, self._rules).changed
        if look.queues or changed or any(is_owed(notes, alert, now) for alert in live):
            told, firing = self._db.run(lambda tx: self._settle(tx, look))
        for alert in told:
            write = log.warning if alert.state is AlertState.FIRING else log.info
            write(f"{engine_of(alert.rule)}_alert", **_fields(alert))
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
        failed = failed_windows.open_failures(tx)
        lags = self._lags(tx, now, specs, {queue.where for queue in queues if queue.queued}, still)
        return Look(
            at=now,
            flows=self._flows.look(tx, now),
            halts=[
                Halted(where=Where(halt.source, halt.endpoint), reason=halt.reason, detail=halt.detail)
                for halt in halts
                if halt.kind == BREAKER
            ],
            lags=lags,
            queues=queues,
            idle=idle,
            budgets=_budgets(tx, specs, now),
            failures=[
                one
                for one in failed_windows.failures(failed, incomplete=False)
                if not {(one.where.source, ""), (one.where.source, one.where.endpoint)} & still
            ],
            incomplete=failed_windows.failures(failed, incomplete=True),
            held_marks=failed_windows.held_marks(
                [one for one in failed if not {(one.where.source, ""), (one.where.source, one.where.endpoint)} & still],
                [(lag, now - lag.lag) for lag in lags],
            ),
            ended=failed_windows.ended_runs(tx, now),
            handed_in={} if self._handed_in is None else self._handed_in(tx, now),
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
            schedule = entry.schedule
            tick = entry.next(now)
            where = Where(entry.source, schedule.endpoint, schedule.operation.value)
            rounds[where] = max(rounds.get(where, 0), entry.next(tick) - tick)
        found: list[Lag] = []
        marks = [*tx.fetch(Q["watch_cursors"]), *tx.fetch(Q["watch_key_cursors"])]
        for source, operation, namespace, instant, plan_id in marks:
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
                    # a halted source has an alert of its own
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
        try:
            spec = self._specs[plan_id] = decode_spec(row.expr_proto_snapshot)
        except msgspec.MsgspecError:  # the planner reports what is wrong with it
            return None
        while len(self._specs) > SPECS:
            self._specs.popitem(last=False)
        return spec

    # --- notifications

    def _measure(self, look: Look) -> None:
        queued = {queue.where: queue.queued for queue in look.queues}
        for where in self._queued - queued.keys():
            metrics.QUEUED.labels(**_labels(where)).set(0)
        for where, count in queued.items():
            metrics.QUEUED.labels(**_labels(where)).set(count)
        self._queued = set(queued) | self._queued
        for one in look.lags:
            metrics.CURSOR_LAG.labels(**_labels(one.where), ns=one.namespace).set(one.lag / 1_000_000)
        for one in look.budgets:
            metrics.BUDGET.labels(**_labels(one.where)).set(one.remaining)

    def _settle(self, tx: Tx, look: Look) -> tuple[Sequence[Alert], int]:
        known = {alert.key: alert for alert in _alerts(tx, "alerts_live", {})}
        found = step(known, look, self._thresholds, self._rules)
        tx.execute(Q["alerts_write"], rows=[_row(alert) for alert in found.changed])
        day = look.at // DAY
        rows = [(queue.where.subject, day, queue.queued, queue.queued**2) for queue in look.queues]
        tx.execute(Q["watch_queue_add"], rows=rows)
        after = known | {alert.key: alert for alert in found.changed}
        spoken = telling(found.told, after.values(), alert_notes(tx), look.at)
        write_held(tx, spoken.held)
        purge_notes(tx, look.at)
        messages = [
            outbox.Message(
                group=alert.key,
                key=f"{alert.key}@{alert.over_at or alert.fired_at}",
                payload=msgspec.json.encode(_fields(alert)),
            )
            for alert in spoken.told
        ]
        for channel in self._channels:
            outbox.append(tx, channel, messages, look.at)
        return spoken.told, sum(1 for alert in after.values() if alert.state is AlertState.FIRING)


def alerts(db: Database, now: int) -> list[dict[str, Any]]:
    """The alerts that fire, those that may, and those that were over in the last day; for people."""
    found, notes = db.read(lambda tx: (_alerts(tx, "alerts_view", {"since": now - DAY}), alert_notes(tx)))
    return [_fields(alert) | _note_alert(alert, notes, now) for alert in found]


def _note_alert(alert: Alert, notes: Notes, now: int) -> dict[str, Any]:
    known, silent = acknowledgement(notes, alert, now), silence(notes, alert, now)
    return {
        "checked": format_instant(alert.seen_at),
        "acknowledged": known.as_fields() if known else None,
        "silenced": silent.as_fields() if silent else None,
    }


def where_of(partition: str) -> Where:
    source, endpoint, operation = partition.split("/", 2)
    return Where(source, endpoint, operation)


def _budgets(tx: Tx, specs: Mapping[Where, Spec], now: int) -> list[Budget]:
    found: list[Budget] = []
    for where, spec in sorted(specs.items()):
        taken = taken_of(tx, spec, now)
        left = [
            (max(kind.capacity - taken[key].get((kind.code, now // kind.length * kind.length), 0), 0), kind.capacity)
            for key, leg in legs_by_key(spec).items()
            for kind in periods(leg, spec.operation)
        ]
        if not left:
            continue
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
    """An alert as it is logged, sent and shown; of one that is over there is nothing to do."""
    rules = () if alert.state is AlertState.OVER else ALL_RULES
    advice = next((name_subject(rule.advice, alert.subject) for rule in rules if rule.name == alert.rule), "")
    return {
        "alert": alert.rule,
        "subject": alert.subject,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "value": alert.value,
        "detail": redact_text(alert.text),
        "advice": advice,
        "since": format_instant(alert.since),
        "fired": None if alert.fired_at is None else format_instant(alert.fired_at),
        "over": None if alert.over_at is None else format_instant(alert.over_at),
    }
