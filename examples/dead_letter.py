"""A contract, a producer and two consumers; one consumer fails, and its dead letter is replayed once it is fixed.

    python dead_letter.py              the invoices of order o-2 fail: a dead letter, while the mailer goes on
    patra bus dead-letters             shows it, with the error
    patra bus replay invoices --all --confirm invoices
    python dead_letter.py --fixed      the same event is handled by the fixed handler; the mailer gets nothing twice

A handler may be called again (here: events are taken in groups, and a group that failed is tried one by one). What it
writes through `tx` happens once; what it leaves to `tx.after_commit` happens at most once.
"""

import sys

import msgspec

from patra import Bus, Poison

FIXED = sys.argv[1:] == ["--fixed"]
if sys.argv[1:] and not FIXED:
    sys.exit("usage: python dead_letter.py [--fixed]")


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: str
    cents: int


bus = Bus.open("sqlite:///patra.db")
bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1", 500))


@bus.consume("order.placed", group="mailer")
def mail(tx, event):
    tx.after_commit(lambda: print(f"mail for {event.payload['order_id']}"))


@bus.consume("order.placed", group="invoices")
def invoice(tx, event):
    if event.payload["cents"] == 0 and not FIXED:
        raise Poison("free_order", "there is no invoice over nothing")
    tx.after_commit(lambda: print(f"invoice for {event.payload['order_id']}: {event.payload['cents']} cents"))


for order in (OrderPlaced("o-1", 500), OrderPlaced("o-2", 0)):
    bus.publish("order.placed", order, tenant="acme", key=order.order_id)  # sent again with the same key: no new event
print(bus.run_until_idle(raise_failures=False), "handled")
bus.close()
