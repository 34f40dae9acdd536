"""Publishing on every store and transport: C§1 to C§5, B2 to B5."""

import contextlib

import msgspec

from patra.bus.envelope import forwarded, rendition
from patra.bus.publish import Published
from patra.bus.reasons import R
from patra.bus.store import events
from patra.kernel.ids import new_id
from tests.unit.bus.making import envelope


def test_an_event_reaches_every_group_that_listens_and_no_other(site):
    site.listen("one")
    site.listen("two")
    site.listen("other", "ordered.happened")
    made = envelope()
    assert site.publish(made) == [Published(event_id=made.event_id)]
    site.pump()
    assert [e for e, _, _ in site.effects("one")] == [e for e, _, _ in site.effects("two")] == [made.event_id]
    assert site.effects("other") == []


def test_what_the_callers_transaction_takes_back_was_never_published(site):
    site.listen("one")

    def work(tx):
        site.bus.publish(tx, envelope())
        raise KeyError

    with contextlib.suppress(KeyError):
        site.db.run(work)
    assert site.pump() == {}
    assert site.effects("one") == []


def test_b2_the_same_payload_again_returns_the_first_event_id_and_reaches_nobody(site):
    site.listen("one")
    first, again = envelope(idempotency_key="k"), envelope(idempotency_key="k")
    site.publish(first)
    assert site.publish(again) == [Published(event_id=first.event_id, duplicate=True)]
    site.pump()
    assert [e for e, _, _ in site.effects("one")] == [first.event_id]


def test_b2_another_payload_under_the_key_is_refused_and_leaves_a_row(site):
    first, other = envelope(idempotency_key="k"), envelope(idempotency_key="k", payload={"key": "x"})
    site.publish(first)
    (refused,) = site.publish(other)
    assert (refused.code, refused.place) == (R.IDEMPOTENCY_CONFLICT, "/idempotency_key")
    site.publish(other)
    (row,) = site.db.read(lambda tx: events.refusals_of(tx, other.event_id))
    assert (row.code, row.count, row.idempotency_key) == (R.IDEMPOTENCY_CONFLICT, 2, "k")


def test_b2_the_key_is_unique_within_tenant_and_type(site):
    made = [
        envelope(idempotency_key="k"),
        envelope(idempotency_key="k", tenant_id="other"),
        envelope("ordered.happened", idempotency_key="k"),
    ]
    assert [o.duplicate for o in site.publish(*made)] == [False, False, False]


def test_an_event_id_belongs_to_one_event(site):
    first = envelope()
    site.publish(first)
    (refused,) = site.publish(msgspec.structs.replace(first, idempotency_key=new_id()))
    assert refused.code is R.EVENT_ID_REUSED


def test_each_event_of_a_set_is_answered_in_its_place(site):
    site.listen("one")
    good, bad, same = envelope(), envelope(producer="Nobody"), envelope(idempotency_key="k")
    again = msgspec.structs.replace(same, event_id=new_id())
    outcomes = site.publish(good, bad, same, again, envelope("no.such_type"))
    assert [getattr(o, "code", o) for o in outcomes] == [
        Published(event_id=good.event_id),
        R.PRODUCER,
        Published(event_id=same.event_id),
        Published(event_id=same.event_id, duplicate=True),
        R.TYPE_UNKNOWN,
    ]
    assert site.pump()["handled"] == 2
    assert {row.code for row in site.db.read(lambda tx: events.refusals(tx, limit=10))} == {R.PRODUCER, R.TYPE_UNKNOWN}


def test_c5_a_forwarded_event_is_the_same_event(site):
    site.listen("one")
    made = envelope()
    site.publish(made, publisher="Maker")
    assert site.publish(forwarded(made, "Hub"), publisher="Hub") == [Published(event_id=made.event_id, duplicate=True)]
    (refused,) = site.publish(envelope(), publisher="Hub")
    assert refused.code is R.FORWARD_UNMARKED
    assert site.pump()["handled"] == 1


def test_c5_a_forwarded_event_keeps_its_producer_on_its_whole_way(site):
    seen = []
    site.bus.consumer("thing.happened", group="one")(lambda tx, event: seen.append(event.envelope))
    site.join()
    made = forwarded(forwarded(envelope(), "Hub"), "Gate")
    site.publish(made, publisher="Gate")
    site.pump()
    assert [(e.producer, e.forwarded_by) for e in seen] == [("Maker", ("Hub", "Gate"))]


def test_b4_each_group_gets_the_newest_major_that_it_reads_and_once(site):
    site.listen("old", "dual.happened", ">=1,<2")
    site.listen("new", "dual.happened", ">=2")
    site.listen("both", "dual.happened", ">=1")
    one = envelope("dual.happened", {"key": "k", "n": 1})
    two = rendition(one, "2.0", {"key": "k", "number": 2})
    assert site.publish(one)[0].code is R.DUAL_MISSING
    assert site.publish(one, two) == [Published(event_id=one.event_id)] * 2
    site.pump()
    assert [n for _, _, n in site.effects("old")] == [1]
    assert [n for _, _, n in site.effects("new")] == [2]
    assert [n for _, _, n in site.effects("both")] == [2]


def test_b4_a_retry_of_an_event_in_two_versions_is_one_duplicate(site):
    one = envelope("dual.happened", {"key": "k"}, idempotency_key="k")
    two = rendition(one, "2.0", {"key": "k", "number": 2})
    site.publish(one, two)
    again = msgspec.structs.replace(one, event_id=new_id())
    assert (
        site.publish(again, rendition(again, "2.0", two.payload))
        == [Published(event_id=one.event_id, duplicate=True)] * 2
    )
    assert site.publish(again, rendition(again, "2.0", {"key": "k", "number": 3}))[0].code is R.IDEMPOTENCY_CONFLICT


def test_a_group_that_joins_later_begins_now_or_at_the_beginning(site):
    before = envelope()
    site.publish(before)
    site.transport()
    site.listen("late")
    site.listen("first", from_beginning=True)
    after = envelope()
    site.publish(after)
    site.pump()
    assert [e for e, _, _ in site.effects("late")] == [after.event_id]
    assert {e for e, _, _ in site.effects("first")} == {before.event_id, after.event_id}


def test_b4_a_group_that_begins_at_the_beginning_gets_the_newest_major_too(site):
    one = envelope("dual.happened", {"key": "k", "n": 1})
    site.publish(one, rendition(one, "2.0", {"key": "k", "number": 2}))
    site.transport()
    site.listen("old", "dual.happened", ">=1,<2", from_beginning=True)
    site.listen("both", "dual.happened", ">=1", from_beginning=True)
    assert site.pump()["duplicates"] == 0
    assert site.effects("old") == [(one.event_id, "k", 1)]
    assert site.effects("both") == [(one.event_id, "k", 2)]


def test_c3_the_idempotency_key_is_the_producers_and_none_is_made_up_for_it(site):
    site.listen("one")
    (refused,) = site.publish(envelope(idempotency_key=""))
    assert (refused.code, refused.place) == (R.ENVELOPE_MISSING, "/idempotency_key")
    key = envelope(idempotency_key="of the producer")
    site.publish(key, msgspec.structs.replace(key, event_id=new_id()))
    assert site.pump()["handled"] == 1


def test_b4_whichever_handler_was_declared_first_the_newest_major_is_what_a_beginning_group_gets(site):
    one = envelope("dual.happened", {"key": "k", "n": 1})
    site.publish(one, rendition(one, "2.0", {"key": "k", "number": 2}))
    site.transport()
    got = []
    for versions in (">=1,<2", ">=2"):
        site.bus.consumer("dual.happened", group="both", versions=versions, from_beginning=True)(
            lambda tx, event, versions=versions: got.append(versions)
        )
    site.join()
    assert site.pump()["handled"] == 1
    assert got == [">=2"]


def test_retention_empties_the_body_and_keeps_the_key(site):
    site.listen("one")
    first = envelope(idempotency_key="k")
    site.publish(first, envelope())
    now = site.clock.now()
    assert site.db.run(lambda tx: events.purge_bodies(tx, "thing.happened", before=now + 1, limit=10)) == (
        2 if site.stream else 0
    )
    if site.stream:  # on its way over a broker that was down for so long: it arrives with its body
        assert site.pump()["handled"] == 2
        assert {key for _, key, _ in site.effects("one")} == {first.payload["key"]}
        return
    site.pump()
    assert site.db.run(lambda tx: events.purge_bodies(tx, "thing.happened", before=now + 1, limit=1)) == 1
    assert site.db.run(lambda tx: events.purge_bodies(tx, "thing.happened", before=now + 1, limit=10)) == 1
    assert site.publish(envelope(idempotency_key="k")) == [Published(event_id=first.event_id, duplicate=True)]
