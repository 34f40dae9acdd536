"""Whether a provider includes what lies on the bounds of a window, asked with a record that it has."""

from typing import Any

import pytest

from patra.ingest.operations.try_source import Tried
from patra.kernel.clock import SECOND
from tests.contract.ingest.running.world import T0, T1
from tests.support.hostile_provider import Item, Provider, crowded
from tests.unit.ingest.operations.trial.test_pages import attempt

ITEMS = crowded(60, T0, T1, crowd=False)


class Bounded(Provider):
    """Compares as it is told: `lower` and `upper` include their bound; instants are cut to whole `unit`s first."""

    def __init__(self, items: list[Item], *, lower: bool, upper: bool, unit: int = 1) -> None:
        super().__init__(items)
        self._lower, self._upper, self._unit = lower, upper, unit

    def selection(self, query: dict[str, str]) -> list[Item]:
        from patra.kernel.clock import parse_instant

        since, until = parse_instant(query["from"]) or 0, parse_instant(query["until"]) or 0

        def within(item: Item) -> bool:
            at = item.updated // self._unit * self._unit
            above = at >= since if self._lower else at > since
            return above and (at <= until if self._upper else at < until)

        return [item for item in self._items if within(item)][::-1]


def probe(provider: Provider, *, kind: str = "OFFSET", two_phase: bool = False, **window: Any) -> Tried:
    return attempt(kind, provider=provider, two_phase=two_phase, window=window, probe_bounds=True, pages=1)


@pytest.mark.parametrize(
    ("upper", "declared", "says", "loses"),
    [
        (True, {}, "declare `window.bounds: inclusive` and `window.precision: millisecond`", False),
        (False, {}, "declare `window.bounds: exclusive`", False),
        (True, {"bounds": "inclusive", "precision": "millisecond"}, "as the pack declares", False),
        (False, {"bounds": "exclusive", "precision": "millisecond"}, "as the pack declares", False),
        (True, {"bounds": "exclusive", "precision": "millisecond"}, "declared exclusive: records at the end", False),
        (False, {"bounds": "inclusive", "precision": "millisecond"}, "declared inclusive: the last millisecond", True),
    ],
)
def test_the_upper_bound_is_probed_and_held_against_the_pack(
    upper: bool, declared: dict[str, str], says: str, loses: bool
) -> None:
    found = probe(Bounded(ITEMS, lower=True, upper=upper), **declared)
    assert found.bounds is not None
    assert (found.bounds.lower, found.bounds.upper) == ("inclusive", "inclusive" if upper else "exclusive")
    assert found.bounds.says.startswith(says)
    assert found.bounds.loses is loses
    assert found.is_good is not loses


@pytest.mark.parametrize("kind", ["PAGE", "TOKEN", "URL", "TIME"])
def test_every_kind_of_paging_is_probed(kind: str) -> None:
    found = probe(Bounded(ITEMS, lower=True, upper=False), kind=kind)
    assert found.bounds is not None
    assert (found.bounds.lower, found.bounds.upper) == ("inclusive", "exclusive")


def test_the_times_of_the_details_are_used_where_the_list_has_ids_only() -> None:
    found = probe(Bounded(ITEMS, lower=True, upper=False), two_phase=True)
    assert found.bounds is not None
    assert (found.bounds.lower, found.bounds.upper) == ("inclusive", "exclusive")
    assert found.bounds.record in {one["id"] for one in found.records} | {one.id for one in ITEMS}


def test_a_lower_bound_that_is_exclusive_loses_records() -> None:
    found = probe(Bounded(ITEMS, lower=False, upper=True))
    assert found.bounds is not None
    assert (found.bounds.lower, found.bounds.loses) == ("exclusive", True)
    assert "one millisecond less than `window.from`" in found.bounds.says
    assert not found.is_good


def test_a_filter_that_goes_by_another_time_shows_nothing() -> None:
    elsewhere = [Item(one.updated - 3600 * SECOND, one.id, one.title) for one in ITEMS]

    class Other(Bounded):
        def selection(self, query: dict[str, str]) -> list[Item]:
            by_id = {one.id: one for one in ITEMS}
            return [by_id[one.id] for one in super().selection(query)]

    found = probe(Other(elsewhere, lower=True, upper=True))
    assert found.bounds is not None
    assert (found.bounds.lower, found.bounds.upper, found.bounds.loses) == ("unclear", "unclear", False)
    assert found.bounds.says.startswith("the record does not come back for the time around its own")


def test_a_declared_bound_is_not_probed_unless_it_is_asked_for() -> None:
    assert attempt("OFFSET", window={"bounds": "exclusive", "precision": "millisecond"}).bounds is None
    assert attempt("OFFSET", window={}).bounds is not None
    assert attempt("OFFSET", window={}, pages=1).bounds is None, "one request is one request"
