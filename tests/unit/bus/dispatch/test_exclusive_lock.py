"""Steps of a process go together; the trial of a suspect goes alone."""

import threading

import pytest

from patra.bus.dispatch.exclusive_lock import SharedExclusiveLock

SECONDS = 20.0  # the longest a test waits for a thread


def test_many_go_together():
    door = SharedExclusiveLock()
    with door.shared(), door.shared():
        pass
    with door.exclusive():
        pass


def test_whoever_wants_to_be_alone_waits_for_those_inside_and_newcomers_wait_for_him():
    door = SharedExclusiveLock()
    seen: list[str] = []
    inside = threading.Event()

    def alone() -> None:
        with door.exclusive():
            seen.append("alone")
            inside.set()

    def newcomer() -> None:
        with door.shared():
            seen.append("newcomer")

    with door.shared():
        first = threading.Thread(target=alone)
        first.start()
        while not door.waiting:
            assert first.is_alive()
        second = threading.Thread(target=newcomer)
        second.start()
        assert not inside.is_set()
        seen.append("left")
    first.join(SECONDS)
    second.join(SECONDS)
    assert seen == ["left", "alone", "newcomer"]


def test_an_error_inside_leaves_the_door_open():
    door = SharedExclusiveLock()
    for way in (door.shared, door.exclusive):
        with pytest.raises(LookupError), way():
            raise LookupError
    with door.exclusive():
        assert not door.waiting
