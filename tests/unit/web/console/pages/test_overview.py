"""What needs a person stands there once, under the line that mends it."""

from patra.web.console.needs import Need
from patra.web.console.pages.overview import each_once


def need(act: str, **fields: str) -> Need:
    return Need(subject="s", href="/", what="w", act=act, fields=fields)


def test_an_alert_of_the_bus_gives_way_to_the_line_that_mends_its_cause() -> None:
    letters, frozen = need("bus.replay", group="g"), need("ingest.acknowledge", alert="bus_frozen")
    alert = need("ingest.acknowledge", alert="bus_dead_letters")
    assert each_once([alert, letters, frozen]) == [letters, frozen]
    assert each_once([alert, frozen]) == [alert, frozen]
