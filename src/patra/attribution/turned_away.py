"""Records batches that were refused unread, with what is known of them: app, batch, code, size (F25).

401, 403, 413, 415 and overload are exactly the answers on which a client may drop events, so operators need to
see them. A flood must cost the store nothing, so they are counted in memory by app, batch and code and written once in
a while; beyond `MAX_PENDING` different ones the rest is counted by code alone.
"""

import threading
from typing import NamedTuple

import msgspec

from patra.attribution.contract.keys import half
from patra.attribution.contract.reasons import Reason
from patra.attribution.storage.sql import Q
from patra.kernel.clock import DAY, Clock, format_instant
from patra.kernel.db import Database, Row, Tx

MAX_PENDING = 1000


class TurnedAwayView(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of one app and id that were turned away with one code on one day (UTC); unknown is null."""

    code: str
    appId: str | None  # noqa: N815  names of the specification
    batchId: str | None  # noqa: N815
    firstAt: str  # noqa: N815
    lastAt: str  # noqa: N815
    count: int
    largestBytes: int | None  # noqa: N815


class _Seen(NamedTuple):
    first_at: int
    last_at: int
    batches: int
    size: int | None

    def join_seen(self, other: "_Seen | None") -> "_Seen":
        if other is None:
            return self
        sizes = [size for size in (self.size, other.size) if size is not None]
        return _Seen(
            min(self.first_at, other.first_at),
            max(self.last_at, other.last_at),
            self.batches + other.batches,
            max(sizes, default=None),
        )


class TurnedAway:
    """Counts refused requests in memory, and writes the counts when asked. Safe for threads."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str, str, int], _Seen] = {}

    def note(
        self, code: Reason, *, app_id: str | None = None, batch_id: str | None = None, size: int | None = None
    ) -> None:
        """Count one; nothing is written yet."""
        now = self._clock.now()
        with self._lock:
            key = (code.value, app_id or "", batch_id or "", now // DAY)
            if key not in self._seen and len(self._seen) >= MAX_PENDING:
                key = (code.value, "", "", now // DAY)
            self._seen[key] = _Seen(now, now, 1, size).join_seen(self._seen.get(key))

    def run_once(self) -> int:
        """Write what was counted; gives how many rows that were. What cannot be written now is written later."""
        with self._lock:
            seen, self._seen = self._seen, {}
        rows: list[Row] = sorted(
            (half("|".join(map(str, key))), key[0], key[1] or None, key[2] or None, *one) for key, one in seen.items()
        )
        if not rows:
            return 0
        try:
            self._db.run(lambda tx: tx.execute(Q["write_turned_away"], rows=rows))
        except BaseException:
            with self._lock:
                for key, one in self._seen.items():
                    seen[key] = one.join_seen(seen.get(key))
                self._seen = seen
            raise
        return len(rows)


def turned_away(tx: Tx, *, code: str = "", limit: int) -> list[TurnedAwayView]:
    """What was turned away, the newest first."""
    return [
        TurnedAwayView(
            code=reason,
            appId=app_id,
            batchId=batch_id,
            firstAt=format_instant(first_at),
            lastAt=format_instant(last_at),
            count=count,
            largestBytes=size,
        )
        for reason, app_id, batch_id, first_at, last_at, count, size in tx.fetch(
            Q["turned_away_page"], {"code": code, "limit": limit}
        )
    ]
