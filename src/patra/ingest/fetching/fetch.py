"""Turns a place in a list into its page, or what else is to be done: every request of ingest is sent here.

permit (rate gate) → render → send → judge → inform the gate → again or not. Nothing leaves without a permit: neither a
redirect's next hop nor a request for a token. What is transient is tried again after a pause, up to the attempts that
the pack allows; what needs more patience than an executor should have comes back as `Deferred`, and its task goes back
into the queue.
"""

from functools import partial

import msgspec
from msgspec.structs import replace

from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.body_parser import Document
from patra.ingest.extraction.classify import Action, Verdict, excerpt
from patra.ingest.extraction.response import Listed
from patra.ingest.fetching import metrics
from patra.ingest.fetching.credential_pool import credential_key, next_credential, preferred_client
from patra.ingest.fetching.endpoint_client import EndpointClient, Unsigned
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.fetching.sender import Deferred, Sender, Tally, is_outage
from patra.ingest.http.client import Answer, Exchange, Failure, Fault, Outgoing
from patra.ingest.http.credentials import (
    NoSecret,
    Secrets,
    Token,
    grant_token,
    secrets_of,
    token_of_hook,
    token_request,
)
from patra.ingest.http.request import Position, takes_token
from patra.ingest.ratelimit.limiter import Pause
from patra.ingest.ratelimit.policy import signal_of
from patra.ingest.ratelimit.token_bucket import Policy, Sign, Signal
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.telemetry import get_logger

log = get_logger()

TOKEN_POLICY = Policy(rate=1000, burst=1)


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, judged. `listed` is there where the verdict is to accept."""

    at: Position
    verdict: Verdict
    answer: Answer | None
    document: Document | None
    listed: Listed | None
    tally: Tally
    gate: tuple[str, Policy]
    """The rate key and policy under which it was asked for: those of the credential that was used."""


def fetch(
    s: Runtime,
    line: EndpointClient,
    at: Position,
    pause: Pause,
    *,
    task: str,
    correlation: str,
    fragile: bool,
    tally: Tally | None = None,
) -> Fetched | Deferred:
    """One page or one group of details. `fragile`: an answer that got lost cannot be asked for again (a cursor that
    moves by itself), so a failure that may have reached the provider starts the list again. `tally` is what it counts
    on, for those who must know what was sent although it raises.
    """
    return _Fetch(s, line, pause, task, correlation, tally or Tally()).run(at, fragile=fragile)


def gate_of(s: Runtime, line: EndpointClient) -> tuple[str, Policy]:
    """The rate key and the policy under which this line asks: those of its credential where that is there."""
    found = secrets_of(line.leg, line.credential, s.environ)
    return line.gate({} if isinstance(found, NoSecret) else found)


class _Fetch:
    def __init__(
        self, s: Runtime, line: EndpointClient, pause: Pause, task: str, correlation: str, tally: Tally
    ) -> None:
        self._s = s
        self._line = preferred_client(s, line)
        self._pause = pause
        self._task = task
        self._correlation = correlation
        self._tally = tally
        self._sender = Sender(s, self._line, pause, task, correlation, tally)

    def run(self, at: Position, *, fragile: bool) -> Fetched | Deferred:
        line = self._line
        for attempt in range(1, line.attempts + 1 + len(line.pool)):
            found = self._attempt(at)
            if isinstance(found, Deferred):
                return found
            verdict = found.verdict
            if verdict.level is not None:
                metrics.ERRORS.labels(level=verdict.level, **line.labels).inc()
            if fragile and verdict.action is Action.RETRY and _may_have_moved(found):
                verdict = replace(verdict, action=Action.RESTART)
                return replace(found, verdict=verdict)
            if not self._again(verdict, attempt):
                return found
            self._tally.retries += 1
            line.meter(metrics.RETRIES).inc()
            wait = line.backoff.delay(attempt, min(self._s.jitter(), 0.999_999))
            if not self._pause(wait):
                return self._sender.defer_request(RunReason.STOPPED, self._s.clock.now(), "the executor stops")
        raise AssertionError("attempts are bounded")

    def _again(self, verdict: Verdict, attempt: int) -> bool:
        if verdict.code is RunReason.UNAUTHORIZED and self._other_credential(verdict.code):
            return True
        if verdict.code is RunReason.THROTTLED and self._line.leg.rate_limit.per_credential:
            self._other_credential(verdict.code, verdict.retry_after)
        if verdict.action is Action.RETRY:
            return attempt < self._line.attempts
        if attempt > 1:
            return False
        if verdict.code is RunReason.UNAUTHORIZED and takes_token(self._line.leg.auth):
            self._s.tokens.forget(self._token_key)  # a token may be revoked before its time
            return True
        return verdict.confirm

    def _attempt(self, at: Position) -> Fetched | Deferred:
        circuits, key = self._s.circuits, self._line.circuit_key
        if (open_ := circuits.admit(key, self._s.clock.now())) is not None:
            until = max(open_.until, open_.trying)
            return self._sender.defer_request(RunReason.PUT_BACK_BREAKER, until, f"{open_.failures} failures in a row")
        turn = circuits.turn(key)
        if turn:
            self._sender.note_circuit(RunReason.CIRCUIT_PROBE)
        try:
            return self._ask_server(at)
        finally:
            if turn:  # no answer has settled it, then: another may try
                circuits.withdraw(key, turn, self._s.clock.now())

    def _ask_server(self, at: Position) -> Fetched | Deferred:
        secrets = self._secrets(self._s.clock.now())
        match secrets:
            case Deferred():
                return secrets
            case NoSecret():
                if self._other_credential(secrets.code):
                    return self._ask_server(at)
                return self._halt_page(at, secrets.code, secrets.detail, secrets.advice)
            case Failure():
                return self._judge_exchange(at, secrets)
            case _:
                pass
        request = self._line.outgoing(at, secrets, self._correlation)
        match request:
            case Refused():
                return self._refuse_page(at, request)
            case Unsigned():
                return self._halt_page(at, RunReason.SIGNING_FAILED, request.detail, "fix the hook, then lift the halt")
            case Outgoing():
                pass
        exchange = self._sender.exchange(request, *self._line.gate(secrets))
        if isinstance(exchange, Deferred):
            return exchange
        return self._judge_exchange(at, exchange)

    # --- judging

    def _judge_exchange(self, at: Position, exchange: Exchange) -> Fetched:
        line = self._line
        now = self._s.clock.now()
        verdict, document = line.classifier.judge(exchange, now)
        answer = exchange if isinstance(exchange, Answer) else None
        listed: Listed | None = None
        if verdict.action is Action.ACCEPT and document is not None and answer is not None:
            listed = line.reader.page(document, answer.headers, answer.url)
            verdict = line.classifier.judge_list(listed, at, status=answer.status) or verdict
            if verdict.action is not Action.ACCEPT:
                verdict, listed = replace(verdict, detail=f"{verdict.detail}: {excerpt(answer.body)}"), None
        elif verdict.code is RunReason.NO_CONTENT:
            verdict = line.classifier.silent(at) or verdict
        if verdict.action is Action.RETRY and verdict.retry_after and answer is not None and answer.status < 400:
            self._cool(verdict.retry_after)  # an error inside a 200 that the pack knows: the gate could not
        return self._make_fetched(at, verdict, answer, document, listed)

    def _make_fetched(
        self,
        at: Position,
        verdict: Verdict,
        answer: Answer | None = None,
        document: Document | None = None,
        listed: Listed | None = None,
    ) -> Fetched:
        gate = gate_of(self._s, self._line)
        return Fetched(
            at=at, verdict=verdict, answer=answer, document=document, listed=listed, tally=self._tally, gate=gate
        )

    def _cool(self, wait: int) -> None:
        key, policy = gate_of(self._s, self._line)
        signal = Signal(sign=Sign.TRANSIENT_5XX, allowed_at=self._s.clock.now(), retry_after=wait)
        self._s.gate.tell(key, policy, signal)

    def _refuse_page(self, at: Position, refused: Refused) -> Fetched:
        detail = f"{refused.place}: {refused.detail}"
        if refused.code is Reason.RENDER_OFF_HOST:
            return self._halt_page(
                at, RunReason.HOST_REFUSED, detail, "add the host to the pack's `hosts`, then lift the halt"
            )
        verdict = Verdict(
            action=Action.FAIL, code=RunReason.UNSENDABLE, level="L2", rule=refused.code.value, detail=detail
        )
        return self._make_fetched(at, verdict)

    def _halt_page(self, at: Position, code: RunReason, detail: str, advice: str) -> Fetched:
        verdict = Verdict(action=Action.HALT, code=code, level="L4", detail=detail, advice=advice)
        return self._make_fetched(at, verdict)

    # --- secrets

    def _other_credential(self, why: RunReason, rest: int | None = None) -> bool:
        """Go on with another credential of the pool; False where there is none."""
        found = next_credential(self._s, self._line, why, rest)
        self._line = self._sender.line = found or self._line
        return found is not None

    @property
    def _token_key(self) -> str:
        return credential_key(self._line)

    def _secrets(self, now: int) -> Secrets | NoSecret | Deferred | Failure:
        line = self._line
        found = secrets_of(line.leg, line.credential, self._s.environ)
        if isinstance(found, NoSecret) or not takes_token(line.leg.auth) or not found:
            return found
        if (token := self._s.tokens.get(self._token_key, now)) is not None:
            return {**found, "accessToken": token}
        if line.leg.auth.token_hook is not None:
            return self._token_of_hook(line.leg.auth.token_hook, found, now)
        permit = self._sender.permit(f"{line.source}|oauth2", TOKEN_POLICY, 1, 1000)
        if isinstance(permit, Deferred):
            return permit
        exchange = self._sender.send(token_request(line.leg, found, line.hosts), permit)
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
        if is_outage(exchange):  # without a token the endpoint is out of reach
            self._sender.settle(failed=True, now=self._s.clock.now())
        grant = grant_token(exchange, line.leg.auth.oauth2.expiry_skew, now)
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

    def _token_of_hook(self, hook: str, secrets: Secrets, now: int) -> Secrets | NoSecret | Deferred:
        """A token that an extension gets; what it sends goes to declared hosts only."""
        permit = self._sender.permit(f"{self._line.source}|{hook}", TOKEN_POLICY, 1, 1000)
        if isinstance(permit, Deferred):
            return permit
        send = partial(self._sender.send, permit=permit)
        token = token_of_hook(self._line.leg, hook, secrets, self._line.hosts, send, now)
        if isinstance(token, NoSecret):
            return token
        self._s.tokens.keep(self._token_key, token)
        return {**secrets, "accessToken": token.value}


def _may_have_moved(found: Fetched) -> bool:
    """Whether the provider may have answered although we did not get it: then its cursor has moved on."""
    if found.answer is not None:
        return found.answer.status < 400
    return found.verdict.code in {RunReason.TIMEOUT, RunReason.RESET, RunReason.TRUNCATED, RunReason.NOT_TEXT}
