"""History is deleted in bounded batches, kept bodies are bounded, records stay (ch. 14.11)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import zstandard

from patra.app.components.ingest import retention_of
from patra.app.configuration.engine_settings import IngestSettings
from patra.app.configuration.settings import Settings
from patra.ingest.operations.history import Restored, history_files, restore
from patra.ingest.operations.history_place import CODES, SETTING
from patra.ingest.operations.reads.blackbox import kept_body
from patra.ingest.operations.retention import Purged, Retention, into_files, purge_once
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database
from patra.kernel.errors import Invalid, Permanent, Transient
from patra.kernel.files import BucketPlace, FolderPlace
from tests import services
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import crowded

HISTORY = ("ing_task_run_batch", "ing_task_run", "ing_cursor_event")
KEPT = ("ing_task", "ing_plan", "ing_plan_slice", "ing_cursor", "ing_record")


def counts(w: World, *tables: str) -> dict[str, int]:
    return {name: w.one(f"SELECT count(*) FROM {name}") for name in tables}


def test_history_past_its_time_goes_bite_by_bite_and_what_says_what_is_done_stays(
    database: Database, tmp_path: Path
) -> None:
    with world(database, crowded(200, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        kept, landed = counts(w, *KEPT), w.landed()
        history = HISTORY
        before = counts(w, *history)
        assert all(before.values())
        retention = Retention(history=90 * DAY)
        w.clock.advance(89 * DAY)
        assert purge_once(database, w.clock.now(), retention) == Purged()
        assert counts(w, *history) == before
        w.trigger(since=None, until=T1 + HOUR)  # young history, which stays
        w.drain()
        young = {name: count - before[name] for name, count in counts(w, *history).items()}
        w.clock.advance(2 * DAY)
        keep = into_files(FolderPlace(tmp_path / "archive", CODES))
        turns = 0
        while (gone := purge_once(database, w.clock.now(), retention, keep=keep, limit=3)) != Purged():
            assert max(msgspec.structs.astuple(gone)) <= 3
            turns += 1
        assert turns > 1
        assert counts(w, *history) == young
        assert w.landed() == landed == w.provider.truth
        assert counts(w, *KEPT)["ing_record"] == kept["ing_record"]
        archived = [
            msgspec.json.decode(line)
            for file in (tmp_path / "archive").glob("batches-*.jsonl.zst")
            for line in zstandard.ZstdDecompressor().decompress(file.read_bytes(), 1 << 26).splitlines()
        ]
        assert len({row["batch_id"] for row in archived}) == len(archived) == before["ing_task_run_batch"]
        assert not list((tmp_path / "archive").glob("*.part"))
        asked = len(w.provider.asked)
        w.trigger(since=T0, until=T1)  # what is done is still known to be done
        w.drain()
        assert len(w.provider.asked) == asked


def test_the_journal_of_runs_and_their_finished_tasks_goes_with_the_runs(database: Database) -> None:
    with world(database, crowded(200, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        first = w.one("SELECT count(*) FROM krn_move WHERE machine <> 'ing_plan'")
        plans = w.one("SELECT count(*) FROM krn_move WHERE machine = 'ing_plan'")
        w.clock.advance(89 * DAY)
        w.trigger(since=None, until=T1 + HOUR)
        w.drain()
        young = w.one("SELECT count(*) FROM krn_move WHERE machine <> 'ing_plan'") - first
        assert min(first, plans, young) > 0
        w.clock.advance(2 * DAY)
        while purge_once(database, w.clock.now(), Retention(history=90 * DAY), limit=3) != Purged():
            pass
        assert w.one("SELECT count(*) FROM krn_move WHERE machine <> 'ing_plan'") == young
        assert w.one("SELECT count(*) FROM krn_move WHERE machine = 'ing_plan'") > plans


def test_kept_bodies_are_bounded_and_the_oldest_go_first(database: Database) -> None:
    with world(database, crowded(200, T0, T1, crowd=False), keep_bodies=True) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        rows = w.rows("SELECT body_hash, size FROM ing_body ORDER BY kept_at, size, body_hash")
        batches = w.rows("SELECT body_hash FROM ing_task_run_batch")
        assert {digest for (digest,) in batches} == {digest for digest, _ in rows}
        assert purge_once(database, w.clock.now(), Retention()) == Purged()
        bound = sum(size for _, size in rows[-3:])
        assert purge_once(database, w.clock.now(), Retention(bodies=bound)).bodies == len(rows) - 3
        left = w.rows("SELECT body_hash, size FROM ing_body ORDER BY kept_at, size, body_hash")
        assert left == rows[-3:]
        assert kept_body(database, rows[0][0]) is None
        assert kept_body(database, rows[-1][0]) is not None
        w.clock.advance(91 * DAY)
        assert purge_once(database, w.clock.now(), Retention(bodies=bound)).bodies == 3


def test_records_are_purged_only_where_one_asks_for_it(database: Database) -> None:
    with world(database, crowded(50, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        w.clock.advance(4000 * DAY)
        while purge_once(database, w.clock.now(), Retention()) != Purged():
            pass
        assert w.landed() == w.provider.truth
        assert purge_once(database, w.clock.now(), Retention(history=None, records=3000 * DAY), limit=20).records == 20
        assert len(w.landed()) == 30


def test_the_same_answer_is_kept_once(database: Database) -> None:
    with world(database, crowded(10, T0, T0 + HOUR, crowd=False), keep_bodies=True) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger(until=T0 + HOUR)
        w.drain()
        assert w.one("SELECT count(*) FROM ing_body") == 1


def test_history_that_was_moved_to_the_folder_is_brought_back_and_held(database: Database, tmp_path: Path) -> None:
    with world(database, crowded(60, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        before = {name: w.rows(f"SELECT * FROM {name} ORDER BY 1") for name in HISTORY}
        run_id = w.one("SELECT min(run_id) FROM ing_task_run")
        plan_id = w.one("SELECT min(plan_id) FROM ing_plan")
        w.clock.advance(91 * DAY)
        folder = tmp_path / "history"
        place = FolderPlace(folder, CODES)
        keep = into_files(place)

        def purge() -> None:
            while purge_once(database, w.clock.now(), Retention(history=90 * DAY), keep=keep, limit=4) != Purged():
                pass

        purge()
        assert counts(w, *HISTORY) == dict.fromkeys(HISTORY, 0)
        assert {one.kind for one in history_files(place, run_id=run_id)} == {"runs", "batches", "cursor_events"}
        assert history_files(place, run_id="another") == []

        def bring(**what: str) -> Restored:
            return restore(database, place, **what, now=w.clock.now(), hold=7 * DAY)

        assert bring(run_id=run_id).rows == {
            "runs": 1,
            "batches": sum(1 for row in before["ing_task_run_batch"] if row[1] == run_id),
            "cursor_events": w.one("SELECT count(*) FROM ing_cursor_event WHERE run_id = :run", run=run_id),
        }
        assert sum(bring(run_id=run_id).rows.values()) == 0  # again adds nothing
        assert bring(plan_id=plan_id).runs == len(before["ing_task_run"])
        purge()
        assert {name: w.rows(f"SELECT * FROM {name} ORDER BY 1") for name in HISTORY} == before
        w.clock.advance(8 * DAY)
        purge()
        assert counts(w, *HISTORY) == dict.fromkeys(HISTORY, 0)
        assert w.one("SELECT count(*) FROM ing_history_hold") == 0

        with pytest.raises(Invalid, match="holds nothing of another"):
            bring(run_id="another")
        damaged = folder / history_files(place, run_id=run_id)[0].file
        damaged.write_bytes(zstandard.ZstdCompressor().compress(b"{}"))
        with pytest.raises(Invalid, match="not what its index says"):
            bring(run_id=run_id)
        damaged.unlink()
        with pytest.raises(Invalid, match="is not there, and its index is"):
            bring(run_id=run_id)


def test_history_goes_to_a_folder_unless_the_settings_say_otherwise() -> None:
    _, keep = retention_of(Settings())
    assert keep is not None
    _, keep = retention_of(Settings(ingest=IngestSettings(history_folder="")))
    assert keep is None


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server that checks signatures, named by the environment as users name theirs."""
    with services.s3("history") as endpoint:
        for name, value in services.s3_environment(endpoint).items():
            monkeypatch.setenv(name, value)
        yield f"s3://history/{tmp_path.name}"


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_history_goes_to_object_storage_and_comes_back(
    database: Database, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(ingest=IngestSettings(history_url=bucket))
    retention, keep = retention_of(settings)
    with world(database, crowded(60, T0, T1, crowd=False)) as w:
        w.load(pack(w.url, "OFFSET"))
        w.trigger()
        w.drain()
        before = {name: w.rows(f"SELECT * FROM {name} ORDER BY 1") for name in HISTORY}
        plan_id = w.one("SELECT min(plan_id) FROM ing_plan")
        w.clock.advance(91 * DAY)
        with monkeypatch.context() as wrong:
            wrong.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
            with pytest.raises(Permanent, match="i_history_refused"):
                purge_once(database, w.clock.now(), retention, keep=retention_of(settings)[1])
            wrong.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{services.free_port()}")
            with pytest.raises(Transient, match="i_history_unavailable"):
                purge_once(database, w.clock.now(), retention, keep=retention_of(settings)[1])
        assert {name: w.rows(f"SELECT * FROM {name} ORDER BY 1") for name in HISTORY} == before, "nothing went"
        while purge_once(database, w.clock.now(), retention, keep=keep, limit=4) != Purged():
            pass
        assert counts(w, *HISTORY) == dict.fromkeys(HISTORY, 0)

        place = BucketPlace(bucket, CODES, setting=SETTING)
        assert {one.kind for one in history_files(place, plan_id=plan_id)} == {"runs", "batches", "cursor_events"}
        brought = restore(database, place, plan_id=plan_id, now=w.clock.now(), hold=7 * DAY)
        assert brought.runs == len(before["ing_task_run"])
        assert {name: w.rows(f"SELECT * FROM {name} ORDER BY 1") for name in HISTORY} == before
        with pytest.raises(Invalid, match=f"{bucket} holds nothing of another"):
            restore(database, place, run_id="another", now=w.clock.now(), hold=DAY)
