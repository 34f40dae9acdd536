"""The named SQL of the engine, and the marks that say where its duties in the background stand."""

from patra.kernel.db import Queries, Tx

Q = Queries.load("patra.attribution")


def mark(tx: Tx, name: str) -> int:
    """Where a duty in the background stands."""
    found = tx.fetch(Q["mark"], {"name": name})
    return found[0][0] if found else 0


def set_mark(tx: Tx, name: str, value: int) -> None:
    tx.execute(Q["set_mark"], {"name": name, "value": value})
