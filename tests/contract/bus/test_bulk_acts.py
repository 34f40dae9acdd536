"""Acts on many dead letters: causes, a preview, batches with their progress, stopping (C§6)."""

from patra.bus import bulk_acts
from patra.bus.bulk_acts import BulkAct, Preview, Progress
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import DeadLetterState, Filter
from patra.bus.publishing.envelope import Refused
from patra.kernel.clock import HOUR, SECOND
from patra.kernel.db import Tx
from patra.kernel.db.queries import statement
from tests.contract.bus.test_dead_letters import bad, bury, open_letters

ONE = Filter(group="one")
OTHER_CODE = statement("other_code", "UPDATE bus_dead_letter SET error_code = 'other' WHERE letter_id = :letter")


def previewed(site, wanted: Filter = ONE) -> Preview:
    return site.db.read(lambda tx: bulk_acts.preview(tx, site.bus, wanted))


def begun(
    site, kind: str = "replay", wanted: Filter = ONE, *, confirm: str = "one", why: str = ""
) -> BulkAct | Refused:
    return site.db.run(lambda tx: bulk_acts.begin(tx, site.bus, kind, wanted, by="ada", confirm=confirm, why=why))


def progress(site, act: BulkAct) -> Progress:
    found = site.db.read(lambda tx: bulk_acts.progress(tx, act.act_id))
    assert isinstance(found, Progress)
    return found


def bite(site, act: BulkAct, limit: int) -> int:
    return site.db.run(lambda tx: bulk_acts.work_off(tx, site.bus, act.act_id, limit=limit))


def test_letters_are_put_together_by_cause_and_a_preview_says_how_many_and_which(site):
    site.listen("one")
    made = [bad(n) for n in range(3)]
    bury(site, *made)
    (cause,) = site.db.read(lambda tx: bulk_acts.causes(tx, Filter()))
    assert (cause.group, cause.error_code, cause.letters) == ("one", Reason.HANDLER_FAILED, 3)
    assert "no luck" in cause.detail
    found = previewed(site)
    assert (found.letters, found.replayed_before, found.sample_breaking_contract) == (3, 0, 0)
    assert set(found.sample) == {one.event_id for one in made}
    assert previewed(site, Filter(group="one", error_code="b_handler_poison")).letters == 0


def test_causes_are_counted_by_the_hour_of_their_last_failure(site):
    site.listen("one")
    bury(site, bad(0))
    site.clock.advance(2 * HOUR)
    bury(site, bad(1), bad(2))
    until = site.clock.now() + 1
    for parts, counts in ((4, [0, 1, 0, 2]), (1, [2])):  # what failed before the first part is in the sum alone
        ((cause, hours),) = site.db.read(
            lambda tx, parts=parts: bulk_acts.causes_over_time(tx, Filter(), until, parts=parts, step=HOUR)
        )
        assert (hours, cause.letters) == (counts, 3)
    assert "no luck" in cause.detail
    assert cause.last_failed_at - cause.first_failed_at >= 2 * HOUR


def test_all_letters_that_were_there_are_replayed_in_bites_and_later_ones_are_only_counted(site):
    site.listen("one")
    bury(site, *(bad(n) for n in range(3)))
    act = begun(site)
    assert isinstance(act, BulkAct)
    bury(site, bad(9))
    assert bite(site, act, 2) == 2
    half = progress(site, act)
    assert (half.act.state, half.act.moved, half.act.remaining, half.new_since) == ("running", 2, 1, 1)
    assert half.states == {"replaying": 2}
    assert site.db.read(lambda tx: bulk_acts.progress(tx, "nobody")).code is Reason.BULK_ACT_UNKNOWN
    assert bulk_acts.run_once(site.db, site.bus) == 1  # as the loop does, after a restart too
    assert progress(site, act).act.state == "done"
    assert bulk_acts.run_once(site.db, site.bus) == 0
    site.fail.clear()
    site.pump("one")
    assert progress(site, act).states == {"replayed": 3}
    assert len(open_letters(site)) == 1


def test_a_preview_is_of_the_moment_before_its_first_query(site):
    class Slow:
        """What dies between two queries of a preview dies after it."""

        def __init__(self, tx: Tx) -> None:
            self._tx = tx

        def __getattr__(self, name: str):
            site.clock.advance(SECOND)
            return getattr(self._tx, name)

    now = site.clock.now()
    assert site.db.read(lambda tx: bulk_acts.preview(Slow(tx), site.bus, ONE)).as_of == now
    assert site.clock.now() > now


def test_a_preview_counts_all_also_where_it_shows_few_causes_and_its_act_touches_no_more(site):
    site.listen("one")
    bury(site, *(bad(n) for n in range(3)))
    first = previewed(site).sample[0]
    site.db.run(lambda tx: tx.execute(OTHER_CODE, {"letter": f"one/{first}"}))
    found = site.db.read(lambda tx: bulk_acts.preview(tx, site.bus, ONE, max_causes=1))
    assert (len(found.causes), found.letters) == (1, 3)
    site.clock.advance(SECOND)
    bury(site, bad(9))
    act = begun(site, "discard", Filter(group="one", failed_to=found.as_of + 1), why="withdrawn")
    assert isinstance(act, BulkAct)
    assert act.total == 3
    bite(site, act, 10)
    assert [one.event_id for one in open_letters(site)] == previewed(site).sample
    assert len(previewed(site).sample) == 1


def test_letters_are_discarded_with_a_reason_and_what_is_no_longer_open_is_counted_as_such(site):
    site.listen("one")
    bury(site, *(bad(n) for n in range(3)))
    unexplained = begun(site, "discard")
    assert isinstance(unexplained, Refused)
    assert unexplained.code is Reason.DISCARD_UNEXPLAINED
    act = begun(site, "discard", why="withdrawn")
    assert isinstance(act, BulkAct)
    other = begun(site, "discard", why="withdrawn twice")
    assert isinstance(other, BulkAct)
    assert bite(site, act, 10) == 3
    assert bite(site, other, 10) == 3
    assert (progress(site, act).act.moved, progress(site, other).act.refused) == (3, 3)
    assert progress(site, other).act.last_code == Reason.LETTER_NOT_OPEN.value
    assert open_letters(site) == []
    assert {one.close_reason for one in open_letters(site, state=DeadLetterState.DISCARDED)} == {"withdrawn"}


def test_an_act_needs_the_name_and_is_stopped_between_two_bites(site):
    site.listen("one")
    bury(site, *(bad(n) for n in range(3)))
    refused = begun(site, confirm="two")
    assert isinstance(refused, Refused)
    assert refused.code is Reason.REPLAY_UNCONFIRMED
    act = begun(site)
    assert isinstance(act, BulkAct)
    bite(site, act, 1)
    stopped = site.db.run(lambda tx: bulk_acts.stop(tx, site.bus, act.act_id))
    assert (stopped.state, stopped.moved) == ("stopped", 1)
    assert bite(site, act, 10) == 0
    assert len(open_letters(site)) == 2
    assert [one.act_id for one in site.db.read(lambda tx: bulk_acts.acts(tx, limit=10))] == [act.act_id]
