"""A contract, a publisher and a consumer in one file: python examples/orders.py"""

import sys

import msgspec

from patra import Bus


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: str
    cents: int


bus = Bus.open(sys.argv[1] if len(sys.argv) > 1 else "sqlite:///orders.db")
bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o1", 500))


@bus.consume("order.placed", group="mailer")
def mail(tx, event):
    print(f"mail for {event.payload['order_id']}: {event.payload['cents']} cents")


bus.publish("order.placed", OrderPlaced("o2", 900), tenant="acme", key="o2")
bus.publish("order.placed", OrderPlaced("o2", 900), tenant="acme", key="o2")  # sent again: the same event
print(bus.run_until_idle(), "handled")
bus.close()
