"""What was reserved and used of each quota, and how long a provider is left alone, in the store (ch. 8.4)."""

from collections.abc import Mapping

import msgspec

from patra.ingest.ratelimit.token_bucket import Policy, State, cool_down, fresh
from patra.kernel.clock import DAY, HOUR
from patra.kernel.db import Database, Queries, Tx

Q = Queries.load("patra.ingest")


def quota_taken(tx: Tx, rate_key: str, since: int) -> dict[tuple[str, int], int]:
    """How much of each period is used: what was reserved, or what was consumed where that is more."""
    rows = tx.fetch(Q["quota_taken"], {"rate_key": rate_key, "since": since})
    return {(code, start): max(reserved, consumed) for code, start, reserved, consumed in rows}


def quota_spent(tx: Tx, rate_key: str, now: int) -> tuple[int, int]:
    """What runs have used of a quota in this hour and on this day."""
    rows = tx.fetch(Q["quota_taken"], {"rate_key": rate_key, "since": now - DAY})
    used = {(code, start): consumed for code, start, _, consumed in rows}
    return used.get(("HOUR", now // HOUR * HOUR), 0), used.get(("DAY", now // DAY * DAY), 0)


def rate_state(tx: Tx, rate_key: str, policy: Policy, now: int) -> State:
    """A bucket as the store knows it: kept there, or a fresh one with what was used and how long it must rest."""
    kept = tx.fetch_one(Q["rate_state_seen"], {"key": rate_key})
    state = msgspec.json.decode(kept[0], type=State) if kept else fresh(policy, now)
    row = tx.fetch_one(Q["cooldown_of"], {"rate_key": rate_key})
    if row and row[0] > max(now, state.cooldown):
        state = cool_down(policy, state, row[0])
    if not kept and (policy.quota_hour or policy.quota_day):
        hour, day = quota_spent(tx, rate_key, now)
        state = msgspec.structs.replace(state, hour_used=hour, day_used=day)
    return state


class RateMemory:
    """What gates of processes without Redis leave behind for the next, in the store."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def quota_use(self, key: str, now: int) -> tuple[int, int]:
        return self._db.read(lambda tx: quota_spent(tx, key, now))

    def cooldown(self, key: str) -> int:
        row = self._db.read(lambda tx: tx.fetch_one(Q["cooldown_of"], {"rate_key": key}))
        return row[0] if row else 0

    def cool(self, key: str, until: int, now: int) -> None:
        self._db.run(lambda tx: tx.execute(Q["cooldown_keep"], rows=[(key, until, now)]))


def reserve_quota(tx: Tx, rate_key: str, added: Mapping[tuple[str, int], int], now: int) -> None:
    rows = [(rate_key, code, start, requests, now) for (code, start), requests in sorted(added.items())]
    tx.execute(Q["quota_reserve"], rows=rows)


def release_quota(tx: Tx, rate_key: str, given_back: Mapping[tuple[str, int], int], now: int) -> None:
    """Take back reservations, never below nothing."""
    rows = [(rate_key, code, start, requests, now) for (code, start), requests in sorted(given_back.items())]
    tx.execute(Q["quota_release"], rows=rows)
