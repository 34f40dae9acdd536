"""How many events of each type were published lately: on both databases, by an index, never more than a bound."""

import pytest

from patra.bus.store import rates
from patra.kernel.clock import SECOND
from patra.kernel.db import Database
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import Site
from tests.unit.bus.making import envelope


def test_the_last_minutes_are_counted_by_type_and_no_further_than_a_bound(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(database, TYPES)
    site.publish(*(envelope(idempotency_key=f"old-{n}") for n in range(2)))
    site.clock.advance(rates.RATE_WINDOW)
    site.publish(*(envelope(idempotency_key=f"new-{n}") for n in range(3)))
    site.clock.advance(SECOND)

    def counted() -> dict[str, int]:
        now = site.clock.now()
        return database.read(lambda tx: rates.published_lately(tx, ["thing.happened", "nothing.like_it"], now))

    assert counted() == {"thing.happened": 3, "nothing.like_it": 0}
    monkeypatch.setattr(rates, "MAX_COUNTED", 2)
    assert counted()["thing.happened"] == 2
