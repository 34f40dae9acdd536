"""Turns a dedup key and its fingerprint into first, new cycle, duplicate or conflict (§3.8.14, §3.8.15, F9).

The rule is the kernel's ledger's; this stage adds what one commit knows that the ledger does not yet hold, and which
of its entries were begun by the very batch that asks.
"""

from collections.abc import Mapping
from enum import StrEnum

from patra.attribution.contract.reasons import Reason
from patra.kernel.ledger import Claim, Entry, Outcome, judge
from patra.kernel.machine import Machine

SCOPE = "f"
"""The ledger's scope for events; short, since it stands in every row."""


class DedupState(StrEnum):
    """The states of an event in dedup."""

    NEW = "new"
    INFLIGHT_LOCKED = "inflight_locked"
    ACCEPTED_COMMITTED = "accepted_committed"
    DUPLICATE_INFLIGHT = "duplicate_inflight"
    DUPLICATE_COMMITTED = "duplicate_committed"
    REJECTED_CONFLICT = "rejected_conflict"
    EXPIRED = "expired"


class DedupTransition(StrEnum):
    FIRST_SEEN = "first_seen"
    COMMITTED = "committed"
    CONFLICT = "conflict"
    SEEN_IN_FLIGHT = "seen_in_flight"
    SEEN_AGAIN = "seen_again"
    WINDOW_ENDS = "window_ends"
    NEW_CYCLE = "new_cycle"


DEDUP = Machine(
    "attribution_dedup",
    version="f_dedup_v1",
    initial=DedupState.NEW,
    edges={
        (DedupState.NEW, DedupTransition.FIRST_SEEN): DedupState.INFLIGHT_LOCKED,
        (DedupState.INFLIGHT_LOCKED, DedupTransition.COMMITTED): DedupState.ACCEPTED_COMMITTED,
        (DedupState.INFLIGHT_LOCKED, DedupTransition.CONFLICT): DedupState.REJECTED_CONFLICT,
        (DedupState.INFLIGHT_LOCKED, DedupTransition.SEEN_IN_FLIGHT): DedupState.DUPLICATE_INFLIGHT,
        (DedupState.ACCEPTED_COMMITTED, DedupTransition.SEEN_AGAIN): DedupState.DUPLICATE_COMMITTED,
        (DedupState.ACCEPTED_COMMITTED, DedupTransition.WINDOW_ENDS): DedupState.EXPIRED,
        (DedupState.EXPIRED, DedupTransition.NEW_CYCLE): DedupState.NEW,
    },
)

STATES: dict[Outcome, DedupState] = {
    Outcome.FIRST: DEDUP.target(DedupState.NEW, DedupTransition.FIRST_SEEN),
    Outcome.NEW_CYCLE: DEDUP.target(DedupState.EXPIRED, DedupTransition.NEW_CYCLE),
    Outcome.DUPLICATE_IN_FLIGHT: DEDUP.target(DedupState.INFLIGHT_LOCKED, DedupTransition.SEEN_IN_FLIGHT),
    Outcome.DUPLICATE_COMMITTED: DEDUP.target(DedupState.ACCEPTED_COMMITTED, DedupTransition.SEEN_AGAIN),
    Outcome.CONFLICT: DEDUP.target(DedupState.INFLIGHT_LOCKED, DedupTransition.CONFLICT),
}
"""Where the ledger's verdict takes the event: each verdict is one edge of the table."""

_STATE_REASONS: dict[DedupState, Reason] = {
    DedupState.DUPLICATE_INFLIGHT: Reason.DEDUP_INFLIGHT,
    DedupState.DUPLICATE_COMMITTED: Reason.DEDUP_COMMITTED,
    DedupState.REJECTED_CONFLICT: Reason.DEDUP_CONFLICT,
}

REFUSALS: dict[Outcome, Reason] = {
    outcome: _STATE_REASONS[state] for outcome, state in STATES.items() if state in _STATE_REASONS
}
"""The reason of every verdict that drops the event: that of the state it leads to."""


class Ledger:
    """The entries that a commit loaded and those it begins.

    `past` are the last cycles of keys whose entries were purged. `firsts` are the rows of keys that nobody had (key,
    fingerprint, first instant, end of window), `layers` the entries of further cycles, one layer after the other: a
    commit that spans a window may begin two cycles of one key, and the store takes them singly.
    """

    def __init__(self, entries: dict[bytes, Entry], past: Mapping[bytes, int] | None = None) -> None:
        self._entries = entries
        self._past = past or {}
        self._begun: dict[bytes, tuple[int, int, bytes, int, int]] = {}
        self.firsts: list[tuple[bytes, bytes, int, int]] = []
        self.layers: list[dict[bytes, Entry]] = []

    def verdict(self, key: bytes, fingerprint: bytes, received_at: int, batch: int) -> tuple[Outcome, int]:
        """What the ledger says to an event of this batch, and the cycle that the event belongs to."""
        begun = self._begun.get(key)
        entry = self._entries.get(key) if begun is None else _entry(key, *begun[1:])
        if entry is None:
            past = self._past.get(key, 0) if self._past else 0
            return (Outcome.NEW_CYCLE, past + 1) if past else FIRST
        found = judge(entry, Claim(key=key, fingerprint=fingerprint, window=0), received_at)
        if found.outcome is Outcome.DUPLICATE_COMMITTED and begun is not None and begun[0] == batch:
            return Outcome.DUPLICATE_IN_FLIGHT, found.cycle
        return found.outcome, found.cycle

    def begin(self, key: bytes, fingerprint: bytes, received_at: int, window: int, *, cycle: int, batch: int) -> None:
        """Give the key to an event that came first in this cycle."""
        expires_at = received_at + window
        self._begun[key] = (batch, cycle, fingerprint, received_at, expires_at)
        if cycle == 1:
            self.firsts.append((key, fingerprint, received_at, expires_at))
            return
        entry = _entry(key, cycle, fingerprint, received_at, expires_at)
        for layer in self.layers:
            if key not in layer:
                layer[key] = entry
                return
        self.layers.append({key: entry})


FIRST = (Outcome.FIRST, 1)


def _entry(key: bytes, cycle: int, fingerprint: bytes, first_at: int, expires_at: int) -> Entry:
    return Entry(key=key, fingerprint=fingerprint, cycle=cycle, first_at=first_at, expires_at=expires_at)
