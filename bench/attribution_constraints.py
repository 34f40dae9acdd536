"""What the last line of defence costs: the same traffic with the constraints on the money and without them, in turns.

PostgreSQL refuses a second billable fact by a unique index in the writing transaction; without it the index is dropped.
SQLite fills a unique tree of billing keys behind the writer; without it the tree is marked as complete.
The running sums of settlement are kept behind the writer on both, and are left out in the same way.
"""

from collections.abc import Callable

from bench.attribution_load import Outcome
from patra.kernel.db import open_database

_EVERYTHING = 2**62
_MARKS = ("billing_keyed", "summed_hour", "summed_placement")


def without_constraints(url: str) -> None:
    """Take the constraints out of an empty store."""
    db = open_database(url)
    reached = f"UPDATE att_mark SET value = {_EVERYTHING} WHERE name IN ({', '.join(map(repr, _MARKS))})"
    changes = [reached, *(["DROP INDEX att_billable_key"] if db.dialect == "postgres" else [])]
    try:
        for text in changes:
            db.run(lambda tx, text=text: tx.script(text))
    finally:
        db.close()


class Side:
    """One of the two, over several turns."""

    def __init__(self, name: str, change: Callable[[str], None]) -> None:
        self.name = name
        self.change = change
        self.rates: list[float] = []
        self.costs: list[float] = []
        self.outcomes: list[Outcome] = []


def two_sides() -> tuple[Side, Side]:
    return Side("with constraints", lambda _: None), Side("without", without_constraints)
