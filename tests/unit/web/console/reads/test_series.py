"""The rates of the console: counted beside the requests, by a thread that outlives what the store answers."""

from threading import Event

from patra.web.console.reads.series import Series


def test_a_count_that_fails_keeps_its_last_value_and_leaves_the_others_alone() -> None:
    answers = iter([7.0, RuntimeError("relation does not exist"), 9.0])

    def total() -> float:
        match next(answers):
            case float() as value:
                return value
            case error:
                raise error

    series = Series({"records": total})
    for _ in range(3):
        series.look()
    first, second, third = (counts for _, counts in series._looks)
    assert (first["records"], second["records"], third["records"]) == (7.0, 7.0, 9.0)
    assert second["events"] == first["events"]


def test_close_ends_the_thread_after_the_look_that_it_is_in() -> None:
    looking, finish = Event(), Event()
    looks: list[float] = []

    def total() -> float:
        looking.set()
        assert finish.wait(20)
        looks.append(1.0)
        return 1.0

    series = Series({"records": total})
    series.begin()
    assert looking.wait(20)
    finish.set()
    series.close()
    assert looks == [1.0]
    assert series._thread is not None
    assert not series._thread.is_alive()


def test_two_servers_of_one_process_count_each_from_its_own_store() -> None:
    first, second = Series({"records": lambda: 1.0}), Series({"records": lambda: 2.0})
    first.look()
    second.look()
    assert [series._looks[0][1]["records"] for series in (first, second)] == [1.0, 2.0]
