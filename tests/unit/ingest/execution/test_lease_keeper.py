"""Leases of running tasks are renewed while their runs are alive."""

import threading

import pytest

from patra.ingest.execution.lease_keeper import MAX_SILENCE_S, LeaseKeeper
from patra.kernel.clock import SECOND
from patra.kernel.errors import Transient


class Hands:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class ByHand(LeaseKeeper):
    """Without the thread: the test renews."""

    def _run(self) -> None: ...


def test_a_lease_is_renewed_three_times_in_its_life_and_not_after_its_run():
    hands, renewed = Hands(), list[str]()
    keeper = ByHand(hands)
    with keeper.holding("t1", lambda: renewed.append("t1"), 3600 * SECOND):
        assert keeper.renew_due() == 0
        hands.now = 1200
        keeper.note_alive("t1")
        assert keeper.renew_due() == 1
        assert keeper.renew_due() == 0
        hands.now = 2400
        keeper.note_alive("t1")
        assert keeper.renew_due() == 1
    hands.now = 3600
    assert keeper.renew_due() == 0
    assert renewed == ["t1", "t1"]


def test_a_run_without_a_sign_of_life_loses_its_lease():
    hands = Hands()
    keeper = ByHand(hands)
    with keeper.holding("t1", lambda: True, 3600 * SECOND):
        hands.now = 1200 + MAX_SILENCE_S
        assert keeper.renew_due() == 0


def test_a_store_that_is_away_does_not_end_the_keeping():
    hands, calls = Hands(), list[int]()

    def renew() -> None:
        calls.append(1)
        raise OSError("away")

    keeper = ByHand(hands)
    with keeper.holding("t1", renew, 30 * SECOND):
        hands.now = 10
        assert keeper.renew_due() == 1
        hands.now = 20
        assert keeper.renew_due() == 1
    assert len(calls) == 2


def test_without_a_thread_that_renews_nothing_is_held_and_the_next_one_is(monkeypatch: pytest.MonkeyPatch):
    hands = Hands()
    keeper = ByHand(hands)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    holding = keeper.holding("t1", lambda: True, 30 * SECOND)
    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refused)
        with pytest.raises(Transient):
            holding.__enter__()
    hands.now = 10
    assert keeper.renew_due() == 0
    with keeper.holding("t2", lambda: True, 30 * SECOND):
        hands.now = 20
        assert keeper.renew_due() == 1
