"""The rate gate of many processes: the same questions go to one script in Redis, on the server's clock (ch. 4.10.8).

A process prefetches permits in small lots where the rate is high, so that not every request costs a round trip. When
Redis cannot be reached, the process falls back to a gate of its own at the smaller of the platform's default rate and
the tenth percentile of the rates seen so far, one request at a time; it looks for Redis again every few seconds. What
providers have said is not forgotten on the way: the fallback knows the cool-downs, windows and quotas that were last
seen in Redis, and Redis hears of those cool-downs that were asked for meanwhile.
"""

import threading
from collections import deque
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from patra.ingest.ratelimit.limiter import Answered, LocalGate
from patra.ingest.ratelimit.permit_lots import PermitLot, PermitLots, lot_permits
from patra.ingest.ratelimit.token_bucket import Allow, Ask, Decision, Policy, Reject, Sign, Signal, State, Wait, Why
from patra.kernel.clock import SECOND, Clock
from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.redact import redact_url
from patra.kernel.telemetry import counter, get_logger

if TYPE_CHECKING:
    from redis import Redis

log = get_logger()

DEFAULT_RATE: Final = 1000  # a permit a second (4.10.8)
RECONNECT_INTERVAL: Final = 5 * SECOND
PREFETCH_PERMITS: Final = 8

FALLBACKS = counter("patra_ingest_rate_gate_fallbacks_total", "Times the shared rate gate could not be reached.")

_pack = msgspec.msgpack.Encoder().encode
_state = msgspec.msgpack.Decoder(State).decode


class RedisGate:
    """The gate in Redis, with the local one behind it."""

    def __init__(self, url: str, clock: Clock, *, prefix: str = "patra:rate:", timeout: float = 0.5) -> None:
        self._redis, self._errors = _connect(url, timeout)
        self._url = redact_url(url)
        self._script = self._redis.register_script(
            (files("patra.ingest.ratelimit") / "token_bucket.lua").read_text("utf-8")
        )
        self._clock = clock
        self._prefix = prefix
        self._lock = threading.Lock()
        self._lots = PermitLots(clock.now)
        self._policies: dict[str, Policy] = {}
        self._local = LocalGate(clock)
        self._seen: dict[str, deque[int]] = {}
        self._known: dict[str, State] = {}
        """The states last seen in Redis, on our clock; the fallback takes them over."""
        self._away_until = 0
        self.away = False

    def ask(self, key: str, policy: Policy, ask: Ask) -> Answered:
        """A permit from the lot at hand, or from Redis, or from the gate of this process alone."""
        with self._lock:
            self._policies[key] = policy
            if (answer := self._lots.take(key, ask)) is not None:
                return answer
            over = self._lots.drop(key)
        want = lot_permits(policy, policy.lease, PREFETCH_PERMITS) if ask.want == 1 else ask.want
        question = replace(
            ask, want=want, returns=over.permit if over else "", unused=over.left * over.cost if over else 0
        )
        before = self._clock.now()
        answer = self._call("ask", key, policy, question)
        if answer is None:
            return self._fallback(key).ask(key, self._careful(key, policy), ask)
        with self._lock:
            self._remember(key, answer.state.rate)
            self._lots.keep(key, ask, answer, before)
        return answer

    def tell(self, key: str, policy: Policy, signal: Signal) -> State:
        with self._lock:
            bad = signal.retry_after > 0 or signal.remaining >= 0 or signal.sign not in {"OK", "NOT_SENT"}
            over = self._lots.drop(key) if bad else None  # what was prefetched before is not good any more
        if over is not None:
            self._give_back(key, policy, over)
        answer = self._call("signal", key, policy, signal)
        return answer.state if answer else self._fallback(key).tell(key, self._careful(key, policy), signal)

    def look(self, key: str, policy: Policy) -> State:
        answer = self._call("look", key, policy, Ask(task="", permit=""))
        return answer.state if answer else self._fallback(key).look(key, self._careful(key, policy))

    def close(self) -> None:
        """Give unused permits back and part from Redis."""
        with self._lock:
            lots = self._lots.drop_all()
        for key, lot in lots.items():
            self._give_back(key, self._policies[key], lot)
        self._redis.close()

    def _give_back(self, key: str, policy: Policy, lot: PermitLot) -> None:
        if self._clock.now() < lot.until:
            self._call("back", key, policy, Ask(task="", permit="", returns=lot.permit, unused=lot.left * lot.cost))

    def _call(self, verb: str, key: str, policy: Policy, request: Ask | Signal) -> Answered | None:
        if self.away and self._clock.now() < self._away_until:
            return None
        try:
            if self.away:
                self._tell_rests()
            reply: Any = self._script(keys=[self._prefix + key], args=[verb, _pack(policy), _pack(request)])
        except self._errors as error:
            self._note_loss(error)
            return None
        if self.away:
            self.away = False
            log.warning("rate_gate_recovered", url=self._url)
        kind, permits, until, why, now, packed = reply
        state = _state(packed)
        self._known[key] = _shift_state(state, self._clock.now() - now)
        return Answered(decision=_decision(kind, permits, until, why, now), state=state, now=now)

    def _tell_rests(self) -> None:
        """Redis is there again: what providers asked for meanwhile holds for all processes."""
        for key, rest in self._local.cooling().items():
            if (policy := self._policies.get(key)) is not None:
                signal = Signal(sign=Sign.OK, retry_after=rest)
                self._script(keys=[self._prefix + key], args=["signal", _pack(policy), _pack(signal)])

    def _fallback(self, key: str) -> LocalGate:
        """The gate of this process alone, with what Redis knew when it was last seen."""
        with self._lock:
            if (known := self._known.pop(key, None)) is not None:
                self._local.take_over(key, known)
        return self._local

    def _note_loss(self, error: Exception) -> None:
        self._away_until = self._clock.now() + RECONNECT_INTERVAL
        FALLBACKS.inc()
        if not self.away:
            self.away = True
            log.warning("rate_gate_unreachable", url=self._url, error=str(error), fallback="local")

    def _remember(self, key: str, rate: int) -> None:
        self._seen.setdefault(key, deque(maxlen=200)).append(rate)

    def _careful(self, key: str, policy: Policy) -> Policy:
        """min(local default, P10 of what was seen), one at a time."""
        with self._lock:
            seen = sorted(self._seen.get(key, ()))
        tenth = seen[len(seen) // 10] if seen else DEFAULT_RATE
        return replace(policy, rate=max(min(policy.rate, DEFAULT_RATE, tenth), 1), burst=1, concurrency=1)


def _shift_state(s: State, by: int) -> State:
    """The same state by another clock."""
    return replace(
        s,
        at=s.at + by,
        started=s.started + by,
        demoted=s.demoted + by,
        calm_from=s.calm_from + by,
        cooldown=s.cooldown + by,
        reset=s.reset + by,
    )


def _decision(kind: bytes, permits: int, until: int, why: bytes, now: int) -> Decision:
    match kind:
        case b"ALLOW":
            return Allow(at=now, permits=permits, until=until)
        case b"REJECT":
            return Reject(why=Why(why.decode()), until=until)
        case b"WAIT":
            return Wait(why=Why(why.decode()), until=until)
        case _:
            return Allow(at=now, permits=0, until=now)  # a look: nobody reads the decision


def _connect(url: str, timeout: float) -> "tuple[Redis, tuple[type[Exception], ...]]":
    try:
        import redis  # noqa: PLC0415  an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415
    except ImportError as error:
        raise ConfigInvalid(
            "redis_extra_missing",
            "the shared rate gate needs the redis package",
            place="ingest.redis_url",
            advice="pip install 'patra[redis]', or leave the setting empty for one process",
        ) from error
    client: Redis = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]  its keywords are untyped
        url, socket_timeout=timeout, socket_connect_timeout=timeout, retry=Retry(NoBackoff(), 0)
    )
    return client, (redis.RedisError, OSError)
