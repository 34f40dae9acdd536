"""A machine is refused exactly when a state cannot be reached, and never leaves its table."""

from enum import StrEnum
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.errors import IllegalMove
from patra.kernel.machine import Machine

S = StrEnum("S", {f"S{i}": f"s{i}" for i in range(5)})
EVENTS = ("go", "stop", "turn")
STATES = st.sampled_from(list(S))
TABLES = st.dictionaries(st.tuples(STATES, st.sampled_from(EVENTS)), STATES, max_size=15)
numbers = count()


def reachable(initial: S, edges: dict[tuple[S, str], S]) -> set[S]:
    found = {initial}
    for _ in S:
        found |= {target for (state, _), target in edges.items() if state in found}
    return found


@given(STATES, TABLES)
def test_a_table_is_taken_exactly_when_every_state_can_be_reached(initial: S, edges: dict[tuple[S, str], S]) -> None:
    name = f"generated_{next(numbers)}"
    if reachable(initial, edges) == set(S):
        machine = Machine(name, initial=initial, edges=edges)
        assert machine.terminal == {state for state in S if not any(machine.allows(state, e) for e in EVENTS)}
    else:
        with pytest.raises(ValueError, match="no way leads"):
            Machine(name, initial=initial, edges=edges)


ROUND = Machine(
    "generated_round",
    initial=S.S0,
    edges={(state, "go"): list(S)[(i + 1) % len(S)] for i, state in enumerate(S)} | {(S.S2, "stop"): S.S0},
)


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_a_walk_never_leaves_the_table(events: list[str]) -> None:
    state = ROUND.initial
    for at, event in enumerate(events):
        if ROUND.allows(state, event):
            move = ROUND.move("x", state, event, reason="r", at=at)
            assert (S(move.was), move.on, S(move.to)) == (state, event, ROUND.edges[state, event])
            state = S(move.to)
        else:
            with pytest.raises(IllegalMove):
                ROUND.target(state, event)
