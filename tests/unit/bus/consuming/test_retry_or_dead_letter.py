"""C§6, B5: a failed event is retried, later each time; then it is a dead letter."""

from patra.bus.catalogue.catalogue import OnDeadLetter, Retry
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.retry_or_dead_letter import Comeback, GiveUp, after_failure, dead_letter_by
from patra.kernel.clock import MINUTE, SECOND

NOW = 1_000_000_000


def test_b5_five_retries_then_a_dead_letter():
    verdicts = [after_failure(Retry(), n, NOW, 0.5, poison=False, ordered=None) for n in range(1, 7)]
    assert all(isinstance(v, Comeback) for v in verdicts[:5])
    assert verdicts[5] == GiveUp(Reason.RETRIES_EXHAUSTED, keep=False)


def test_b5_the_wait_doubles_has_jitter_and_never_is_zero():
    def wait(n, jitter, cap=5 * MINUTE):
        verdict = after_failure(
            Retry(max_retries=50, base=SECOND, factor=2.0, cap=cap), n, NOW, jitter, poison=False, ordered=None
        )
        return verdict.due_at - NOW

    assert [wait(n, 0.999999999) // SECOND for n in (1, 2, 3, 4)] in ([1, 2, 4, 8], [0, 1, 3, 7])
    assert wait(1, 0.0) >= SECOND // 2
    assert wait(30, 0.9) <= 5 * MINUTE
    assert wait(3, 0.1) < wait(3, 0.9)


def test_a_poisonous_event_is_not_tried_again():
    assert after_failure(Retry(), 1, NOW, 0.5, poison=True, ordered=None) == GiveUp(Reason.HANDLER_POISON, keep=False)


def test_a_type_may_ask_that_a_dead_letter_goes_on_blocking_its_key():
    assert after_failure(Retry(max_retries=0), 1, NOW, 0.5, poison=False, ordered=OnDeadLetter.BLOCK).keep
    assert not after_failure(Retry(max_retries=0), 1, NOW, 0.5, poison=False, ordered=OnDeadLetter.CONTINUE).keep


def test_an_event_that_is_retried_is_a_dead_letter_by_the_sum_of_its_longest_waits():
    assert dead_letter_by(Retry(), 1, NOW) == NOW + (2 + 4 + 8 + 16) * SECOND
    assert dead_letter_by(Retry(), 5, NOW) == NOW
    assert dead_letter_by(Retry(cap=3 * SECOND), 2, NOW) == NOW + 9 * SECOND
