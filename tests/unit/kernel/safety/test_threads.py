"""Threads that the machine refuses for a moment."""

import errno
from threading import Event, Thread

import pytest

from patra.kernel.errors import Transient
from patra.kernel.safety.threads import Threads, is_exhausted, start_thread


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the next starts of threads raise, in turn; those after them work."""
    coming, start = list[Exception](), Thread.start

    def refused(self: Thread) -> None:
        if coming:
            raise coming.pop(0)
        start(self)

    monkeypatch.setattr(Thread, "start", refused)
    return coming


def test_a_thread_that_was_refused_is_started_at_the_next_use(refusals: list[Exception]):
    refusals += [RuntimeError("can't start new thread"), MemoryError()]
    for _ in range(2):
        with pytest.raises(Transient, match="process_exhausted"):
            start_thread(None, int, "work")
    over = Event()
    thread = start_thread(None, over.wait, "work")
    assert start_thread(thread, over.wait, "work") is thread
    over.set()
    thread.join()
    another = start_thread(thread, int, "work")
    assert another is not thread
    another.join()


def test_duties_begin_with_those_that_can_be_started_and_the_rest_follows(refusals: list[Exception]):
    ran = {name: Event() for name in ("first", "second")}
    threads = Threads({name: one.set for name, one in ran.items()})
    refusals.append(RuntimeError("can't start new thread"))
    with pytest.raises(Transient):
        threads.begin()
    assert not threads.has_begun
    threads.begin()
    assert threads.has_begun
    assert [one.wait(60) for one in ran.values()] == [True, True]


def test_a_second_duty_that_is_refused_stops_nobody(monkeypatch: pytest.MonkeyPatch, refusals: list[Exception]):
    first, second = Event(), Event()

    def then_refuse() -> None:
        first.set()

    threads = Threads({"first": then_refuse, "second": second.set})
    start = Thread.start

    def refuse_second(self: Thread) -> None:
        if self.name == "second" and not refusals:
            refusals.append(RuntimeError("can't start new thread"))
            raise refusals[-1]
        start(self) if self.name == "first" else Thread.run(self)

    monkeypatch.setattr(Thread, "start", refuse_second)
    threads.begin()
    assert first.wait(60)
    assert not second.is_set()
    threads.begin()
    assert second.is_set()


def test_only_memory_threads_and_open_files_count_as_exhausted():
    assert is_exhausted(OSError(errno.EMFILE, "Too many open files"))
    assert not is_exhausted(OSError(errno.ENOSPC, "No space left on device"))
    assert is_exhausted(MemoryError())
    assert is_exhausted(RuntimeError("can't start new thread"))
    assert not is_exhausted(RuntimeError("dictionary changed size during iteration"))
