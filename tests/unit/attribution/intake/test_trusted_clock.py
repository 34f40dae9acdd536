"""F27: a jump of the clock is not believed until it has lasted half a minute."""

from patra.attribution.intake.trusted_clock import TrustedClock
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.testing import ManualClock
from tests.unit.attribution.said import T0


def test_a_clock_that_keeps_time_is_believed_however_long_nobody_looks():
    hands = ManualClock(T0)
    clock = TrustedClock(hands)
    hands.advance(20 * DAY)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + 20 * DAY, 0)
    hands.jump(MINUTE)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + 20 * DAY + MINUTE, 0)
    hands.jump(-MINUTE)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + 20 * DAY, 0)


def test_a_jump_ahead_by_more_than_a_minute_is_doubted_for_half_a_minute():
    hands = ManualClock(T0)
    clock = TrustedClock(hands)
    hands.jump(MINUTE + 1)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0, 30)
    hands.advance(30 * SECOND - 1)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + 30 * SECOND - 1, 1)
    hands.advance(1)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + MINUTE + 1 + 30 * SECOND, 0)


def test_one_wild_reading_leaves_nothing_behind():
    hands = ManualClock(T0)
    clock = TrustedClock(hands)
    hands.jump(20 * DAY)
    assert clock.now() == T0
    hands.advance(SECOND)
    hands.jump(-20 * DAY)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + SECOND, 0)
    hands.advance(29 * SECOND)
    hands.jump(20 * DAY)  # the doubt begins again
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + 30 * SECOND, 30)


def test_a_clock_that_is_set_back_is_followed_once_it_stays_there_and_nobody_is_turned_away():
    hands = ManualClock(T0)
    clock = TrustedClock(hands)
    hands.jump(-DAY)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0, 0)
    hands.advance(30 * SECOND)
    assert (clock.now(), clock.seconds_of_doubt()) == (T0 + 30 * SECOND - DAY, 0)
