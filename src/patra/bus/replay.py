"""A wish to replay or discard dead letters goes in; what is allowed, or why not, comes out (C§6, B5).

A replay is confirmed by a person who types the name of the consumer group, keeps the `event_id`, goes to that group
only, passes its inbox on purpose once, and counts.
"""

from collections.abc import Sequence

import msgspec

from patra.bus.deadletter import DEAD_LETTER, DeadLetter, On
from patra.bus.envelope import Refused
from patra.bus.reasons import R
from patra.kernel.machine import Move


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The letters that go, each with its move, and those that cannot, each with the reason."""

    moves: tuple[Move, ...]
    refused: dict[str, Refused]


def confirmation(group: str, confirm: str, by: str) -> Refused | None:
    """C§6.1: someone with a name says yes by the name of what they are about to touch."""
    if not by.strip():
        return Refused(code=R.REPLAY_UNNAMED, place="/by", detail="say who replays")
    if confirm != group:
        return Refused(
            code=R.REPLAY_UNCONFIRMED, place="/confirm", detail=f"type the name of the group, {group}, to confirm"
        )
    return None


def discharge(by: str, why: str) -> Refused | None:
    """A letter is set aside by someone with a name, for a reason (A4)."""
    if not by.strip():
        return Refused(code=R.REPLAY_UNNAMED, place="/by", detail="say who discards")
    if not why.strip():
        return Refused(code=R.DISCARD_UNEXPLAINED, place="/reason", detail="say why")
    return None


def plan(letters: Sequence[DeadLetter], on: On, reason: R, now: int) -> Plan:
    """The moves of those letters that are open."""
    moves: list[Move] = []
    refused: dict[str, Refused] = {}
    for letter in letters:
        if DEAD_LETTER.allows(letter.state, on):
            moves.append(DEAD_LETTER.move(letter.letter_id, letter.state, on, reason=reason, at=now))
        else:
            refused[letter.letter_id] = Refused(
                code=R.LETTER_NOT_OPEN, place="/state", detail=f"the dead letter is {letter.state}"
            )
    return Plan(moves=tuple(moves), refused=refused)
