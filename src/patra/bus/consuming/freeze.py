"""Decides from the backlog of dead letters of a type whether its publishing freezes or thaws (C§6, B5).

A backlog over the threshold freezes. Emptying it thaws, and so does an operator's word; after that word the backlog may
grow by another threshold before it freezes again, or the word would mean nothing. What an operator froze, only an
operator thaws. What counts as backlog (B9: nothing of an endpoint) is said by `backlog` in `bus/sql/letters.sql`.
"""

from enum import StrEnum

import msgspec

from patra.bus.catalogue.reasons import Reason

MAX_NAMED_OVER = 1000
"""The reason of a freeze says how many there are, up to so many above the threshold."""


class FreezeState(StrEnum):
    OPEN = "open"
    FROZEN = "frozen"
    FROZEN_BY_HAND = "frozen_by_hand"


class Freeze(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one event type; `tolerated` is the backlog that an operator's thaw accepted."""

    event_type: str
    state: FreezeState = FreezeState.OPEN
    since: int = 0
    reason: str = ""
    by: str = ""
    tolerated: int = 0

    @property
    def is_frozen(self) -> bool:
        return self.state is not FreezeState.OPEN


def enough_counted(current: Freeze, threshold: int) -> int:
    """How far a backlog is counted for `after_backlog`: each dead letter asks, and there may be millions."""
    return 1 if current.is_frozen else current.tolerated + threshold + MAX_NAMED_OVER


def after_backlog(current: Freeze, backlog: int, threshold: int, now: int) -> Freeze:
    """The state after the backlog changed."""
    if current.state is FreezeState.FROZEN_BY_HAND:
        return current
    if backlog == 0:
        if current.state is FreezeState.FROZEN:
            return Freeze(event_type=current.event_type, since=now, reason=Reason.BACKLOG_EMPTY)
        return msgspec.structs.replace(current, tolerated=0) if current.tolerated else current
    if current.state is FreezeState.OPEN and backlog > current.tolerated + threshold:
        return Freeze(
            event_type=current.event_type,
            state=FreezeState.FROZEN,
            since=now,
            reason=f"{Reason.BACKLOG_OVER}: {backlog} open dead letters, more than {current.tolerated + threshold}",
            tolerated=current.tolerated,
        )
    return current


def by_hand(current: Freeze, by: str, why: str, now: int) -> Freeze:
    """An operator freezes a type."""
    return Freeze(
        event_type=current.event_type,
        state=FreezeState.FROZEN_BY_HAND,
        since=now,
        by=by,
        reason=f"{Reason.OPERATOR}: {why or by}",
    )


def thaw_freeze(current: Freeze, backlog: int, by: str, now: int) -> Freeze:
    """An operator's word lifts a freeze of either kind."""
    return Freeze(event_type=current.event_type, since=now, by=by, reason=Reason.OPERATOR, tolerated=backlog)
