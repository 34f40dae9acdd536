"""One app that overdoes it is turned away alone."""

from patra.attribution.intake.fair_share import AppLimits, FairShare


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_app_fills_its_share_of_the_queue_and_others_are_served():
    fair = FairShare(AppLimits(queue_share=0.5), 4, Clock())
    assert [fair.enter("a") for _ in range(3)] == [0, 0, 1]
    assert fair.enter("b") == 0
    fair.leave("a")
    assert [fair.enter("a"), fair.enter("a")] == [0, 1]


def test_the_smallest_share_is_one_batch():
    fair = FairShare(AppLimits(queue_share=0.01), 4, Clock())
    assert [fair.enter("a"), fair.enter("a")] == [0, 1]


def test_a_rate_lets_two_seconds_of_it_through_at_once_and_then_tells_how_long_to_wait():
    clock = Clock()
    fair = FairShare(AppLimits(rate=2.0, rates={"slow": 0.1, "free": 0}), 1000, clock)
    assert [fair.enter("a") for _ in range(5)] == [0, 0, 0, 0, 1]
    clock.now += 0.5
    assert [fair.enter("a"), fair.enter("a")] == [0, 1]
    assert [fair.enter("slow"), fair.enter("slow")] == [0, 10]
    assert {fair.enter("free") for _ in range(100)} == {0}


def test_a_batch_that_is_refused_for_its_rate_takes_no_place():
    clock = Clock()
    fair = FairShare(AppLimits(queue_share=0.5, rate=0.5), 4, clock)
    assert [fair.enter("a"), fair.enter("a")] == [0, 2]
    fair.leave("a")
    clock.now += 4
    assert fair.enter("a") == 0
