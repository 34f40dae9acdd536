"""A log under other windows: the difference in facts and money, and the live rules as they were."""

from typing import Any

import pytest

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.rules import LIVE_RULES, Rules
from patra.attribution.contract.windows import FUTURE_LIMIT, WAIT_WINDOW
from patra.attribution.replay import replay
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.what_if import Difference, difference, outcome
from patra.kernel.clock import DAY, SECOND
from tests.unit.attribution.said import T0, event, fresh, sent, tick
from tests.unit.attribution.test_replay import random_log

RATES = [
    Rate(billable_type=kind, price_micros=price, currency="EUR", valid_from=T0 - 30 * DAY, version=number)
    for number, (kind, price) in enumerate((("billable_impression", 2_500), ("billable_click", 150_000)), start=1)
]


def compared(lines: list[Any], **changes: Any) -> Difference:
    runs = []
    for rules in (LIVE_RULES, Rules(name="next", **changes)):
        db = fresh()
        runs.append(outcome(lines, db, rules, RATES))
        db.close()
    return difference(*runs)


def changed(found: Difference) -> dict[str, int]:
    return {one.what: one.difference for one in found.figures if one.difference}


LATE_IMPRESSION = [sent(0, event("click")), sent(200, event("impression"), batch="b2"), tick(600)]
"""A click that waited longer than the live rules let it."""


def test_a_longer_wait_bills_the_click_that_lapsed_and_tells_what_it_comes_to():
    found = compared(LATE_IMPRESSION, click_wait=300 * SECOND)
    assert changed(found) == {"billable_click": 1, "micros EUR": 150_000, "facts attr_click committed": 1}
    (fact,) = found.facts
    assert (fact.billing_key, fact.only, fact.price_micros) == ("ref|ra|billable_click", "next", 150_000)
    assert any(line.endswith("f_billing_click_without_impression") for line in fact.decisions)


def test_a_longer_closure_needs_no_synthesised_failure():
    lines = [sent(0, event("ad_filled")), sent(200, event("impression"), batch="b2")]
    assert changed(compared(lines, closure_wait=300 * SECOND)) == {"facts attr_failure_terminal superseded": -1}


def test_a_shorter_dedup_window_refuses_what_is_older():
    lines = [sent(0, event("impression")), sent(2 * 86_400, event("impression", renderAttemptId="two"), batch="b2")]
    found = compared(lines, windows=LIVE_RULES.windows | {"impression": DAY})
    assert changed(found)["answers rejected f_event_stale_outside_dedup_window"] == 1
    assert [(fact.billing_key, fact.only) for fact in found.facts] == [("ref|two|billable_impression", "live")]


def test_an_event_from_the_future_is_refused_by_a_smaller_limit():
    found = compared([sent(-3600, event("impression"))], future_limit=60 * SECOND)
    assert (changed(found)["billable_impression"], changed(found)["micros EUR"]) == (-1, -2_500)
    assert [fact.only for fact in found.facts] == ["live"]


@pytest.mark.parametrize("seed", range(3))
def test_rules_that_say_what_is_live_give_what_the_live_ones_give(seed: int):
    """They are read the careful way and decided with windows of their own."""
    runs = []
    for rules in (LIVE_RULES, Rules(name="again")):
        db = fresh()
        runs.append(replay(random_log(seed), db, rules=rules))
        db.close()
    assert runs[0] == runs[1]


def test_the_live_rules_are_those_of_the_specification():
    assert (LIVE_RULES.closure_wait, LIVE_RULES.click_wait, LIVE_RULES.future_limit) == (
        WAIT_WINDOW,
        WAIT_WINDOW,
        FUTURE_LIMIT,
    )
    assert LIVE_RULES.windows == {name: kind.window for name, kind in KINDS.items()}
