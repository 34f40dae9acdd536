"""Decides from keys with fingerprints who was first, who is a duplicate and who contradicts.

A key is held for its window. Within it the same fingerprint is a duplicate, another one a conflict; past it the key
begins a new cycle. A claim is committed with the caller's transaction, unless the caller asks to hold it: then it is in
flight until it is settled, or until it is released or its time runs out, and another may take over the same cycle.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

import msgspec

from patra.kernel.db import Queries, Statement, Tx
from patra.kernel.errors import StoreBusy

Q = Queries.load("patra.kernel")

LONG_AGO = -(2**62)  # before every instant: a hold that ended then is free whatever the claimant's clock says


class Outcome(StrEnum):
    FIRST = "first"
    NEW_CYCLE = "new_cycle"
    DUPLICATE_IN_FLIGHT = "duplicate_in_flight"
    DUPLICATE_COMMITTED = "duplicate_committed"
    CONFLICT = "conflict"


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A key (16 bytes, `canonical.key16`), what it stands for, and for how long it is held (µs)."""

    key: bytes
    fingerprint: bytes
    window: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a claim; `cycle` and `first_at` are those of the entry that holds the key afterwards."""

    outcome: Outcome
    cycle: int
    first_at: int

    @property
    def has_won(self) -> bool:
        return self.outcome in {Outcome.FIRST, Outcome.NEW_CYCLE}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A key as the ledger holds it."""

    key: bytes
    fingerprint: bytes
    cycle: int
    first_at: int
    expires_at: int
    held_until: int | None = None
    holder: str | None = None


def judge(entry: Entry | None, claim: Claim, now: int) -> Verdict:
    """The answer that a claim at `now` would get from an entry: the rule itself, without a store."""
    if entry is None:
        return _winner(1, now)
    if entry.held_until is not None and entry.held_until < now:
        return _winner(entry.cycle, now)  # its cycle was begun and never committed
    if entry.expires_at < now:
        return _winner(entry.cycle + 1, now)
    if entry.fingerprint != claim.fingerprint:
        outcome = Outcome.CONFLICT
    elif entry.held_until is not None:
        outcome = Outcome.DUPLICATE_IN_FLIGHT
    else:
        outcome = Outcome.DUPLICATE_COMMITTED
    return Verdict(outcome=outcome, cycle=entry.cycle, first_at=entry.first_at)


def claim(
    tx: Tx, scope: str, claims: Sequence[Claim], now: int, *, hold: int | None = None, holder: str | None = None
) -> list[Verdict]:
    """Claim a set of keys in one statement (a second one reads the entries of those that were not first).

    A key that stands twice in the set is decided in order: what follows the winner is in flight with it. With `hold`
    (µs) and `holder` the claims stay in flight for that long.
    """
    if (hold is None) is not (holder is None):
        raise ValueError("hold and holder go together")
    firsts: dict[bytes, Claim] = {}
    for one in claims:
        firsts.setdefault(one.key, one)
    held_until = None if hold is None else now + hold
    won = dict(
        tx.fetch(
            Q["ledger_claim"],
            {"scope": scope, "now": now, "held_until": held_until, "holder": holder},
            # sorted: two writers that claim the same keys wait for each other instead of deadlocking
            rows=[(c.key, c.fingerprint, now + c.window) for _, c in sorted(firsts.items())],
        )
    )
    first = _winner(1, now)
    if len(won) == len(claims) and all(cycle == 1 for cycle in won.values()):
        return [first] * len(claims)
    lost = entries(tx, scope, [key for key in firsts if key not in won])
    unanswered = set(won)
    verdicts: list[Verdict] = []
    for one in claims:
        if one.key in lost:
            verdicts.append(judge(lost[one.key], one, now))
            continue
        cycle = won[one.key]
        if one.key in unanswered:
            unanswered.remove(one.key)
            verdicts.append(first if cycle == 1 else _winner(cycle, now))
        else:
            same = one.fingerprint == firsts[one.key].fingerprint
            outcome = Outcome.DUPLICATE_IN_FLIGHT if same else Outcome.CONFLICT
            verdicts.append(Verdict(outcome=outcome, cycle=cycle, first_at=now))
    return verdicts


def entries(tx: Tx, scope: str, keys: Collection[bytes]) -> dict[bytes, Entry]:
    """The entries of a set of keys, for a caller that decides with `judge` and writes with `begin_cycles`."""
    found: dict[bytes, Entry] = {}
    for key, mark, cycle, first_at, expires_at, held_until, holder in tx.fetch(
        Q["ledger_entries"], {"scope": scope}, rows=[(key,) for key in keys]
    ):
        found[key] = Entry(
            key=key,
            fingerprint=mark,
            cycle=cycle,
            first_at=first_at,
            expires_at=expires_at,
            held_until=held_until,
            holder=holder,
        )
    return found


def begin_cycles(tx: Tx, scope: str, begun: Mapping[bytes, Entry]) -> None:
    """Write the entries that a caller decided on with `judge`, each in the cycle that its verdict gave.

    Another writer may have been there since `entries` looked: then `StoreBusy` is raised, and the whole transaction is
    decided again on what that writer left.
    """
    rows = [(e.key, e.fingerprint, e.cycle, e.first_at, e.expires_at) for _, e in sorted(begun.items())]
    if tx.execute(Q["ledger_begin_cycle"], {"scope": scope}, rows=rows) != len(rows):
        raise StoreBusy("store_busy", f"another writer claimed a key of {scope} first")


def settle(tx: Tx, scope: str, keys: Collection[bytes], *, holder: str) -> set[bytes]:
    """End the flight of held keys: they are committed now. Gives those that this holder still held."""
    return _ended_keys(tx, Q["ledger_settle"], scope, keys, {"holder": holder})


def release(tx: Tx, scope: str, keys: Collection[bytes], *, holder: str) -> set[bytes]:
    """Release held keys: the next to claim one takes over its cycle. Gives those that this holder still held."""
    return _ended_keys(tx, Q["ledger_release"], scope, keys, {"holder": holder, "long_ago": LONG_AGO})


def purge(tx: Tx, scope: str, *, before: int, limit: int) -> int:
    """Forget up to `limit` keys whose window ended before an instant. A key that returns later begins at cycle 1."""
    return tx.execute(Q["ledger_purge"], {"scope": scope, "before": before, "limit": limit})


def _winner(cycle: int, now: int) -> Verdict:
    return Verdict(outcome=Outcome.FIRST if cycle == 1 else Outcome.NEW_CYCLE, cycle=cycle, first_at=now)


def _ended_keys(
    tx: Tx, stmt: Statement, scope: str, keys: Collection[bytes], params: Mapping[str, str | int]
) -> set[bytes]:
    found = tx.fetch(stmt, {"scope": scope, **params}, rows=[(key,) for key in sorted(keys)])
    return {key for (key,) in found}
