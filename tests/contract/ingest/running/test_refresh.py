"""A refresh fetches the stale, the changed and the signalled records, and no others (ch. 4.14, 6.3)."""

from typing import Any

import pytest

from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import Overrides, compile_spec, offered_operations
from patra.ingest.planning import store
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, MINUTE
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.hostile_provider import crowded

ITEMS = crowded(40, T0, T1, crowd=False)
LISTS = [
    (name, endpoint)
    for name in bundled.names()
    for endpoint in bundled.pack(name).pack.endpoints
    if {Operation.HARVEST, Operation.UPDATE} <= set(offered_operations(bundled.pack(name).pack, endpoint))
]


@pytest.mark.parametrize(("name", "endpoint"), LISTS)
def test_what_a_shipped_pack_harvests_is_current_for_its_refresh(name: str, endpoint: str) -> None:
    loaded = bundled.pack(name)
    required = {n: "x" for n, p in loaded.pack.endpoints[endpoint].params.items() if p.required and p.default is None}
    made = [
        compile_spec(loaded, endpoint, op, Overrides(params=required)).spec
        for op in (Operation.HARVEST, Operation.UPDATE)
    ]
    harvest, refresh = made
    if harvest is None or refresh is None:
        pytest.skip("needs parameters that no test can guess")
    assert harvest.record_expr_hash in refresh.current_expr_hashes


def of_other_legs(w: World, title: str = "$.title") -> dict[str, Any]:
    """The list and the details are read by mappings of their own, as those of Crossref and DataCite are."""
    tree = pack(w.url, "OFFSET", update={"staleAfter": "P30D", "rounds": 1})
    tree["endpoints"]["details"]["output"] = {"fields": {"title": title, "kind": "detail"}}
    tree["endpoints"]["details"]["output"]["fields"]["kind"] = "${concat('de', 'tail')}"
    return tree


def refresh(w: World, endpoint: str = "search", **more: Any):
    return w.planner.trigger(Trigger(source="hostile", endpoint=endpoint, operation=Operation.UPDATE, **more))


def asked_details(w: World) -> int:
    return w.one("SELECT count(*) FROM ing_task_run_batch WHERE phase_code = 'DETAIL'")


def test_fresh_records_of_a_list_are_no_candidates(database: Database) -> None:
    with world(database, ITEMS) as w:
        w.load(of_other_legs(w))
        w.trigger()
        w.drain()
        assert refresh(w).outcome is Reason.NO_CANDIDATES
        ids = sorted(w.landed())[:2]
        now = w.clock.now()
        w.db.run(lambda tx: store.raise_signals(tx, "hostile", "search", ids, reason="r", detail="", by="t", now=now))
        w.clock.advance(MINUTE)
        refresh(w)
        w.drain()
        assert asked_details(w) == 1
        w.clock.advance(MINUTE)
        assert refresh(w).outcome is Reason.NO_CANDIDATES, "a record that the detail endpoint gave is current, too"
        w.clock.advance(31 * DAY)
        refresh(w)
        w.drain()
        assert w.one("SELECT count(*) FROM ing_record WHERE refresh_checked_at > :at", at=w.clock.now() - DAY) == 40


def test_a_changed_mapping_makes_all_records_candidates(database: Database) -> None:
    with world(database, ITEMS) as w:
        w.load(of_other_legs(w))
        w.trigger()
        w.drain()
        tree = of_other_legs(w)
        tree["endpoints"]["search"]["output"] = {"fields": {"name": "$.title"}}
        w.load(tree | {"version": "2"})
        assert refresh(w).outcome is Reason.PLANNED
        w.drain()
        assert {frozenset(one["fields"]) for one in w.contents().values()} == {frozenset({"title", "kind"})}


def test_a_refresh_of_the_detail_endpoint_keeps_its_records_with_the_list(database: Database) -> None:
    with world(database, ITEMS) as w:
        w.load(of_other_legs(w))
        w.trigger()
        w.drain()
        refresh(w, "details", ids=tuple(sorted(w.landed())[:3]))
        w.drain()
        assert w.rows("SELECT endpoint_name, count(*) FROM ing_record GROUP BY 1") == [("search", 40)]
        assert sum("kind" in one["fields"] for one in w.contents().values()) == 3
