"""Turns a state and an event into the next state of a table; rows move by compare-and-set and leave a journal.

    CLOSURE = Machine("closure", version="f_closure_v1", initial=C.OPEN, edges={
        (C.OPEN, On.IMPRESSION): C.CLOSED_SUCCESS,
        (C.OPEN, On.FAILURE): C.CLOSED_FAILURE,
    })

The table is all there is: the docs draw it, the column's CHECK repeats its states (`check_sql`), and a
state that nothing leads to is refused when the table is declared.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Generic, TypeVar, cast
from weakref import WeakValueDictionary

import msgspec

from patra.kernel.db import Statement, Tx, Value
from patra.kernel.db.queries import statement
from patra.kernel.errors import IllegalMove

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=str)

_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*").fullmatch

_declared: "WeakValueDictionary[str, Machine[StrEnum, str]]" = WeakValueDictionary()


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One step along an edge, as the journal keeps it."""

    machine: str
    subject: str
    was: str
    on: str
    to: str
    reason: str
    at: int
    rule_version: str


class Machine(Generic[S, E]):
    """A table of edges `(state, event) -> state` over one enum of states, checked when it is declared."""

    def __init__(self, name: str, *, initial: S, edges: Mapping[tuple[S, E], S], version: str = "1") -> None:
        self.name = name
        self.version = version
        self.initial = initial
        self.edges: Mapping[tuple[S, E], S] = dict(edges)
        self._check_enum()
        self.states: tuple[S, ...] = tuple(type(initial))
        self._check_reachable()
        self.terminal: frozenset[S] = frozenset(self.states) - {state for state, _ in self.edges}
        self._declare()

    def allows(self, state: S | str, event: E) -> bool:
        """Whether an edge leaves the state on this event; a state may be given as its text in the store."""
        return (state, event) in self.edges

    def target(self, state: S | str, event: E) -> S:
        """The state that the event leads to. Raises IllegalMove where the table has no edge."""
        try:
            return self.edges[cast("S", state), event]  # a StrEnum member equals its text
        except KeyError:
            raise IllegalMove("illegal_move", f"{self.name}: no edge leaves {state} on {event}") from None

    def move(self, subject: str, state: S | str, event: E, *, reason: str, at: int) -> Move:
        """The step that the event takes the subject, with its reason and instant; nothing is written yet."""
        target = self.target(state, event)
        return Move(
            machine=self.name,
            subject=subject,
            was=str(state),
            on=str(event),
            to=target.value,
            reason=str(reason),
            at=at,
            rule_version=self.version,
        )

    def check_sql(self, column: str) -> str:
        """The CHECK of the column that holds the state: `status_code IN ('A','B')`."""
        states = [state.value.replace("'", "''") for state in self.states]
        return _identifier(column) + " IN (" + ",".join(f"'{state}'" for state in states) + ")"

    def __repr__(self) -> str:
        return f"Machine({self.name!r}, version={self.version!r}, {len(self.states)} states, {len(self.edges)} edges)"

    def _check_enum(self) -> None:
        kind = type(self.initial)
        if not isinstance(self.initial, StrEnum):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{self.name}: the state {self.initial!r} is not a member of a StrEnum")
        for (state, event), target in self.edges.items():
            for end in (state, target):
                if type(end) is not kind:
                    raise TypeError(f"{self.name}: {end!r} is not a state of {kind.__name__}")
            if not isinstance(event, str) or not event:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"{self.name}: the event {event!r} is not text")
        aliases = [name for name, member in kind.__members__.items() if member.name != name]
        if aliases:
            raise ValueError(f"{self.name}: states of {kind.__name__} named twice: {', '.join(aliases)}")

    def _check_reachable(self) -> None:
        reached = {self.initial}
        frontier = [self.initial]
        while frontier:
            here = frontier.pop()
            found = {target for (state, _), target in self.edges.items() if state == here} - reached
            reached |= found
            frontier += found
        lost = [state.value for state in self.states if state not in reached]
        if lost:
            raise ValueError(f"{self.name}: no way leads from {self.initial} to {', '.join(lost)}")

    def _declare(self) -> None:
        # The journal goes by the machine's name, so two tables of one name could not be distinguished in it.
        first = _declared.setdefault(self.name, self)  # pyright: ignore[reportArgumentType]
        if (first.initial, first.edges, first.version) != (self.initial, self.edges, self.version):
            raise ValueError(f"{self.name}: another machine has this name")


def declared_machines() -> "list[Machine[StrEnum, str]]":
    """Every machine of the modules imported so far, by name, for the docs."""
    return sorted(_declared.values(), key=lambda machine: machine.name)


def advance(
    tx: Tx,
    machine: "Machine[S, E]",
    *,
    table: str,
    key: str,
    column: str,
    moves: Sequence[Move],
    also: Mapping[str, Value] | None = None,
) -> set[str]:
    """Move the rows whose `column` still is what the move says it was; journal those moves; give their subjects.

    One statement for the whole set. A subject that is missing from the answer was moved by another process, or is not
    there. Several moves of one subject are taken as a chain, all or none of it. `also` names further columns to set on
    every row that moves. The key column is text.
    """
    chains = _chains(machine, moves)
    extra = dict(also or {})
    stmt = _compare_and_set(table, key, column, tuple(extra))
    params = {f"also_{name}": value for name, value in extra.items()}
    rows = [(subject, chain[0].was, chain[-1].to) for subject, chain in chains.items()]
    moved = {row[0] for row in tx.fetch(stmt, params, rows=rows)}
    journal(tx, [move for move in moves if move.subject in moved])
    return moved


_FORGET = statement(
    "forget_moves",
    "DELETE FROM krn_move WHERE moved_at < :before AND subject IN (SELECT subject FROM rows)",
    "subject text",
)
_JOURNAL = ("subject", "machine", "was", "on_event", "became", "reason_code", "moved_at", "rule_version")


def journal(tx: Tx, moves: Sequence[Move]) -> None:
    """Record moves that took effect; for statements of an engine that move rows themselves."""
    tx.insert_tuples(
        "krn_move",
        _JOURNAL,
        [(m.subject, m.machine, m.was, m.on, m.to, m.reason, m.at, m.rule_version) for m in moves],
    )


def history(tx: Tx, subjects: Iterable[str]) -> list[Move]:
    """The journal of some subjects, in the order in which they moved."""
    found = tx.lookup(
        "krn_move", columns=("move_id", *_JOURNAL), key=("subject",), keys=[(s,) for s in dict.fromkeys(subjects)]
    )
    return [
        Move(subject=subject, machine=machine, was=was, on=on, to=to, reason=reason, at=at, rule_version=version)
        for _, subject, machine, was, on, to, reason, at, version in sorted(found)
    ]


def forget(tx: Tx, subjects: Iterable[str], before: int) -> int:
    """Delete what the journal has of some subjects from before an instant; gives how many moves went."""
    return tx.execute(_FORGET, {"before": before}, rows=[(subject,) for subject in dict.fromkeys(subjects)])


def _chains(machine: "Machine[S, E]", moves: Sequence[Move]) -> dict[str, list[Move]]:
    chains: dict[str, list[Move]] = {}
    edges = cast("Mapping[tuple[str, str], str]", machine.edges)  # a StrEnum member equals its text
    for move in moves:
        if move.machine != machine.name or edges.get((move.was, move.on)) != move.to:
            raise IllegalMove("illegal_move", f"{machine.name}: {move} is not along an edge of its table")
        chain = chains.setdefault(move.subject, [])
        if chain and chain[-1].to != move.was:
            raise IllegalMove("illegal_move", f"{machine.name}: {move} does not follow on {chain[-1]}")
        chain.append(move)
    return chains


@lru_cache(maxsize=256)
def _compare_and_set(table: str, key: str, column: str, also: tuple[str, ...]) -> Statement:
    for name in (table, key, column, *also):
        _identifier(name)
    settings = ", ".join([f"{column} = rows.became", *(f"{name} = :also_{name}" for name in also)])
    return statement(
        f"advance_{table}_{column}",
        f"UPDATE {table} SET {settings} FROM rows"
        f" WHERE {table}.{key} = rows.subject AND {table}.{column} = rows.was RETURNING {table}.{key}",
        "subject text, was text, became text",
    )


def _identifier(name: str) -> str:
    if not _IDENTIFIER(name):
        raise ValueError(f"{name!r} is not a name of a table or column")
    return name
