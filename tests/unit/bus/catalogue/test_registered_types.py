"""Programs with different types on one store: each leaves those of the others as they are."""

from patra.bus.catalogue.evolution import release
from patra.bus.catalogue.registered_types import of_catalogue, of_other_programs, shown_types, with_others
from tests.unit.bus.making import catalogue, event_type, version

ORDER = {"key": ["/payload/key"], "scope": "orders", "on_dead_letter": "block"}
SHOP = catalogue(event_type("order.placed", producer="Shop", ordering=ORDER))
PATRA = catalogue(event_type("thing.happened"))


def test_a_release_holds_the_types_of_every_program_whoever_came_last():
    both = release(catalogue(*SHOP.types.values(), *PATRA.types.values()))
    after_patra = with_others(release(PATRA), of_other_programs(release(SHOP), PATRA))
    after_shop = with_others(release(SHOP), of_other_programs(after_patra, SHOP))
    assert after_patra.digest == after_shop.digest == both.digest


def test_only_the_types_that_both_have_can_contradict():
    both = release(catalogue(*SHOP.types.values(), *PATRA.types.values()))
    assert list(of_catalogue(both, PATRA).types) == ["thing.happened"]


def test_a_type_that_is_retired_for_good_goes_with_the_program_that_had_it():
    gone = catalogue(event_type("order.placed", versions=[version(status="retired")]))
    assert of_other_programs(release(gone), PATRA).types == {}


def test_a_type_of_another_program_is_shown_as_it_was_registered():
    shown = shown_types(PATRA, of_other_programs(release(SHOP), PATRA))
    assert set(shown.types) == {"order.placed", "thing.happened"}
    assert shown.types["thing.happened"] is PATRA.types["thing.happened"]
    assert release(catalogue(shown.types["order.placed"])) == release(SHOP)
