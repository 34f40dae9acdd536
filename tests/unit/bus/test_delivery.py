"""C§3, B5: who gets an event, what is in line, what comes back when."""

from hypothesis import given
from hypothesis import strategies as st

from patra.bus.catalogue import OnDeadLetter, Retry
from patra.bus.delivery import (
    BLOCKED_BY_DEAD,
    BLOCKED_PAUSE,
    NEVER,
    QUIET,
    Comeback,
    GiveUp,
    Reach,
    Subscription,
    Waiting,
    after_failure,
    in_line,
    next_reach,
    recipients,
)
from patra.bus.reasons import R
from patra.bus.versions import Version, parse_range
from patra.kernel.clock import MINUTE, SECOND

NOW = 1_000_000_000


def subscription(group_id, versions, event_type="thing.happened"):
    return Subscription(group_id=group_id, group=f"g{group_id}", event_type=event_type, versions=parse_range(versions))


def waiting(seq, key=None, due_at=NOW):
    return Waiting(
        seq=seq,
        order_key=key,
        attempts=0,
        due_at=due_at,
        replay=False,
        first_failed_at=None,
        event_type="t.t",
        version=Version(1, 0),
        event_id=str(seq),
        published_at=0,
        body="",
    )


def test_c4_each_group_gets_an_event_once_in_the_newest_version_it_reads():
    groups = [
        subscription(1, ">=1,<2"),
        subscription(2, ">=1"),
        subscription(3, ">=2"),
        subscription(4, ">=3"),
        subscription(5, ">=1", "other.happened"),
    ]
    found = recipients(groups, "thing.happened", [Version(1, 2), Version(2, 0)])
    assert found == {1: Version(1, 2), 2: Version(2, 0), 3: Version(2, 0)}


def test_a_group_with_two_handlers_gets_the_newer_version_only():
    groups = [subscription(1, ">=2,<3"), subscription(1, ">=1,<2")]
    assert recipients(groups, "thing.happened", [Version(1, 0), Version(2, 0)]) == {1: Version(2, 0)}


def test_without_keys_everything_is_in_line():
    line = in_line([waiting(2), waiting(1)], {}, NOW)
    assert [w.seq for w in line.ready] == [1, 2]
    assert line.blocked == {}


def test_c3_a_failing_key_blocks_only_its_key():
    taken = [waiting(5, b"a"), waiting(6, b"b"), waiting(7)]
    line = in_line(taken, {b"a": [(3, NOW + MINUTE)], b"b": [(6, NOW)]}, NOW)
    assert [w.seq for w in line.ready] == [6, 7]
    assert line.blocked == {5: NOW + MINUTE}


def test_an_event_is_not_handled_past_one_in_another_workers_hands():
    taken = [waiting(1, b"a"), waiting(3, b"a")]
    line = in_line(taken, {b"a": [(1, NOW), (2, NOW), (3, NOW)]}, NOW)
    assert [w.seq for w in line.ready] == [1]
    assert line.blocked == {3: NOW + BLOCKED_PAUSE}
    assert line.overtaken == {3: b"a"}


def test_a_follower_of_a_dead_letter_that_blocks_looks_again_later():
    line = in_line([waiting(2, b"a")], {b"a": [(1, NEVER)]}, NOW)
    assert line.blocked == {2: NOW + BLOCKED_BY_DEAD}


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", None]), st.booleans()), max_size=12))
def test_what_is_in_line_is_always_a_prefix_of_its_key(entries):
    """Of each key the ready ones are the first that exist: no unhandled event of the key comes before them."""
    everything = [(seq, key, mine) for seq, (key, mine) in enumerate(entries)]
    taken = [waiting(seq, key) for seq, key, mine in everything if mine]
    standing = {key: [(s, NOW) for s, k, _ in everything if k == key] for key in (b"a", b"b")}
    line = in_line(taken, standing, NOW)
    ready = {w.seq for w in line.ready}
    for seq in ready:
        key = entries[seq][0]
        if key is not None:
            assert all(s in ready for s, k, _ in everything if k == key and s < seq)
    assert ready | set(line.blocked) == {w.seq for w in taken}
    assert all(seq in ready for seq, key, mine in everything if mine and key is None)


def test_b5_five_retries_then_a_dead_letter():
    verdicts = [after_failure(Retry(), n, NOW, 0.5, poison=False, ordered=None) for n in range(1, 7)]
    assert all(isinstance(v, Comeback) for v in verdicts[:5])
    assert verdicts[5] == GiveUp(R.RETRIES_EXHAUSTED, keep=False)


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
    assert after_failure(Retry(), 1, NOW, 0.5, poison=True, ordered=None) == GiveUp(R.HANDLER_POISON, keep=False)


def test_a_type_may_ask_that_a_dead_letter_goes_on_blocking_its_key():
    assert after_failure(Retry(max_retries=0), 1, NOW, 0.5, poison=False, ordered=OnDeadLetter.BLOCK).keep
    assert not after_failure(Retry(max_retries=0), 1, NOW, 0.5, poison=False, ordered=OnDeadLetter.CONTINUE).keep


def test_an_event_behind_one_that_waits_for_its_retry_overtakes_nobody():
    line = in_line([waiting(3, b"a")], {b"a": [(1, NOW + 7 * BLOCKED_PAUSE), (3, NOW)]}, NOW)
    assert (line.blocked, line.overtaken) == ({3: NOW + 7 * BLOCKED_PAUSE}, {})


def test_a_worker_takes_itself_to_be_alone_when_it_has_met_nobody_for_a_while():
    reach = Reach()
    steps = 0
    while not reach.alone:
        reach, steps = next_reach(reach, refused=0, first=0), steps + 1
    assert steps == QUIET
    assert next_reach(reach, refused=0, first=0).alone
    reach = next_reach(reach, refused=1, first=0)
    assert (reach.alone, reach.quiet) == (False, 0)
    assert not next_reach(next_reach(reach, refused=0, first=0), refused=0, first=0).alone


def test_a_worker_that_meets_others_asks_for_fewer_shards_and_for_more_when_it_does_not():
    reach = Reach()
    shares = []
    for refused in (3, 1, 0, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0):
        reach = next_reach(reach, refused=refused, first=70)
        shares.append(reach.share)
    assert shares == [32, 16, 32, 16, 8, 4, 4, 4, 8, 16, 32, 64, 64]
    assert reach.first == 6
