"""History goes in bounded bites, kept bodies are bounded, records stay (ch. 14.11)."""

from pathlib import Path

import msgspec
import zstandard

from patra.demo.hostile import crowded
from patra.ingest.blackbox import kept_body
from patra.ingest.retention import Purged, Retention, into_files, purge_once
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world

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
        history = ("ing_task_run_batch", "ing_task_run", "ing_cursor_event")
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
        keep = into_files(tmp_path / "archive")
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
