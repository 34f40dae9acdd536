"""A provider that compares by the millisecond, and requests that write the end of a window more coarsely (I11)."""

from typing import Any

import pytest

from patra.ingest.vocabulary.instants import read_instant
from patra.kernel.clock import HOUR, SECOND
from patra.kernel.db import Database
from tests.contract.ingest.running.world import T0, pack, world
from tests.support.hostile_provider import Item, Provider

SECONDS = "formatDateTime(window.until, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")"
MILLIS = "formatDateTime(window.until, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"
DATES = "formatDateTime(window.until, 'yyyy-MM-dd')"
EPOCH_S = "formatDateTime(window.until, 'EPOCH_S')"
MS = SECOND // 1000

ITEMS = [
    Item(end - before * MS, f"r{number * 10 + place:06}", "Title")
    for number, end in enumerate(range(T0 + 5 * HOUR, T0 + 46 * HOUR, 5 * HOUR))
    for place, before in enumerate((1, 250, 999, 1000, 1001))
]
"""At the end of each window of five hours: its last millisecond, its last second, and what is before it."""

INCLUSIVE = {"bounds": "inclusive", "precision": "millisecond"}
EXCLUSIVE = {"bounds": "exclusive", "precision": "millisecond"}


class ByMillisecond(Provider):
    def __init__(self, items: list[Item], *, inclusive: bool) -> None:
        super().__init__(items)
        self._inclusive = inclusive

    def selection(self, query: dict[str, str]) -> list[Item]:
        since, until = (_at(query[name]) for name in ("from", "until"))
        found = (one for one in self._items if since <= one.updated)
        return [one for one in found if one.updated < until or (self._inclusive and one.updated == until)][::-1]


def _at(text: str) -> int:
    return int(text) * SECOND if text.isdigit() else read_instant(text).at  # type: ignore[union-attr]


def harvested(database: Database, until: str, window: dict[str, Any], *, inclusive: bool) -> tuple[set[str], set[str]]:
    with world(database, ITEMS) as w:
        provider = ByMillisecond(ITEMS, inclusive=inclusive)
        w.provider.selection = provider.selection  # type: ignore[method-assign]
        sizes = {"align": "hour", "minWindow": "PT1H", "maxWindow": "PT5H"}
        tree = pack(w.url, "OFFSET", window=sizes | window)
        search = tree["endpoints"]["search"]
        search["http"]["queryTemplate"]["until"] = f"${{{until}}}"
        search["response"].pop("totalPath")
        w.load(tree)
        w.trigger(until=T0 + 45 * HOUR)
        w.drain()
        assert w.rows("SELECT DISTINCT status_code FROM ing_task") == [("SUCCEEDED",)]
        return {one for (one,) in w.rows("SELECT provider_id FROM ing_record")}, {one.id for one in ITEMS}


@pytest.mark.parametrize(("window", "inclusive"), [(INCLUSIVE, True), (EXCLUSIVE, False)])
@pytest.mark.parametrize("until", [MILLIS, "window.until"])
def test_an_end_that_is_sent_as_it_is_declared_loses_nothing(
    database: Database, until: str, window: dict[str, Any], inclusive: bool
) -> None:
    landed, truth = harvested(database, until, window, inclusive=inclusive)
    assert landed == truth


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("until", [SECONDS, DATES, EPOCH_S])
def test_an_undeclared_end_is_sent_so_that_nothing_is_lost(database: Database, until: str, inclusive: bool) -> None:
    """In whole days, the day after the one in which the window ends is sent."""
    landed, truth = harvested(database, until, {}, inclusive=inclusive)
    assert landed == truth


@pytest.mark.parametrize(("window", "inclusive"), [(INCLUSIVE, True), (EXCLUSIVE, False)])
@pytest.mark.parametrize("coarse", [SECONDS, DATES, EPOCH_S])
def test_an_end_that_is_coarse_in_some_windows_only_is_over_read(
    database: Database, coarse: str, window: dict[str, Any], inclusive: bool
) -> None:
    """The check cannot see it: what it tries is written in full."""
    until = f"window.until < parseDateTime('2026-03-05') ? {coarse} : window.until"
    landed, truth = harvested(database, until, window, inclusive=inclusive)
    assert landed == truth
