"""The bus step: a contract of its own, a consumer that works, and one that fails until it is fixed."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from patra.bus.consuming.dead_letter import DeadLetter, DeadLetterState, Filter
from patra.bus.embedded import Bus
from patra.bus.operations import find_letters
from patra.demo import Demo, Link

CONTRACT = """\
type: order.placed
title: An order was placed
description: A customer placed an order in the shop of the demonstration.
producer: Shop
consumers:
  - {group: mailer, versions: '>=1,<2'}
  - {group: bookkeeping, versions: '>=1,<2'}
retry: {max_retries: 2, base: PT0.2S, factor: 2.0, cap: PT1S}
dead_letter_threshold: 50
retention: P90D
versions:
  - version: "1.0"
    status: current
    schema:
      type: object
      additionalProperties: false
      required: [order_id, cents, currency]
      properties:
        order_id: {type: string, minLength: 1, maxLength: 100, description: Identity of the order.}
        cents: {type: integer, minimum: 0, description: What is to be paid.}
        currency: {type: string, minLength: 3, maxLength: 3, description: ISO 4217.}
    examples:
      - {order_id: o-1, cents: 500, currency: EUR}
"""
ORDERS = 40
KNOWN = {"EUR", "USD"}
WAIT_S = 60.0
PAUSE_S = 2.0
UNKNOWN_EVERY = 45
"""Of the orders that go on coming, one in so many is of a currency that the books do not know."""


class Books:
    """The consumer that fails: it books what is of a currency that it knows."""

    def __init__(self) -> None:
        self.known = set(KNOWN)

    def book(self, tx: Any, event: Any) -> None:
        del tx
        if event.payload["currency"] not in self.known:
            raise ValueError(f"no exchange rate for {event.payload['currency']}")


def send_mail(tx: Any, event: Any) -> None:
    """The consumer that works: it has nothing to say against an order."""


BUSES: dict[Path, tuple[Bus, Books]] = {}
"""The bus of a demonstration, by its folder."""


def prepare(folder: Path) -> Mapping[str, Any]:
    contracts = folder / "contracts"
    contracts.mkdir()
    (contracts / "order.placed.yaml").write_text(CONTRACT)
    return {"bus.catalogue": [str(contracts)]}


def show(demo: Demo) -> Iterator[str]:
    bus, books = Bus.open(demo.store_url, contracts=[demo.folder / "contracts"], built_in=True), Books()
    BUSES[demo.folder] = bus, books
    bus.consume("order.placed", group="mailer")(send_mail)
    bus.consume("order.placed", group="bookkeeping")(books.book)
    bus.start()
    demo.at_end.callback(bus.close)
    for number in range(ORDERS):
        place(bus, number, "XAU" if number == 7 else "GBP" if number == 23 else "EUR")
    yield f"{ORDERS} orders were published by their contract; two groups read them: mailer and bookkeeping"
    letters = wait_for(demo, 2)
    yield "bookkeeping knows no rate for XAU and GBP: after three attempts each, two events are dead letters"
    books.known |= {"GBP"}
    mended = next(letter.event_id for letter in letters if "GBP" in letter.error_detail)
    wanted = {"group": "bookkeeping", "confirm": "bookkeeping", "event_ids": [mended]}
    status, _ = demo.post("/bus/replay", wanted)
    if status >= 300:
        raise RuntimeError(f"the replay was answered {status}")
    wait_for(demo, 1)
    yield "the rate of GBP was added and its letter replayed: it is handled. XAU is known now, its letter waits for you"
    books.known |= {"XAU"}
    demo.walk.append(
        Link(path="/console/bus/dead-letters?group=bookkeeping", text="a dead letter: see why, replay it, watch it go")
    )


def place(bus: Bus, number: int, currency: str) -> None:
    order = {"order_id": f"o-{number}", "cents": 500 + 37 * number, "currency": currency}
    bus.publish("order.placed", order, tenant="shop", key=f"order-{number}", trace=f"order-{number}")


def wait_for(demo: Demo, count: int) -> list[DeadLetter]:
    """The open dead letters of the failing group, as soon as there are so many."""
    bus, _ = BUSES[demo.folder]
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        found = open_letters(bus)
        if len(found) == count:
            return found
        time.sleep(0.05)
    raise RuntimeError(f"there were not {count} dead letters within {WAIT_S:.0f} s")


def open_letters(bus: Bus) -> list[DeadLetter]:
    wanted = Filter(group="bookkeeping", state=DeadLetterState.OPEN)
    return bus.db.read(lambda tx: find_letters(tx, wanted, limit=10))


def go_on(demo: Demo) -> None:
    bus, _ = BUSES[demo.folder]
    number = 1000
    while not demo.stop.wait(PAUSE_S):
        number += 1
        place(bus, number, "CHF" if number % UNKNOWN_EVERY == 0 else "EUR")
