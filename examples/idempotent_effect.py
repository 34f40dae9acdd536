"""An effect outside the store that happens once: its key is the event's id, and the other side knows its keys.

    python idempotent_effect.py

The first attempt dies after the charge, the second charges with the same key: the customer pays once. (A line of the
first attempt comes twice: events are taken in groups, and a group that failed is tried again one by one.)
"""

import msgspec

from patra import Bus, ManualClock


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: str
    cents: int


charges: dict[str, int] = {}  # the payment service: the same key again is the same charge
clock = ManualClock()
bus = Bus.open("sqlite:///idempotent.db", clock=clock)
bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1", 500))


@bus.consume("order.placed", group="payments")
def pay(tx, event):
    charges.setdefault(event.event_id, event.payload["cents"])
    print(f"attempt {event.attempt}: charged with key {event.event_id}")
    if event.attempt == 1:
        raise ConnectionError("the answer of the payment service did not arrive")


bus.publish("order.placed", OrderPlaced("o-1", 500), tenant="acme", key="o-1")
while not bus.run_until_idle(raise_failures=False):
    clock.advance(60 * 1_000_000)  # in microseconds; a retry is due later; a service waits, this program sets its clock
print(f"{len(charges)} charge of {sum(charges.values())} cents")
bus.close()
