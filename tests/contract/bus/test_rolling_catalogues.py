"""B8: while processes with different catalogues share a store, no event misses a group that subscribed before it."""

import pytest

from patra.bus.bus import Bus
from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import rendition
from patra.bus.publishing.publish import Published
from patra.bus.store import groups
from patra.kernel.clock import SECOND
from patra.kernel.errors import ConfigInvalid, Permanent
from tests.unit.bus.making import THING, THING_2, catalogue, closed, envelope, event_type, version

ONE = catalogue(event_type())
BOTH = catalogue(event_type(versions=[version("1.0", status="retiring"), version("2.0", THING_2)]))
SECOND_ONLY = catalogue(event_type(versions=[version("1.0", status="retired"), version("2.0", THING_2)]))
MINOR = catalogue(
    event_type(versions=[version("1.1", closed({**THING["properties"], "m": {"since": "1.1"}}, ["key"]))])
)
OTHER = catalogue(event_type(versions=[version("1.0", closed({"key": {"type": "string"}}, ["key"]))]))
ADDED = catalogue(event_type(), event_type("other.happened"))


@pytest.fixture
def pair(make_site):
    """Two processes on one store: `old` with the first catalogue, adopted; `new` is made by the test."""

    def make(following):
        new = make_site(following)
        new.effects_table()
        return new

    old = make_site(ONE)
    old.db.run(old.bus.adopt)
    return old, make


def test_a_publisher_that_is_behind_is_refused_when_a_group_would_miss_the_event(pair):
    old, make = pair
    before = envelope()
    assert old.publish(before) == [Published(event_id=before.event_id)]
    new = make(BOTH)
    new.db.run(new.bus.adopt)
    new.listen("reads_two", versions=">=2")
    (refused,) = old.publish(envelope())
    assert (refused.code, refused.place) == (Reason.CATALOGUE_BEHIND, "/event_version")
    assert "patra bus catalogue check --store" in refused.detail
    assert old.publish(before) == [Published(event_id=before.event_id, duplicate=True)]
    made = envelope()
    assert new.publish(made, rendition(made, "2.0", {"key": "k", "number": 1}))[0] == Published(event_id=made.event_id)
    new.pump()
    assert [event_id for event_id, _, _ in new.effects("reads_two")] == [made.event_id]


def test_joining_adopts_so_that_no_publisher_is_unaware_of_the_new_version(pair):
    old, make = pair
    make(BOTH).listen("reads_two", versions=">=2")
    assert old.publish(envelope())[0].code is Reason.CATALOGUE_BEHIND


def test_a_publisher_that_is_behind_goes_on_while_every_group_gets_its_events(pair):
    old, make = pair
    new = make(BOTH)
    new.db.run(new.bus.adopt)
    new.listen("reads_any", versions=">=1")
    made = envelope()
    (outcome,) = old.publish(made)
    if old.stream is not None:  # groups of other stores are not known here
        assert outcome.code is Reason.CATALOGUE_BEHIND
        return
    assert outcome == Published(event_id=made.event_id)
    new.pump()
    assert [event_id for event_id, _, _ in new.effects("reads_any")] == [made.event_id]


def test_a_group_that_reads_a_later_minor_only_is_not_missed_either(pair):
    old, make = pair
    new = make(MINOR)
    new.db.run(new.bus.adopt)
    assert isinstance(old.publish(envelope())[0], Published)
    new.listen("reads_minor", versions=">=1.1")
    assert old.publish(envelope())[0].code is Reason.CATALOGUE_BEHIND


def test_a_retired_major_is_published_by_nobody(pair):
    old, make = pair
    new = make(BOTH)
    new.db.run(new.bus.adopt)
    last = Bus(SECOND_ONLY, new.clock)
    new.db.run(last.adopt)
    assert old.publish(envelope())[0].code is Reason.CATALOGUE_BEHIND


def test_in_process_publishing_is_refused_after_the_adoption_failed(pair):
    _, make = pair
    broken = make(OTHER)
    with pytest.raises(ConfigInvalid):
        broken.db.run(broken.bus.adopt)
    (refused,) = broken.publish(envelope())
    assert refused.code is Reason.EVOLUTION_MAJOR


def test_types_on_which_both_agree_are_published_as_ever(pair):
    old, make = pair
    new = make(ADDED)
    new.db.run(new.bus.adopt)
    assert isinstance(old.publish(envelope())[0], Published)


def _version(site):
    return site.db.read(lambda tx: tx.fetch_one(groups.Q["catalogue_version"])[0])


def test_the_adopted_catalogue_has_a_version_that_goes_up_with_each_change(pair):
    old, make = pair
    old.db.run(old.bus.adopt)
    assert _version(old) == 1
    new = make(BOTH)
    new.db.run(new.bus.adopt)
    assert _version(old) == 2


def test_the_check_costs_no_statement_once_a_catalogue_is_known(pair):
    old, make = pair
    new = make(ADDED)
    new.db.run(new.bus.adopt)
    old.publish(envelope())
    asked = []

    def work(tx):
        fetch = tx.fetch

        class Counting:
            def __getattr__(self, name):
                return getattr(tx, name)

            def fetch(self, statement, *args, **more):
                asked.append(statement.name)
                return fetch(statement, *args, **more)

        old.bus.publish_many(Counting(), [envelope() for _ in range(50)])

    old.db.run(work)
    assert asked[:3] == ["routing_lock_shared", "routing", "event_insert"]
    assert "catalogue_last" not in asked


def test_a_handler_that_may_not_publish_waits_for_the_upgrade_instead_of_dying(pair):
    old, make = pair
    new = make(BOTH)
    new.listen("reads_two", versions=">=2")

    @old.bus.consumer("thing.happened", group="republisher")
    def _(tx, event):
        outcome = old.bus.publish(tx, envelope())
        raise Permanent(outcome.code.value, outcome.detail)

    old.db.run(old.bus.join)
    made = envelope()
    new.publish(made, rendition(made, "2.0", {"key": "k", "number": 1}))
    new.transport()
    for _ in range(9):
        old.step("republisher")
        old.clock.advance(10 * SECOND)
    assert [g.dead for g in old.db.read(groups.totals) if g.name == "republisher"] == [0]
    assert [g.waiting for g in old.db.read(groups.totals) if g.name == "republisher"] == [1]
