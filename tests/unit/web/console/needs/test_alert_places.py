"""Where the alerts of the console lead."""

import pytest

from patra.ingest.operations.alerting.bus_rules import ALL_RULES, name_subject
from patra.web.console.needs.alert_places import place_of


@pytest.mark.parametrize("rule", [rule.name for rule in ALL_RULES])
def test_every_alert_leads_to_a_view_of_its_own_where_it_can_be_dealt_with(rule: str) -> None:
    href, door = place_of(rule, "pubmed/search/HARVEST p0123456789abcdef")
    assert href.startswith("/console/")
    assert (href, door) != ("/console/alerts", "Open alerts")


def test_an_alert_leads_to_its_source_plan_or_type() -> None:
    assert place_of("incomplete", "pubmed/search/HARVEST")[0] == "/console/ingest/coverage?source=pubmed"
    assert place_of("plan_idle", "pubmed/search/HARVEST p01")[0] == "/console/ingest/plan/p01"
    assert place_of("bus_dead_letters", "order.placed")[0] == "/console/bus/dead-letters?type=order.placed"


def test_the_advice_of_an_alert_names_its_subject() -> None:
    advice = {rule.name: rule.advice for rule in ALL_RULES}
    assert "`patra bus dead-letters --type order.placed`" in name_subject(advice["bus_dead_letters"], "order.placed")
    assert "`patra ingest lift pubmed search`" in name_subject(advice["fatal"], "pubmed/search")
    assert "`patra ingest lift pubmed`" in name_subject(advice["fatal"], "pubmed")
    for rule in ALL_RULES:
        assert "SOURCE" not in name_subject(rule.advice, "pubmed/search/HARVEST")
