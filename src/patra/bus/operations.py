"""Acts of operators: replay and discard dead letters, pause groups, freeze types, with who did it.

Every act leaves a row (`bus_act`) in its own transaction. Refusals are values, as everywhere (C§6, B5).
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import EventType
from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming import freeze as freezing
from patra.bus.consuming import replay as rules
from patra.bus.consuming.dead_letter import DeadLetter, DeadLetterState, DeadLetterTransition, Filter, letter_id
from patra.bus.consuming.freeze import Freeze
from patra.bus.consuming.version_stages import Stage, StagedMajor, move_stage
from patra.bus.dispatch import outcomes
from patra.bus.publishing.envelope import Refused
from patra.bus.store import dead_letters, deliveries, events, groups, held_messages, stream_control, version_stages
from patra.bus.store.held_messages import HeldCount
from patra.kernel.clock import SECOND
from patra.kernel.db import Tx
from patra.kernel.errors import count_phrase

MAX_LETTERS_AT_ONCE = 1000


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The result for each dead letter: moved, or why not."""

    letters: list[str]
    refused: dict[str, Refused] = {}


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator must know: frozen types, dead letters, groups that are paused or behind."""

    frozen: list[Freeze]
    dead_letters: dict[str, int]
    groups: list[groups.GroupTotals]
    held: list[HeldCount] = []

    @property
    def troubles(self) -> list[str]:
        found = [f"publishing of {f.event_type} is frozen: {f.reason}" for f in self.frozen]
        found += [
            f"{count_phrase(one.messages, 'message')} of {one.event_type} {one.major}.x for a process that knows it: "
            "upgrade the processes of this store (`patra bus catalogue check --store`)"
            for one in self.held
        ]
        found += [f"{count_phrase(count, 'dead letter')} of {name}" for name, count in self.dead_letters.items()]
        return found + [f"group {g.name} is paused" for g in self.groups if g.state is groups.GroupState.PAUSED]


def replay(tx: Tx, bus: Bus, group: str, event_ids: Sequence[str], *, by: str, confirm: str) -> Done | Refused:
    """Send dead letters to the group that failed again: same `event_id`, not refused as a duplicate, counted (C§6)."""
    if refusal := rules.confirmation(group, confirm, by):
        return refusal
    ids = [letter_id(group, event_id) for event_id in event_ids]
    return _replay_letters(tx, bus, group, ids, dead_letters.by_id(tx, ids), by)


def replay_found(
    tx: Tx, bus: Bus, wanted: Filter, *, by: str, confirm: str, limit: int = MAX_LETTERS_AT_ONCE
) -> Done | Refused:
    """Replay whatever a query finds in one group, the latest to fail first, at most so many."""
    if wanted.group is None:
        return Refused(code=Reason.GROUP_UNKNOWN, place="/group", detail="a replay goes to one group: name it")
    if refusal := rules.confirmation(wanted.group, confirm, by):
        return refusal
    found = dead_letters.find(
        tx, msgspec.structs.replace(wanted, state=DeadLetterState.OPEN), limit=min(limit, MAX_LETTERS_AT_ONCE)
    )
    return _replay_letters(tx, bus, wanted.group, [one.letter.letter_id for one in found], found, by)


def _replay_letters(
    tx: Tx, bus: Bus, group: str, ids: Sequence[str], found: Sequence[dead_letters.Located], by: str
) -> Done | Refused:
    """Dead letters outlive their group: a removed group must join again before they can be replayed to it."""
    groups.lock_shared(tx)
    to = groups.find(tx, group)
    if to is None:
        return _no_group(group, by)
    now = bus.clock.now()
    known = {one.letter.letter_id: one for one in found}
    plan = rules.plan([one.letter for one in found], DeadLetterTransition.REPLAY, Reason.REPLAY_ASKED, now)
    moved = sorted(dead_letters.move(tx, plan.moves), key={i: n for n, i in enumerate(ids)}.__getitem__)
    dead_letters.count_replay(tx, moved, by, now)
    if moved:
        deliveries.replay(tx, to.group_id, [(known[i].seq, known[i].order_key) for i in moved], now)
        events.wake(tx)
        detail = {"events": [known[i].letter.event_id for i in moved]}
        groups.record_act(tx, by=by, act="replay", subject=group, detail=detail, now=now)
    return Done(letters=moved, refused=plan.refused | _unknown_letters(ids, known))


def discard(tx: Tx, bus: Bus, group: str, event_ids: Sequence[str], *, by: str, reason: str) -> Done | Refused:
    """Set dead letters aside permanently, with a reason; they stay readable."""
    if refusal := rules.discharge(by, reason):
        return refusal
    now = bus.clock.now()
    ids = [letter_id(group, event_id) for event_id in event_ids]
    known = {one.letter.letter_id: one for one in dead_letters.by_id(tx, ids)}
    plan = rules.plan([one.letter for one in known.values()], DeadLetterTransition.DISCARD, Reason.DISCARDED, now)
    moved = sorted(dead_letters.move(tx, plan.moves), key={i: n for n, i in enumerate(ids)}.__getitem__)
    dead_letters.close(tx, moved, by, reason, now)
    gone = [known[i] for i in moved]
    for group_id in {one.group_id for one in gone}:
        deliveries.delete_done(tx, group_id, [one.seq for one in gone])
        deliveries.wake_followers(tx, group_id, {one.order_key for one in gone if one.order_key is not None}, now)
    deliveries.delete_discarded(tx, group, [one.letter.event_id for one in gone])
    if moved:
        detail = {"events": [one.letter.event_id for one in gone], "reason": reason}
        groups.record_act(tx, by=by, act="discard", subject=group, detail=detail, now=now)
        known_types = {one.letter.event_type for one in gone} & bus.catalogue.types.keys()
        outcomes.backlog_changed(tx, bus, known_types, now)
    return Done(letters=moved, refused=plan.refused | _unknown_letters(ids, known))


def freeze(tx: Tx, bus: Bus, event_type: str, *, by: str, reason: str) -> Freeze | Refused:
    """Stop publishing of a type by an operator's word."""
    if refusal := _type(tx, bus, event_type, by):
        return refusal
    now = bus.clock.now()
    after = freezing.by_hand(dead_letters.freeze_of(tx, event_type), by, reason, now)
    dead_letters.set_freeze(tx, after)
    bus.tell_freeze(tx, after)
    groups.record_act(tx, by=by, act="freeze", subject=event_type, detail={"reason": reason}, now=now)
    return after


def thaw(tx: Tx, bus: Bus, event_type: str, *, by: str) -> Freeze | Refused:
    """Lift a freeze by an operator's word."""
    if refusal := _type(tx, bus, event_type, by):
        return refusal
    now = bus.clock.now()
    current = dead_letters.freeze_of(tx, event_type)  # a lock: counted behind it, no dead letter is missed
    backlog = dead_letters.backlog(tx, event_type)
    after = freezing.thaw_freeze(current, backlog, by, now)
    dead_letters.set_freeze(tx, after)
    stream_control.forget_freezes(tx, event_type)
    bus.tell_freeze(tx, after)
    groups.record_act(tx, by=by, act="thaw", subject=event_type, detail={"backlog": backlog}, now=now)
    return after


def set_stage(
    tx: Tx, bus: Bus, event_type: str, to: Stage, *, by: str, tenants: Sequence[str] = (), share: int = 0
) -> StagedMajor | Refused:
    """Move the newest major of a type to another stage (B8); publishers that are at work are waited for."""
    groups.lock(tx)
    known = [one for one in version_stages.find(tx) if one.event_type == event_type]
    if not known:
        detail = f"{event_type} has no major version that goes through stages"
        return Refused(code=Reason.STAGE, place="/event_type", detail=detail)
    now = bus.clock.now()
    after = move_stage(known[-1], to, tenants=tenants, share=share, by=by, now=now)
    if isinstance(after, StagedMajor):
        version_stages.put(tx, [after])
        detail = {"major": after.major, "stage": to.value, "tenants": list(after.tenants), "share": after.share}
        groups.record_act(tx, by=by, act="stage", subject=event_type, detail=detail, now=now)
    return after


def pause(tx: Tx, bus: Bus, group: str, *, by: str) -> bool | Refused:
    """Stop handing events to a group; they wait. Gives whether it was active."""
    return _set_state(tx, bus, group, groups.GroupState.PAUSED, by)


def resume(tx: Tx, bus: Bus, group: str, *, by: str) -> bool | Refused:
    return _set_state(tx, bus, group, groups.GroupState.ACTIVE, by)


def unsubscribe(tx: Tx, bus: Bus, group: str, event_type: str, *, by: str) -> bool | Refused:
    """A group no longer gets a type; what it has of it already stays in its line."""
    groups.lock(tx)
    found = groups.find(tx, group)
    if found is None or not by.strip():
        return _no_group(group, by)
    gone = groups.unsubscribe(tx, found.group_id, event_type) > 0
    groups.record_act(tx, by=by, act="unsubscribe", subject=group, detail={"type": event_type}, now=bus.clock.now())
    return gone


def forget(tx: Tx, bus: Bus, group: str, *, by: str, confirm: str) -> int | Refused:
    """Remove a group and what it had still to handle; gives how many events that were.

    Its dead letters stay. Those on their way through a replay are open again: nobody would handle them any more.
    """
    if refusal := rules.confirmation(group, confirm, by):
        return refusal
    groups.lock(tx)
    found = groups.find(tx, group)
    if found is None:
        return _no_group(group, by)
    now = bus.clock.now()
    waiting = groups.remove(tx, found.group_id)
    dead_letters.reopen(tx, group, now)
    groups.record_act(tx, by=by, act="forget", subject=group, detail={"waiting": waiting}, now=now)
    return waiting


def health(tx: Tx) -> Health:
    return Health(
        frozen=dead_letters.freezes(tx),
        dead_letters=dead_letters.backlogs(tx),
        groups=groups.totals(tx),
        held=held_messages.counts(tx),
    )


def freezes_at(tx: Tx, types: Mapping[str, EventType], dead: Iterable[str]) -> dict[str, int]:
    """Of types that have dead letters: with more than so many a type freezes, what a thaw tolerates included."""
    tolerated = {one.event_type: one.tolerated for one in dead_letters.freezes_ever(tx)}
    return {name: types[name].dead_letter_threshold + tolerated.get(name, 0) for name in dead if name in types}


def behind(tx: Tx, now: int, longest: int) -> list[str]:
    """Groups at work whose oldest event could have been handled for longer than so many µs."""
    late = {name: now - since for name, since in groups.oldest_waiting(tx, now).items() if now - since > longest}
    waiting = {group.name: group.waiting for group in groups.totals(tx)} if late else {}
    return [
        f"group {name} is {lag // SECOND} s behind: {waiting.get(name, 0)} events wait" for name, lag in late.items()
    ]


def absent_consumers(tx: Tx, bus: Bus) -> dict[str, list[str]]:
    """Groups that the catalogue lists as consumers and that never subscribed here, with the types they would get."""
    have = {(group, event_type) for group, event_type, _ in groups.subscriptions(tx)}
    found: dict[str, list[str]] = {}
    for name, kind in sorted(bus.catalogue.types.items()):
        for consumer in kind.consumers:
            if (consumer.group, name) not in have:
                found.setdefault(consumer.group, []).append(name)
    return found


def find_letters(tx: Tx, wanted: Filter, *, limit: int, before: str | None = None) -> list[DeadLetter]:
    """A page of dead letters, the latest to fail first; `before` is the last id of the page before."""
    last = dead_letters.by_id(tx, [before]) if before else []
    return [one.letter for one in dead_letters.find(tx, wanted, limit=limit, before=last[0].letter if last else None)]


def _set_state(tx: Tx, bus: Bus, group: str, state: groups.GroupState, by: str) -> bool | Refused:
    if groups.find(tx, group) is None or not by.strip():
        return _no_group(group, by)
    now = bus.clock.now()
    changed = (
        groups.resume(tx, group, now) if state is groups.GroupState.ACTIVE else groups.set_state(tx, group, state, now)
    )
    act = "pause" if state is groups.GroupState.PAUSED else "resume"
    groups.record_act(tx, by=by, act=act, subject=group, detail={"changed": changed}, now=now)
    if state is groups.GroupState.ACTIVE:
        events.wake(tx)
    return changed


def _unknown_letters(ids: Sequence[str], known: "dict[str, dead_letters.Located]") -> dict[str, Refused]:
    missing = Refused(
        code=Reason.LETTER_UNKNOWN, place="/event_id", detail="there is no such dead letter in this group"
    )
    return {i: missing for i in ids if i not in known}


def _type(tx: Tx, bus: Bus, event_type: str, by: str) -> Refused | None:
    if event_type not in bus.catalogue.types and event_type not in bus.registered_elsewhere(tx).types:
        return Refused(code=Reason.TYPE_UNKNOWN, place="/event_type", detail=f"the catalogue has no {event_type}")
    if not by.strip():
        return Refused(code=Reason.REPLAY_UNNAMED, place="/by", detail="say who does it")
    return None


def _no_group(group: str, by: str) -> Refused:
    if not by.strip():
        return Refused(code=Reason.REPLAY_UNNAMED, place="/by", detail="say who does it")
    return Refused(code=Reason.GROUP_UNKNOWN, place="/group", detail=f"there is no group {group}")
