"""Publishing on every store and transport: C§1 to C§5, B2 to B5."""

import contextlib

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.publishing.envelope import rendition
from patra.bus.publishing.publish import Published
from patra.bus.store import events
from patra.kernel.clock import HOUR, format_instant
from patra.kernel.ids import new_id
from tests.unit.bus.making import envelope, forward


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
    assert (refused.code, refused.place) == (Reason.IDEMPOTENCY_CONFLICT, "/idempotency_key")
    site.publish(other)
    (row,) = site.db.read(lambda tx: events.refusals_of(tx, other.event_id))
    assert (row.code, row.count, row.idempotency_key) == (Reason.IDEMPOTENCY_CONFLICT, 2, "k")


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
    assert refused.code is Reason.EVENT_ID_REUSED


def test_each_event_of_a_set_is_answered_in_its_place(site):
    site.listen("one")
    good, bad, same = envelope(), envelope(producer="Nobody"), envelope(idempotency_key="k")
    again = msgspec.structs.replace(same, event_id=new_id())
    outcomes = site.publish(good, bad, same, again, envelope("no.such_type"))
    assert [getattr(o, "code", o) for o in outcomes] == [
        Published(event_id=good.event_id),
        Reason.PRODUCER,
        Published(event_id=same.event_id),
        Published(event_id=same.event_id, duplicate=True),
        Reason.TYPE_UNKNOWN,
    ]
    assert site.pump()["handled"] == 2
    assert {row.code for row in site.db.read(lambda tx: events.refusals(tx, limit=10))} == {
        Reason.PRODUCER,
        Reason.TYPE_UNKNOWN,
    }


def test_refusals_of_one_instant_are_on_one_page(site):
    site.publish(envelope(producer="Older"))
    site.clock.advance(HOUR)
    site.publish(*(envelope(producer=f"Nobody {n}") for n in range(3)))
    page = site.db.read(lambda tx: events.refusals(tx, limit=2))
    assert {row.producer for row in page} == {"Nobody 0", "Nobody 1", "Nobody 2"}
    following = site.db.read(lambda tx: events.refusals(tx, limit=2, before=page[-1].last_at))
    assert [row.producer for row in following] == ["Older"]


def test_the_log_is_read_backwards_in_pages_that_may_be_empty(site, monkeypatch):
    monkeypatch.setattr(events, "PAGE_SCAN_ROWS", 3)
    own = envelope(tenant_id="own")
    site.publish(own, *(envelope() for _ in range(5)))
    site.pump()
    pages, before = [], events.LATEST
    while before is not None:
        page = site.db.read(lambda tx, at=before: events.page_before(tx, at, limit=2, tenant_id="own"))
        pages.append([one.event_id for one in page.events])
        before = page.next
    assert [one for page in pages for one in page] == [own.event_id]
    assert pages[0] == []
    everything, before = [], events.LATEST
    while before is not None:
        page = site.db.read(lambda tx, at=before: events.page_before(tx, at, limit=2))
        everything += [one.seq for one in page.events]
        before = page.next
    assert everything == sorted(everything, reverse=True)
    assert len(everything) == 6


def test_c5_a_forwarded_event_is_the_same_event(site):
    site.listen("one")
    made = envelope()
    site.publish(made, publisher="Maker")
    assert site.publish(forward(made, "Hub"), publisher="Hub") == [Published(event_id=made.event_id, duplicate=True)]
    (refused,) = site.publish(envelope(), publisher="Hub")
    assert refused.code is Reason.FORWARD_UNMARKED
    assert site.pump()["handled"] == 1


def test_c5_a_forwarded_event_keeps_its_producer_on_its_whole_way(site):
    seen = []
    site.bus.consumer("thing.happened", group="one")(lambda tx, event: seen.append(event.envelope))
    site.join()
    made = forward(forward(envelope(), "Hub"), "Gate")
    site.publish(made, publisher="Gate")
    site.pump()
    assert [(e.producer, e.forwarded_by) for e in seen] == [("Maker", ("Hub", "Gate"))]


def test_b4_each_group_gets_the_newest_major_that_it_reads_and_once(site):
    site.listen("old", "dual.happened", ">=1,<2")
    site.listen("new", "dual.happened", ">=2")
    site.listen("both", "dual.happened", ">=1")
    one = envelope("dual.happened", {"key": "k", "n": 1})
    two = rendition(one, "2.0", {"key": "k", "number": 2})
    assert site.publish(one)[0].code is Reason.DUAL_MISSING
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
    assert (
        site.publish(again, rendition(again, "2.0", {"key": "k", "number": 3}))[0].code is Reason.IDEMPOTENCY_CONFLICT
    )


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


def test_an_event_for_later_is_for_later_to_a_group_that_begins_at_the_beginning_too(site):
    site.publish(envelope(extensions={"deliverat": format_instant(site.clock.now() + HOUR)}))
    site.transport()
    site.listen("late", from_beginning=True)
    site.pump()
    assert site.effects("late") == []
    site.clock.advance(HOUR)
    site.pump()
    assert len(site.effects("late")) == 1


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
    assert (refused.code, refused.place) == (Reason.ENVELOPE_MISSING, "/idempotency_key")
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
    assert site.db.run(lambda tx: events.purge_bodies(tx, "thing.happened", before=now + 1, limit=10)).emptied == (
        2 if site.stream else 0
    )
    if site.stream:  # on its way over a broker that was down for so long: it arrives with its body
        assert site.pump()["handled"] == 2
        assert {key for _, key, _ in site.effects("one")} == {first.payload["key"]}
        return
    site.pump()
    assert site.db.run(lambda tx: events.purge_bodies(tx, "thing.happened", before=now + 1, limit=1)).emptied == 1
    assert site.db.run(lambda tx: events.purge_bodies(tx, "thing.happened", before=now + 1, limit=10)).emptied == 1
    assert site.publish(envelope(idempotency_key="k")) == [Published(event_id=first.event_id, duplicate=True)]
