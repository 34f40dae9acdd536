"""What is compiled once for a leg of a snapshot: how to ask, judge, read and map its answers."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
from prometheus_client import Counter, Gauge, Histogram

from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.classify import Classifier
from patra.ingest.extraction.items import item_reader
from patra.ingest.extraction.mapping import Mapper
from patra.ingest.extraction.response import Reader
from patra.ingest.http.client import Outgoing, with_tracing
from patra.ingest.http.credentials import Secrets, secret_names, secrets_of
from patra.ingest.http.request import Position, Renderer, Request
from patra.ingest.packs.extensions import ExtensionPoint, load_extension
from patra.ingest.packs.sections import Credential
from patra.ingest.packs.spec import Leg, Spec
from patra.ingest.ratelimit.policy import quota_share, rate_key, rate_policy
from patra.ingest.ratelimit.token_bucket import Policy
from patra.ingest.vocabulary.codes import AuthLocation, Operation, RetryPolicy
from patra.kernel.canonical import fingerprint
from patra.kernel.errors import Invalid
from patra.kernel.retry import Backoff
from patra.kernel.safety.known_secrets import scrub_known

M = TypeVar("M", Counter, Gauge, Histogram)


class Unsigned(msgspec.Struct, frozen=True):
    """The signing hook failed (L4)."""

    detail: str


class EndpointClient:
    """One leg at work."""

    def __init__(self, spec: Spec, leg: Leg, credential: Credential | None = None) -> None:
        self.source = spec.provenance_code
        self.endpoint = spec.endpoint_code
        self.operation: Operation = spec.operation
        self.leg = leg
        self.hosts = tuple(spec.hosts)
        self.credential = credential
        self.pool: tuple[EndpointClient, ...] = (self,)
        """One client a credential of a pool, the preferred first; only itself where there is no pool."""
        self.renderer = Renderer(leg, spec.hosts, secret_names(leg, credential))
        self.classifier = Classifier(leg)
        self.reader = Reader(leg, spec.window.source_timezone)
        self.mapper = Mapper(leg.mapping.output, leg.response, leg.expr, leg.params, spec.window.source_timezone)
        self.item = item_reader([*self.reader.needs, *self.mapper.needs])
        """Reads an item of a list that was left as it stood in its body."""
        self.share = quota_share(leg.rate_limit, spec.operation)
        self.labels: Mapping[str, str] = {
            "source": self.source,
            "endpoint": self.endpoint,
            "op": self.operation.value,
        }
        self._meters: dict[tuple[object, ...], Any] = {}
        self._gates = {
            flag: (
                rate_key(self.source, leg, authenticated=flag),
                rate_policy(leg.rate_limit, leg.limits, authenticated=flag),
            )
            for flag in (False, True)
        }

    def meter(self, metric: M, *more: str) -> M:
        """A metric of (source, endpoint, op, …) as this line counts on it; its labels are looked up once."""
        key = (metric, *more)
        if key not in self._meters:
            self._meters[key] = metric.labels(*self.labels.values(), *more)
        return self._meters[key]

    @property
    def circuit_key(self) -> str:
        return f"{self.source}/{self.leg.endpoint_code}"

    def gate(self, secrets: Secrets) -> tuple[str, Policy]:
        """The rate key and what it allows, with or without the credential."""
        return self._gates[bool(secrets)]

    @property
    def ledger_key(self) -> str | None:
        """Under which key the planner books the quotas of this leg; None where neither way of asking has one."""
        quotas = any(policy.quota_hour or policy.quota_day for _, policy in self._gates.values())
        return self._gates[False][0] if quotas else None

    @property
    def attempts(self) -> int:
        retry = self.leg.retry
        return 1 if retry.policy is RetryPolicy.NONE else retry.max_attempts

    @property
    def backoff(self) -> Backoff:
        retry = self.leg.retry
        fixed = retry.policy is RetryPolicy.FIXED
        base = max(retry.base_us, 1)
        return Backoff(
            base=base,
            factor=1.0 if fixed else retry.factor,
            cap=max(retry.max_us, base),
            spread=0.0 if fixed else retry.jitter,
        )

    def outgoing(self, at: Position, secrets: Secrets, correlation: str) -> Outgoing | Refused | Unsigned:
        """The request as it is sent."""
        rendered = self.renderer.render(at, secrets)
        if isinstance(rendered, Refused):
            return rendered
        hook = self.leg.auth.signing_hook
        if hook is not None:
            try:
                rendered = cast("Request", load_extension(ExtensionPoint.SIGNING, hook)(rendered, secrets, at.now))
            except Exception as error:  # noqa: BLE001  other people's code; its message may hold the secret
                why = error.detail if isinstance(error, Invalid) else type(error).__name__
                return Unsigned(f"the signing hook {hook!r} failed: {why}")
        http = self.leg.http
        return Outgoing(
            method=rendered.method,
            url=rendered.url,
            headers=with_tracing(rendered.headers, correlation),
            body=rendered.body,
            secrets=tuple(value for value in secrets.values() if len(value) >= 4),
            hosts=self.hosts,
            allow_http=http.allow_http,
            connect_timeout=http.connect_timeout_ms / 1000,
            read_timeout=http.read_timeout_ms / 1000,
            max_bytes=http.max_response_bytes,
            compression=http.compression,
            proxy=http.proxy,
            follow=http.follow_redirects,
            max_hops=http.max_redirects,
        )

    def masked_request(self, at: Position) -> Request | Refused:
        """The request with `{name}` for every secret: what is stored and compared."""
        return self.renderer.masked_request(at)

    def shown_request(self, at: Position, environ: Mapping[str, str]) -> Request | Refused:
        """The request as it is sent, for people: no credential where an optional one is not there."""
        if secrets_of(self.leg, self.credential, environ) == {}:
            return self.renderer.render(at, {})
        return self.masked_request(at)

    def without_secret(self, url: str | None) -> str | None:
        """A next URL without our own credential, which some providers copy into it; it is put back when it is asked."""
        auth = self.leg.auth
        if url is None:
            return None
        if auth.location is not AuthLocation.QUERY or not auth.name:
            return scrub_known(url)
        head, mark, query = url.partition("?")
        kept = [part for part in query.split("&") if part.partition("=")[0] != auth.name]
        return scrub_known(head + (mark + "&".join(kept) if kept else ""))


def request_hash(request: Request) -> str:
    """What two renderings of one request have in common: all of it, secrets by their names."""
    return fingerprint(
        {
            "method": request.method,
            "url": request.url,
            "headers": [list(pair) for pair in request.headers],
            "body": None
            if request.body is None
            else request.body.decode("utf-8", "surrogateescape").encode("utf-8", "replace").decode(),
        }
    )
