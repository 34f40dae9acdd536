# ruff: noqa: S101  a test asserts
"""Test a consumer of yours without threads, servers and sleeps: python -m pytest test_a_consumer.py

Time is a value that the test sets, so a retry that is due in an hour is due at once.
"""

import msgspec
import pytest

from patra import Bus, HandlersFailed, ManualClock


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: str


def test_an_order_is_shipped_once_though_the_warehouse_is_down_at_first(tmp_path):
    shipped, clock = [], ManualClock()
    with Bus.open(f"sqlite:///{tmp_path}/bus.db", clock=clock) as bus:
        bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1"))

        @bus.consume("order.placed", group="warehouse")
        def ship(tx, event):
            if event.attempt == 1:
                raise ConnectionError("the warehouse does not answer")
            tx.after_commit(lambda: shipped.append(event.payload["order_id"]))

        bus.publish("order.placed", OrderPlaced("o-1"), tenant="acme", key="o-1")
        with pytest.raises(HandlersFailed, match="the warehouse does not answer"):
            bus.run_until_idle()
        clock.advance(3600 * 1_000_000)  # an hour, in microseconds
        assert bus.run_until_idle() == 1
    assert shipped == ["o-1"]
