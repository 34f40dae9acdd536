"""Sends requests with permits of the rate gate, and reports the result of each to gate, circuit and health window.

Nothing leaves without a permit: neither a redirect's next hop nor a request for a token. What the gate does not allow
soon comes back as `Deferred`.
"""

import msgspec
from msgspec.structs import replace

from patra.ingest.fetching import metrics
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.http.client import Answer, Exchange, Failure, Fault, Outgoing, follow_redirect
from patra.ingest.ratelimit.limiter import Pause, Permit, Refusal, obtain, unsent
from patra.ingest.ratelimit.policy import signal_of
from patra.ingest.ratelimit.token_bucket import Policy, Sign, Why
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.telemetry import get_logger, span

log = get_logger()

NEVER_SENT = frozenset({Fault.HOST_REFUSED, Fault.UNSENDABLE})


class Tally(msgspec.Struct, kw_only=True):
    """What one fetch cost; it grows while the fetch goes on."""

    requests: int = 0
    retries: int = 0
    throttled: int = 0
    retry_after_hits: int = 0
    told: int = 0
    """`Retry-After` with answers for which the gate does not slow down by itself, as it does for 429 and 5xx."""
    permits: int = 0
    permits_by_key: dict[str, int] = {}
    """Permits of the endpoint by the rate key that gave them: a fetch may use several credentials of a pool."""
    waited: int = 0
    latency: int = 0
    longest: int = 0
    wire_bytes: int = 0
    circuit_opened: int = 0
    demoted: int = 0
    quota_soft: int = 0
    quota_hard: int = 0
    refused: int = 0
    view: dict[str, str | int | float] = {}


class Deferred(msgspec.Struct, frozen=True, kw_only=True):
    """Not now: the task goes back into the queue until `until`."""

    code: RunReason
    until: int
    detail: str
    tally: Tally


class Sender:
    """Sends for one fetch; `line` is the endpoint with the credential in use, `tally` what it has cost so far."""

    def __init__(
        self, s: Runtime, line: EndpointClient, pause: Pause, task: str, correlation: str, tally: Tally
    ) -> None:
        self._s = s
        self.line = line
        self._pause = pause
        self._task = task
        self._correlation = correlation
        self.tally = tally
        self._sent_at = 0
        self._last: str | None = None
        """What the last request came to, where it was no success."""

    def exchange(self, request: Outgoing, key: str, policy: Policy) -> Exchange | Deferred:
        """The request and the redirects it may follow, each with a permit of its own; the gate learns from each."""
        while True:
            permit = self.permit(key, policy, self.line.leg.rate_limit.cost, self.line.share)
            if isinstance(permit, Deferred):
                return permit
            booked = self.tally.permits_by_key
            booked[key] = booked.get(key, 0) + permit.cost
            exchange = self.send(request, permit)
            following = follow_redirect(request, exchange) if isinstance(exchange, Answer) else None
            if isinstance(following, Failure):
                exchange = replace(following, elapsed=exchange.elapsed)
            self._tell(permit, policy, exchange)
            if not isinstance(following, Outgoing):
                return exchange
            request = following

    def permit(self, key: str, policy: Policy, cost: int, share: int) -> Permit | Deferred:
        s, tally = self._s, self.tally
        found = obtain(
            s.gate,
            s.clock,
            self._pause,
            key=key,
            policy=policy,
            task=self._task,
            cost=cost,
            share=share,
            deadline=s.deadline,
            jitter=lambda: int(s.jitter() * 999),
        )
        tally.waited += found.waited
        tally.view = found.view
        self.line.meter(metrics.WAITS).inc(found.waited // 1000)
        if isinstance(found, Permit):
            tally.permits += found.cost
            return found
        return self._refusal(found)

    def _refusal(self, refusal: Refusal) -> Deferred:
        tally = self.tally
        match refusal.why:
            case Why.QUOTA_HARD:
                tally.quota_hard += 1
                code = RunReason.PUT_BACK_QUOTA
            case Why.QUOTA_SOFT:
                tally.quota_soft += 1
                code = RunReason.PUT_BACK_QUOTA
            case _:
                code = RunReason.PUT_BACK_RATE
        return self.defer_request(code, refusal.until, f"the rate gate: {refusal.why}")

    def send(self, request: Outgoing, permit: Permit) -> Exchange:
        tally, labels = self.tally, self.line.labels
        self._sent_at = self._s.clock.now()
        with span("HTTP Call", **labels, correlation_id=self._correlation) as call:
            exchange = self._s.transport.send(request, permit)
            call.set(**{"http.status": exchange.status if isinstance(exchange, Answer) else exchange.fault.value})
        tally.requests += 1
        tally.latency += exchange.elapsed
        tally.longest = max(tally.longest, exchange.elapsed)
        if isinstance(exchange, Answer):
            tally.wire_bytes += exchange.wire_bytes
        self.line.meter(metrics.HTTP_LATENCY).observe(exchange.elapsed / 1000)
        return exchange

    def _tell(self, permit: Permit, policy: Policy, exchange: Exchange) -> None:
        """What the answer says to the gate, the circuit and the pulse."""
        s, line = self._s, self.line
        now = s.clock.now()
        if isinstance(exchange, Failure) and exchange.fault in NEVER_SENT:
            s.gate.tell(permit.key, policy, unsent(permit))
            return
        rate = line.leg.rate_limit
        status = exchange.status if isinstance(exchange, Answer) else None
        signal = signal_of(
            status,
            exchange.headers if isinstance(exchange, Answer) else {},
            rate.headers,
            adaptive=rate.header_adaptive,
            now=now,
            permit=permit.id,
            allowed_at=permit.at,
        )
        failed = is_outage(exchange)
        self._last = trouble_of(exchange)
        if status is None and not failed:
            signal = replace(signal, sign=Sign.OK)
        state = s.gate.tell(permit.key, policy, replace(signal, jitter=int(s.jitter() * 999)))
        line.meter(metrics.QPS).set(state.rate / 1000)
        if signal.sign is not Sign.OK and state.demoted >= permit.at + now - self._sent_at:  # by this answer
            self.tally.demoted += 1
            metrics.SELF_HEAL.labels(type="qpsDownshift").inc()
            rate = state.rate / 1000
            act = RunReason.QPS_DOWNSHIFT.value
            log.warning("ingest_self_heal", act=act, type="qpsDownshift", task=self._task, rate=rate, error=self._last)
        refused = status is not None and 400 <= status < 500 and status not in {408, 425, 429}
        if status == 429:
            self.tally.throttled += 1
            line.meter(metrics.THROTTLED).inc()
        self.tally.retry_after_hits += signal.retry_after >= 0
        self.tally.told += signal.retry_after >= 0 and signal.sign is Sign.OK
        self.tally.refused += refused
        s.pulses.of(line.circuit_key).request(now, throttled=status == 429, refused=refused, failed=failed)
        self.settle(failed=failed, now=now)

    def settle(self, *, failed: bool, now: int) -> None:
        """What the circuit learns."""
        s, key = self._s, self.line.circuit_key
        act = s.circuits.settle(key, failed=failed, now=now, jitter=s.jitter(), thresholds=s.thresholds)
        if act is not None:
            self.tally.circuit_opened += act is RunReason.CIRCUIT_OPEN
            self.note_circuit(act)

    def note_circuit(self, act: RunReason) -> None:
        """A move of the circuit is counted and logged."""
        metrics.SELF_HEAL.labels(type=metrics.CIRCUIT_ACTS[act]).inc()
        kind = metrics.CIRCUIT_ACTS[act]
        log.warning("ingest_self_heal", act=act.value, type=kind, task=self._task, error=self._last)

    def defer_request(self, code: RunReason, until: int, detail: str) -> Deferred:
        return Deferred(code=code, until=until, detail=detail, tally=self.tally)


def trouble_of(exchange: Exchange) -> str | None:
    """What a request came to, in a few words for the log: no answer and why, or a status of 400 or more."""
    if isinstance(exchange, Failure):
        return exchange.detail
    return f"HTTP {exchange.status}" if exchange.status >= 400 else None


def is_outage(exchange: Exchange) -> bool:
    """Whether it counts against the provider: 5xx and network failures do, what we refused does not."""
    if isinstance(exchange, Answer):
        return exchange.status >= 500
    return exchange.fault not in {*NEVER_SENT, Fault.REDIRECT_REFUSED, Fault.TOO_LARGE}
