"""A snapshot is compiled again when anything that it is made from has changed, and only then (3.7)."""

from collections.abc import Callable
from typing import Any

from patra.ingest.packs import staged_release
from patra.ingest.packs.compiler import Compiled
from patra.ingest.packs.spec import encode_spec
from patra.ingest.planning.planner import Planner
from patra.ingest.planning.snapshot_cache import SnapshotCache
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.db.queries import statement
from tests.unit.ingest.packs.effects.observe import built
from tests.unit.ingest.packs.effects.stand_in import NOW, Site, Tree, loaded_tree, site

PARAM = {"params": {"term": {"default": "a"}}, "http.queryTemplate.q": "${params.term}"}


def trigger(operation: Operation = Operation.HARVEST, **said: Any) -> Trigger:
    return Trigger(source="s", endpoint="search", operation=operation, **said)


def versions(s: Site, cache: SnapshotCache, *triggers: Trigger) -> list[str]:
    """The snapshots of triggers, held against those of a planner without a cache."""
    kept, plain = Planner(s.db, s.clock, snapshots=cache), Planner(s.db, s.clock)
    found: list[str] = []
    for one in triggers:
        spec, anew = kept.compile(one).spec, plain.compile(one).spec
        assert (spec is None) == (anew is None)
        assert spec is None or anew is None or encode_spec(spec) == encode_spec(anew)
        found.append(spec.spec_fingerprint if spec is not None else "")
    return found


def load(s: Site, version: str, **given: Any) -> Tree:
    tree = {**built(PARAM | given), "version": version}
    s.load(tree)
    return tree


def test_what_is_said_again_of_the_same_pack_is_not_compiled_again() -> None:
    with site() as s:
        load(s, "1")
        cache = SnapshotCache()
        first, second = versions(s, cache, trigger(), trigger())
        assert (first == second, cache.hits) == (True, 1)
        others = versions(
            s, cache, trigger(params={"term": "b"}), trigger(priority=7), trigger(Operation.BACKFILL), trigger()
        )
        assert (len({*others}), cache.hits) == (4, 2)


def test_another_pack_a_code_that_is_off_and_a_trial_are_noticed() -> None:
    with site() as s:
        load(s, "1")
        cache = SnapshotCache()
        (first,) = versions(s, cache, trigger())
        load(s, "2", **{"pagination.pageSize": 20})
        (second,) = versions(s, cache, trigger())
        assert (first != second, cache.hits) == (True, 0)
        s.db.run(
            lambda tx: staged_release.stage(tx, loaded_tree({**built(PARAM), "version": "3"}), 100, by="me", now=NOW)
        )
        (third,) = versions(s, cache, trigger())
        assert (third not in {first, second}, cache.hits) == (True, 0)
        s.db.run(lambda tx: staged_release.roll_back(tx, "s"))
        s.db.run(
            lambda tx: tx.execute(
                statement("test", "UPDATE sys_dict_item SET enabled = 0 WHERE item_code = 'OFFSET'"), {}
            )
        )
        assert versions(s, cache, trigger()) == [""]
        assert cache.hits == 0


class CacheWithPause(SnapshotCache):
    """Something happens in the store after a snapshot was looked for and before it is compiled."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def find(self, key: str) -> Compiled | None:
        found = super().find(key)
        self._happens()
        return found


def test_a_trial_that_begins_before_the_snapshot_is_compiled_is_not_kept_for_later() -> None:
    with site() as s:
        load(s, "1")
        tried = loaded_tree({**built(PARAM | {"pagination.pageSize": 20}), "version": "2"})
        pause = CacheWithPause(
            lambda: s.db.run(lambda tx: staged_release.stage(tx, tried, 100, by="me", now=NOW)) if on else None
        )
        on = True
        kept = Planner(s.db, s.clock, snapshots=pause)
        spec = kept.compile(trigger()).spec
        assert spec is not None
        assert spec.pack_version == "2"
        on = False
        s.db.run(lambda tx: staged_release.roll_back(tx, "s"))
        again = kept.compile(trigger()).spec
        assert again is not None
        assert again.pack_version == "1"


def test_the_least_used_snapshot_goes_first() -> None:
    with site() as s:
        load(s, "1")
        cache = SnapshotCache(size=2)
        versions(
            s, cache, trigger(), trigger(priority=1), trigger(), trigger(priority=2), trigger(), trigger(priority=1)
        )
        assert cache.hits == 2
