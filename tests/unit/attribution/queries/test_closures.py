"""Closures by deadline, the parts of the time to come that they are due in, and the way that one took."""

from collections.abc import Iterator

import pytest

from patra.attribution.queries import closure_by_key, closures_by_deadline, deadlines
from patra.attribution.replay import replay
from patra.kernel.clock import DAY, SECOND
from patra.kernel.db import Database
from tests.unit.attribution.said import T0, at, event, fresh, sent, terminal, tick


@pytest.fixture
def db() -> Iterator[Database]:
    made = fresh()
    replay(
        [
            *(
                sent(n, event("ad_filled", f"f{n}", responseReference=f"r{n}"), batch=f"b{n}", app=f"app-{n % 2}")
                for n in (20, 0, 10, 11)
            ),
            sent(30, event("impression", "i", responseReference="r0"), batch="i", app="app-0"),
            tick(31),
        ],
        made,
    )
    yield made
    made.close()


def test_those_that_wait_stand_by_their_deadline_and_page_by_page(db: Database):
    first = db.read(lambda tx: closures_by_deadline(tx, after=b"", limit=2))
    rest = db.read(lambda tx: closures_by_deadline(tx, after=first[-1][0], limit=2))
    assert [view.closureKey for _, view in (*first, *rest)] == ["r10|ra", "r11|ra", "r20|ra"]
    of_app = db.read(lambda tx: closures_by_deadline(tx, after=b"", app="app-1", limit=9))
    assert [view.closureKey for _, view in of_app] == ["r11|ra"]
    soon = db.read(lambda tx: closures_by_deadline(tx, after=b"", until=T0 + 131 * SECOND, limit=9))
    assert [view.closureKey for _, view in soon] == ["r10|ra"]


def test_each_part_of_the_next_two_minutes_says_how_many_are_due(db: Database):
    found = db.read(lambda tx: deadlines(tx, T0 + 128 * SECOND))
    assert (found.overdue, found.step_seconds, len(found.due), found.complete) == (0, 5, 24, True)
    assert [part.count for part in found.due[:4]] == [2, 0, 1, 0]
    assert found.due[0].at == at(128)
    late = db.read(lambda tx: deadlines(tx, T0 + 135 * SECOND))
    assert (late.overdue, sum(part.count for part in late.due)) == (2, 1)


def test_deadlines_far_ahead_since_a_clock_was_ahead_are_one_number(db: Database):
    """Parts of five seconds up to them would be millions, on each view of the overview."""
    found = db.read(lambda tx: deadlines(tx, T0 - 3650 * DAY))
    assert (len(found.due), found.overdue, found.later, found.complete) == (24, 0, 3, True)
    near = db.read(lambda tx: deadlines(tx, T0 - 105 * SECOND))
    assert (sum(part.count for part in near.due), near.later) == (2, 1)


def test_a_closure_says_which_way_it_took():
    made = fresh()
    replay([sent(0, event("ad_filled", "f")), tick(200), sent(201, event("impression", "i"), batch="b2")], made)
    found = made.read(lambda tx: closure_by_key(tx, "ref|ra"))
    assert found is not None
    assert found.way == ["timeout", "late_impression"]
    made.close()
    made = fresh()
    replay([sent(0, event("ad_filled", "f"), terminal("t"), terminal("u", attemptKey="2"))], made)
    found = made.read(lambda tx: closure_by_key(tx, "ref|ra"))
    assert found is not None
    assert found.way == ["failure"]
    made.close()
