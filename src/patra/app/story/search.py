"""Asks every engine for a key, chooses between what it may stand for, and joins the answers to one story."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from patra.app.story import attribution, bus, ingest, statements, studio
from patra.app.story.keys import KINDS, kinds_named, kinds_possible
from patra.app.story.model import Candidate, Engine, Entry, Lookup, Outcome, Pending, Related, Searched, Story
from patra.app.story.timeline import (
    Masks,
    candidate_shown,
    entry_shown,
    in_order,
    page,
    pending_shown,
    related_shown,
)
from patra.app.story.verdict import verdict
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid
from patra.kernel.safety.redact import redact_text

PAGE_LIMIT = 100
"""Entries of a page, unless one asks for another number."""
MAX_PAGE_LIMIT = 500
GATHER_LIMIT = 200
"""Rows of each kind that are read for one story; beyond it an engine says that it is not complete."""
MAX_FOLLOWED = 5
"""Keys of one engine that are followed from another; all others are named as related keys."""
ECHOES = frozenset({"bus.trace_id", "bus.correlation_id", "bus.idempotency_key"})
"""Kinds of the bus whose keys are those of the engine that published: no thing of their own where it is found."""
ADVICE = [
    "Keys are compared exactly, DOIs in any case: look for a part that was cut off, a blank, or another case.",
    "Name the kind of the key (--kind, or kind= over HTTP) if you know it; batchId/eventId finds one event of a batch.",
    "What is past its retention is found in the files of attribution.purge_folder, or in a backup, not here.",
]


def story(db: Database, key: str, *, kind: str = "", limit: int = PAGE_LIMIT, after: str = "") -> Story:
    """The story of a key. Raises Invalid for a kind that there is none of."""
    if kind and not kinds_named(kind):
        near = get_close_matches(kind, {short for one in KINDS for short in (one, one.partition(".")[2])}, 1)
        advice = f"did you mean {near[0]}?" if near else f"one of {', '.join(KINDS)}"
        raise Invalid("story_kind_unknown", f"no key is of kind {kind!r}", place="kind", advice=advice)
    where: dict[str, Mapping[str, Any]] = {}
    lookups: dict[Engine, Lookup] = {}
    for engine, kinds in kinds_possible(key, kind).items():
        lookups[engine] = _look_up(db, engine, key, kinds, where) if kinds else Lookup(kinds=[])
    found = [one for lookup in lookups.values() for one in lookup.candidates]
    chosen = things(found)
    if len(chosen) != 1:
        return _unchosen(key, chosen, lookups)
    engines = {one.engine for one in found}
    told = [lookups[engine] for engine in Engine if engine in engines]
    told += _follow_keys(db, told, where)
    return _join_lookups(key, chosen[0].kind, told, lookups, min(limit, MAX_PAGE_LIMIT), after)


def things(found: Sequence[Candidate]) -> list[Candidate]:
    """The different things that candidates stand for, each under its first name."""
    owned = [one for one in found if one.kind not in ECHOES]
    if not owned:
        return sorted(found, key=lambda one: -one.count)[:1]
    distinct: dict[str, Candidate] = {}
    for one in owned:
        distinct.setdefault(one.subject or f"{one.kind}:{one.key}", one)
    return list(distinct.values())


def _look_up(
    db: Database, engine: Engine, key: str, kinds: Sequence[str], where: dict[str, Mapping[str, Any]]
) -> Lookup:
    match engine:
        case Engine.ATTRIBUTION:
            return db.read(lambda tx: _of_attribution(tx, key, kinds))
        case Engine.INGEST:
            lookup, meant = db.read(lambda tx: ingest.look_up(tx, key, kinds, GATHER_LIMIT))
            where |= meant
            return lookup
        case Engine.BUS:
            return db.read(lambda tx: bus.look_up(tx, key, kinds, GATHER_LIMIT))
        case Engine.STUDIO:
            return db.read(lambda tx: studio.look_up(tx, key, kinds, GATHER_LIMIT))


def _of_attribution(tx: Tx, key: str, kinds: Sequence[str]) -> Lookup:
    """What its decisions and its statements know; a statement is looked for by its own index."""
    found = attribution.look_up(tx, key, [kind for kind in kinds if kind != statements.KIND], GATHER_LIMIT)
    if statements.KIND not in kinds:
        return found
    stated = statements.look_up(tx, key)
    return msgspec.structs.replace(
        found,
        kinds=list(kinds),
        candidates=[*found.candidates, *stated.candidates],
        entries=[*found.entries, *stated.entries],
        complete=found.complete and stated.complete,
    )


def _follow_keys(db: Database, told: Sequence[Lookup], where: dict[str, Mapping[str, Any]]) -> list[Lookup]:
    """What other engines know about the keys that the first ones name."""
    wanted: dict[Engine, list[Related]] = {}
    for related in dict.fromkeys(one for lookup in told for one in lookup.follow):
        wanted.setdefault(KINDS[related.kind][0], []).append(related)
    found: list[Lookup] = []
    if of_bus := wanted.pop(Engine.BUS, []):
        found.append(db.read(lambda tx: bus.follow(tx, of_bus, where, GATHER_LIMIT)))
    for engine, some in wanted.items():
        if len(some) <= MAX_FOLLOWED:
            found += [_look_up(db, engine, one.key, [one.kind], where) for one in some]
    return found


def _join_lookups(
    key: str, kind: str, told: Sequence[Lookup], lookups: Mapping[Engine, Lookup], limit: int, after: str
) -> Story:
    entries: list[Entry] = in_order(entry for lookup in told for entry in lookup.entries)
    pending: list[Pending] = list({(p.what, p.text): p for lookup in told for p in lookup.pending}.values())
    shown, following = page(entries, limit, after)
    masks, said = Masks(), verdict(kind, entries, pending)
    if said and not all(lookup.complete for lookup in told):
        said = f"In the part that is read here: {said[0].lower()}{said[1:]}"
    return Story(
        key=redact_text(key),
        kind=kind,
        outcome=Outcome.FOUND.value,
        verdict=redact_text(said),
        entries=[entry_shown(entry, masks) for entry in shown],
        pending=[pending_shown(one, masks) for one in sorted(pending, key=_soonest)[:MAX_PAGE_LIMIT]],
        related=related_shown((one for entry in entries for one in entry.related if one.key != key), masks),
        candidates=[],
        searched=_search_places(lookups, cut_off=not all(lookup.complete for lookup in told)),
        advice=[redact_text(line) for lookup in told for line in lookup.advice],
        next=following,
    )


def _unchosen(key: str, chosen: Sequence[Candidate], lookups: Mapping[Engine, Lookup]) -> Story:
    cut_off = [redact_text(line) for lookup in lookups.values() for line in lookup.advice]
    return Story(
        key=redact_text(key),
        kind=None,
        outcome=(Outcome.AMBIGUOUS if chosen else Outcome.UNKNOWN).value,
        entries=[],
        pending=[],
        related=[],
        candidates=[candidate_shown(one) for one in chosen],
        searched=_search_places(lookups, cut_off=False),
        advice=[*cut_off, "Ask again with the kind and key of one candidate."] if chosen else ADVICE,
        next=None,
    )


def _search_places(lookups: Mapping[Engine, Lookup], *, cut_off: bool) -> list[Searched]:
    """Where was looked; with `cut_off` some engine that was asked has more than the story shows."""
    return [
        Searched(engine=engine.value, kinds=lookup.kinds, complete=lookup.complete and not (cut_off and lookup.entries))
        for engine, lookup in lookups.items()
    ]


def _soonest(pending: Pending) -> tuple[int, str]:
    return (2**62 if pending.due is None else pending.due, pending.text)
