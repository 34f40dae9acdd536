"""The stages of a new major version (B8): who reads it, while it is published along with the one before.

| stage | a group that reads both versions gets |
|---|---|
| shadow | the version before; only groups that read nothing else get the new one |
| dual | the new one for the tenants and the share that were named, the one before for the rest |
| retiring | the new one |
| retired | the new one; the version before is no longer published |

Every group gets every event in one version or the other, whatever the stage. Until `retired` each stage can go back.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from patra.bus.catalogue.catalogue import Catalogue, Status
from patra.bus.catalogue.evolution import Objection, Release
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import parse_version
from patra.bus.publishing.envelope import Refused


class Stage(StrEnum):
    SHADOW = "shadow"
    DUAL = "dual"
    RETIRING = "retiring"
    RETIRED = "retired"


_NEXT = {Stage.SHADOW: Stage.DUAL, Stage.DUAL: Stage.RETIRING}
_ORDER = tuple(Stage)


class StagedMajor(msgspec.Struct, frozen=True, kw_only=True):
    """A new major and how far it has come; `tenants` and `share` (percent of events) are those of `dual`."""

    event_type: str
    major: int
    stage: Stage
    tenants: tuple[str, ...] = ()
    share: int = 0
    changed_by: str = ""
    changed_at: int = 0

    def is_for(self, tenant: str, identity: bytes) -> bool:
        """Whether an event is one of those that groups get in this major, where they read both."""
        match self.stage:
            case Stage.SHADOW:
                return False
            case Stage.DUAL:
                return tenant in self.tenants or int.from_bytes(identity[:4]) % 100 < self.share
            case Stage.RETIRING | Stage.RETIRED:
                return True


def move_stage(
    now_at: StagedMajor, to: Stage, *, tenants: Iterable[str], share: int, by: str, now: int
) -> StagedMajor | Refused:
    """The next stage, or an earlier one. A version is retired by the catalogue, when nobody needs it any more (B4)."""
    chosen = tuple(sorted(set(tenants)))
    if not by.strip():
        return Refused(code=Reason.REPLAY_UNNAMED, place="/by", detail="say who does it")
    if now_at.stage is Stage.RETIRED:
        return _refuse_stage("the version before is retired: this can not be taken back")
    if to is Stage.RETIRED:
        return _refuse_stage("retire the version before in its contract (`status: retired`) and adopt the catalogue")
    if _ORDER.index(to) > _ORDER.index(now_at.stage) and _NEXT.get(now_at.stage) is not to:
        return _refuse_stage(f"after {now_at.stage} comes {_NEXT[now_at.stage]}")
    if to is Stage.DUAL and not chosen and not 0 < share <= 100:
        return _refuse_stage("name tenants, or a share of 1 to 100 percent")
    if to is not Stage.DUAL:
        chosen, share = (), 0
    return msgspec.structs.replace(now_at, stage=to, tenants=chosen, share=share, changed_by=by, changed_at=now)


def begin_stages(last: Release, following: Catalogue, now: int) -> list[StagedMajor]:
    """The new majors of types that were there before: each begins as a shadow."""
    found: list[StagedMajor] = []
    for name, old in last.types.items():
        known = {version.major for one in old.versions if (version := parse_version(one.version)) is not None}
        live = kind.live if (kind := following.types.get(name)) else set[int]()
        found += [
            StagedMajor(event_type=name, major=major, stage=Stage.SHADOW, changed_by="adoption", changed_at=now)
            for major in sorted(live - known)
            if any(earlier < major for earlier in live)
        ]
    return found


def end_stages(following: Catalogue, staged: Iterable[StagedMajor], now: int) -> list[StagedMajor]:
    """Majors before which no other is live any more."""
    return [
        msgspec.structs.replace(one, stage=Stage.RETIRED, tenants=(), share=0, changed_by="adoption", changed_at=now)
        for one in staged
        if one.stage is not Stage.RETIRED
        and (kind := following.types.get(one.event_type)) is not None
        and not any(major < one.major for major in kind.live)
    ]


def hasty(following: Catalogue, staged: Iterable[StagedMajor]) -> list[Objection]:
    """Versions that the catalogue retires while the next one is read by some only."""
    found: list[Objection] = []
    for one in end_stages(following, staged, 0):
        before = next(s for s in staged if (s.event_type, s.major) == (one.event_type, one.major))
        if before.stage is not Stage.RETIRING and _had_before(following, one):
            detail = f"{one.major}.x is in stage {before.stage}; first `patra bus stage {one.event_type} retiring`"
            found.append(Objection(code=Reason.EVOLUTION_IN_USE, event_type=one.event_type, place="", detail=detail))
    return found


def reluctant(staged: Mapping[int, StagedMajor], tenant: str, identity: bytes, majors: Iterable[int]) -> frozenset[int]:
    """The majors that only those groups get of an event which read nothing else."""
    return frozenset(m for m in majors if m in staged and not staged[m].is_for(tenant, identity))


def _had_before(following: Catalogue, one: StagedMajor) -> bool:
    contracts = following.types[one.event_type].contracts
    return any(major < one.major and c.status is Status.RETIRED for major, c in contracts.items())


def _refuse_stage(detail: str) -> Refused:
    return Refused(code=Reason.STAGE, place="/stage", detail=detail)
