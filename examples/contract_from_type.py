"""A contract from a type: what does not fit it is refused before anybody sees it.

python contract_from_type.py
"""

from typing import Annotated

import msgspec

from patra import Bus, EventRefused


class Line(msgspec.Struct):
    """One article of an order."""

    article: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class OrderPlaced(msgspec.Struct):
    """A customer placed an order."""

    order_id: Annotated[str, msgspec.Meta(min_length=1)]
    lines: Annotated[list[Line], msgspec.Meta(min_length=1)]


with Bus.open("sqlite:///contracts.db") as bus:
    bus.declare("order.placed", OrderPlaced, producer="Shop", example=OrderPlaced("o-1", [Line("book")]))
    bus.publish("order.placed", OrderPlaced("o-1", [Line("book", 2)]), tenant="acme", key="o-1")
    print("o-1 is published")
    try:
        bus.publish("order.placed", OrderPlaced("o-2", [Line("book", 0)]), tenant="acme", key="o-2")
    except EventRefused as refused:
        print("o-2 is refused:", refused)
