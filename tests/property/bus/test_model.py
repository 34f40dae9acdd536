"""The bus against a model that knows nothing of its code: publish, consume, fail, bury, replay, discard, freeze, evolve.

The model is a few dictionaries. After every step it says what must hold: each effect once, in order per key, refusals
exactly where the rules ask for them, types frozen exactly while they should be.
"""

from collections import defaultdict

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import DeadLetterState, Filter
from patra.bus.dispatch.dispatcher import Dispatcher
from patra.bus.publishing.envelope import rendition
from patra.bus.publishing.publish import Published
from patra.bus.store import groups
from patra.kernel.clock import MINUTE
from patra.kernel.db import migrate, open_database
from patra.kernel.errors import ConfigInvalid
from patra.kernel.testing import ManualClock
from tests.support.examples import examples
from tests.unit.bus.making import THING, THING_2, catalogue, closed, envelope, event_type, version

THRESHOLD, RETRIES = 1, 1
KEYS = ("a", "b")
TYPES = ("plain.happened", "ordered.happened")
GROUPS = ("old", "any")
WITH_EXTRA = closed({**THING["properties"], "extra": {"type": "string", "since": "1.1"}}, ["key"])
BROKEN = closed({"key": {"type": "integer"}}, ["key"])
STAGES = (
    [version("1.0", THING)],
    [version("1.1", WITH_EXTRA)],
    [version("1.1", WITH_EXTRA, "retiring"), version("2.0", THING_2)],
)
BREAKING = (
    [version("1.0", BROKEN, example={"key": 1})],
    [version("1.2", THING)],
    [version("2.0", THING_2)],
)
RETIRED = [version("1.1", WITH_EXTRA, "retired"), version("2.0", THING_2)]


def types(versions) -> Catalogue:
    common = {
        "dead_letter_threshold": THRESHOLD,
        "retry": {"max_retries": RETRIES, "base": "PT1S", "cap": "PT1S"},
        "versions": versions,
    }
    return catalogue(
        event_type("plain.happened", **common),
        event_type("ordered.happened", ordering={"key": ["/payload/key"]}, **common),
    )


class BusModel(RuleBasedStateMachine):
    """`said` maps (type, idempotency key) to what was published; `effects` are what the handlers really did."""

    events = Bundle("events")

    @initialize()
    def begin(self):
        self.db = open_database("sqlite:///:memory:")
        migrate(self.db, ["patra.kernel", "patra.bus"])
        self.clock = ManualClock()
        self.stage = 0
        self.failing: set[str] = set()
        self.flaky = False
        self.said: dict[tuple[str, str], tuple[str, str, int]] = {}
        self.place: dict[str, tuple[str, str, int]] = {}
        self.effects: dict[str, list[str]] = {group: [] for group in GROUPS}
        self.written: dict[str, list[str]] = {group: [] for group in GROUPS}
        self.ever_dead: set[tuple[str, str]] = set()
        self.discarded: set[tuple[str, str]] = set()
        self.frozen: dict[str, str] = dict.fromkeys(TYPES, "open")
        self.tolerated: dict[str, int] = dict.fromkeys(TYPES, 0)
        self.paused: set[str] = set()
        self.build(0)

    def build(self, stage: int) -> None:
        """A process that starts with a catalogue: it adopts it, declares its consumers, joins."""
        bus = Bus(types(STAGES[stage]), self.clock)
        self.db.run(bus.adopt)
        self.declare(bus)
        self.db.run(bus.join)
        self.bus, self.stage = bus, stage

    def declare(self, bus: Bus) -> None:
        for group, versions in (("old", ">=1,<2"), ("any", ">=1")):
            for name in TYPES:

                def handle(tx, event, group=group):
                    number = event.payload.get("n", event.payload.get("number"))
                    if event.payload["key"] in self.failing or (self.flaky and number == 1 and event.attempt == 1):
                        raise ValueError("no luck")
                    self.written[group].append(event.event_id)

                bus.consumer(name, group=group, versions=versions)(handle)

    # ---- publishing

    @rule(
        target=events,
        wishes=st.lists(
            st.tuples(st.sampled_from(TYPES), st.sampled_from(KEYS), st.integers(0, 12), st.integers(0, 1)),
            min_size=1,
            max_size=8,
        ),
    )
    def publish(self, wishes):
        """New events, the same again, other payloads under keys that were used: the model knows which."""
        found = [self.publish_one(name, key, str(idem), n) for name, key, idem, n in wishes]
        return multiple(*[event for event in found if event])

    def publish_one(self, name, key, idem, n):
        made = envelope(name, {"key": key, "n": n}, idempotency_key=idem)
        renditions = [made]
        if self.stage == 2:
            renditions = [made, rendition(made, "2.0", {"key": key, "number": n})]
            (alone,) = self.db.run(lambda tx: self.bus.publish_many(tx, [made]))
            assert alone.code is Reason.DUAL_MISSING
        outcome = self.db.run(lambda tx: self.bus.publish(tx, *renditions))
        before = self.said.get((name, idem))
        if before is not None:
            event_id, said_key, said_n = before
            if (said_key, said_n) == (key, n):
                assert outcome == Published(event_id=event_id, duplicate=True)
            else:
                assert outcome.code is Reason.IDEMPOTENCY_CONFLICT
            return None
        if self.frozen[name] != "open":
            assert outcome.code is Reason.TYPE_FROZEN
            return None
        assert outcome == Published(event_id=made.event_id)
        self.said[name, idem] = (made.event_id, key, n)
        self.place[made.event_id] = (name, key, len(self.place))
        return made.event_id

    def publish_by_a_stranger(self, name):
        outcome = self.db.run(lambda tx: self.bus.publish(tx, envelope(name, producer="Stranger")))
        assert outcome.code is Reason.PRODUCER

    # ---- consuming

    @rule(group=st.sampled_from(GROUPS), steps=st.integers(1, 10))
    def consume(self, group, steps):
        for _ in range(steps):
            self.step(group)

    def step(self, group: str) -> bool:
        aside = {
            x.event_id for x in self.letters(None) if x.group == group and x.state is not DeadLetterState.REPLAYING
        }
        counts = Dispatcher(self.db, self.bus, group, batch=1, slow_start=False, jitter=lambda: 0.5).run_once()
        assert not (counts.busy and group in self.paused)
        done = self.written[group]
        self.written[group] = []
        if counts.handled:
            assert len(done) >= 1
            self.effects[group].append(done[-1])  # a batch that was tried and taken back ran before
            self.nothing_of_its_key_was_left_behind(group, done[-1], aside)
        self.look_at_letters()
        return counts.busy

    def nothing_of_its_key_was_left_behind(self, group: str, event: str, aside: set[str]) -> None:
        """C§3: whatever came before an ordered event was handled, or is a dead letter that waits for someone."""
        name, key, number = self.place[event]
        if name == "ordered.happened":
            before = {e for e, (n, k, i) in self.place.items() if (n, k) == (name, key) and i < number}
            assert before <= set(self.effects[group]) | aside

    def look_at_letters(self) -> None:
        """What B5 says of the backlog, after each step."""
        backlog: dict[str, int] = defaultdict(int)
        for letter in self.letters(None):
            self.ever_dead.add((letter.group, letter.event_id))
            if letter.state in {DeadLetterState.OPEN, DeadLetterState.REPLAYING}:
                backlog[letter.event_type] += 1
        for name in TYPES:
            if self.frozen[name] == "by hand":
                continue
            if backlog[name] == 0:
                self.frozen[name], self.tolerated[name] = "open", 0
            elif backlog[name] > self.tolerated[name] + THRESHOLD:
                self.frozen[name] = "frozen"

    def letters(self, state):
        return self.db.read(lambda tx: operations.find_letters(tx, Filter(state=state), limit=1000))

    @rule(keys=st.sets(st.sampled_from(KEYS)), flaky=st.booleans())
    def break_handlers(self, keys, flaky):
        """Handlers fail for some keys, or only at the first attempt and only for some events."""
        self.failing, self.flaky = keys, flaky

    @rule(group=st.sampled_from(GROUPS))
    def a_bad_day(self, group):
        """Nothing works for a while: whatever waits for the group comes nearer to its last attempt."""
        before, self.failing = self.failing, set(KEYS)
        for _ in range(RETRIES + 1):
            while self.step(group):
                pass
            self.clock.advance(MINUTE)
        self.failing = before

    @rule(minutes=st.integers(1, 10))
    def wait(self, minutes):
        self.clock.advance(minutes * MINUTE)

    def pause_or_resume(self, group, stop):
        work = operations.pause if stop else operations.resume
        self.db.run(lambda tx: work(tx, self.bus, group, by="model"))
        (self.paused.add if stop else self.paused.discard)(group)

    # ---- dead letters

    @rule(group=st.sampled_from(GROUPS), event=events, confirmed=st.booleans())
    def replay(self, group, event, confirmed):
        before = {x.event_id: x for x in self.letters(None) if x.group == group}
        confirm = group if confirmed else "yes"
        done = self.db.run(lambda tx: operations.replay(tx, self.bus, group, [event], by="ann", confirm=confirm))
        if not confirmed:
            assert done.code is Reason.REPLAY_UNCONFIRMED
            return
        could = event in before and before[event].state is DeadLetterState.OPEN
        assert (done.letters == [f"{group}/{event}"]) is could
        if could:
            (after,) = [x for x in self.letters(None) if (x.group, x.event_id) == (group, event)]
            assert (after.replay_count, after.replayed_by) == (before[event].replay_count + 1, "ann")

    @rule(group=st.sampled_from(GROUPS), event=events)
    def discard(self, group, event):
        done = self.db.run(lambda tx: operations.discard(tx, self.bus, group, [event], by="ann", reason="model"))
        if done.letters:
            self.discarded.add((group, event))
        self.look_at_letters()

    def freeze_by_hand(self, name):
        self.db.run(lambda tx: operations.freeze(tx, self.bus, name, by="ann", reason="model"))
        self.frozen[name], self.tolerated[name] = "by hand", 0

    def thaw(self, name):
        self.db.run(lambda tx: operations.thaw(tx, self.bus, name, by="ann"))
        self.frozen[name] = "open"
        self.tolerated[name] = sum(
            x.event_type == name and x.state in {DeadLetterState.OPEN, DeadLetterState.REPLAYING}
            for x in self.letters(None)
        )

    # ---- evolution

    def evolve(self):
        self.build(self.stage + 1)

    def a_breaking_catalogue_is_refused(self, versions):
        bus = Bus(types(versions), self.clock)
        with pytest.raises(ConfigInvalid):
            self.db.run(bus.adopt)

    def a_major_in_use_is_not_retired(self):
        bus = Bus(types(RETIRED), self.clock)
        with pytest.raises(ConfigInvalid) as refused:
            self.db.run(bus.adopt)
        assert refused.value.code == Reason.EVOLUTION_IN_USE

    # ---- the rarer things, one rule for all of them so that the common ones stay common

    @rule(
        act=st.sampled_from(
            ["stranger", "pause", "resume", "resume", "freeze", "thaw", "thaw", "evolve", "break", "retire"]
        ),
        name=st.sampled_from(TYPES),
        group=st.sampled_from(GROUPS),
        versions=st.sampled_from(BREAKING),
    )
    def something_rare(self, act, name, group, versions):
        match act:
            case "stranger":
                self.publish_by_a_stranger(name)
            case "pause" | "resume":
                self.pause_or_resume(group, act == "pause")
            case "freeze":
                self.freeze_by_hand(name)
            case "thaw":
                self.thaw(name)
            case "evolve":
                if self.stage < 2:
                    self.evolve()
            case "break":
                self.a_breaking_catalogue_is_refused(versions)
            case _:
                if self.stage == 2:
                    self.a_major_in_use_is_not_retired()

    # ---- what always holds

    @invariant()
    def each_effect_once(self):
        for group in GROUPS:
            assert len(set(self.effects[group])) == len(self.effects[group])
            assert set(self.effects[group]) <= set(self.place)
            assert not {(group, e) for e in self.effects[group]} & self.discarded

    @invariant()
    def in_order_per_key(self):
        for group in GROUPS:
            for key in KEYS:
                mine = [
                    self.place[e][2]
                    for e in self.effects[group]
                    if self.place[e][:2] == ("ordered.happened", key) and (group, e) not in self.ever_dead
                ]
                assert mine == sorted(mine)

    @invariant()
    def frozen_exactly_while_it_should_be(self):
        found = {f.event_type for f in self.db.read(operations.health).frozen}
        assert found == {name for name, state in self.frozen.items() if state != "open"}

    def teardown(self):
        """In the end everything is handled, or was discarded by someone: nothing is lost."""
        if not hasattr(self, "bus"):
            return
        self.failing, self.flaky = set(), False
        for group in GROUPS:
            self.db.run(lambda tx, g=group: operations.resume(tx, self.bus, g, by="model"))
            self.paused.discard(group)
            wanted = Filter(group=group)
            self.db.run(lambda tx, g=group, w=wanted: operations.replay_found(tx, self.bus, w, by="ann", confirm=g))
        for _ in range(4):
            self.clock.advance(10 * MINUTE)
            for group in GROUPS:
                while self.step(group):
                    pass
        for group in GROUPS:
            lost = {(group, e) for e in self.place} - {(group, e) for e in self.effects[group]} - self.discarded
            assert lost == set()
        assert [g.waiting for g in self.db.read(groups.totals)] == [0, 0]
        self.each_effect_once()
        self.in_order_per_key()
        self.db.close()


BusModel.TestCase.settings = settings(max_examples=examples(15), stateful_step_count=30, deadline=None)
TestBusModel = BusModel.TestCase
