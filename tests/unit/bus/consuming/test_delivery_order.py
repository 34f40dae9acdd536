"""C§3, B5: which events of a group are in line."""

from hypothesis import given
from hypothesis import strategies as st

from patra.bus.catalogue.versions import Version
from patra.bus.consuming.delivery_order import (
    BLOCKED_BY_DEAD,
    BLOCKED_PAUSE,
    FAR_FUTURE,
    QUIET_STEPS,
    Reach,
    Waiting,
    in_line,
    next_reach,
)
from patra.kernel.clock import MINUTE

NOW = 1_000_000_000


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
    line = in_line([waiting(2, b"a")], {b"a": [(1, FAR_FUTURE)]}, NOW)
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


def test_an_event_behind_one_that_waits_for_its_retry_overtakes_nobody():
    line = in_line([waiting(3, b"a")], {b"a": [(1, NOW + 7 * BLOCKED_PAUSE), (3, NOW)]}, NOW)
    assert (line.blocked, line.overtaken) == ({3: NOW + 7 * BLOCKED_PAUSE}, {})


def test_a_worker_takes_itself_to_be_alone_when_it_has_met_nobody_for_a_while():
    reach = Reach()
    steps = 0
    while not reach.alone:
        reach, steps = next_reach(reach, refused=0, first=0), steps + 1
    assert steps == QUIET_STEPS
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
