"""A record that changes without a new update time: kept by default, newer where the source declares it (ruling I14)."""

import json
from collections.abc import Iterable

import pytest

from patra.ingest.landing.records import Incoming, Stored, incoming, sort_out
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.db import Database
from tests.contract.ingest.running.world import pack, world


def record(title: str, at: int = 5, version: str | None = None) -> Incoming:
    made = incoming("a", at, version, {"title": title}, None, deleted=False)
    assert made is not None
    return made


def stored(one: Incoming) -> dict[str, Stored]:
    return {"a": Stored(one.updated_at, one.version, "hash", one.content_hash)}


def counts(found: Iterable[Incoming], was: Incoming, *, by_content: bool) -> tuple[int, int, int, int]:
    out = sort_out(found, stored(was), "hash", remap=False, by_content=by_content)
    return len(out.newer), out.same_time, len(out.equal), len(out.older)


@pytest.mark.parametrize(
    ("now", "declared", "found"),
    [
        (record("new"), True, (1, 1, 0, 0)),
        (record("new"), False, (0, 0, 1, 0)),
        (record("old"), True, (0, 0, 1, 0)),
        (record("new", 6), True, (1, 0, 0, 0)),
        (record("new", 4), True, (0, 0, 0, 1)),
        (record("new", version="2"), True, (1, 0, 0, 0)),  # a higher version is newer by itself
    ],
)
def test_other_content_under_the_same_instant(now: Incoming, declared: bool, found: tuple[int, ...]) -> None:
    assert counts([now], record("old"), by_content=declared) == found


def test_a_lower_version_is_older_whatever_it_contains() -> None:
    assert counts([record("new", version="1")], record("old", version="2"), by_content=True) == (0, 0, 0, 1)


def test_of_two_on_one_page_the_one_fetched_last_is_taken() -> None:
    out = sort_out([record("first"), record("second")], {}, "hash", remap=False, by_content=True)
    assert [one.content_hash for one in out.new] == [record("second").content_hash]
    out = sort_out([record("first"), record("second")], {}, "hash", remap=False)
    assert [one.content_hash for one in out.new] == [record("first").content_hash]


@pytest.mark.parametrize("declared", [True, False])
def test_a_record_read_again_is_refreshed_where_the_pack_declares_it(database: Database, declared: bool) -> None:
    with world(database) as w:
        w.load(pack(w.url, response={"onEqual": "CONTENT" if declared else "KEEP"}))
        w.trigger(Operation.BACKFILL)
        w.drain()
        before = w.contents()
        changed, at = next(iter(w.provider.truth.items()))
        w.provider.change(changed, at)
        w.trigger(Operation.BACKFILL, activity="again")
        w.drain()
        differ = [key for key, found in w.contents().items() if found != before[key]]
        assert differ == ([changed] if declared else [])
        stats = [json.loads(row[0]) for row in w.rows("SELECT stats FROM ing_task_run")]
        assert [sum(one[name] for one in stats) for name in ("updatedSameTime", "updated")] == [int(declared)] * 2
        assert w.one("SELECT count(*) FROM ing_record") == len(w.provider.truth)
