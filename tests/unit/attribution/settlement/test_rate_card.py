"""Which price a fact has."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from patra.attribution.settlement.rate_card import MAX_PRICE_MICROS, Rate, check_rate, rate_for, read_rates
from patra.kernel.clock import parse_instant
from patra.kernel.errors import Invalid

BASE = Rate(billable_type="billable_impression", price_micros=1000, currency="EUR", valid_from=100, version=1)


def rate(**changes: Any) -> Rate:
    return msgspec.structs.replace(BASE, **changes)


def price(*rates: Rate, at: int = 150, **changes: Any) -> int | None:
    asked = {"app_id": "shop", "placement": "home", "creative": "cr", "billable_type": "billable_impression"} | changes
    found = rate_for(rates, at=at, **asked)
    return found and found.price_micros


def test_a_rate_is_valid_from_its_beginning_up_to_its_end():
    bounded = rate(valid_to=200)
    assert [price(bounded, at=at) for at in (99, 100, 199, 200)] == [None, 1000, 1000, None]


def test_where_validities_overlap_the_newest_decides_while_it_is_valid_and_the_older_one_again_after_it():
    rates = [
        BASE,
        rate(price_micros=2, valid_from=150, valid_to=180, version=2),
        rate(price_micros=3, valid_to=120, version=3),
    ]
    found = {at: price(*rates, at=at) for at in (99, 100, 119, 120, 149, 150, 179, 180)}
    assert list(found.values()) == [None, 3, 3, 1000, 1000, 2, 2, 1000]


def test_a_rate_that_names_more_goes_before_a_newer_one_that_names_less_only_while_it_is_valid():
    rates = [rate(price_micros=7, creative="cr", valid_to=200, version=1), rate(price_micros=1, version=2)]
    assert [price(*rates, at=at) for at in (199, 200)] == [7, 1]


@pytest.mark.parametrize("field", ["app_id", "placement", "creative"])
def test_a_rate_that_names_something_else_does_not_match(field: str):
    assert price(rate(**{field: "other"})) is None
    assert price(rate(**{field: {"app_id": "shop", "placement": "home", "creative": "cr"}[field]})) == 1000


def test_another_type_has_another_price():
    assert price(BASE, billable_type="billable_click") is None


def test_a_creative_goes_before_a_placement_before_an_app_before_none_and_the_newest_among_equals():
    rates = [
        rate(price_micros=5, creative="cr", version=1),
        rate(price_micros=4, placement="home", app_id="shop", version=2),
        rate(price_micros=3, app_id="shop", version=3),
        rate(price_micros=2, version=5),
        rate(price_micros=1, version=4),
    ]
    found: list[int | None] = []
    while rates:
        found.append(price(*reversed(rates)))
        rates.pop(0)
    assert found == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"billable_type": "impression"},
        {"price_micros": -1},
        {"price_micros": MAX_PRICE_MICROS + 1},
        {"currency": "eur"},
        {"currency": "EURO"},
        {"valid_to": 100},
    ],
)
def test_a_rate_that_cannot_be_meant_is_refused(changes: dict[str, Any]):
    check_rate(BASE)
    with pytest.raises(Invalid, match="rate_invalid"):
        check_rate(rate(**changes))


def test_rates_are_read_as_they_are_listed(tmp_path: Path):
    path = tmp_path / "rates.json"
    path.write_text(
        '[{"version": 4, "type": "billable_click", "priceMicros": 5, "currency": "EUR", "app": "", "placement": "p",'
        ' "creative": "", "from": "2026-01-01T00:00:00Z", "to": null}]'
    )
    begin = parse_instant("2026-01-01T00:00:00Z")
    assert begin is not None
    assert read_rates(path) == [
        Rate(version=4, billable_type="billable_click", price_micros=5, currency="EUR", placement="p", valid_from=begin)
    ]
    path.write_text("[{}]")
    with pytest.raises(Invalid, match="rates_invalid"):
        read_rates(path)
