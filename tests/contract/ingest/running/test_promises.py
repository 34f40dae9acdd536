"""No record lost, none doubled, whatever dies; the watermark never crosses a hole (rulings I2, I4)."""

import json
from itertools import pairwise

import pytest
from msgspec.structs import replace

from patra.ingest.planning.operations import cancel_plan, lift_breaker
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import HOUR, MINUTE, SECOND
from patra.kernel.db import Database
from patra.kernel.telemetry import metrics_text
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.faults import FaultyDatabase, InjectedFault
from tests.support.hostile_provider import Habits, Item, Reply, crowded

SPREAD = crowded(300, T0, T1, crowd=False)


def refetched(w: World) -> int:
    """How many list requests were answered well more than once."""
    seen = [one.path for one in w.provider.asked if one.status == 200]
    return len(seen) - len(set(seen))


def test_a_cursor_that_moves_by_itself_is_started_anew_when_a_page_may_be_lost(database: Database) -> None:
    habits = Habits(seed=3, cuts=80, truncates=80, fails=50, same_token=True)
    with world(database, crowded(400, T0, T1), habits) as w:
        w.load(pack(w.url, "TOKEN", pagination={"repeatedToken": "CONTINUE", "pageSize": 15}))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1


def test_a_window_deeper_than_the_provider_pages_is_cut_before_it_is_read(database: Database) -> None:
    with world(database, crowded(500, T0, T1), Habits(depth=60)) as w:
        w.load(pack(w.url, "OFFSET", limits={"maxDepth": 60}))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1
        assert w.one("SELECT count(*) FROM ing_reslice_request WHERE status_code = 'DONE'") > 0
        assert all(one.status == 200 for one in w.provider.asked)


def test_at_the_smallest_window_it_fails_loudly_and_the_watermark_stays_below(database: Database) -> None:
    minute = T0 + 10 * HOUR
    dense = [Item(minute + n, f"d{n:04}") for n in range(100)]
    with world(database, dense, Habits(depth=60)) as w:
        w.load(pack(w.url, "OFFSET", limits={"maxDepth": 60}))
        w.trigger()
        w.drain()
        assert w.tasks()["FAILED i_too_deep_at_smallest"] == 1
        assert w.watermark() == minute
        assert "100 records" in w.one("SELECT error FROM ing_task_run WHERE status_code = 'FAILED'")


def silent(w: World, depth: int) -> None:
    """The provider gives no totals, and past its depth nothing, as if that were the end."""
    serve = w.provider._served
    empty = Reply(status=200, body=b'{"items": []}', kind="application/json")
    w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
        empty if int(q.get("offset", 0)) >= depth else serve(m, p, q, b)
    )


def test_a_list_that_ends_in_silence_at_the_providers_depth_is_cut(database: Database) -> None:
    with world(database, crowded(500, T0, T1)) as w:
        silent(w, 60)
        w.load(
            pack(w.url, "OFFSET", limits={"maxDepth": 60}, response={"totalPath": None}, pagination={"pageSize": 20})
        )
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1


def test_silence_at_the_depth_of_the_smallest_window_is_loud(database: Database) -> None:
    minute = T0 + 10 * HOUR
    dense = [Item(minute + n, f"d{n:04}") for n in range(100)]
    with world(database, dense) as w:
        silent(w, 60)
        w.load(
            pack(w.url, "OFFSET", limits={"maxDepth": 60}, response={"totalPath": None}, pagination={"pageSize": 20})
        )
        w.trigger()
        w.drain()
        assert w.tasks()["FAILED i_too_deep_at_smallest"] == 1
        assert w.watermark() == minute


def test_a_total_that_is_cut_off_at_the_depth_of_the_smallest_window_is_loud(database: Database) -> None:
    """As Elasticsearch says 10,000 of every larger result: it adds up, and the rest was never given."""
    minute = T0 + 10 * HOUR
    dense = [Item(minute + n, f"d{n:04}") for n in range(100)]
    with world(database, dense) as w:
        serve = w.provider._served

        def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
            tree = json.loads(serve(method, path, query, body).body)
            tree["total"] = min(tree["total"], 60)
            del tree["items"][max(60 - int(query["offset"]), 0) :]
            return Reply(status=200, body=json.dumps(tree).encode(), kind="application/json")

        w.provider._served = served  # type: ignore[method-assign]
        w.load(pack(w.url, "OFFSET", limits={"maxDepth": 60}, pagination={"pageSize": 20}))
        w.trigger()
        w.drain()
        assert w.tasks()["FAILED i_too_deep_at_smallest"] == 1
        assert w.watermark() == minute


def test_max_page_bridges_to_smaller_windows(database: Database) -> None:
    with world(database, crowded(400, T0, T1)) as w:
        w.load(pack(w.url, "PAGE", pagination={"maxPage": 3, "pageSize": 20}))
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1


def test_what_another_source_has_read_moves_no_watermark_but_its_own(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "PAGE") | {"source": "other"})  # an endpoint of the same name, asked in the same way
        w.load(pack(w.url, "PAGE"))
        w.planner.trigger(Trigger(source="other", endpoint="search", operation=Operation.HARVEST, since=T0, until=T1))
        w.drain()
        serve = w.provider._served
        w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
            Reply(status=400, body=b"no", kind="text/plain")
            if q.get("from") == "2026-03-01T12:00:00Z"
            else serve(m, p, q, b)
        )
        w.trigger()
        w.drain()
        marks = dict(w.rows("SELECT provenance_code, normalized_instant FROM ing_cursor"))
        assert marks == {"other": T1, "hostile": T0 + 12 * HOUR}


def test_one_failing_window_holds_the_watermark_and_finished_ones_are_not_read_again(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "PAGE"))
        bad = "from=2026-03-01T12%3A00%3A00Z"
        serve = w.provider._served
        w.provider._served = lambda m, p, q, b: (  # type: ignore[method-assign]
            Reply(status=400, body=b"no", kind="text/plain")
            if q.get("from") == "2026-03-01T12:00:00Z"
            else serve(m, p, q, b)
        )
        w.trigger()
        w.drain()
        assert w.tasks() == {"SUCCEEDED i_done": 3, "FAILED i_failed_request": 1}
        assert w.watermark() == T0 + 12 * HOUR
        codes = {code for (code,) in w.rows("SELECT reason_code FROM ing_cursor_event")}
        assert "i_behind_hole" in codes
        w.provider._served = serve  # type: ignore[method-assign]
        asked = len(w.provider.asked)
        w.trigger(since=None)
        w.drain()
        assert w.watermark() == T1
        assert w.landed() == w.provider.truth
        assert all(bad in one.path for one in w.provider.asked[asked:])


CRASHES = [1, 5, 9, 14, 20, 24, 27, 30, 33, 36, 40, 44]


@pytest.mark.parametrize("fail_at", CRASHES)
def test_a_crash_costs_at_most_one_batch(database: Database, fail_at: int) -> None:
    items = crowded(120, T0, T0 + 12 * HOUR, crowd=False)
    with world(database, items, ttl=2 * MINUTE) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 40}))
        w.trigger(until=T0 + 12 * HOUR)
        w.db = FaultyDatabase(database, fail_at)
        w.executor = w.new_executor()
        died = 0
        for _ in range(20):
            try:
                if not w.executor.run_once().tasks and not died:
                    break
                if w.landed() == w.provider.truth and w.tasks() == {"SUCCEEDED i_done": 1}:
                    break
            except InjectedFault:
                died += 1
                w.clock.advance(3 * MINUTE)
                w.executor = w.new_executor()
            watermark = w.watermark() or 0
            held = {key for key, updated in w.provider.truth.items() if T0 <= updated < watermark}
            assert held <= set(w.landed())
        assert w.landed() == w.provider.truth
        assert w.watermark() == T0 + 12 * HOUR
        assert w.tasks() == {"SUCCEEDED i_done": 1}
        assert died == 1
        assert refetched(w) <= died


def test_an_older_record_never_overwrites_a_newer_one(database: Database) -> None:
    items = [Item(T0 + MINUTE, "a", "old"), Item(T0 + 2 * MINUTE, "b")]
    with world(database, items) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger(until=T0 + HOUR)
        w.drain()
        w.provider.change("a", T0 + 2 * HOUR)
        w.trigger(since=None, until=T0 + 3 * HOUR)
        w.drain()
        newer = w.contents()["a"]
        w.provider.change("a", T0 + MINUTE)  # the provider serves an old copy
        w.trigger(Operation.BACKFILL, since=T0, until=T0 + HOUR, activity="again")
        w.drain()
        assert w.landed()["a"] == T0 + 2 * HOUR
        assert w.contents()["a"] == newer
        stats = [json.loads(s) for (s,) in w.rows("SELECT stats FROM ing_task_run_batch")]
        assert sum(s["older"] for s in stats) == 1
        assert sum(s["equal"] for s in stats) == 1


def test_harvest_backfill_and_update_do_not_disturb_each_others_cursors(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", two_phase=False))
        w.trigger(since=T0 + 24 * HOUR)
        w.drain()
        w.trigger(since=None, until=T1 + HOUR)
        w.trigger(Operation.BACKFILL, since=T0, until=T0 + 24 * HOUR, activity="history")
        w.trigger(Operation.UPDATE, since=None, until=None, ids=tuple(sorted(w.landed())[:50]), activity="refresh")
        w.drain()
        assert w.landed() == w.provider.truth
        cursors = w.rows("SELECT operation_code, namespace_scope_code, cursor_value FROM ing_cursor ORDER BY 1")
        assert [(op, scope) for op, scope, _ in cursors] == [
            ("BACKFILL", "CUSTOM"),
            ("HARVEST", "EXPR"),
            ("UPDATE", "CUSTOM"),
        ]
        assert w.watermark() == T1 + HOUR
        assert cursors[0][2] == "2026-03-01T00:00:00Z"
        directions = dict(w.rows("SELECT operation_code, min(direction_code) FROM ing_cursor_event GROUP BY 1"))
        assert directions["BACKFILL"] == "BACKFILL"
        assert directions["HARVEST"] == "FORWARD"


def test_a_refused_key_halts_the_endpoint_until_it_is_lifted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.hostile_provider import Reply

    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        w.provider._served = lambda *_: Reply(status=401, body=b"who are you", kind="text/plain")  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        asked = len(w.provider.asked)
        assert asked == 1
        kind, reason, detail = w.rows("SELECT kind_code, reason_code, detail FROM ing_halt")[0]
        assert (kind, reason) == ("BREAKER", "i_failed_fatal")
        assert "credential" in detail
        w.provider._served = serve  # type: ignore[method-assign]
        w.executor.run_once()
        assert len(w.provider.asked) == asked
        w.db.run(lambda tx: lift_breaker(tx, "hostile", "search", why="key renewed"))
        w.drain()
        w.trigger(since=None)
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.watermark() == T1


def test_a_schema_change_is_confirmed_by_a_second_request_before_it_halts(database: Database) -> None:
    from tests.support.hostile_provider import Reply

    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        first = iter([Reply(status=200, body=b'{"results": []}', kind="application/json")])
        w.provider._served = lambda *a: next(first, None) or serve(*a)  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        w.provider._served = lambda *_: Reply(status=200, body=b'{"results": []}', kind="application/json")  # type: ignore[method-assign]
        w.trigger(since=None, until=T1 + HOUR)
        w.drain()
        assert w.one("SELECT count(*) FROM ing_halt") == 1


def test_bad_records_are_set_aside_with_path_and_sample_and_come_back_by_update(database: Database) -> None:
    from tests.support import hostile_provider

    items = [Item(T0 + n * MINUTE, f"x{n}", f"t{n}") for n in range(1, 6)]
    with world(database, items) as w:
        tree = pack(w.url, "OFFSET", output={"fields": {"title": {"path": "$.title", "required": True}}})
        tree["endpoints"]["details"]["output"] = {"fields": {"title": {"path": "$.title", "required": True}}}
        w.load(tree)
        whole = hostile_provider._json
        spoilt = {"x2": {"title": None}, "x4": {"updated": "n.d."}}

        def spoiling(found, more, *, ids):
            body = json.loads(whole(found, more, ids=ids))
            body["items"] = [{**item, **spoilt.get(item["id"], {})} for item in body["items"]]
            return json.dumps(body).encode()

        hostile_provider._json = spoiling
        try:
            w.trigger(until=T0 + HOUR)
            w.drain()
            assert set(w.landed()) == {"x1", "x3", "x5"}
            rows = w.rows("SELECT provider_id, reason_code, field_path, status_code FROM ing_quarantine ORDER BY 1")
            assert rows == [
                ("x2", "i_field_missing", "fields.title", "OPEN"),
                ("x4", "i_no_updated_at_value", "$.updated", "OPEN"),
            ]
            assert w.rows("SELECT provider_id FROM ing_signal WHERE plan_id IS NULL ORDER BY 1") == [("x2",), ("x4",)]
            assert w.watermark() == T0 + HOUR
            counted = [line for line in metrics_text().decode().splitlines() if 'level="L3"' in line]
            assert any(line.startswith("patra_ingest_errors_total") for line in counted)
        finally:
            hostile_provider._json = whole
        planned = w.trigger(Operation.UPDATE, since=None, until=None)
        assert planned.slices == 1
        w.drain()
        assert w.landed() == w.provider.truth
        assert {s for (s,) in w.rows("SELECT status_code FROM ing_quarantine")} == {"RESOLVED"}


def test_pages_on_which_no_record_has_an_id_are_no_circle(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import hostile_provider

    items = [Item(T0 + n * MINUTE, f"x{n:02}", f"t{n}") for n in range(1, 51)]
    whole = hostile_provider._json

    def nameless(found, more, *, ids):
        body = json.loads(whole(found, more, ids=ids))
        body["items"] = [{**one, "id": None if one["id"] > "x20" else one["id"]} for one in body["items"]]
        return json.dumps(body).encode()

    monkeypatch.setattr(hostile_provider, "_json", nameless)
    with world(database, items) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 10}))
        w.trigger(until=T0 + HOUR)
        w.drain()
        assert set(w.landed()) == {f"x{n:02}" for n in range(1, 21)}
        assert w.one("SELECT count(*) FROM ing_quarantine WHERE provider_id IS NULL") == 30
        assert w.watermark() == T0 + HOUR


def test_an_id_without_a_record_is_kept_with_a_reason_and_spoils_nothing(database: Database) -> None:
    from tests.support.hostile_provider import Reply

    with world(database, SPREAD[:60]) as w:
        w.load(pack(w.url, "OFFSET", two_phase=True))
        serve = w.provider._served

        def refusing(method, path, query, body):
            if path == "/details" and b"r000007" in body:
                return Reply(status=400, body=b"bad id", kind="text/plain")
            return serve(method, path, query, body)

        w.provider._served = refusing  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert w.landed() == {key: at for key, at in w.provider.truth.items() if key != "r000007"}
        assert w.rows("SELECT provider_id, reason_code FROM ing_quarantine") == [("r000007", "i_id_without_detail")]
        assert w.watermark() == T1


def test_retry_after_zero_does_not_burn_the_attempts(database: Database) -> None:
    from tests.support.hostile_provider import Reply

    with world(database, SPREAD[:50]) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        times: list[int] = []

        def throttling(*args):
            times.append(w.clock.now())
            if len(times) <= 3:
                return Reply(status=429, body=b"", kind="text/plain", headers={"Retry-After": "0"})
            return serve(*args)

        w.provider._served = throttling  # type: ignore[method-assign]
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        gaps = [b - a for a, b in pairwise(times[:4])]
        assert all(gap >= 80_000 for gap in gaps)
        assert gaps == sorted(gaps)


def test_a_long_retry_after_puts_the_task_back_instead_of_holding_an_executor(database: Database) -> None:
    from tests.support.hostile_provider import Reply

    with world(database, SPREAD[:50]) as w:
        w.load(pack(w.url, "OFFSET"))
        serve = w.provider._served
        told: list[int] = []

        def throttling(*args):
            if not told:
                told.append(w.clock.now())
                return Reply(status=503, body=b"", kind="text/plain", headers={"Retry-After": "3600"})
            return serve(*args)

        w.provider._served = throttling  # type: ignore[method-assign]
        w.trigger()
        counts = w.executor.run_once()
        assert counts.deferred == 1
        assert w.tasks()["QUEUED i_put_back_rate"] == 1
        said = json.loads(w.one("SELECT stats FROM ing_task_run"))["rate"]
        assert said["rate.decision"] == "REJECT(COOLDOWN)"
        assert said.keys() >= {"rate.limitKey", "rate.cooldownUntil"}
        w.drain()
        assert w.landed() == w.provider.truth
        assert w.clock.now() - told[0] >= 3600 * SECOND


def test_a_quota_that_is_used_up_waits_for_the_next_hour(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET", rateLimit={"quotaHourly": 8, "quotaReserve": 0}))
        start = w.clock.now()
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        hours = (w.clock.now() - start) // HOUR
        assert len(w.provider.asked) <= 8 * (hours + 1)
        assert hours >= 1


def test_every_change_is_published_once_in_the_transaction_that_made_it(database: Database) -> None:
    with world(database, SPREAD[:40]) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        assert sorted(told(w)) == sorted(w.provider.truth)
        w.trigger(Operation.BACKFILL, since=T0, until=T1, activity="again")
        w.drain()
        assert sorted(told(w)) == sorted(w.provider.truth)


def told(w: World) -> list[str]:
    """The ids of which the outbox tells, as often as it does."""
    bodies = w.rows("SELECT payload FROM krn_outbox WHERE channel = 'ingest.record'")
    return [one[0] for (body,) in bodies for one in json.loads(bytes(body))["records"]]


def test_a_cancelled_plan_stops_where_it_is(database: Database) -> None:
    with world(database, SPREAD) as w:
        w.load(pack(w.url, "OFFSET"))
        planned = w.trigger()
        w.executor.run_once()
        landed = w.landed()
        w.db.run(lambda tx: cancel_plan(tx, planned.plan_id or "", why="enough", now=w.clock.now()))
        w.drain()
        assert w.landed() == landed
        assert w.one("SELECT count(*) FROM ing_task WHERE status_code = 'CANCELLED'") == planned.slices - 1


def test_secrets_stand_nowhere_in_the_store(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTILE_KEY", "s3cr3t-k3y-value")
    tree_auth = {"type": "API_KEY", "location": "QUERY", "name": "api_key", "credentialRef": "mine"}
    with world(database, SPREAD[:60], Habits(seed=2, fails=200), keep_bodies=True) as w:
        tree = pack(w.url, "URL", auth=tree_auth)
        tree["credentials"] = {"mine": {"type": "API_KEY", "secrets": {"apiKey": "env:HOSTILE_KEY"}}}
        w.load(tree)
        w.trigger()
        w.drain()
        assert w.landed() == w.provider.truth
        assert all("api_key=s3cr3t-k3y-value" in one.path for one in w.provider.asked)
        for table in (
            "ing_plan", "ing_task", "ing_task_run", "ing_task_run_batch", "ing_cursor_event", "ing_plan_slice",
            "ing_quarantine", "krn_move", "krn_outbox", "reg_prov_credential",
        ):  # fmt: skip
            for row in w.rows(f"SELECT * FROM {table}"):
                assert "s3cr3t" not in repr(row), table


def test_changed_mappings_are_applied_by_an_update(database: Database) -> None:
    with world(database, SPREAD[:30]) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        tree = pack(w.url, "OFFSET", output={"fields": {"name": "$.title"}})
        tree["endpoints"]["details"]["output"] = {"fields": {"name": "$.title"}}
        tree["version"] = "2"
        w.load(tree)
        w.trigger(Operation.UPDATE, since=None, until=None)
        w.drain()
        assert all(set(content["fields"]) == {"name"} for content in w.contents().values())
        assert w.landed() == w.provider.truth
        assert replace(w.trigger(Operation.UPDATE, since=None, until=None)).outcome == "i_no_candidates"
