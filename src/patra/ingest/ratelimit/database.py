"""The rate gate in the database: all processes that share a PostgreSQL keep to one rate without Redis (ruling I12).

The decisions are those of `token_bucket.py`; the state of a key is a row that is locked while it is decided. Time is
the database's, so that machines with other clocks share one bucket. Permits are fetched in small lots
(`permit_lots.py`), and an answer without information about the rate is not reported.
"""

import threading
import time

import msgspec
from msgspec.structs import replace

from patra.ingest.ratelimit.limiter import Answered, Memory
from patra.ingest.ratelimit.permit_lots import LOT_LIFE, PermitLot, PermitLots, lot_permits
from patra.ingest.ratelimit.token_bucket import (
    Ask,
    Policy,
    Sign,
    Signal,
    State,
    advance,
    cool_down,
    decide,
    feedback,
    fresh,
    give_back,
)
from patra.kernel.clock import Clock
from patra.kernel.db import Database, Tx
from patra.kernel.db.queries import Queries

Q = Queries.load("patra.ingest")

_decode = msgspec.json.Decoder(State).decode


class DatabaseGate:
    """A gate whose buckets live in the store. `clock`: for tests, in place of the database's own."""

    def __init__(self, db: Database, memory: Memory | None = None, clock: Clock | None = None) -> None:
        self._db = db
        self._memory = memory
        self._clock = clock
        self._lock = threading.Lock()
        self._lots = PermitLots(self._local_now)
        self._known: dict[str, tuple[Policy, State]] = {}

    def ask(self, key: str, policy: Policy, ask: Ask) -> Answered:
        """A permit from the lot at hand, or from the database, with a few more for the next requests."""
        with self._lock:
            if (answer := self._lots.take(key, ask)) is not None:
                return answer
            over = self._lots.drop(key)
        question = replace(
            ask,
            want=lot_permits(policy) if ask.want == 1 else ask.want,
            returns=over.permit if over else "",
            unused=over.left * over.cost if over else 0,
        )
        first, asked_at = self._first(key, policy), self._local_now()
        brief = replace(policy, lease=min(policy.lease, LOT_LIFE))

        def work(tx: Tx) -> Answered:
            state, now = self._lock_state(tx, key, first)
            decision, after = decide(brief, state, question, now)
            _keep(tx, key, after, now)
            return Answered(decision=decision, state=after, now=now)

        answer = self._db.run(work)
        with self._lock:
            self._known[key] = policy, answer.state
            self._lots.keep(key, ask, answer, asked_at)
        return answer

    def tell(self, key: str, policy: Policy, signal: Signal) -> State:
        with self._lock:
            known = self._known.get(key)
            if known is not None and _says_nothing(policy, known[1], signal):
                return known[1]
            bad = signal.retry_after > 0 or signal.remaining >= 0 or signal.sign not in {Sign.OK, Sign.NOT_SENT}
            over = self._lots.drop(key) if bad else None  # what was fetched before is not good any more
        first = self._first(key, policy)

        def work(tx: Tx) -> State:
            state, now = self._lock_state(tx, key, first)
            if over is not None:
                state = give_back(policy, state, over.permit, over.left * over.cost, now)
            after = feedback(policy, state, signal, now)
            _keep(tx, key, after, now)
            return after

        after = self._db.run(work)
        with self._lock:
            self._known[key] = policy, after
        return after

    def look(self, key: str, policy: Policy) -> State:
        first = self._first(key, policy)

        def work(tx: Tx) -> State:
            state, now = self._lock_state(tx, key, first)
            return advance(policy, state, now)

        return self._db.run(work)

    def close(self) -> None:
        """Give unused permits back."""
        with self._lock:
            lots = self._lots.drop_all()
        for key, lot in lots.items():
            self._give_back(key, self._known[key][0], lot)

    def _give_back(self, key: str, policy: Policy, lot: PermitLot) -> None:
        first = self._first(key, policy)

        def work(tx: Tx) -> None:
            state, now = self._lock_state(tx, key, first)
            _keep(tx, key, give_back(policy, state, lot.permit, lot.left * lot.cost, now), now)

        self._db.run(work)

    def _local_now(self) -> int:
        """For the life of lots: a clock that nobody sets."""
        return time.monotonic_ns() // 1000 if self._clock is None else self._clock.now()

    def _now(self, tx: Tx) -> int:
        return tx.server_now() if self._clock is None else self._clock.now()

    def _first(self, key: str, policy: Policy) -> State:
        """The initial state of an unused key: a rest that an earlier process reported holds."""
        now = self._db.read(self._now)
        state = fresh(policy, now)
        if self._memory is not None and (cooldown := self._memory.cooldown(key)) > now:
            state = cool_down(policy, state, cooldown)
        return state

    def _lock_state(self, tx: Tx, key: str, first: State) -> tuple[State, int]:
        found = tx.fetch_one(Q["rate_state"], {"key": key})
        if found is None:
            tx.execute(Q["rate_state_make"], rows=[(key, msgspec.json.encode(first).decode(), self._now(tx))])
            found = tx.fetch_one(Q["rate_state"], {"key": key})
        now = self._now(tx)  # after the wait for the row: no other process has decided later than this
        return (first if found is None else _decode(found[0])), now


def _says_nothing(policy: Policy, known: State, signal: Signal) -> bool:
    """Whether an answer leaves the bucket as it is: a success without rate headers."""
    counted = bool(policy.concurrency or known.concurrency or known.flights)
    told = signal.retry_after > 0 or signal.remaining >= 0 or signal.limit > 0 or signal.concurrency > 0
    return signal.sign is Sign.OK and signal.cost == 0 and not told and not counted


def _keep(tx: Tx, key: str, state: State, now: int) -> None:
    tx.execute(Q["rate_state_set"], {"key": key, "state": msgspec.json.encode(state).decode(), "now": now})
