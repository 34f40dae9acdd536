"""Turns the bus on a store into readings of alerts: freezes, dead letters, groups behind, suspended endpoints (B5)."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from patra.bus.consuming.freeze import Freeze
from patra.bus.store import dead_letters, groups
from patra.bus.store.groups import WebhookState
from patra.ingest.operations.alerting.alerts import Reading
from patra.ingest.operations.alerting.bus_rules import DEAD_LETTERS, FROZEN, LAG, SUSPENDED
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Tx


def bus_readings(longest_lag: int) -> Callable[[Tx, int], Mapping[str, Sequence[Reading]]]:
    """What the watch reads of the bus; a group is behind when its oldest event waits for longer than so many µs."""

    def read(tx: Tx, now: int) -> Mapping[str, Sequence[Reading]]:
        return {
            FROZEN: _freeze_readings(dead_letters.freezes(tx)),
            DEAD_LETTERS: [
                Reading(subject=event_type, value=count, breach=True, calm=False, text=_letters_text(count))
                for event_type, count in dead_letters.backlogs(tx).items()
            ],
            LAG: [_lag(group, now - since, longest_lag) for group, since in groups.oldest_waiting(tx, now).items()],
            SUSPENDED: _suspension_readings(groups.webhook_states(tx)),
        }

    return read


def _freeze_readings(freezes: Iterable[Freeze]) -> list[Reading]:
    """One for each type, however many stores that share the stream froze it; equal reasons are named once."""
    reasons: dict[str, dict[str, None]] = {}
    for one in freezes:
        reasons.setdefault(one.event_type, {})[one.reason] = None
    return [
        Reading(subject=event_type, value=1, breach=True, calm=False, text="; ".join(why))
        for event_type, why in reasons.items()
    ]


def _suspension_readings(states: Mapping[str, WebhookState]) -> list[Reading]:
    """By the code alone: what the endpoint answered may hold what is not for everyone who gets alerts."""
    return [
        Reading(
            subject=groups.WEBHOOK_PREFIX + name,
            value=1,
            breach=True,
            calm=False,
            text=f"suspended since {format_instant(state.suspended_at)}: {state.suspended_reason.partition(':')[0]}",
        )
        for name, state in sorted(states.items())
        if state.suspended_at is not None
    ]


def _letters_text(count: int) -> str:
    return f"{count} dead letter{'s' if count > 1 else ''} open or on the way through a replay"


def _lag(group: str, lag: int, longest: int) -> Reading:
    seconds, allowed = lag // SECOND, longest // SECOND
    return Reading(
        subject=group,
        value=seconds,
        breach=lag > longest,
        calm=lag <= longest * 9 // 10,
        text=f"the oldest event of the group waits for {seconds} s, and {allowed} s are expected at most",
    )
