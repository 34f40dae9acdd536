"""Decides from a wish to replay or discard dead letters what is allowed, or why not (C§6, B5).

A replay is confirmed by a person who types the name of the consumer group, keeps the `event_id`, goes to that group
only, passes its inbox on purpose once, and counts.
"""

from collections.abc import Sequence

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.dead_letter import DEAD_LETTER, DeadLetter, DeadLetterTransition
from patra.bus.publishing.envelope import Refused
from patra.kernel.machine import Move


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters to replay, each with its move, and those that cannot be, each with the reason."""

    moves: tuple[Move, ...]
    refused: dict[str, Refused]


def confirmation(group: str, confirm: str, by: str) -> Refused | None:
    """C§6.1: a named person confirms with the name of what the replay will touch."""
    if not by.strip():
        return Refused(code=Reason.REPLAY_UNNAMED, place="/by", detail="say who replays")
    if confirm != group:
        return Refused(
            code=Reason.REPLAY_UNCONFIRMED, place="/confirm", detail=f"type the name of the group, {group}, to confirm"
        )
    return None


def discharge(by: str, why: str) -> Refused | None:
    """A dead letter is discarded by a named person, for a reason (A4)."""
    if not by.strip():
        return Refused(code=Reason.REPLAY_UNNAMED, place="/by", detail="say who discards")
    if not why.strip():
        return Refused(code=Reason.DISCARD_UNEXPLAINED, place="/reason", detail="say why")
    return None


def plan(letters: Sequence[DeadLetter], on: DeadLetterTransition, reason: Reason, now: int) -> Plan:
    """The moves of those dead letters that are open."""
    moves: list[Move] = []
    refused: dict[str, Refused] = {}
    for letter in letters:
        if DEAD_LETTER.allows(letter.state, on):
            moves.append(DEAD_LETTER.move(letter.letter_id, letter.state, on, reason=reason, at=now))
        else:
            refused[letter.letter_id] = Refused(
                code=Reason.LETTER_NOT_OPEN, place="/state", detail=f"the dead letter is {letter.state}"
            )
    return Plan(moves=tuple(moves), refused=refused)
