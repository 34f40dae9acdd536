"""Random lists with missing, suppressed, null, repeated and moving records and lost links, through every kind of paging.

By the real executor, over HTTP, into a store. Either everything that the provider has landed, or the window is told as
INCOMPLETE (a list that turns in a circle: as FAILED) and the watermark stands before it; never a silent hole (I10).
"""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patra.ingest.landing.window_ledger import incomplete
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import MINUTE
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, T1, World, pack, world
from tests.support.examples import examples
from tests.support.hostile_provider import Item, Provider, Reply

KINDS = ["OFFSET", "PAGE", "TOKEN", "URL", "LINK", "TIME"]
SIZE = 5


class SpoiltProvider(Provider):
    """Some of its records are spoilt in every list; one link is lost; one record leaves the window on the way."""

    def spoil(self, items: list[Item], faults: dict[int, str], lost_link: int | None, leaves: int | None) -> None:
        """Begin anew with other records; faults go by a record's number."""
        self._items = sorted(items)
        self._by_id = {item.id: item for item in self._items}
        self._cursors, self._last = {}, {}
        self.faults = {f"r{number:06}": fault for number, fault in faults.items()}
        self.lost_link = None if lost_link is None else f"r{lost_link:06}"
        self.leaves = None if leaves is None else f"r{leaves:06}"
        self.lists = 0

    def _served(self, method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        reply = super()._served(method, path, query, body)
        if path == "/details" or reply.status != 200:
            return reply
        tree, headers = json.loads(reply.body), dict(reply.headers)
        if path == "/time":
            tree["total"] = len(self.selection({**query, "order": "asc"}))
        shown = tree["items"]
        if self.lost_link in {_name(one) for one in shown}:
            tree["next"] = None
            headers.clear()
        tree["items"] = [place for one in shown for place in self._places(one, shown)]
        self.lists += 1
        leaver = self._by_id.get(self.leaves or "")
        if self.lists == 2 and leaver is not None:
            self._change(leaver, T1 + MINUTE)
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind, headers=headers)

    def _places(self, one: Any, shown: list[Any]) -> list[Any]:
        match self.faults.get(_name(one)):
            case "missing":
                return []
            case "null":
                return [None]
            case "repeated":
                return [next((other for other in shown if _name(other) not in self.faults), one)]  # one that came, too
            case _:
                return [one]


def _name(item: Any) -> str:
    return item if isinstance(item, str) else item["id"]


def harvest(w: World, source: str, kind: str, *, two_phase: bool, short: str | None) -> None:
    pagination: dict[str, Any] = {"pageSize": SIZE} | ({"shortPage": short} if short else {})
    response = {"totalPath": "$.total"} if kind == "TIME" else {}
    tree = pack(w.url, kind, two_phase=two_phase, pagination=pagination, response=response, window={"maxWindow": "P2D"})
    tree["source"] = source
    w.load(tree)
    w.planner.trigger(Trigger(source=source, endpoint="search", operation=Operation.HARVEST, since=T0, until=T1))
    w.drain()


Case = tuple[dict[int, str], int | None, int | None, str | None]
NONE: Case = ({}, None, None, None)
MISSING: Case = ({8: "missing"}, None, None, None)
WITHHELD: Case = ({8: "missing", 9: "missing"}, None, None, "SUPPRESSED")
NULL: Case = ({2: "null", 11: "null"}, None, None, None)
REPEATED: Case = ({8: "repeated"}, None, None, None)
LOST_LINK: Case = ({}, 7, None, None)
LEAVING: Case = ({}, None, 2, None)
faults = st.dictionaries(st.integers(0, 24), st.sampled_from(["missing", "null", "repeated"]), max_size=3)
places = st.none() | st.integers(0, 24)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_landed_or_the_window_is_told_as_incomplete(database: Database, kind: str) -> None:
    provider = SpoiltProvider([])
    numbers = iter(range(1_000_000))

    @settings(max_examples=examples(2))
    @given(
        count=st.integers(0, 25),
        case=st.tuples(faults, places, places, st.sampled_from([None, "CONTINUE", "SUPPRESSED"])),
        two_phase=st.booleans() if kind != "TIME" else st.just(False),  # ids without update times
    )
    @example(count=14, case=NONE, two_phase=False)
    @example(count=14, case=MISSING, two_phase=False)
    @example(count=14, case=WITHHELD, two_phase=False)
    @example(count=14, case=NULL, two_phase=kind != "TIME")
    @example(count=14, case=REPEATED, two_phase=False)
    @example(count=14, case=LOST_LINK, two_phase=kind != "TIME")
    @example(count=14, case=LEAVING, two_phase=False)
    def check(count: int, case: Case, two_phase: bool) -> None:
        spoilt, lost_link, leaves, short = case
        short = (
            None if short == "SUPPRESSED" and kind == "TIME" else short
        )  # a list by time has no places to leave empty
        items = [Item(T0 + (number + 1) * MINUTE, f"r{number:06}", f"Title {number}") for number in range(count)]
        provider.spoil(items, spoilt, lost_link, leaves)
        source = f"s{next(numbers)}"
        harvest(w, source, kind, two_phase=two_phase, short=short)
        landed = {one for (one,) in w.rows("SELECT provider_id FROM ing_record WHERE provenance_code = :s", s=source)}
        mark = w.one("SELECT normalized_instant FROM ing_cursor WHERE provenance_code = :s", s=source)
        failed = w.rows(
            "SELECT reason_code FROM ing_task WHERE provenance_code = :s AND status_code = 'FAILED'", s=source
        )
        told = database.read(lambda tx: incomplete(tx, source))
        assert len(told) == sum(1 for (code,) in failed if code == "i_incomplete")
        there = {item.id for item in provider._items if T0 <= item.updated < T1}
        withheld = {one for one, fault in provider.faults.items() if fault == "missing" and short == "SUPPRESSED"}
        nameless = {one for one, fault in provider.faults.items() if fault == "null"} & there
        hole = there - landed - withheld - nameless
        if failed:
            assert mark in {None, T0}, "the watermark moved past a hole"
        else:
            assert not hole, f"done, but {sorted(hole)} never came"
            assert mark == T1
            counted = w.one("SELECT sum(null_items) FROM ing_window_ledger WHERE provenance_code = :s", s=source)
            assert counted >= len(nameless)
        if not spoilt and leaves is None and (lost_link is None or kind not in {"TOKEN", "URL", "LINK"}):
            assert not failed, failed

    with world(database, []) as w:
        w.provider.answer = provider.answer  # type: ignore[method-assign]
        provider.spoil([], {}, None, None)
        check()
