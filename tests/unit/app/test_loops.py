"""A loop takes turns until it is stopped; an error ends a turn and never the loop."""

import threading
from errno import EMFILE

import msgspec
import pytest

from patra.app import loops
from patra.app.loops import (
    NOT_READY_AFTER,
    Loop,
    LoopRole,
    LoopState,
    RunningLoop,
    Supervisor,
    did_something,
    select_loops,
)
from patra.kernel.clock import HOUR, SECOND
from patra.kernel.errors import ConfigInvalid, StoreUnavailable
from patra.kernel.retry import Backoff
from patra.kernel.testing import ManualClock


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    sent: int = 0
    failed: int = 0


AT_ONCE = Backoff(base=1, factor=1.0, cap=1)
STEADY = Backoff(base=SECOND, factor=2.0, cap=8 * SECOND, spread=0.0)


def quiet(name: str = "x", every: int = HOUR) -> Loop:
    return Loop(name=name, run_once=Counts, every=every)


def test_a_turn_that_did_something_is_followed_at_once_by_the_next() -> None:
    results = iter([Counts(sent=3), Counts(failed=1), Counts()])
    running = RunningLoop(Loop(name="x", run_once=lambda: next(results), every=HOUR), ManualClock())
    assert [running.turn(), running.turn(), running.turn()] == [0, 0, HOUR]


@pytest.mark.parametrize(
    ("counts", "more"),
    [(None, False), (0, False), (7, True), (Counts(), False), (Counts(sent=1), True), (Counts(sent=-1), False)],
)
def test_counts_say_whether_there_may_be_more(counts: object, more: bool) -> None:
    assert did_something(counts) is more


def test_a_loop_may_decide_by_itself_whether_to_go_on() -> None:
    loop = Loop(name="x", run_once=lambda: Counts(sent=1), every=5, again=lambda counts: False)
    assert RunningLoop(loop, ManualClock()).turn() == 5


def test_a_failure_that_cannot_even_be_told_does_not_end_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a descriptor neither the turn nor what the log needs for its first line can be opened."""
    good, turns = threading.Event(), iter(range(10))

    def run_once() -> None:
        if next(turns):
            good.set()
        else:
            raise OSError(EMFILE, "Too many open files")

    class MuteLog:
        def exception(self, *_: object, **__: object) -> None:
            raise OSError(EMFILE, "Too many open files")

    monkeypatch.setattr(loops, "log", MuteLog())
    supervisor = Supervisor([Loop(name="x", run_once=run_once, every=HOUR)], ManualClock(), AT_ONCE)
    supervisor.start()
    assert good.wait(30)
    assert supervisor.states()[0].running
    supervisor.stop(30)


def test_errors_are_recorded_backed_off_and_forgotten_after_a_good_turn() -> None:
    results = iter([StoreUnavailable("store_unavailable", "gone"), ValueError("token=abcdef0123456789"), None])

    def run_once() -> None:
        if (result := next(results)) is not None:
            raise result

    running = RunningLoop(Loop(name="x", run_once=run_once, every=HOUR), ManualClock(now=0), STEADY)

    assert running.turn() == SECOND
    assert running.state().last_error == "store_unavailable: gone"
    assert running.turn() == 2 * SECOND
    state = running.state()
    assert (state.failures_in_a_row, state.turns, state.last_turn_at) == (2, 2, "1970-01-01T00:00:00Z")
    assert state.last_error is not None
    assert state.last_error.startswith("ValueError: ")
    assert "abcdef0123456789" not in state.last_error
    assert running.turn() == HOUR
    assert (running.state().failures_in_a_row, running.state().last_error) == (0, None)


def test_a_loop_troubles_readiness_when_it_is_dead_or_keeps_failing() -> None:
    good = LoopState(name="x", running=True, turns=9, failures_in_a_row=0, last_turn_at=None, last_error=None)
    assert good.trouble is None
    blinked = msgspec.structs.replace(good, failures_in_a_row=NOT_READY_AFTER - 1, last_error="e")
    assert blinked.trouble is None
    failing = msgspec.structs.replace(good, failures_in_a_row=NOT_READY_AFTER, last_error="e")
    assert failing.trouble == "loop x failed 3 times in a row: e"
    assert msgspec.structs.replace(good, running=False).trouble == "loop x is not running"


def test_a_turn_that_takes_longer_than_its_patience_troubles_readiness_until_it_ends() -> None:
    clock = ManualClock(now=0)
    seen: list[LoopState] = []

    def slow() -> None:
        for _ in range(2):
            clock.advance(6 * SECOND)
            seen.append(running.state())

    running = RunningLoop(Loop("x", slow, HOUR, patience=10 * SECOND), clock)
    running.turn()
    assert [state.overdue for state in seen] == [False, True]
    threaded = msgspec.structs.replace(seen[1], running=True)
    assert threaded.trouble == "loop x has been in one turn since 1970-01-01T00:00:00Z"
    assert (running.state().in_turn_since, running.state().overdue) == (None, False)


def test_a_thread_goes_on_after_errors_until_it_is_stopped() -> None:
    turns = threading.Semaphore(0)

    def fails() -> None:
        turns.release()
        raise RuntimeError

    supervisor = Supervisor([Loop(name="x", run_once=fails, every=HOUR)], ManualClock(), AT_ONCE)
    supervisor.start()
    assert all(turns.acquire(timeout=30) for _ in range(5))
    assert supervisor.states()[0].running
    assert supervisor.stop(30) == []
    assert not supervisor.states()[0].running


def test_stop_waits_for_the_turn_in_hand() -> None:
    entered, go = threading.Event(), threading.Event()
    finished: list[bool] = []

    def slow() -> None:
        entered.set()
        assert go.wait(30)
        finished.append(True)

    supervisor = Supervisor([Loop(name="x", run_once=slow, every=HOUR)], ManualClock())
    supervisor.start()
    assert entered.wait(30)
    threading.Timer(0.05, go.set).start()
    assert supervisor.stop(30) == []
    assert finished == [True]


def test_stop_names_the_loops_that_did_not_end_within_the_bound() -> None:
    entered, go = threading.Event(), threading.Event()

    def stuck() -> None:
        entered.set()
        go.wait(60)

    supervisor = Supervisor([Loop(name="stuck", run_once=stuck, every=HOUR), quiet("fine")], ManualClock())
    supervisor.start()
    assert entered.wait(30)
    assert supervisor.stop(0.05) == ["stuck"]
    go.set()
    assert supervisor.stop(30) == []


def test_a_sleeping_loop_is_woken_and_stopped_without_waiting_for_its_pause() -> None:
    turns = threading.Semaphore(0)
    supervisor = Supervisor([Loop(name="x", run_once=turns.release, every=HOUR)], ManualClock())
    supervisor.start()
    assert turns.acquire(timeout=30)
    assert supervisor.wake("x")
    assert turns.acquire(timeout=30)
    assert not supervisor.wake("y")
    assert supervisor.stop(30) == []


def test_a_supervisor_that_was_never_started_stops_at_once() -> None:
    assert Supervisor([quiet()], ManualClock()).stop(0) == []


def test_loops_are_chosen_by_name_or_engine() -> None:
    loops = [quiet("ingest.planner"), quiet("ingest.executor"), quiet("bus.relay"), quiet("ingester.x")]
    assert select_loops(loops, []) == loops
    assert [loop.name for loop in select_loops(loops, ["ingest"])] == ["ingest.planner", "ingest.executor"]
    assert [loop.name for loop in select_loops(loops, ["bus.relay", "ingest.planner"])] == [
        "ingest.planner",
        "bus.relay",
    ]


def test_loops_are_narrowed_to_roles() -> None:
    loops = [
        Loop(name=name, run_once=lambda: 0, every=1, role=role)
        for name, role in (("a.timer", LoopRole.TIMERS), ("a.index", LoopRole.INDEXER), ("b.timer", LoopRole.TIMERS))
    ]
    assert [loop.name for loop in select_loops(loops, [], ["timers"])] == ["a.timer", "b.timer"]
    assert [loop.name for loop in select_loops(loops, ["a"], ["timers", "upkeep"])] == ["a.timer"]
    assert select_loops(loops, ["b"], ["indexer"]) == []


def test_a_loop_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        select_loops([quiet("bus.relay")], ["bus", "ingest"])
    assert caught.value.code == "loop_unknown"
    assert caught.value.advice == "there are: bus.relay"
