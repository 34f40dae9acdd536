"""Publish in the transaction of your own row: both are there, or neither is.

python outbox_in_your_transaction.py
"""

import msgspec

from patra import Bus, statement


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: str


MAKE_TABLE = statement("make_table", "CREATE TABLE IF NOT EXISTS shop_order (order_id TEXT PRIMARY KEY)")
ADD_ORDER = statement("add_order", "INSERT INTO shop_order (order_id) VALUES (:order_id)")

bus = Bus.open("sqlite:///transaction.db")
bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1"))
bus.transaction(lambda tx: tx.execute(MAKE_TABLE))


@bus.consume("order.placed", group="mailer")
def mail(tx, event):
    tx.after_commit(lambda: print(f"mail for {event.payload['order_id']}"))


def place(order_id, *, card_is_good):
    def work(tx):
        tx.execute(ADD_ORDER, {"order_id": order_id})
        bus.publish("order.placed", OrderPlaced(order_id), tenant="acme", key=order_id, tx=tx)
        if not card_is_good:
            raise ValueError("the card was refused")  # the row and the event are rolled back together

    bus.transaction(work)


place("o-1", card_is_good=True)
try:
    place("o-2", card_is_good=False)
except ValueError as error:
    print(f"o-2: {error}")
print(bus.run_until_idle(), "handled")
bus.close()
