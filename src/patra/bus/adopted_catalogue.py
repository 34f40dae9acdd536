"""Compares a process's catalogue with the one adopted on its store, and decides what it may publish (B8).

While versions roll, processes with different catalogues share a store. A type on which both agree is published as ever.
A type on which this process is behind (or ahead) is published only when every subscribed group still gets the event.
A type whose contract contradicts the adopted one is not published at all.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, Status
from patra.bus.catalogue.evolution import Release, Released, ReleasedType, changes, objections, release
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import Version, parse_version
from patra.bus.consuming.recipients import Subscription, recipients
from patra.bus.publishing.envelope import Refused

ADVICE = "upgrade this process to the adopted catalogue; see `patra bus catalogue check --store`"


class Differs(msgspec.Struct, frozen=True, kw_only=True):
    """The two agree on what both have; one has versions more. `adopted` are the newest versions of its live majors."""

    adopted: tuple[Version, ...]
    behind: bool


Standing: TypeAlias = Differs | Refused
"""Of a type that is not the same in both."""


def standings(adopted: Release, own: Catalogue) -> dict[str, Standing]:
    """Each type of this process that is not as the adopted catalogue has it."""
    mine = release(own)
    objected = {one.event_type: one for one in reversed(objections(adopted, own))}
    found: dict[str, Standing] = {}
    for name, ours in mine.types.items():
        theirs = adopted.types.get(name)
        if theirs is None or theirs == ours:
            continue  # a type that is new here has no subscriber elsewhere
        live = _live(theirs)
        if _is_behind(ours, theirs):
            retired = sorted(_live(ours).keys() - live.keys())
            found[name] = (
                _behind(f"{retired[0]}.x of {name} is retired in the adopted catalogue")
                if retired
                else Differs(adopted=tuple(live.values()), behind=True)
            )
        elif (objection := objected.get(name)) is not None:
            found[name] = Refused(code=objection.code, place="/event_type", detail=f"{objection}; {ADVICE}")
        else:
            found[name] = Differs(adopted=tuple(live.values()), behind=False)
    return found


def majors(adopted: Release) -> dict[str, frozenset[int]]:
    """The major versions of each type, retired ones too."""
    return {name: frozenset(_by_major(kind)) for name, kind in adopted.types.items()}


def missing_version(
    standing: Differs, event_type: str, versions: Sequence[Version], listening: Iterable[Subscription], *, broker: bool
) -> Refused | None:
    """Why an event in these versions is not published: a subscribed group would get it in an adopted version only.

    Behind a broker the groups of other stores are not known, so a publisher that is behind publishes nothing there.
    """
    listening = list(listening)
    reached = recipients(listening, event_type, versions)
    wanted = recipients(listening, event_type, standing.adopted)
    for one in listening:
        if one.group_id in wanted and one.group_id not in reached:
            return _behind(f"the group {one.group} reads {one.versions.text} of {event_type} and would miss this event")
    lacking = [v for v in standing.adopted if v.major not in {own.major for own in versions}]
    if broker and standing.behind and lacking:
        return _behind(f"{lacking[0]} of {event_type} is not published along, and groups of other stores may read it")
    return None


def _is_behind(ours: ReleasedType, theirs: ReleasedType) -> bool:
    """Whether the adopted type only adds to ours: majors, and optional fields with new minors."""
    agreed = ours.producer == theirs.producer and ours.ordering == theirs.ordering
    if not agreed or (ours.on_dead_letter != theirs.on_dead_letter and theirs.on_dead_letter is not None):
        return False
    before, after = _by_major(ours), _by_major(theirs)
    if not before.keys() <= after.keys():
        return False
    further = after.keys() > before.keys()
    for major, old in before.items():
        new = after[major]
        if old.status is Status.RETIRED and new.status is not Status.RETIRED:
            return False
        more = _version(new).minor - _version(old).minor
        found = changes(old.schema, new.schema)
        if more < 0 or any(not change.added for change in found) or (found and not more):
            return False
        further = further or more > 0 or new.status is not old.status
    return further


def _behind(detail: str) -> Refused:
    return Refused(code=Reason.CATALOGUE_BEHIND, place="/event_version", detail=f"{detail}; {ADVICE}")


def _by_major(kind: ReleasedType) -> Mapping[int, Released]:
    return {_version(one).major: one for one in kind.versions}


def _live(kind: ReleasedType) -> dict[int, Version]:
    return {
        version.major: version
        for one in kind.versions
        if one.status is not Status.RETIRED
        for version in (_version(one),)
    }


def _version(released: Released) -> Version:
    return parse_version(released.version) or Version(0, 0)
