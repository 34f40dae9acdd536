"""Exports may hold what the searches of one topic found, in a store with several topics."""

from pathlib import Path

import msgspec

from patra.ingest.operations.retention import Retention, purge_once
from patra.ingest.planning import own_schedules
from patra.ingest.planning.schedule import Scheduled, ScheduledExport
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.works.read import count, topics
from patra.ingest.works.scheduled_export import ScheduledExports
from patra.kernel.clock import DAY, HOUR, SECOND
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import Reply, crowded

ITEMS = crowded(40, T0, T1, crowd=False)
FIRST, SECOND_HALF = (T0, T0 + 30 * HOUR), (T0 + 18 * HOUR, T1)
"""Two windows with twelve hours in common: some records are found by both searches."""


def searched(w: World, **more: object) -> None:
    """A pack whose list takes a search term."""
    tree = pack(w.url, "OFFSET", params={"term": {"default": ""}}, **more)
    tree["endpoints"]["search"]["http"]["queryTemplate"]["term"] = "${params.term}"
    w.load(tree)


def of_topic(w: World, topic: str) -> set[str]:
    rows = w.rows("SELECT provider_id FROM ing_topic_record WHERE topic = :topic", topic=topic)
    return {one for (one,) in rows}


def within(w: World, window: tuple[int, int]) -> set[str]:
    return {one for one, at in w.provider.truth.items() if window[0] <= at < window[1]}


def test_a_record_that_two_topics_found_is_in_both_and_no_other_is(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)
        for topic, (since, until) in (("otters", FIRST), ("bees", SECOND_HALF)):
            w.trigger(Operation.BACKFILL, since, until, params={"term": topic}, topic=topic)
            w.drain()
        both = within(w, FIRST) & within(w, SECOND_HALF)
        assert both
        assert (of_topic(w, "otters"), of_topic(w, "bees")) == (within(w, FIRST), within(w, SECOND_HALF))
        assert count(database, topic="otters") == len(within(w, FIRST))
        assert count(database, ("hostile",), topic="bees") == len(within(w, SECOND_HALF))
        assert count(database, ("other",), topic="bees") == 0
        assert database.read(topics) == ["bees", "otters"]
        w.trigger(since=T0, until=T1)
        w.drain()
        assert of_topic(w, "otters") == within(w, FIRST), "another search is not the topic's"


def test_a_topic_reads_what_another_search_has_read_before_and_its_own_windows_once(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)
        w.trigger(Operation.BACKFILL, params={"term": "otters"})
        w.drain()
        assert of_topic(w, "otters") == set()
        assert w.trigger(Operation.BACKFILL, params={"term": "otters"}, topic="otters").outcome is Reason.PLANNED
        w.drain()
        assert of_topic(w, "otters") == set(w.provider.truth)
        again = w.trigger(Operation.BACKFILL, params={"term": "otters"}, topic="otters")
        assert again.outcome is Reason.WINDOW_COVERED


def test_a_campaign_reads_again_for_a_topic_what_it_has_read_without_one(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)
        asked = {"params": {"term": "otters"}, "activity": "spring"}
        w.trigger(Operation.BACKFILL, **asked)
        w.drain()
        assert w.trigger(Operation.BACKFILL, **asked, topic="otters").outcome is Reason.PLANNED
        w.drain()
        assert of_topic(w, "otters") == set(w.provider.truth)
        assert w.trigger(Operation.BACKFILL, **asked, topic="otters").outcome is Reason.WINDOW_COVERED
        assert w.trigger(Operation.BACKFILL, **asked).outcome is Reason.WINDOW_COVERED


def test_a_harvest_is_followed_from_when_the_topic_is_named_whoever_runs_it(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)
        w.trigger(until=T0 + DAY, params={"term": "otters"})
        w.drain()
        covered = w.trigger(until=T0 + DAY, params={"term": "otters"}, topic="otters")
        assert covered.outcome is Reason.WINDOW_COVERED
        w.trigger(since=None, params={"term": "otters"})
        w.drain()
        assert of_topic(w, "otters") == within(w, (T0 + DAY, T1))


def test_a_refresh_adds_nothing_to_a_topic_and_may_not_name_one(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)
        w.trigger(Operation.BACKFILL, *FIRST, params={"term": "otters"}, topic="otters")
        w.trigger(Operation.BACKFILL, *SECOND_HALF, params={"term": "bees"})
        w.drain()
        other = min(within(w, SECOND_HALF) - within(w, FIRST))
        w.trigger(Operation.UPDATE, None, None, params={"term": "otters"}, ids=(other,))
        w.drain()
        assert w.one("SELECT count(*) FROM ing_task WHERE operation_code = 'UPDATE' AND status_code = 'SUCCEEDED'") == 1
        assert of_topic(w, "otters") == within(w, FIRST)
        refused = w.trigger(Operation.UPDATE, None, None, topic="otters")
        assert refused.outcome is Reason.OPTION_UNUSED


def without_detail(w: World, missing: set[str]) -> None:
    """A list that names records whose details do not come as long as they are in `missing`."""
    tree = pack(w.url, "OFFSET", two_phase=True, params={"term": {"default": ""}})
    tree["endpoints"]["search"]["http"]["queryTemplate"]["term"] = "${params.term}"
    tree["endpoints"]["details"]["batching"]["missingIds"] = "QUARANTINE"
    w.load(tree)
    serve = w.provider._served

    def served(method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        for one in missing if path == "/details" else ():
            body = body.replace(one.encode(), b"nobody")
        return serve(method, path, query, body)

    w.provider._served = served  # type: ignore[method-assign]


def test_what_was_set_aside_is_in_the_topic_when_a_refresh_lands_it(database: Database) -> None:
    with world(database, ITEMS) as w:
        healed, never = ITEMS[3].id, ITEMS[5].id
        missing = {healed, never}
        without_detail(w, missing)
        w.trigger(Operation.BACKFILL, params={"term": "otters"}, topic="otters")
        w.drain()
        assert set(w.landed()) == set(w.provider.truth) - {healed, never}
        assert count(database, topic="otters") == len(w.provider.truth) - 2
        missing.discard(healed)
        w.trigger(Operation.UPDATE, None, None, params={"term": "otters"}, ids=(healed,))
        w.drain()
        assert count(database, topic="otters") == len(w.provider.truth) - 1
        assert of_topic(w, "otters") >= {healed, never}
        w.run("UPDATE ing_quarantine SET status_code = 'DISMISSED' WHERE provider_id = :id", id=never)
        w.clock.advance(400 * DAY)
        while any(msgspec.structs.astuple(purge_once(database, w.clock.now(), Retention(history=DAY)))):
            pass
        assert of_topic(w, "otters") == set(w.provider.truth) - {never}, "what never landed goes with its row"


def test_a_record_that_is_deleted_leaves_its_topics_and_identifiers(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)
        w.trigger(Operation.BACKFILL, params={"term": "otters"}, topic="otters")
        w.drain()
        w.run(
            "INSERT INTO ing_record_identifier SELECT '10.5555/' || provider_id, provenance_code, endpoint_name, provider_id"
            " FROM ing_record"
        )
        w.clock.advance(400 * DAY)
        while purge_once(database, w.clock.now(), Retention(records=DAY)).records:
            pass
        assert (w.landed(), of_topic(w, "otters")) == ({}, set())
        assert w.rows("SELECT identifier FROM ing_record_identifier") == []


def test_a_search_is_followed_as_long_as_a_schedule_has_it_under_the_topic(database: Database) -> None:
    with world(database, ITEMS) as w:
        searched(w)

        def schedule(name: str, topic: str) -> Scheduled:
            said = {"endpoint": "search", "operation": "HARVEST", "cron": "0 3 * * *", "params": {"term": "otters"}}
            return own_schedules.schedule_of(f"hostile/{name}", said, None, topic)

        def followed() -> list[str]:
            return [topic for (topic,) in w.rows("SELECT topic FROM ing_topic_selection ORDER BY topic")]

        for name in ("one", "two"):
            entry = schedule(name, "typo")
            database.run(lambda tx, entry=entry: own_schedules.add(tx, entry, by="me", now=w.clock.now()))
        w.planner.run_once()
        w.drain()
        assert (followed(), of_topic(w, "typo")) == (["typo"], set(w.provider.truth))
        changed = schedule("one", "otters")
        database.run(lambda tx: own_schedules.change(tx, changed, by="me", now=w.clock.now(), why=""))
        assert followed() == ["typo"], "the other schedule still has it"
        database.run(lambda tx: own_schedules.remove(tx, "hostile/two", why=""))
        w.clock.advance(DAY)
        w.planner.run_once()
        assert followed() == ["otters"]
        assert database.read(topics) == ["otters", "typo"], "what was noted stays, and can be exported"
        later = schedule("one", "otters")
        database.run(lambda tx: own_schedules.change(tx, later, by="me", now=w.clock.now(), why="the same again"))
        assert followed() == ["otters"]


def test_the_file_of_a_schedule_with_a_topic_holds_only_the_topic(database: Database, tmp_path: Path) -> None:
    with world(database, ITEMS) as w:
        searched(w, output={"shape": "work", "fields": {"title": "$.title"}})
        w.clock.set(T0 + 30 * HOUR)
        w.trigger(Operation.BACKFILL, T0, T0 + 12 * HOUR, params={"term": "bees"})
        w.drain()
        files = {what: tmp_path / f"{what}.jsonl" for what in ("works", "records")}
        for what, file in files.items():
            said = {"endpoint": "search", "operation": "BACKFILL", "cron": "0 3 * * *", "last": "P1D"}
            then = ScheduledExport(what=what, out=str(file), dedupe=what == "works", topic="otters")
            entry = own_schedules.schedule_of(f"hostile/{what}", {**said, "params": {"term": "otters"}}, then, "otters")
            database.run(lambda tx, entry=entry: own_schedules.add(tx, entry, by="me", now=w.clock.now()))
        w.planner.run_once()
        w.drain()
        w.clock.advance(SECOND)
        assert ScheduledExports(database, w.clock).run_once().written == 2
        found = of_topic(w, "otters")
        assert 0 < len(found) < len(w.landed())
        records = [msgspec.json.decode(line) for line in files["records"].read_bytes().splitlines()]
        assert {one["id"] for one in records} == found
        works = [msgspec.json.decode(line) for line in files["works"].read_bytes().splitlines()]
        assert {seen["id"] for one in works for seen in one["seen"]} == found
