"""The watch: gauges by their names, alerts out of what is in the store, each notified once (ch. 14.4, 14.8)."""

from typing import Any

import msgspec
import pytest

from patra.ingest.operations.alerting.acknowledgements import acknowledge, silence_alert
from patra.ingest.operations.alerting.monitor import Watch, alerts
from patra.ingest.planning.operations import halt, lift_breaker, pause
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND
from patra.kernel.db import Database
from patra.kernel.errors import Invalid
from patra.kernel.telemetry import REGISTRY
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

HERE = {"source": "hostile", "endpoint": "search", "op": "HARVEST"}
SPREAD = crowded(60, T0, T1, crowd=False)
CHANNEL = "test.alerts"


def gauge(name: str, **more: str) -> float | None:
    return REGISTRY.get_sample_value(name, HERE | more)


def watch(w: World) -> Watch:
    return Watch(w.db, w.clock, channels=[CHANNEL])


def told(w: World) -> list[tuple[str, str, str]]:
    rows = w.rows("SELECT payload FROM krn_outbox WHERE channel = :channel ORDER BY seq", channel=CHANNEL)
    found = [msgspec.json.decode(bytes(payload)) for (payload,) in rows]
    return [(one["alert"], one["state"], one["subject"]) for one in found]


def firing(w: World) -> list[str]:
    return [one["alert"] for one in alerts(w.db, w.clock.now()) if one["state"] == "FIRING"]


def test_the_gauges_say_what_waits_how_far_behind_the_watermark_is_and_what_is_left(database: Database) -> None:
    with world(database, SPREAD) as w:
        tree = pack(w.url, "OFFSET")
        tree["defaults"]["rateLimit"] |= {"quotaHourly": 1000, "quotaReserve": 0.0}
        w.load(tree)
        planned = w.trigger()
        one = watch(w)
        assert one.run_once().queued == planned.slices
        assert gauge("patra_ingest_tasks_queued") == planned.slices
        left = gauge("patra_ingest_budget_remaining")
        assert left is not None
        assert 0 < left < 1000  # plans have reserved what they expect to need
        w.drain()
        one.run_once()
        assert gauge("patra_ingest_tasks_queued") == 0
        namespace = w.one("SELECT namespace_key FROM ing_cursor")
        lag = gauge("patra_ingest_cursor_lag_seconds", ns=namespace)
        assert lag == (w.clock.now() - T1) / SECOND
        assert firing(w) == []


def test_a_fatal_error_is_told_once_however_many_watch_and_is_over_when_it_is_lifted(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        w.provider._served = lambda *_: Reply(status=401, body=b"who are you", kind="text/plain")  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        first, second = watch(w), watch(w)
        for _ in range(3):
            first.run_once()
            second.run_once()
            w.clock.advance(30 * SECOND)
        assert told(w) == [("fatal", "FIRING", "hostile/search")]
        assert firing(w) == ["fatal"]
        found = alerts(w.db, w.clock.now())[0]
        assert "credential" in found["detail"]
        assert "patra ingest lift" in found["advice"]
        w.db.run(lambda tx: lift_breaker(tx, "hostile", "search", why="renewed"))
        w.clock.advance(10 * MINUTE)
        second.run_once()
        first.run_once()
        after = [(name, state) for name, state, _ in told(w)[1:]]  # the window that failed is still to be read
        assert sorted(after) == [("failed", "FIRING"), ("fatal", "OVER"), ("watermark_held", "FIRING")]


def test_errors_and_429_are_counted_from_the_batches_of_all_processes(database: Database) -> None:
    with world(database, crowded(400, T0, T1, crowd=False)) as w:
        tree = pack(w.url, "OFFSET", pagination={"pageSize": 10})
        tree["defaults"]["rateLimit"]["coolDown"] = "PT0.001S"
        w.load(tree)
        serve = w.provider._served
        turn = iter(range(1_000_000))
        w.provider._served = lambda *a: (  # type: ignore[method-assign]
            Reply(status=429, body=b"", kind="text/plain") if next(turn) % 3 == 0 else serve(*a)
        )
        w.trigger()
        one = watch(w)
        started = w.clock.now()
        w.drain()
        shares = w.rows("SELECT count(*) FROM ing_task_run_batch WHERE created_at > :since", since=started - 1)
        assert shares[0][0] >= 20
        seen: set[str] = set()
        for _ in range(25):  # the same share, look after look
            w.db.run(lambda tx: tx.execute(_refresh(w), {"now": w.clock.now()}))
            one.run_once()
            seen |= set(firing(w))
            w.clock.advance(30 * SECOND)
        assert seen == {"throttled", "errors"}
        assert [name for name, _, _ in told(w)] == ["throttled", "errors"]


def _refresh(_: World) -> Any:
    from patra.kernel.db.queries import statement

    return statement("refresh", "UPDATE ing_task_run_batch SET created_at = :now")


def test_a_plan_that_nobody_takes_is_told_unless_it_is_paused(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        one = watch(w)
        one.run_once()
        w.clock.advance(31 * MINUTE)
        w.db.run(lambda tx: pause(tx, "hostile", "", by="me", why="maintenance", now=w.clock.now()))
        one.run_once()
        assert "plan_idle" not in firing(w)
        from patra.ingest.planning.operations import resume

        w.db.run(lambda tx: resume(tx, "hostile", ""))
        one.run_once()
        assert "plan_idle" in firing(w)
        w.executor.run_once()
        one.run_once()
        assert "plan_idle" not in firing(w)


def test_a_watermark_that_is_to_move_and_does_not_is_told(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        one = watch(w)
        for _ in range(3):
            one.run_once()
            w.clock.advance(MINUTE)
        assert firing(w) == []  # nothing is to move it: no schedule, no task that waits
        w.trigger(since=None, until=T1 + 12 * HOUR)
        for _ in range(3):
            one.run_once()
            w.clock.advance(MINUTE)
        assert "cursor_lag" in firing(w)


def test_a_queue_has_a_history_of_its_own(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        planned = w.trigger()
        one = watch(w)
        for _ in range(5):
            one.run_once()
            w.clock.advance(HOUR)
        assert w.rows(
            "SELECT partition_key, sum(samples), sum(total), sum(squares) FROM ing_queue_stat GROUP BY 1"
        ) == [("hostile/search/HARVEST", 5, 5 * planned.slices, 5 * planned.slices**2)]
        w.clock.advance(8 * DAY)
        one.run_once()
        assert alerts(w.db, w.clock.now()) is not None


def looked(w: World, one: Watch) -> list[tuple[str, str]]:
    """The notifications after three readings."""
    for _ in range(3):
        one.run_once()
        w.clock.advance(30 * SECOND)
    return [(name, state) for name, state, _ in told(w)]


def test_failed_tasks_and_the_watermark_they_hold_are_told_once_and_over_when_they_are_read(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
            Reply(status=400, body=b"no", kind="text/plain")
            if q.get("from") == "2026-03-01T12:00:00Z"
            else serve(m, p, q, b)
        )
        w.trigger()
        w.drain()
        one = watch(w)
        assert sorted(looked(w, one)) == [("failed", "FIRING"), ("watermark_held", "FIRING")]
        w.provider._served = serve  # type: ignore[method-assign]
        w.trigger(since=None)
        w.drain()
        assert sorted(looked(w, one)[2:]) == [("failed", "OVER"), ("watermark_held", "OVER")]
        assert firing(w) == []


def test_a_source_that_fails_every_time_is_told_however_small_and_over_with_the_first_success(
    database: Database,
) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        w.provider._served = lambda *_: Reply(status=400, body=b"no", kind="text/plain")  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        one = watch(w)
        assert ("always_failing", "FIRING") in looked(w, one)
        w.provider._served = serve  # type: ignore[method-assign]
        w.trigger(since=None)
        w.drain()
        assert [name for name, state in looked(w, one) if state == "OVER"].count("always_failing") == 1
        assert firing(w) == []


def test_a_window_that_does_not_add_up_is_told_once_and_over_when_it_does(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "PAGE", window={"maxWindow": "P2D"}))
        serve = w.provider._served

        def higher(m: str, p: str, q: dict[str, str], b: bytes) -> Reply:
            reply = serve(m, p, q, b)
            return msgspec.structs.replace(reply, body=reply.body.replace(b'"total": 60', b'"total": 67'))

        w.provider._served = higher  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        one = watch(w)
        assert sorted(looked(w, one)) == [("incomplete", "FIRING"), ("watermark_held", "FIRING")]
        found = next(row for row in alerts(w.db, w.clock.now()) if row["alert"] == "incomplete")
        assert (found["value"], found["severity"]) == (7, "critical")
        w.provider._served = serve  # type: ignore[method-assign]
        w.trigger(since=None)
        w.drain()
        assert sorted(looked(w, one)[2:]) == [("incomplete", "OVER"), ("watermark_held", "OVER")]


def test_a_silenced_alert_is_told_to_nobody_until_its_silence_ends(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        one = watch(w)
        w.db.run(lambda tx: halt(tx, "hostile", "", "BREAKER", reason="r", detail="401", by="t", now=w.clock.now()))
        one.run_once()
        assert told(w) == [("fatal", "FIRING", "hostile")]
        until = w.clock.now() + HOUR
        w.db.run(
            lambda tx: silence_alert(tx, "fatal", "hostile", by="ada", why="known", until=until, now=w.clock.now())
        )
        w.db.run(lambda tx: lift_breaker(tx, "hostile", "", why="again"))
        w.clock.advance(MINUTE)
        one.run_once()  # over
        w.db.run(lambda tx: halt(tx, "hostile", "", "BREAKER", reason="r", detail="401", by="t", now=w.clock.now()))
        w.clock.advance(MINUTE)
        one.run_once()  # fires again
        assert firing(w) == ["fatal"]
        assert told(w)[1:] == []
        assert alerts(w.db, w.clock.now())[0]["silenced"]["why"] == "known"
        w.clock.advance(HOUR)
        one.run_once()
        one.run_once()
        assert told(w)[1:] == [("fatal", "FIRING", "hostile")]


def test_an_alert_is_acknowledged_and_an_unknown_one_is_refused(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        w.db.run(lambda tx: halt(tx, "hostile", "", "BREAKER", reason="r", detail="401", by="t", now=w.clock.now()))
        watch(w).run_once()
        now = w.clock.now()
        w.db.run(lambda tx: acknowledge(tx, "fatal", "hostile", by="ada", why="", until=None, now=now))
        assert alerts(w.db, now)[0]["acknowledged"]["by"] == "ada"
        for rule, until, code in (("nonsense", None, "i_alert_unknown"), ("fatal", now, "i_alert_until_invalid")):
            with pytest.raises(Invalid) as refused:
                w.db.run(
                    lambda tx, rule=rule, until=until: acknowledge(
                        tx, rule, "hostile", by="ada", why="", until=until, now=now
                    )
                )
            assert refused.value.code == code
        with pytest.raises(Invalid, match="reason"):
            w.db.run(lambda tx: silence_alert(tx, "fatal", "hostile", by="ada", why=" ", until=now + HOUR, now=now))
