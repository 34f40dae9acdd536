"""Dead letters, replay and freeze on every store and transport: C§6, B5."""

import msgspec

from patra.bus import last_handled, operations
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import DEAD_LETTER, DeadLetterState, DeadLetterTransition, Filter, violations
from patra.bus.last_handled import comparison
from patra.bus.publishing.envelope import Refused, decode, decode_trusted, to_wire
from patra.bus.publishing.publish import Published
from patra.bus.store import dead_letters, deliveries, events, groups
from patra.bus.transports import webhook
from patra.kernel.clock import SECOND
from patra.kernel.db import migrate
from patra.kernel.errors import Permanent
from patra.kernel.machine import history
from tests.contract.bus.conftest import TYPES
from tests.contract.bus.site import Site
from tests.unit.bus.making import dead_letter, envelope


def bury(site, *made, group="one"):
    """Publish events and let them fail until they are dead letters."""
    site.fail |= {m.payload["key"] for m in made}
    site.publish(*made)
    dead = 0
    for _ in range(4):
        dead += site.pump(group).get("dead", 0)
        site.clock.advance(60 * SECOND)
    assert dead == len(made)


def bad(n=0):
    return envelope(payload={"key": f"bad{n}"})


def open_letters(site, **more):
    return site.db.read(lambda tx: operations.find_letters(tx, Filter(**more), limit=100))


def test_c6_a_failure_past_max_retries_is_a_dead_letter_with_every_field(site):
    site.listen("one")
    made, began = bad(), site.clock.now()
    bury(site, made)
    (letter,) = open_letters(site)
    assert (letter.event_id, letter.event_type, letter.producer, letter.trace_id) == (
        made.event_id,
        made.event_type,
        made.producer,
        made.trace_id,
    )
    assert (letter.error_code, letter.reason) == (Reason.HANDLER_FAILED, Reason.RETRIES_EXHAUSTED)
    assert "no luck" in letter.error_detail
    assert letter.first_failed_at == began
    assert letter.last_failed_at > began
    assert letter.attempts == 3  # the first try and max_retries = 2 more
    assert (letter.replay_count, letter.replayed_by, letter.state) == (0, None, DeadLetterState.OPEN)
    assert decode(letter.envelope) == made
    assert violations(site.bus.catalogue, letter) == []
    assert site.effects("one") == []


def test_a_dead_letter_belongs_to_the_group_that_failed(site):
    site.listen("one")
    site.listen("two")
    made = bad()
    bury(site, made)
    site.fail = set()
    site.pump("two")
    assert [x.group for x in open_letters(site)] == ["one"]
    assert len(site.effects("two")) == 1


def test_c6_a_replay_keeps_the_event_id_reaches_the_failed_group_only_and_counts(site):
    site.listen("one")
    site.listen("two")
    made = bad()
    bury(site, made)
    site.fail = set()
    site.pump("two")
    done = site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    assert done.letters == [f"one/{made.event_id}"]
    site.pump()
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]
    assert len(site.effects("two")) == 1
    (letter,) = open_letters(site, state=DeadLetterState.REPLAYED)
    assert (letter.replay_count, letter.replayed_by, letter.event_id) == (1, "ann", made.event_id)
    moves = site.db.read(lambda tx: history(tx, [letter.letter_id]))
    assert [m.reason for m in moves] == [Reason.REPLAY_ASKED, Reason.REPLAY_SUCCEEDED]
    assert [(m.was, m.to) for m in moves] == [
        ("open", "replaying"),
        ("replaying", "replayed"),
    ]
    (act,) = site.db.read(lambda tx: groups.acts(tx, subject="one"))
    assert (act.done_by, act.act, act.detail) == ("ann", "replay", {"events": [made.event_id]})


def test_c6_1_without_confirmation_by_name_nothing_is_replayed(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    for confirm, by, code in (("yes", "ann", Reason.REPLAY_UNCONFIRMED), ("one", "", Reason.REPLAY_UNNAMED)):
        assert site.run(operations.replay, "one", [made.event_id], by=by, confirm=confirm).code is code
    assert open_letters(site)[0].replay_count == 0
    assert site.pump() == {}


def test_a_replay_passes_the_inbox_once_and_a_copy_that_comes_by_does_not(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    group = site.db.read(lambda tx: groups.find(tx, "one")).group_id
    seq = site.db.read(lambda tx: events.by_id(tx, made.event_id))[0].seq

    def copy():
        site.db.run(lambda tx: events.deliver(tx, [(group, seq, None)], site.clock.now()))

    site.fail = set()
    copy()
    assert site.pump()["duplicates"] == 1  # a dead letter is not a second chance for a transport's copy
    assert site.effects("one") == []
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    assert site.pump()["handled"] == 1
    copy()
    assert site.pump()["duplicates"] == 1
    assert len(site.effects("one")) == 1


def test_c3_a_retry_and_a_replay_bring_what_was_published_and_nothing_else(site):
    seen = []

    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        seen.append(to_wire(event.envelope))
        event.payload["key"] = "spoiled"  # by the handler, before it fails
        if len(seen) < 6:
            raise ValueError("no luck")

    site.join()
    made = envelope(payload={"key": "k", "n": 1})
    site.publish(made)
    for _ in range(4):
        site.pump()
        site.clock.advance(60 * SECOND)
    assert site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one").letters
    for _ in range(4):
        site.pump()
        site.clock.advance(60 * SECOND)
    assert [letter.state for letter in open_letters(site, state=None)] == [DeadLetterState.REPLAYED]
    assert seen == [to_wire(made)] * 6


def test_a_replay_that_fails_again_is_the_same_letter_with_its_history(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    for n in (1, 2):
        site.run(operations.replay, "one", [made.event_id], by=f"ann{n}", confirm="one")
        dead = 0
        for _ in range(4):
            dead += site.pump().get("dead", 0)
            site.clock.advance(60 * SECOND)
        assert dead == 1
    (letter,) = open_letters(site)
    assert (letter.replay_count, letter.replayed_by, letter.attempts) == (2, "ann2", 9)
    assert [m.to for m in site.db.read(lambda tx: history(tx, [letter.letter_id]))] == [
        "replaying",
        "open",
        "replaying",
        "open",
    ]
    assert [a.done_by for a in site.db.read(lambda tx: groups.acts(tx, subject="one"))] == ["ann2", "ann1"]


def test_many_are_replayed_by_query_within_one_group(site):
    site.listen("one")
    site.listen("two")
    made = [bad(n) for n in range(3)]
    bury(site, *made)
    site.pump("two")
    wanted = Filter(group="one", event_type="thing.happened")
    assert site.run(operations.replay_found, Filter(), by="ann", confirm="one").code is Reason.GROUP_UNKNOWN
    assert site.run(operations.replay_found, wanted, by="ann", confirm="two").code is Reason.REPLAY_UNCONFIRMED
    assert len(site.run(operations.replay_found, wanted, by="ann", confirm="one", limit=2).letters) == 2
    assert len(site.run(operations.replay_found, wanted, by="ann", confirm="one").letters) == 1
    site.fail = set()
    assert site.pump("one")["handled"] == 3


def test_a_letter_of_a_forgotten_group_is_not_replayed_into_the_void(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    site.run(operations.forget, "one", by="ann", confirm="one")
    refused = site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    assert refused.code is Reason.GROUP_UNKNOWN
    assert (open_letters(site)[0].state, open_letters(site)[0].replay_count) == (DeadLetterState.OPEN, 0)
    site.join()  # under the same name it is another row
    assert [g.dead for g in site.db.read(groups.totals)] == [1]
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    site.fail = set()
    assert site.pump("one")["handled"] == 1
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]
    assert open_letters(site) == []


def test_a_letter_whose_replay_waits_when_its_group_is_forgotten_is_open_again(site):
    """On its way to nobody it could neither be discarded nor replayed, and a frozen type would never thaw by itself."""
    site.listen("one")
    made = [bad(n) for n in range(4)]
    bury(site, *made)  # one more than the type's threshold
    site.run(operations.replay, "one", [one.event_id for one in made], by="ann", confirm="one")
    assert site.db.read(dead_letters.waiting) == {DeadLetterState.OPEN: 0, DeadLetterState.REPLAYING: 4}
    site.run(operations.forget, "one", by="ann", confirm="one")
    assert site.db.read(dead_letters.waiting) == {DeadLetterState.OPEN: 4, DeadLetterState.REPLAYING: 0}
    moves = site.db.read(lambda tx: history(tx, [f"one/{made[0].event_id}"]))
    assert (moves[-1].on, moves[-1].to, moves[-1].reason) == ("failed_again", "open", Reason.GROUP_UNKNOWN)
    assert isinstance(site.publish(envelope())[0], Refused)  # it is still frozen
    done = site.run(operations.discard, "one", [one.event_id for one in made], by="ann", reason="of no use")
    assert len(done.letters) == 4
    assert isinstance(site.publish(envelope())[0], Published)


def test_waiting_replays_of_a_group_are_opened_as_a_set(site, monkeypatch):
    """Publishers wait for the lock under which a group is forgotten: no work of ours for each of 50,000 letters."""
    site.listen("one")
    made = [bad(n) for n in range(4)]
    bury(site, *made)
    site.run(operations.replay, "one", [one.event_id for one in made[:3]], by="ann", confirm="one")
    asked = []
    rule = DEAD_LETTER.move
    monkeypatch.setattr(DEAD_LETTER, "move", lambda *given, **more: asked.append(given) or rule(*given, **more))
    assert site.db.run(lambda tx: dead_letters.reopen(tx, "one", 7)) == 3
    assert len(asked) == 1
    moves = site.db.read(lambda tx: history(tx, [f"one/{one.event_id}" for one in made]))
    opened = [one for one in moves if one.reason == Reason.GROUP_UNKNOWN]
    assert {one.subject for one in opened} == {f"one/{one.event_id}" for one in made[:3]}
    assert {(one.was, one.to, one.at, one.rule_version) for one in opened} == {
        ("replaying", "open", 7, DEAD_LETTER.version)
    }


def test_a_letter_whose_replay_waits_when_its_endpoint_is_removed_is_open_again(database):
    site = Site(database, TYPES)
    site.listen("webhook.shop")
    shop = {"name": "shop", "url": "https://shop.example", "secret": "env:SHOP", "created_by": "ann", "created_at": 1}
    site.db.run(lambda tx: tx.insert("bus_webhook", [shop]))
    letter = msgspec.structs.replace(dead_letter(1), letter_id="webhook.shop/e1", group_name="webhook.shop")
    site.db.run(lambda tx: dead_letters.write(tx, [letter]))
    site.run(operations.replay, "webhook.shop", ["e1"], by="ann", confirm="webhook.shop")
    assert site.run(webhook.remove, "shop", by="ann")
    assert site.db.read(dead_letters.waiting) == {DeadLetterState.OPEN: 1, DeadLetterState.REPLAYING: 0}


def test_an_upgrade_opens_letters_whose_group_was_forgotten_under_their_replay(database):
    """As releases before 0213 left them; a replay that waits in the line of a group is not touched."""
    site = Site(database, TYPES)
    site.listen("one")
    letters = [msgspec.structs.replace(dead_letter(n), seq=7 + n, group_name=g) for n, g in enumerate(("one", "two"))]
    letters[1] = msgspec.structs.replace(letters[1], letter_id="two/e1", group_id=99)
    site.db.run(lambda tx: dead_letters.write(tx, letters))
    site.run(operations.replay, "one", ["e0"], by="ann", confirm="one")
    site.db.run(lambda tx: dead_letters.move(tx, [replay_of("two/e1", site.clock.now())]))
    upgrade_again(site)
    states = {one.letter_id: one.state for one in open_letters(site, state=None)}
    assert states == {"one/e0": DeadLetterState.REPLAYING, "two/e1": DeadLetterState.OPEN}
    moves = site.db.read(lambda tx: history(tx, ["two/e1"]))
    assert [(one.was, one.on, one.to) for one in moves] == [
        ("open", "replay", "replaying"),
        ("replaying", "failed_again", "open"),
    ]


def test_an_upgrade_leaves_a_replay_to_a_group_that_joined_again_alone(site):
    """Opened, it would be handled and stay open all the same, and keep its type frozen."""
    site.listen("one")
    made = bad()
    bury(site, made)
    site.run(operations.forget, "one", by="ann", confirm="one")
    site.join()  # under the same name it is another row
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    upgrade_again(site)
    site.fail = set()
    assert site.pump("one")["handled"] == 1
    assert open_letters(site) == []
    assert [e for e, _, _ in site.effects("one")] == [made.event_id]


def replay_of(letter, now):
    return DEAD_LETTER.move(
        letter, DeadLetterState.OPEN, DeadLetterTransition.REPLAY, reason=Reason.REPLAY_ASKED, at=now
    )


def upgrade_again(site):
    for text in ("DROP INDEX bus_dead_letter_freezing", "DELETE FROM krn_migration WHERE number = 213"):
        site.db.run(lambda tx, text=text: tx.script(text))
    assert [one.number for one in migrate(site.db, ["patra.kernel", "patra.bus"])] == [213]


def test_a_letter_that_was_over_is_open_again_when_its_event_dies_once_more(site):
    """A copy that comes when the inbox has forgotten the event is handled again; if it fails, that is not silent."""
    site.listen("one")
    made = bad()
    bury(site, made)
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    site.fail = set()
    site.pump("one")
    assert open_letters(site, state="replayed")[0].attempts == 3
    site.clock.advance(deliveries.INBOX_WINDOW + SECOND)
    group_id = site.db.read(lambda tx: groups.find(tx, "one")).group_id
    (stored, *_) = site.db.read(lambda tx: events.by_id(tx, made.event_id))
    site.db.run(lambda tx: events.deliver(tx, [(group_id, stored.seq, None)], site.clock.now()))
    site.fail = {made.payload["key"]}
    for _ in range(4):
        site.pump("one")
        site.clock.advance(60 * SECOND)
    (letter,) = open_letters(site)
    assert (letter.state, letter.attempts, letter.replay_count, letter.closed_by) == (DeadLetterState.OPEN, 6, 1, None)
    moves = site.db.read(lambda tx: history(tx, [letter.letter_id]))
    assert (moves[-1].was, moves[-1].to) == (DeadLetterState.REPLAYED, DeadLetterState.OPEN)


def test_a_letter_that_is_not_open_is_not_replayed_again(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    again = site.run(operations.replay, "one", [made.event_id, "nothing"], by="bob", confirm="one")
    assert again.letters == []
    assert [r.code for r in again.refused.values()] == [Reason.LETTER_NOT_OPEN, Reason.LETTER_UNKNOWN]
    assert open_letters(site, state=None)[0].replayed_by == "ann"


def test_a_discard_has_a_reason_and_ends_the_letter_but_not_its_record(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    assert site.run(operations.discard, "one", [made.event_id], by="ann", reason="").code is Reason.DISCARD_UNEXPLAINED
    assert site.run(operations.discard, "one", [made.event_id], by="ann", reason="test data").letters
    (letter,) = open_letters(site, state=DeadLetterState.DISCARDED)
    assert (letter.closed_by, letter.close_reason) == ("ann", "test data")
    assert site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one").letters == []
    site.fail = set()
    assert site.pump() == {}


def test_letters_are_found_by_each_of_their_marks_and_page_by_page(site):
    site.listen("one")
    site.listen("two", "ordered.happened")
    made = [bad(n) for n in range(3)]
    bury(site, *made)
    bury(site, envelope("ordered.happened", {"key": "bad9"}, trace_id="other"), group="two")
    assert len(open_letters(site)) == 4
    assert (
        len(open_letters(site, group="two"))
        == len(open_letters(site, trace_id="other"))
        == len(open_letters(site, event_type="ordered.happened"))
        == 1
    )
    assert [x.event_id for x in open_letters(site, event_id=made[1].event_id)] == [made[1].event_id]
    assert (
        open_letters(site, error_code="nothing")
        == open_letters(site, failed_to=0)
        == open_letters(site, state=DeadLetterState.DISCARDED)
        == []
    )
    first = site.db.read(lambda tx: operations.find_letters(tx, Filter(), limit=3))
    rest = site.db.read(lambda tx: operations.find_letters(tx, Filter(), limit=3, before=first[-1].letter_id))
    assert len({x.letter_id for x in first + rest}) == 4


def test_c6_a_backlog_over_the_threshold_freezes_publishes_of_that_type(site):
    site.listen("one")
    made = [bad(n) for n in range(4)]
    bury(site, *made[:3])
    good = envelope(idempotency_key="k")
    assert isinstance(site.publish(good)[0], Published)
    bury(site, made[3])
    (refused,) = site.publish(envelope())
    assert (refused.code, refused.place) == (Reason.TYPE_FROZEN, "/event_type")
    assert isinstance(site.publish(envelope("ordered.happened"))[0], Published)
    assert site.publish(envelope(idempotency_key="k")) == [Published(event_id=good.event_id, duplicate=True)]
    health = site.db.read(operations.health)
    assert [f.event_type for f in health.frozen] == ["thing.happened"]
    assert any("frozen" in t for t in health.troubles)
    assert any("4 dead letters" in t for t in health.troubles)


def test_b5_emptying_the_backlog_thaws(site):
    site.listen("one")
    made = [bad(n) for n in range(4)]
    bury(site, *made)
    site.run(operations.discard, "one", [m.event_id for m in made[:2]], by="ann", reason="test")
    site.run(operations.replay, "one", [m.event_id for m in made[2:]], by="ann", confirm="one")
    assert site.publish(envelope())[0].code is Reason.TYPE_FROZEN  # on its way is not dealt with
    site.fail = set()
    site.pump()
    assert isinstance(site.publish(envelope())[0], Published)


def test_b5_an_operators_word_thaws_and_freezes(site):
    site.listen("one")
    bury(site, *[bad(n) for n in range(4)])
    site.run(operations.thaw, "thing.happened", by="ann")
    assert isinstance(site.publish(envelope())[0], Published)
    site.run(operations.freeze, "thing.happened", by="bob", reason="the producer is broken")
    (refused,) = site.publish(envelope())
    assert "the producer is broken" in refused.detail
    assert site.run(operations.freeze, "no.such_type", by="bob", reason="").code is Reason.TYPE_UNKNOWN
    assert site.run(operations.thaw, "thing.happened", by=" ").code is Reason.REPLAY_UNNAMED
    acts = site.db.read(lambda tx: groups.acts(tx, subject="thing.happened"))
    assert [(a.act, a.done_by) for a in acts] == [("freeze", "bob"), ("thaw", "ann")]


def test_the_backlog_counts_letters_on_their_way_through_a_replay(site):
    site.listen("one")
    made = bad()
    bury(site, made)
    site.run(operations.replay, "one", [made.event_id], by="ann", confirm="one")
    assert site.db.read(lambda tx: dead_letters.backlog(tx, "thing.happened")) == 1


def test_a_handler_that_a_freeze_keeps_from_publishing_waits_for_the_thaw_and_does_not_die(site):
    """Or one frozen type would fill the dead letters of the next, and freeze that as well."""

    @site.bus.consumer("thing.happened", group="one")
    def _(tx, event):
        outcome = site.bus.publish(tx, envelope("ordered.happened", {"key": event.payload["key"]}))
        if isinstance(outcome, Refused):
            raise Permanent(outcome.code, outcome.detail)

    site.join()
    site.run(operations.freeze, "ordered.happened", by="ann", reason="look")
    site.publish(envelope(payload={"key": "a"}))
    for _ in range(20):
        site.pump("one")
        site.clock.advance(5 * SECOND)
    assert open_letters(site) == []
    (total,) = site.db.read(groups.totals)
    assert (total.waiting, total.dead) == (1, 0)
    site.run(operations.thaw, "ordered.happened", by="ann")
    assert site.pump("one")["handled"] == 1


def beside(site, made):
    letter = open_letters(site, event_id=made.event_id)[0]
    return site.db.read(lambda tx: comparison(tx, letter))


def test_a_dead_letter_stands_beside_the_last_event_that_its_group_handled(site):
    site.listen("one")
    site.listen("two")
    well = [envelope(payload={"key": f"well{n}", "n": n}) for n in range(3)]
    for one in well:
        site.publish(one)
        site.pump()
        site.clock.advance(SECOND)
    made = bad()
    bury(site, made)
    foreign = envelope(payload={"key": "foreign", "n": 9}, tenant_id="another")
    site.publish(foreign)
    site.pump()
    found = beside(site, made)
    assert (found.payload, found.last_handled.event_id) == ({"key": "bad0"}, well[-1].event_id)
    assert found.last_handled.payload == {"key": "well2", "n": 2}
    assert found.last_handled.handled_at < made.occurred_at + 3600 * SECOND
    assert (found.letters, found.handled) == (1, 3)
    assert [(one.path, one.letters, one.handled) for one in found.shared] == [("/n", "missing", "number")]


def test_what_was_discarded_or_failed_is_not_taken_for_handled(site):
    site.listen("one")
    first, second = bad(1), bad(2)
    bury(site, first, second)
    site.run(operations.discard, "one", [first.event_id], by="ann", reason="of no use")
    found = beside(site, second)
    assert (found.last_handled, found.handled, found.shared) == (None, 0, [])


def test_what_a_replay_handled_is_handled(site):
    site.listen("one")
    first, second = bad(1), bad(2)
    bury(site, first, second)
    site.fail = {"bad2"}
    site.run(operations.replay, "one", [first.event_id], by="ann", confirm="one")
    site.pump()
    assert beside(site, second).last_handled.event_id == first.event_id


def test_large_events_are_compared_up_to_a_bound(site, monkeypatch):
    """A hundred of a megabyte each took 19 s and 600 MB, for one look at a page."""
    read = []
    monkeypatch.setattr(last_handled, "decode_trusted", lambda body: read.append(len(body)) or decode_trusted(body))
    monkeypatch.setattr(last_handled, "MAX_COMPARED_CHARS", 100_000)
    site.listen("one")
    for n in range(12):
        site.publish(envelope(payload={"key": f"well{n}" + "x" * 30_000, "n": n}))
        site.pump()
        site.clock.advance(SECOND)
    made = [envelope(payload={"key": f"bad{n}" + "y" * 40_000}) for n in range(8)]
    bury(site, *made)
    found = beside(site, made[0])
    assert (found.letters, found.handled, len(read)) == (2, 3, 3)
    assert found.payload["key"].startswith("bad0")
    assert found.last_handled.payload["n"] == 11
    monkeypatch.setattr(last_handled, "MAX_COMPARED_CHARS", 1)
    assert (beside(site, made[0]).letters, beside(site, made[0]).handled) == (1, 1)


def test_all_dead_letters_of_a_cause_are_compared_up_to_so_many(site, monkeypatch):
    monkeypatch.setattr(last_handled, "MAX_LETTERS", 11)
    site.listen("one")
    made = [bad(n) for n in range(13)]
    bury(site, *made)
    assert beside(site, made[0]).letters == 11
    assert beside(site, made[-1]).letters == 11
    site.run(operations.discard, "one", [one.event_id for one in made[:4]], by="ann", reason="of no use")
    assert beside(site, made[-1]).letters == 9


def test_when_dead_letters_failed_is_counted_in_parts_of_a_span(site):
    site.listen("one")
    began = site.clock.now()
    first = bad(1)
    bury(site, first)
    bury(site, bad(2))
    late = open_letters(site)[0].last_failed_at
    early = open_letters(site)[1].last_failed_at
    step = late - early

    def read(function, wanted, *more):
        return site.db.read(lambda tx: function(tx, wanted, *more))

    everything = Filter(state=None)
    assert read(dead_letters.reach, everything) == (early, 2)
    assert read(dead_letters.reach, Filter(group="two")) == (None, 0)
    assert read(dead_letters.over_time, everything, early, early + 2 * step, 2) == [1, 1]
    assert read(dead_letters.over_time, everything, early, early + 4 * step, 2) == [2, 0]
    assert read(dead_letters.over_time, everything, began - 100, early, 3) == [0, 0, 0]
    assert read(dead_letters.over_time, Filter(event_id=first.event_id), early, late + 1, 1) == [1]
