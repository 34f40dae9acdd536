"""A place in a list goes in; its page, or what else is to be done, comes out: every request of ingest is sent here.

permit (rate gate) → render → send → judge → tell the gate → again or not. Nothing leaves without a permit: neither a
redirect's next hop nor a request for a token. What is transient is tried again after a pause, up to the attempts that
the pack allows; what needs more patience than an executor should have comes back as `Deferred`, and its task goes back
into the queue.
"""

import msgspec
from msgspec.structs import replace

from patra.ingest import measures
from patra.ingest.classify import Action, Verdict, excerpt
from patra.ingest.codes import AuthType
from patra.ingest.credentials import NoSecret, Secrets, Token, granted, secrets_of, token_request
from patra.ingest.escaping import Refused
from patra.ingest.gates import Pause, Permit, Refusal, obtain, unsent
from patra.ingest.line import Line, Unsigned
from patra.ingest.rategate import Policy, Sign, Signal, Why
from patra.ingest.ratepolicy import signal_of
from patra.ingest.reading import Document, Listed
from patra.ingest.reasons import R
from patra.ingest.reasons_running import X
from patra.ingest.request import At
from patra.ingest.services import Services
from patra.ingest.transport import Answer, Exchange, Failure, Fault, Outgoing, redirected
from patra.kernel.telemetry import get_logger, span

log = get_logger()

TOKEN_POLICY = Policy(rate=1000, burst=1)
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


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, judged. `listed` is there where the verdict is to accept."""

    at: At
    verdict: Verdict
    answer: Answer | None
    document: Document | None
    listed: Listed | None
    tally: Tally


class Deferred(msgspec.Struct, frozen=True, kw_only=True):
    """Not now: the task goes back into the queue until `until`."""

    code: X
    until: int
    detail: str
    tally: Tally


def fetch(
    s: Services,
    line: Line,
    at: At,
    pause: Pause,
    *,
    task: str,
    correlation: str,
    fragile: bool,
    tally: Tally | None = None,
) -> Fetched | Deferred:
    """One page or one group of details. `fragile`: an answer that got lost cannot be asked for again (a cursor that
    moves by itself), so a failure that may have reached the provider starts the list anew. `tally` is what it counts
    on, for those who must know what was sent although it raises.
    """
    return _Fetch(s, line, pause, task, correlation, tally or Tally()).run(at, fragile=fragile)


def gate_of(s: Services, line: Line) -> tuple[str, Policy]:
    """The rate key and the policy under which this line asks: those of its credential where that is there."""
    found = secrets_of(line.leg, line.credential, s.environ)
    return line.gate({} if isinstance(found, NoSecret) else found)


class _Fetch:
    def __init__(self, s: Services, line: Line, pause: Pause, task: str, correlation: str, tally: Tally) -> None:
        self._s = s
        self._line = line
        self._pause = pause
        self._task = task
        self._correlation = correlation
        self._tally = tally
        self._sent_at = 0

    def run(self, at: At, *, fragile: bool) -> Fetched | Deferred:
        line = self._line
        for attempt in range(1, line.attempts + 2):
            found = self._attempt(at)
            if isinstance(found, Deferred):
                return found
            verdict = found.verdict
            if verdict.level is not None:
                measures.ERRORS.labels(level=verdict.level, **line.labels).inc()
            if fragile and verdict.action is Action.RETRY and _may_have_moved(found):
                verdict = replace(verdict, action=Action.RESTART)
                return replace(found, verdict=verdict)
            if not self._again(verdict, attempt):
                return found
            self._tally.retries += 1
            line.meter(measures.RETRIES).inc()
            wait = line.backoff.delay(attempt, min(self._s.jitter(), 0.999_999))
            if not self._pause(wait):
                return self._deferred(X.STOPPED, self._s.clock.now(), "the executor stops")
        raise AssertionError("attempts are bounded")

    def _again(self, verdict: Verdict, attempt: int) -> bool:
        if verdict.action is Action.RETRY:
            return attempt < self._line.attempts
        if attempt > 1:
            return False
        if verdict.code is X.UNAUTHORIZED and self._line.leg.auth.type is AuthType.OAUTH2:
            self._s.tokens.forget(self._token_key)  # a token may be revoked before its time
            return True
        return verdict.confirm

    def _attempt(self, at: At) -> Fetched | Deferred:
        circuits, key = self._s.circuits, self._line.circuit_key
        if (open_ := circuits.admit(key, self._s.clock.now())) is not None:
            until = max(open_.until, open_.trying)
            return self._deferred(X.PUT_BACK_BREAKER, until, f"{open_.failures} failures in a row")
        turn = circuits.turn(key)
        try:
            return self._asked(at)
        finally:
            if turn:  # no answer has settled it, then: another may try
                circuits.withdraw(key, turn, self._s.clock.now())

    def _asked(self, at: At) -> Fetched | Deferred:
        secrets = self._secrets(self._s.clock.now())
        match secrets:
            case Deferred():
                return secrets
            case NoSecret():
                return self._halted(at, secrets.code, secrets.detail, secrets.advice)
            case Failure():
                return self._judged(at, secrets)
            case _:
                pass
        request = self._line.outgoing(at, secrets, self._correlation)
        match request:
            case Refused():
                return self._refused(at, request)
            case Unsigned():
                return self._halted(at, X.SIGNING_FAILED, request.detail, "mend the hook, then lift the halt")
            case Outgoing():
                pass
        exchange = self._exchange(request, *self._line.gate(secrets))
        if isinstance(exchange, Deferred):
            return exchange
        return self._judged(at, exchange)

    # --- sending

    def _exchange(self, request: Outgoing, key: str, policy: Policy) -> Exchange | Deferred:
        """The request and the redirects it may follow, each with a permit of its own; the gate learns from each."""
        while True:
            permit = self._permit(key, policy, self._line.leg.rate_limit.cost, self._line.share)
            if isinstance(permit, Deferred):
                return permit
            exchange = self._send(request, permit)
            following = redirected(request, exchange) if isinstance(exchange, Answer) else None
            if isinstance(following, Failure):
                exchange = replace(following, elapsed=exchange.elapsed)
            self._tell(permit, policy, exchange)
            if not isinstance(following, Outgoing):
                return exchange
            request = following

    def _permit(self, key: str, policy: Policy, cost: int, share: int) -> Permit | Deferred:
        s, tally = self._s, self._tally
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
        self._line.meter(measures.WAITS).inc(found.waited // 1000)
        if isinstance(found, Permit):
            tally.permits += found.cost
            return found
        return self._refusal(found)

    def _refusal(self, refusal: Refusal) -> Deferred:
        tally = self._tally
        match refusal.why:
            case Why.QUOTA_HARD:
                tally.quota_hard += 1
                code = X.PUT_BACK_QUOTA
            case Why.QUOTA_SOFT:
                tally.quota_soft += 1
                code = X.PUT_BACK_QUOTA
            case _:
                code = X.PUT_BACK_RATE
        return self._deferred(code, refusal.until, f"the rate gate: {refusal.why}")

    def _send(self, request: Outgoing, permit: Permit) -> Exchange:
        tally, labels = self._tally, self._line.labels
        self._sent_at = self._s.clock.now()
        with span("HTTP Call", **labels, correlation_id=self._correlation) as call:
            exchange = self._s.transport.send(request, permit)
            call.set(**{"http.status": exchange.status if isinstance(exchange, Answer) else exchange.fault.value})
        tally.requests += 1
        tally.latency += exchange.elapsed
        tally.longest = max(tally.longest, exchange.elapsed)
        if isinstance(exchange, Answer):
            tally.wire_bytes += exchange.wire_bytes
        self._line.meter(measures.HTTP_LATENCY).observe(exchange.elapsed / 1000)
        return exchange

    def _tell(self, permit: Permit, policy: Policy, exchange: Exchange) -> None:
        """What the answer says to the gate, the circuit and the pulse."""
        s, line = self._s, self._line
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
        failed = _outage(exchange)
        if status is None and not failed:
            signal = replace(signal, sign=Sign.OK)
        state = s.gate.tell(permit.key, policy, replace(signal, jitter=int(s.jitter() * 999)))
        line.meter(measures.QPS).set(state.rate / 1000)
        if signal.sign is not Sign.OK and state.demoted >= permit.at + now - self._sent_at:  # by this answer
            self._tally.demoted += 1
            measures.SELF_HEAL.labels(type="qpsDownshift").inc()
            rate = state.rate / 1000
            log.warning("ingest_self_heal", act=X.QPS_DOWNSHIFT.value, type="qpsDownshift", task=self._task, rate=rate)
        refused = status is not None and 400 <= status < 500 and status not in {408, 425, 429}
        if status == 429:
            self._tally.throttled += 1
            line.meter(measures.THROTTLED).inc()
        self._tally.retry_after_hits += signal.retry_after >= 0
        self._tally.told += signal.retry_after >= 0 and signal.sign is Sign.OK
        self._tally.refused += refused
        s.pulses.of(line.circuit_key).request(now, throttled=status == 429, refused=refused, failed=failed)
        self._settle(failed=failed, now=now)

    def _settle(self, *, failed: bool, now: int) -> None:
        """What the circuit learns."""
        s, key = self._s, self._line.circuit_key
        if s.circuits.settle(key, failed=failed, now=now, jitter=s.jitter(), thresholds=s.thresholds):
            self._tally.circuit_opened += 1
            measures.SELF_HEAL.labels(type="circuitOpen").inc()
            log.warning("ingest_self_heal", act=X.CIRCUIT_OPEN.value, type="circuitOpen", task=self._task)

    # --- judging

    def _judged(self, at: At, exchange: Exchange) -> Fetched:
        line = self._line
        now = self._s.clock.now()
        verdict, document = line.classifier.judge(exchange, now)
        answer = exchange if isinstance(exchange, Answer) else None
        listed: Listed | None = None
        if verdict.action is Action.ACCEPT and document is not None and answer is not None:
            listed = line.reader.page(document, answer.headers, answer.url)
            verdict = line.classifier.listed(listed, at) or verdict
            if verdict.action is not Action.ACCEPT:
                verdict, listed = replace(verdict, detail=f"{verdict.detail}: {excerpt(answer.body)}"), None
        elif verdict.code is X.NO_CONTENT:
            verdict = line.classifier.silent(at) or verdict
        if verdict.action is Action.RETRY and verdict.retry_after and answer is not None and answer.status < 400:
            self._cool(verdict.retry_after)  # an error inside a 200 that the pack knows: the gate could not
        return Fetched(at=at, verdict=verdict, answer=answer, document=document, listed=listed, tally=self._tally)

    def _cool(self, wait: int) -> None:
        key, policy = gate_of(self._s, self._line)
        signal = Signal(sign=Sign.TRANSIENT_5XX, allowed_at=self._s.clock.now(), retry_after=wait)
        self._s.gate.tell(key, policy, signal)

    def _refused(self, at: At, refused: Refused) -> Fetched:
        detail = f"{refused.place}: {refused.detail}"
        if refused.code is R.RENDER_OFF_HOST:
            return self._halted(at, X.HOST_REFUSED, detail, "add the host to the pack's `hosts`, then lift the halt")
        verdict = Verdict(action=Action.FAIL, code=X.UNSENDABLE, level="L2", rule=refused.code.value, detail=detail)
        return Fetched(at=at, verdict=verdict, answer=None, document=None, listed=None, tally=self._tally)

    def _halted(self, at: At, code: X, detail: str, advice: str) -> Fetched:
        verdict = Verdict(action=Action.HALT, code=code, level="L4", detail=detail, advice=advice)
        return Fetched(at=at, verdict=verdict, answer=None, document=None, listed=None, tally=self._tally)

    def _deferred(self, code: X, until: int, detail: str) -> Deferred:
        return Deferred(code=code, until=until, detail=detail, tally=self._tally)

    # --- secrets

    @property
    def _token_key(self) -> str:
        return f"{self._line.source}|{self._line.leg.auth.credential_ref}"

    def _secrets(self, now: int) -> Secrets | NoSecret | Deferred | Failure:
        line = self._line
        found = secrets_of(line.leg, line.credential, self._s.environ)
        if isinstance(found, NoSecret) or line.leg.auth.type is not AuthType.OAUTH2 or not found:
            return found
        if (token := self._s.tokens.get(self._token_key, now)) is not None:
            return {**found, "accessToken": token}
        permit = self._permit(f"{line.source}|oauth2", TOKEN_POLICY, 1, 1000)
        if isinstance(permit, Deferred):
            return permit
        exchange = self._send(token_request(line.leg, found, line.hosts), permit)
        signal = signal_of(
            exchange.status if isinstance(exchange, Answer) else None,
            exchange.headers if isinstance(exchange, Answer) else {},
            line.leg.rate_limit.headers,
            adaptive=False,  # what it counts is not what the list's endpoint counts; its Retry-After holds all the same
            now=self._s.clock.now(),
            permit=permit.id,
            allowed_at=permit.at,
        )
        self._s.gate.tell(permit.key, TOKEN_POLICY, replace(signal, jitter=int(self._s.jitter() * 999)))
        if _outage(exchange):  # without a token the endpoint is out of reach
            self._settle(failed=True, now=self._s.clock.now())
        grant = granted(exchange, line.leg.auth.oauth2.expiry_skew, now)
        match grant:
            case Token():
                self._s.tokens.keep(self._token_key, grant)
                return {**found, "accessToken": grant.value}
            case NoSecret():
                return grant
            case None:
                if isinstance(exchange, Failure):
                    return exchange
                return Failure(fault=Fault.CONNECT, detail=f"the token endpoint answers {exchange.status}")


def _outage(exchange: Exchange) -> bool:
    """Whether it counts against the provider: 5xx and network failures do, what we refused does not."""
    if isinstance(exchange, Answer):
        return exchange.status >= 500
    return exchange.fault not in {*NEVER_SENT, Fault.REDIRECT_REFUSED, Fault.TOO_LARGE}


def _may_have_moved(found: Fetched) -> bool:
    """Whether the provider may have answered although we did not get it: then its cursor has moved on."""
    if found.answer is not None:
        return found.answer.status < 400
    return found.verdict.code in {X.TIMEOUT, X.RESET, X.TRUNCATED, X.NOT_TEXT}
