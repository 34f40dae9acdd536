"""What the rate gate can give stands with every slice, and nothing is due while the provider rests (4.10.6)."""

import msgspec

from patra.ingest.ratelimit.quota_store import RateMemory
from patra.ingest.ratelimit.token_bucket import Policy, fresh
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, HOUR, MINUTE, format_instant
from patra.kernel.db.queries import statement
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.stand_in import NOW, Site, site

KEY = "s|search"
RATE = {"rateLimit": {"refillRatePerSec": 4, "burstCapacity": 10}, "planning": {"maxDurationSec": 100}}


def hints(s: Site) -> list[dict]:
    rows = s.rows("SELECT slice_spec FROM ing_plan_slice ORDER BY slice_id")
    comments = [msgspec.json.decode(text)["telemetry"]["comment"] for (text,) in rows]
    return [msgspec.json.decode(one.partition("budgetHint ")[2]) for one in comments]


def due(s: Site) -> set[int]:
    return {at - NOW for (at,) in s.rows("SELECT scheduled_at FROM ing_task")}


def test_a_slice_says_what_the_gate_could_give_when_it_was_cut() -> None:
    with site() as s:
        s.load(built(RATE))
        s.trigger()
        assert hints(s) == [{"permits": 410, "ratePerSec": 4.0, "concurrency": 4, "blockedUntil": None}]
        assert due(s) == {0}


def test_what_is_used_of_a_quota_counts() -> None:
    with site() as s:
        s.load(built({**RATE, "rateLimit": {**RATE["rateLimit"], "quotaDaily": 100}}))
        used = "INSERT INTO ing_quota (rate_key, period_code, period_start, reserved, consumed, updated_at) VALUES (:key, 'DAY', :day, 0, 30, :now)"
        s.db.run(lambda tx: tx.execute(statement("t", used), {"key": KEY, "day": NOW // DAY * DAY, "now": NOW}))
        s.trigger()
        assert [one["permits"] for one in hints(s)] == [70]


def test_tasks_are_due_when_the_provider_has_rested() -> None:
    with site() as s:
        s.load(built({**RATE, "window.maxWindow": "P1D"}))
        RateMemory(s.db).cool(KEY, NOW + HOUR, NOW)
        s.trigger()
        assert {one["blockedUntil"] for one in hints(s)} == {format_instant(NOW + HOUR)}
        assert {one["permits"] for one in hints(s)} == {1}
        assert due(s) == {HOUR}
        s.clock.advance(2 * HOUR)
        s.trigger(Operation.BACKFILL)
        assert None in {one["blockedUntil"] for one in hints(s)}, "and the next plan is not held up"


def test_a_bucket_that_the_store_keeps_is_the_one_that_is_asked() -> None:
    with site() as s:
        s.load(built(RATE))
        slow = msgspec.structs.replace(fresh(Policy(rate=4000, burst=10), NOW), rate=1000, tokens=0, calm_from=NOW)
        kept = "INSERT INTO ing_rate_state (rate_key, state, updated_at) VALUES (:key, :state, :now)"
        state = msgspec.json.encode(slow).decode()
        s.db.run(lambda tx: tx.execute(statement("t", kept), {"key": KEY, "state": state, "now": NOW}))
        s.trigger()
        assert [(one["permits"], one["ratePerSec"]) for one in hints(s)] == [(100, 1.0)]


def test_smaller_slices_have_a_hint_of_their_own() -> None:
    with site() as s:
        s.load(built({**RATE, "limits": {"maxDepth": 20}}))
        s.trigger()
        s.drain()
        assert len(hints(s)) > 1
        assert all(one is not None for one in hints(s))
        assert s.clock.now() < NOW + MINUTE
