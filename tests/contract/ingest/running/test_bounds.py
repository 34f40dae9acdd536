"""What bounds a partition, a list's end and an id: fewer tasks, the last page once more, ids that fit (ch. 4.5, 12.2)."""

import json
from typing import Any

import pytest

from patra.ingest.execution.executor import Counts
from patra.ingest.extraction.response import MAX_ID, MAX_ID_BYTES
from patra.kernel.clock import HOUR, MINUTE, SECOND
from patra.kernel.db import Database
from patra.kernel.db.queries import statement
from tests.contract.ingest.running.world import T0, T1, pack, world
from tests.support.hostile_provider import Item, Reply, crowded

PARTITION = "hostile/search/HARVEST"
SPREAD = crowded(200, T0, T1, crowd=False)


def test_slow_batches_let_fewer_tasks_run_and_calm_ones_let_more_again(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 10}))
        serve = w.provider._served

        def slow(*args: Any) -> Any:
            w.clock.advance(4 * SECOND)
            return serve(*args)

        w.provider._served = slow  # type: ignore[method-assign]
        w.trigger()
        w.executor.run_once()
        bounds = w.services.limiters.bounds(w.clock.now())
        assert bounds == {PARTITION: 2}  # four by the pack, then half of it: one task is not long enough for a quarter
        stats = json.loads(w.one("SELECT stats FROM ing_task_run ORDER BY run_id LIMIT 1"))
        assert stats["healed"]["concurrencyDown"] >= 1
        marks = [json.loads(s)["selfHealing"] for (s,) in w.rows("SELECT stats FROM ing_task_run_batch")]
        assert any(mark.get("concurrencyDown") for mark in marks)
        w.clock.advance(20 * MINUTE)
        for _ in range(2):
            bounds = w.services.limiters.bounds(w.clock.now())
            w.clock.advance(6 * MINUTE)
        assert bounds == {PARTITION: 4}


def test_too_many_429_let_fewer_tasks_run(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 5}))
        serve, turn = w.provider._served, iter(range(1_000_000))
        w.provider._served = lambda *a: (  # type: ignore[method-assign]
            Reply(status=429, body=b"", kind="text/plain") if next(turn) % 6 == 5 else serve(*a)
        )
        w.trigger()
        lowest = 4
        while w.executor.run_once().tasks or w.next_due() is not None:
            lowest = min([lowest, *w.services.limiters.bounds(w.clock.now()).values()])
            due = w.next_due()
            w.clock.set(max(due or 0, w.clock.now() + 1))
        assert lowest < 4
        assert w.landed() == w.provider.truth


def test_a_rate_that_was_lowered_is_noted_in_batch_run_and_plan(database: Database) -> None:
    with world(database, SPREAD[:40]) as w:
        w.load(pack(w.url, "OFFSET"))
        serve, turn = w.provider._served, iter(range(1_000_000))
        w.provider._served = lambda *a: (  # type: ignore[method-assign]
            Reply(status=429, body=b"", kind="text/plain") if next(turn) < 2 else serve(*a)
        )
        w.trigger()
        w.drain()
        assert w.landed() == {one.id: one.updated for one in SPREAD[:40]}
        runs = [json.loads(s) for (s,) in w.rows("SELECT stats FROM ing_task_run")]
        assert sum(stats["429Count"] for stats in runs) == 2
        lowered = [stats for stats in runs if stats["rateAdjusted"]]
        assert sum(stats["demoteEvents"] for stats in lowered) >= 1
        marks = [
            json.loads(s)["selfHealing"]["qpsDownshift"] for (s,) in w.rows("SELECT stats FROM ing_task_run_batch")
        ]
        assert True in marks
        assert False in marks
        noted = json.loads(w.one("SELECT record_remarks FROM ing_plan"))["rateAdjusted"]
        assert noted["runs"] == len(lowered)
        assert noted["429Count"] == 2


def test_a_partition_at_its_packs_bound_is_not_even_leased(database: Database) -> None:
    with world(database, SPREAD) as w:
        tree = pack(w.url, "OFFSET")
        tree["defaults"]["rateLimit"]["maxConcurrency"] = 1
        w.load(tree)
        w.trigger()
        w.executor.run_once()  # learns the bound
        other = w.new_executor()
        counts: list[Counts] = []
        serve = w.provider._served

        def meanwhile(*args: Any) -> Any:
            if not counts:
                counts.append(Counts())
                counts.append(other.run_once())
            return serve(*args)

        w.provider._served = meanwhile  # type: ignore[method-assign]
        before = w.one("SELECT sum(lease_count) FROM ing_task")
        w.executor.run_once()
        assert counts[1] == Counts()
        assert w.one("SELECT sum(lease_count) FROM ing_task") == before + 1
        w.drain()
        assert w.landed() == w.provider.truth


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TOKEN", "URL", "LINK", "TIME"])
def test_the_last_page_is_read_once_more_where_the_pack_asks_for_it(database: Database, kind: str) -> None:
    items = crowded(40, T0, T0 + 12 * HOUR, crowd=False)
    with world(database, items) as w:
        w.load(pack(w.url, kind, ordering={"rereadLastPage": True}))
        w.trigger(until=T0 + 12 * HOUR)
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T0 + 12 * HOUR
        paths = [one.path for one in w.provider.asked]
        assert len(paths) == len(set(paths)) + 1
        assert paths[-1] == paths[-2]
        pages = w.rows("SELECT batch_no FROM ing_task_run_batch ORDER BY batch_no")
        assert [no for (no,) in pages] == list(range(1, len(paths) + 1))


def test_what_came_while_the_last_page_was_read_lands_by_the_second_look(database: Database) -> None:
    items = crowded(10, T0, T0 + 12 * HOUR, crowd=False)
    with world(database, items) as w:
        # without a total: nothing but the second look can tell
        w.load(pack(w.url, "OFFSET", ordering={"rereadLastPage": True}, response={"totalPath": None}))
        serve = w.provider._served
        late = Item(items[3].updated + 1, "late")
        seen: list[int] = []

        def serving(*args: Any) -> Any:
            reply = serve(*args)
            if not seen:
                seen.append(1)
                w.provider._items = sorted([*w.provider._items, late])
                w.provider._by_id["late"] = late
            return reply

        w.provider._served = serving  # type: ignore[method-assign]
        w.trigger(until=T0 + 12 * HOUR)
        w.drain()
        assert "late" in w.landed()
        assert w.landed() == w.provider.truth


def test_ids_up_to_the_bound_land_and_longer_ones_are_set_aside_with_a_reason(database: Database) -> None:
    """Characters of every plane, so that no compression makes room in an index."""
    scripts = "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(2 * MAX_ID))
    longest, most_bytes = "a" * MAX_ID, scripts[: MAX_ID_BYTES // 3]
    too_long, too_many_bytes = "b" * (MAX_ID + 1), scripts[: MAX_ID_BYTES // 3 + 1]
    items = [Item(T0 + n, one) for n, one in enumerate([longest, most_bytes, too_long, too_many_bytes, "c" * 5000])]
    with world(database, items) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger(until=T0 + HOUR)
        w.drain()
        assert set(w.landed()) == {longest, most_bytes}
        rows = w.rows("SELECT reason_code, field_path, detail, provider_id FROM ing_quarantine ORDER BY detail")
        assert [row[0] for row in rows] == ["i_field_invalid"] * 3
        assert {row[1] for row in rows} == {"$.id"}
        assert {row[3] for row in rows} == {None}
        assert all("are the most" in row[2] for row in rows)
        assert w.watermark() == T0 + HOUR


def test_leases_go_by_the_clock_of_the_store_where_machines_differ(database: Database) -> None:
    """This machine's clock is months behind; by the store's, the lease it takes and renews lies ahead."""
    with world(database, SPREAD, server_clock=True, ttl=5 * MINUTE) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 10}))
        w.trigger()
        serve = w.provider._served
        ahead: list[int] = []

        def looking(*args: Any) -> Any:
            until = w.one("SELECT leased_until FROM ing_task WHERE lease_owner IS NOT NULL")
            ahead.append(until - database.read(lambda tx: tx.server_now()))
            return serve(*args)

        w.provider._served = looking  # type: ignore[method-assign]
        w.executor.run_once()
        assert len(ahead) > 2
        assert all(0 < left <= 5 * MINUTE for left in ahead)
        assert database.read(lambda tx: tx.fetch(statement("x", "SELECT count(*) FROM ing_task_run"))) == [(1,)]


def test_a_lease_is_held_on_to_in_good_time_and_not_with_every_batch(database: Database) -> None:
    """Before each request, at most a tenth of the lease's time has gone by since it was last held on to."""
    with world(database, SPREAD, ttl=10 * MINUTE) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 10}))
        w.trigger()
        serve = w.provider._served
        ends: list[int] = []

        def looking(*args: Any) -> Any:
            ends.append(w.one("SELECT leased_until FROM ing_task WHERE lease_owner IS NOT NULL"))
            assert ends[-1] - w.clock.now() >= 9 * MINUTE
            w.clock.advance(25 * SECOND)
            return serve(*args)

        w.provider._served = looking  # type: ignore[method-assign]
        w.executor.run_once()
        assert len(ends) > 4
        assert 1 < len(set(ends)) < len(ends) - 1


@pytest.mark.parametrize(("kind", "most"), [("OFFSET", 2), ("PAGE", 31), ("TOKEN", 31)])
def test_bodies_that_stay_too_large_end_loudly_after_a_few_requests(database: Database, kind: str, most: int) -> None:
    with world(database, crowded(200, T0, T1)) as w:
        tree = pack(w.url, kind, window={"maxWindow": "P2D"}, pagination={"pageSize": 20})
        tree["defaults"]["http"]["maxResponseBytes"] = 1024
        w.load(tree)
        w.trigger()
        w.provider._served = lambda *_: Reply(status=200, body=b" " * 2048, kind="application/json")  # type: ignore[method-assign]
        w.drain()
        assert 0 < len(w.provider.asked) <= most
        assert not any(state.startswith("SUCCEEDED") for state in w.tasks())
        assert w.watermark() != T1
        errors = [error for (error,) in w.rows("SELECT error FROM ing_task_run WHERE status_code = 'FAILED'")]
        assert errors
        assert all("i_too_large" in error and "maxResponseBytes" in error for error in errors)
