"""For each setting of ingest the decision or output that changes with it, and for each metric what moves it (issue 23)."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.app.bridges import ingest_alerts
from patra.app.component import Context
from patra.app.components import ingest
from patra.app.components.ingest import Ingest, alert_thresholds_of, healing_of, limits_of, options_of, planner_of
from patra.app.configuration.engine_settings import AlertSettings, HealingSettings, IngestSettings
from patra.app.configuration.settings import Settings
from patra.ingest.execution.executor import Executor
from patra.ingest.fetching.resilience import Circuit, HealthCounts, heal, settle
from patra.ingest.landing import store as landing_store
from patra.ingest.operations.alerting.alerts import (
    RULES,
    Budget,
    Ended,
    Flow,
    IdlePlan,
    Lag,
    Look,
    Where,
)
from patra.ingest.operations.retention import purge_once
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db.queries import statement
from patra.kernel.errors import ConfigInvalid
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.stand_in import NOW, Site, site

Observe = Callable[[Settings], Any]


class SettingCase(msgspec.Struct, frozen=True, kw_only=True):
    """Another value of a setting, and what shows it; `given`: what its section says so that it matters."""

    value: Any
    observe: Observe
    given: Mapping[str, Any] = {}

    @property
    def effect(self) -> str:
        return (self.observe.__doc__ or "").partition("\n")[0].rstrip(".")


def case(value: Any, observe: Observe, **given: Any) -> SettingCase:
    return SettingCase(value=value, observe=observe, given=given)


def said(key: str, **values: Any) -> Settings:
    """Settings with values in the section of a key."""
    section = key.partition(".")[0]
    start = Settings()
    return replace(start, **{section: replace(getattr(start, section), **values)})


def ground(settings: Settings, s: Site) -> Context:
    return Context(settings=settings, db=s.db, clock=s.clock, engines={})


# --- healing

UNWELL = HealthCounts(
    requests=100, throttled=6, refused=11, batches=30, latency=30 * 4 * SECOND, database=30 * SECOND,
    failures_in_row=3, pages=10, pages_expected=3, splittable=True,
)  # fmt: skip


def healing(settings: Settings) -> Any:
    """What is done about a partition that is just over every bound, and about one with few requests."""
    few = replace(UNWELL, requests=10, throttled=5)
    return heal(UNWELL, healing_of(settings)), heal(few, healing_of(settings))


def circuit(settings: Settings) -> Any:
    """How long a circuit stays open after three failures."""
    found = Circuit()
    for _ in range(3):
        found = settle(found, failed=True, now=0, jitter=0.0, thresholds=healing_of(settings))
    return found


# --- alerts

HERE = Where("s", "search", "HARVEST")
LOOK = Look(
    at=NOW,
    flows=[Flow(where=HERE, batches=100, errors=6, throttled=6)],
    lags=[Lag(where=HERE, namespace="n", lag=1900 * SECOND)],
    idle=[IdlePlan(where=HERE, plan_id="p", waiting=1900 * SECOND)],
    budgets=[Budget(where=HERE, remaining=9, capacity=100)],
    ended=[Ended(where=HERE, runs=3, failed=3)],
)
"""Just over every line."""


def breached(settings: Settings) -> Any:
    """Which alerts the state of the platform raises."""
    lines = alert_thresholds_of(settings)
    return [(rule.name, one.subject) for rule in RULES for one in rule.read(LOOK, lines) if one.breach]


def held(settings: Settings) -> Any:
    """How long an alert must hold before it is reported."""
    return {rule.name: rule.hold(alert_thresholds_of(settings)) for rule in RULES}


def ways(settings: Settings) -> Any:
    """Over which channels alerts are sent."""
    return ingest_alerts.channels(settings.alerts)


def refused(settings: Settings) -> Any:
    """Whether a notification channel is refused at the start."""
    try:
        with site() as s:
            return sorted(ingest_alerts.relays(ground(settings, s)))
    except ConfigInvalid as error:
        return error.code, error.place


def letter(settings: Settings) -> Any:
    """The mail of an alert."""
    alert = {"state": "FIRING", "severity": "critical", "alert": "fatal", "subject": "s", "detail": "d", "advice": "a"}
    return ingest_alerts.compose_email(
        alert | {"since": "t", "fired": "t", "over": None}, "k", settings.alerts
    ).as_string()


# --- running


def compiled_twice(settings: Settings) -> Any:
    """Whether the snapshot of a second trigger is compiled again."""
    with site() as s:
        s.load(built({}))
        planner = planner_of(ground(settings, s))
        trigger = Trigger(source="s", endpoint="search", operation=Operation.HARVEST)
        return planner.compile(trigger) is planner.compile(trigger)


def loops(settings: Settings) -> Any:
    """The executors of a process."""
    with site() as s:
        engine = Ingest(planner=s.planner, services=s.services, relays={}, stopping=Event())
        return [loop.name for loop in ingest._executors(ground(settings, s), engine)]


def taken(settings: Settings) -> Any:
    """How many tasks of one partition are worked on at the same time."""
    with site() as s:
        s.load(built({"window.maxWindow": "PT6H"}))
        s.trigger()
        most = limits_of(settings).per_partition
        found = [s.db.run(lambda tx: landing_store.take(tx, "x", NOW, DAY, most)) for _ in range(8)]
        return len([one for one in found if one is not None])


def gate(settings: Settings) -> Any:
    """Which gate keeps the rates."""
    with site() as s:
        found = ingest._gate(ground(settings, s))
        found.close()
        return ingest.gate_in_force(found)


def harvested(settings: Settings) -> Any:
    """How long a lease lasts and by which clock, and what is kept of answers."""
    leased: list[int] = []
    with site(script=lambda *_: leased.append(s.rows("SELECT leased_until FROM ing_task")[0][0])) as s:
        s.load(built({}))
        s.trigger()
        s.executor = Executor(s.db, s.services, options=options_of(settings, s.db), pause=s._pause)
        s.drain()
        by_own_clock = leased[0] < NOW + DAY
        return by_own_clock, leased[0] - NOW if by_own_clock else None, s.rows("SELECT count(*) FROM ing_body")


def kept(settings: Settings) -> Any:
    """What is left of a harvest after a hundred days, and what was written to a folder."""
    with tempfile.TemporaryDirectory() as folder, site() as s:
        if settings.ingest.history_folder:
            settings = replace(settings, ingest=replace(settings.ingest, history_folder=folder))
        s.load(built({}))
        s.trigger()
        s.drain()
        body = "INSERT INTO ing_body (body_hash, content, size, kept_at) VALUES (:hash, :body, 2000000, :now)"
        for name in ("a", "b"):
            young = {"hash": name, "body": b"x", "now": NOW + 100 * DAY}
            s.db.run(lambda tx, young=young: tx.execute(statement("test", body), young))
        retention, keep = ingest.retention_of(settings)
        purged = purge_once(s.db, NOW + 100 * DAY, retention, keep=keep)
        return purged, len([*Path(folder).rglob("*")]) > 0


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "ingest": IngestSettings,
    "healing": HealingSettings,
    "alerts": AlertSettings,
}
MAIL = {"email_to": ("a@example.org",), "email_from": "p@example.org", "smtp_host": "127.0.0.1"}

CASES: dict[str, SettingCase] = {
    "ingest.executors": case(3, loops),
    "ingest.partition_tasks": case(1, taken),
    "ingest.redis_url": case("redis://127.0.0.1:1/0", gate),
    "ingest.lease_seconds": case(90.0, harvested),
    "ingest.server_clock": case("on", harvested),
    "ingest.cache_snapshots": case(True, compiled_twice),
    "ingest.keep_bodies": case(True, harvested),
    "ingest.keep_bodies_mb": case(1, kept),
    "ingest.keep_history_days": case(0, kept),
    "ingest.keep_records_days": case(3, kept),
    "ingest.history_folder": case("", kept),
    "healing.throttled_percent": case(50.0, healing),
    "healing.refused_percent": case(50.0, healing),
    "healing.min_requests": case(5, healing),
    "healing.slow_batch_ms": case(60_000, healing),
    "healing.slow_database_ms": case(60_000, healing),
    "healing.deeper_factor": case(9, healing),
    "healing.circuit_failures": case(9, circuit),
    "healing.circuit_seconds": case(7.0, circuit),
    "alerts.every_seconds": case(7.0, held),
    "alerts.cursor_lag_seconds": case(2000, breached),
    "alerts.failing_runs": case(7, breached),
    "alerts.errors_percent": case(7.0, breached),
    "alerts.throttled_percent": case(7.0, breached),
    "alerts.budget_percent": case(7.0, breached),
    "alerts.plan_idle_seconds": case(2000, breached),
    "alerts.webhook_url": case("https://example.org", ways),
    "alerts.webhook_hosts": case(("example.org",), refused, webhook_url="https://example.org/x"),
    "alerts.email_to": case(("a@example.org",), ways),
    "alerts.email_from": case("other@example.org", letter, **MAIL),
    "alerts.smtp_host": case("", refused, **MAIL),
}
"""A setting, and the decision or output in which another value of it shows."""

_ALERTS = "tests/contract/app/test_ingest_alerts.py"
TESTS: dict[str, str] = {
    "alerts.undelivered_seconds": (
        "tests/contract/app/test_outbox_alerts.py::test_how_long_a_delivery_may_fail_is_a_setting"
    ),
    "ingest.history_url": (
        "tests/contract/ingest/running/test_retention.py::test_history_goes_to_object_storage_and_comes_back"
    ),
    "alerts.webhook_secret": f"{_ALERTS}::test_a_webhook_gets_the_alert_signed_and_again_after_an_outage_under_the_same_id",
    "alerts.smtp_port": f"{_ALERTS}::test_a_letter_arrives_with_what_to_do_and_no_secrets",
    "alerts.smtp_security": f"{_ALERTS}::test_a_letter_arrives_with_what_to_do_and_no_secrets",
    "alerts.smtp_user": f"{_ALERTS}::test_a_letter_arrives_with_what_to_do_and_no_secrets",
    "alerts.smtp_password": f"{_ALERTS}::test_a_letter_arrives_with_what_to_do_and_no_secrets",
}
"""Settings that only a server shows: the test that sets them against one and fails where they are not read."""


METRICS = {
    "patra_ingest_bookkeeping_ms_count",
    "patra_ingest_plans_total",
    "patra_ingest_rate_wait_ms_total",
    "patra_ingest_slices_total",
    "patra_ingest_batches_total",
    "patra_ingest_items_total",
    "patra_ingest_http_latency_ms_count",
    "patra_ingest_batch_latency_ms_count",
    "patra_ingest_cursor_advance_events_total",
    "patra_ingest_429_total",
    "patra_ingest_retries_total",
    "patra_ingest_errors_total",
    "patra_ingest_self_heal_events_total",
}
"""Samples that a harvest with two answers of 429 moves."""

GAUGES = ("patra_ingest_executor_concurrency", "patra_ingest_qps_effective")
"""What the executors of a process say of a harvest."""

WATCHED = ("patra_ingest_tasks_queued", "patra_ingest_budget_remaining", "patra_ingest_cursor_lag_seconds")
"""What the watch says of a plan before and after its harvest."""

_RUNNING = "tests/contract/ingest/running"
METRIC_TESTS: dict[str, tuple[str, str]] = {
    "patra_ingest_idempotency_hits": (
        "IDEMPOTENCY_HITS",
        f"{_RUNNING}/test_found_flaws.py::test_cursor_advances_and_repeated_batches_are_counted_as_such",
    ),
    "patra_ingest_rate_gate_fallbacks": (
        "FALLBACKS",
        f"{_RUNNING}/test_rate_gate_in_redis.py::test_a_quota_outlives_the_loss_of_redis",
    ),
    "patra_ingest_alerts_told": (
        "TOLD",
        f"{_ALERTS}::test_a_webhook_gets_the_alert_signed_and_again_after_an_outage_under_the_same_id",
    ),
}
"""Metrics that count what only a server or a second commit brings about: what counts them, and the test that reads it."""
