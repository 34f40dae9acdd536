"""A batch is done again from its evidence, without any effect (ch. 14.9)."""

import json
from typing import Any

import pytest

from patra.ingest.operations.reads.blackbox import export, kept_body
from patra.ingest.operations.replay import Report, replay
from patra.ingest.operations.replay_comparison import Weight
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import HOUR, MINUTE
from patra.kernel.db import Database
from patra.kernel.db.queries import statement
from patra.kernel.errors import Invalid
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Habits, Reply, crowded

KINDS = ["OFFSET", "PAGE", "TOKEN", "URL", "LINK", "TIME"]


def dump(w: World) -> dict[str, list[Any]]:
    """Everything that is in the store."""
    if w.db.dialect == "sqlite":
        tables = w.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    else:
        tables = w.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
    return {name: sorted(map(repr, w.rows(f"SELECT * FROM {name}"))) for (name,) in tables}


def batches(w: World) -> list[tuple[str, int]]:
    return w.rows("SELECT run_id, batch_no FROM ing_task_run_batch ORDER BY run_id, batch_no")  # type: ignore[return-value]


def again(w: World, run_id: str, batch_no: int, **how: Any) -> Report:
    found = replay(w.db, w.services, run_id, batch_no, lambda _: True, **how)
    assert found is not None
    return found


@pytest.mark.parametrize("two_phase", [False, True], ids=["records", "ids"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_batch_replays_to_the_same_request_and_the_same_answer(
    database: Database, kind: str, two_phase: bool
) -> None:
    if two_phase and kind == "TIME":
        pytest.skip("ids without update times cannot be paged by time")
    with world(database, crowded(60, T0, T0 + 12 * HOUR, crowd=False), keep_bodies=True) as w:
        w.load(pack(w.url, kind, xml=two_phase, two_phase=two_phase))
        w.trigger(until=T0 + 12 * HOUR)
        w.drain()
        w.clock.advance(HOUR)
        before = dump(w)
        asked = [one.path for one in w.provider.asked]
        for run_id, batch_no in batches(w):
            found = again(w, run_id, batch_no)
            assert found.conclusion is RunReason.REPLAY_EQUAL, found
            assert all(one.same for one in found.compared if one.weight is Weight.DECISIVE), found
            assert found.would["inserted"] == found.would["updated"] == 0
            kept = again(w, run_id, batch_no, kept=True)
            assert kept.equal, kept
            whole = again(w, run_id, batch_no, kept=True, full=True)
            assert whole.equal, whole
            assert [one.what for one in whole.written][:3] == ["batch", "rows", "upserts"]
            assert all(one.same for one in whole.written), whole.written
        assert sorted(one.path for one in w.provider.asked[len(asked) :]) == sorted(asked)
        assert dump(w) == before


def test_a_provider_that_has_changed_is_told_from_one_that_has_not(database: Database) -> None:
    items = crowded(30, T0, T0 + 12 * HOUR, crowd=False)
    with world(database, items, keep_bodies=True) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 50}))
        w.trigger(until=T0 + 12 * HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        gone = items[4].id
        w.provider.change(gone, T0 + 20 * HOUR)
        before = dump(w)
        found = again(w, run_id, batch_no)
        assert found.conclusion is RunReason.REPLAY_CHANGED
        assert found.missing_ids == [gone]
        by = {one.what: one for one in found.compared}
        assert (by["records"].then, by["records"].now) == (30, 29)
        assert by["request"].same
        assert by["status"].same
        assert not by["ids"].same
        assert not by["content"].same
        assert again(w, run_id, batch_no, kept=True).equal  # what was answered then still means the same
        assert dump(w) == before


def test_the_full_chain_tells_a_row_that_would_be_written_otherwise(database: Database) -> None:
    with world(database, crowded(30, T0, T0 + 12 * HOUR, crowd=False), keep_bodies=True) as w:
        w.load(pack(w.url, "OFFSET", pagination={"pageSize": 50}))
        w.trigger(until=T0 + 12 * HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        change = statement("change", "UPDATE ing_record SET content_hash = 'other' WHERE provider_id = :id")
        w.db.run(lambda tx: tx.execute(change, {"id": next(iter(w.provider.truth))}))
        before = dump(w)
        found = again(w, run_id, batch_no, kept=True, full=True)
        assert found.conclusion is RunReason.REPLAY_EQUAL
        assert not found.equal
        by = {one.what: one for one in found.written}
        assert (by["rows"].then, by["rows"].now, by["rows"].same) == (30, 29, False)
        assert by["batch"].same
        assert by["upserts"].same
        assert by["observedMax"].same
        assert dump(w) == before


def test_a_provider_that_does_not_answer_is_no_difference_of_content(database: Database) -> None:
    with world(database, crowded(10, T0, T0 + HOUR, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger(until=T0 + HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        asked = len(w.provider.asked)
        w.provider._served = lambda *_: Reply(status=503, body=b"later", kind="text/plain")  # type: ignore[method-assign]
        found = again(w, run_id, batch_no)
        assert found.conclusion is RunReason.REPLAY_UNANSWERED
        assert len(w.provider.asked) == asked + 1  # once: a replay does not insist
        with pytest.raises(Invalid, match="body_not_kept"):
            again(w, run_id, batch_no, kept=True)
        assert replay(w.db, w.services, run_id, 99, lambda _: True) is None


def test_a_failed_batch_replays_to_the_same_failure(database: Database) -> None:
    with world(database, crowded(10, T0, T0 + HOUR, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.provider._served = lambda *_: Reply(status=400, body=b"no", kind="text/plain")  # type: ignore[method-assign]
        w.trigger(until=T0 + HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        found = again(w, run_id, batch_no)
        assert found.equal, found
        assert found.would == dict.fromkeys(found.would, 0)


def test_a_replay_waits_for_the_rate_gate_as_every_request(database: Database) -> None:
    with world(database, crowded(10, T0, T0 + HOUR, crowd=False)) as w:
        tree = pack(w.url, "OFFSET")
        tree["defaults"]["rateLimit"] = {"refillRatePerSec": 0.5, "burstCapacity": 1}
        w.load(tree)
        w.trigger(until=T0 + HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        waits: list[int] = []

        def pause(microseconds: int) -> bool:
            waits.append(microseconds)
            w.clock.advance(microseconds)
            return True

        assert replay(w.db, w.services, run_id, batch_no, pause) is not None
        assert sum(waits) > 0
        found = replay(w.db, w.services, run_id, batch_no, lambda _: False)
        assert found is not None
        assert found.conclusion is RunReason.REPLAY_UNANSWERED
        assert "rate gate" in found.detail


def test_secrets_are_in_the_request_and_nowhere_in_the_evidence(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_KEY", "s3cr3t-key-of-ours")
    with world(database, crowded(10, T0, T0 + HOUR, crowd=False), keep_bodies=True) as w:
        tree = pack(w.url, "OFFSET")
        tree["credentials"] = {"main": {"type": "API_KEY", "secrets": {"apiKey": "env:HOSTILE_KEY"}}}
        tree["defaults"]["auth"] = {
            "type": "API_KEY",
            "credentialRef": "main",
            "location": "QUERY",
            "name": "api_key",
        }
        w.load(tree)
        w.trigger(until=T0 + HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        found = again(w, run_id, batch_no)
        assert found.equal, found
        assert all("api_key=s3cr3t-key-of-ours" in one.path for one in w.provider.asked)
        evidence = export(database, run_id, batch_no)
        assert evidence is not None
        for told in (json.dumps(evidence), repr(found), repr(dump(w))):
            assert "s3cr3t" not in told


def test_kept_bodies_are_exported_as_they_came(database: Database) -> None:
    with world(database, crowded(10, T0, T0 + HOUR, crowd=False), keep_bodies=True) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger(until=T0 + HOUR)
        w.drain()
        run_id, batch_no = batches(w)[0]
        evidence = export(database, run_id, batch_no)
        assert evidence is not None
        assert evidence["body"]["hash"] == evidence["body_hash"]
        body = kept_body(database, evidence["body_hash"])
        assert body is not None
        assert {item["id"] for item in json.loads(body)["items"]} == set(w.landed())
        assert kept_body(database, None) is None
        assert kept_body(database, "0" * 64) is None


def test_an_update_by_ids_replays(database: Database) -> None:
    with world(database, crowded(30, T0, T1, crowd=False), Habits(seed=2)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        w.trigger(Operation.UPDATE, since=None, until=None, ids=tuple(sorted(w.landed())[:25]), activity="again")
        w.drain()
        rows = w.rows("SELECT run_id, batch_no FROM ing_task_run_batch WHERE phase_code = 'DETAIL' ORDER BY 1, 2")
        assert rows
        w.clock.advance(MINUTE)
        for run_id, batch_no in rows:
            assert again(w, run_id, batch_no).equal
