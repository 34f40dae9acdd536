from enum import Enum, StrEnum
from typing import Any

import pytest

from patra.kernel.errors import IllegalMove
from patra.kernel.machine import Machine, Move, declared_machines


class Door(StrEnum):
    OPEN = "open"
    SHUT = "shut"
    LOCKED = "LOCKED-TWICE"


class On(StrEnum):
    PUSH = "push"
    WIND = "wind"
    KEY = "key"


EDGES = {
    (Door.OPEN, On.PUSH): Door.SHUT,
    (Door.OPEN, On.WIND): Door.SHUT,
    (Door.SHUT, On.PUSH): Door.OPEN,
    (Door.SHUT, On.KEY): Door.LOCKED,
}
DOOR = Machine("test_door", initial=Door.OPEN, edges=EDGES, version="door_v2")


def test_an_event_leads_along_an_edge_of_the_table() -> None:
    assert DOOR.target(Door.OPEN, On.PUSH) is Door.SHUT
    assert DOOR.allows(Door.SHUT, On.KEY)


def test_a_state_may_come_as_its_text_from_the_store() -> None:
    assert DOOR.target("shut", On.KEY) is Door.LOCKED
    assert not DOOR.allows("LOCKED-TWICE", On.PUSH)


def test_there_is_no_way_but_along_an_edge() -> None:
    with pytest.raises(IllegalMove, match="test_door: no edge leaves LOCKED-TWICE on push"):
        DOOR.target(Door.LOCKED, On.PUSH)


def test_a_state_without_a_way_out_is_terminal() -> None:
    assert DOOR.terminal == {Door.LOCKED}
    assert DOOR.states == tuple(Door)


def test_a_move_says_what_why_when_and_under_which_rules() -> None:
    move = DOOR.move("front", Door.SHUT, On.KEY, reason="x_night", at=7)
    assert move == Move(
        machine="test_door",
        subject="front",
        was="shut",
        on="key",
        to="LOCKED-TWICE",
        reason="x_night",
        at=7,
        rule_version="door_v2",
    )
    assert {type(field) for field in (move.was, move.on, move.to, move.reason)} == {str}


def test_an_illegal_move_is_never_made() -> None:
    with pytest.raises(IllegalMove):
        DOOR.move("front", Door.LOCKED, On.KEY, reason="x", at=7)


def test_a_state_that_nothing_leads_to_is_refused() -> None:
    with pytest.raises(ValueError, match="LOCKED-TWICE"):
        Machine("test_no_key", initial=Door.OPEN, edges={(Door.OPEN, On.PUSH): Door.SHUT})


def test_a_state_that_only_itself_leads_to_is_refused() -> None:
    edges = {(Door.OPEN, On.PUSH): Door.SHUT, (Door.LOCKED, On.KEY): Door.LOCKED}
    with pytest.raises(ValueError, match="no way leads from open to LOCKED-TWICE"):
        Machine("test_island", initial=Door.OPEN, edges=edges)


def test_states_that_are_not_members_of_an_enum_are_refused() -> None:
    edges: Any = {("open", "push"): "shut"}
    with pytest.raises(TypeError, match="not a member of a StrEnum"):
        Machine("test_text", initial="open", edges=edges)  # type: ignore[type-var]


def test_a_foreign_state_is_refused() -> None:
    edges: Any = EDGES | {(Door.LOCKED, On.KEY): "open"}
    with pytest.raises(TypeError, match="not a state of Door"):
        Machine("test_foreign", initial=Door.OPEN, edges=edges)


def test_an_enum_of_anything_but_text_is_refused() -> None:
    class Number(Enum):
        ONE = 1

    initial: Any = Number.ONE
    with pytest.raises(TypeError):
        Machine("test_number", initial=initial, edges={})


@pytest.mark.parametrize("event", ["", None, 3])
def test_an_event_is_text(event: Any) -> None:
    with pytest.raises(TypeError, match="not text"):
        Machine("test_event", initial=Door.OPEN, edges=EDGES | {(Door.LOCKED, event): Door.OPEN})


def test_two_names_for_one_state_are_refused() -> None:
    class Twice(StrEnum):
        ON = "on"
        OFF = "off"
        STOPPED = "off"

    with pytest.raises(ValueError, match="STOPPED"):
        Machine("test_twice", initial=Twice.ON, edges={(Twice.ON, "stop"): Twice.OFF})


def test_two_machines_of_one_name_are_refused_because_the_journal_could_not_tell_them_apart() -> None:
    with pytest.raises(ValueError, match="another machine has this name"):
        Machine("test_door", initial=Door.SHUT, edges=EDGES)


def test_the_same_machine_may_be_declared_again() -> None:
    assert Machine("test_door", initial=Door.OPEN, edges=EDGES, version="door_v2").states == DOOR.states


def test_machines_are_found_by_the_docs() -> None:
    assert [m.version for m in declared_machines() if m.name == "test_door"] == ["door_v2"]


def test_a_machine_of_one_state_is_a_machine() -> None:
    class Alone(StrEnum):
        HERE = "here"

    machine: Machine[Alone, str] = Machine("test_alone", initial=Alone.HERE, edges={})
    assert machine.terminal == {Alone.HERE}


def test_the_check_of_the_column_lists_the_states() -> None:
    assert DOOR.check_sql("status_code") == "status_code IN ('open','shut','LOCKED-TWICE')"


@pytest.mark.parametrize("column", ["", "1a", "a b", "a;--", "A", 'a"', "ä"])
def test_a_column_that_is_no_plain_name_is_refused(column: str) -> None:
    with pytest.raises(ValueError):
        DOOR.check_sql(column)
