"""Sessions of the console: an opaque cookie stands for a token that was presented once.

The store holds hashes only: neither the cookie nor the token can be read from it. A session ends 12 hours after it was
last used, seven days after it began, when its owner signs out or in again, and when its token is no longer configured
(who asks compares the hash).
"""

import secrets
from hashlib import sha256

from patra.kernel.clock import DAY, HOUR, MINUTE, Clock
from patra.kernel.db import Database, Queries, Tx

Q = Queries.load("patra.app")
IDLE_LIMIT = 12 * HOUR
AGE_LIMIT = 7 * DAY
"""A cookie that was stolen and is used now and then ends all the same."""
SEEN_INTERVAL = 10 * MINUTE
"""How old `seen_at` may become before it is written again: reading a page is not a write each time."""
PURGE_BATCH_SIZE = 100
COOKIE_BYTES = 32


class Sessions:
    """The sessions of one store."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def begin(self, token_hash: str) -> str:
        """Start a session for a token; gives the cookie, which is not kept."""
        cookie, now = secrets.token_urlsafe(COOKIE_BYTES), self._clock.now()

        def write(tx: Tx) -> None:
            tx.execute(Q["session_purge"], {"since": now - IDLE_LIMIT, "limit": PURGE_BATCH_SIZE})
            row = {"cookie_hash": hash_of(cookie), "token_hash": token_hash, "created_at": now, "seen_at": now}
            tx.insert("app_session", [row])

        self._db.run(write)
        return cookie

    def token_hash(self, cookie: str) -> str | None:
        """The hash of the token that a cookie stands for, or None when there is no such session any more."""
        now, asked = self._clock.now(), hash_of(cookie)
        within = {"cookie": asked, "since": now - IDLE_LIMIT, "begun": now - AGE_LIMIT}
        row = self._db.read(lambda tx: tx.fetch_one(Q["session_find"], within))
        if row is None:
            return None
        if now - row[1] > SEEN_INTERVAL:
            self._db.run(lambda tx: tx.execute(Q["session_seen"], {"cookie": asked, "now": now}))
        return str(row[0])

    def end(self, cookie: str) -> None:
        self._db.run(lambda tx: tx.execute(Q["session_end"], {"cookie": hash_of(cookie)}))


def hash_of(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
