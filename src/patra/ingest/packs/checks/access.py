"""Authentication, credentials, hosts and secrecy (ch. 4.2, 4.17 no. 1 and 9, ruling I8)."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from patra.ingest.expressions.scopes import base_url_names
from patra.ingest.expressions.template import compile_template
from patra.ingest.expressions.values import Context
from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.sections import Credential
from patra.ingest.vocabulary.codes import Access, AuthLocation, AuthType, BodyKind, HttpMethod
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.errors import Invalid

NEEDED = {
    AuthType.API_KEY: ("apiKey",),
    AuthType.BEARER: ("token",),
    AuthType.OAUTH2: ("clientId", "clientSecret"),
}
"""Secrets that a type of authentication reads."""


def check_access(draft: Draft) -> Iterator[Problem]:
    yield from _auth(draft)
    yield from _credential(draft)
    yield from _safety(draft)
    yield from _base_url(draft)


def _auth(draft: Draft) -> Iterator[Problem]:
    auth, http = draft.at.auth, draft.at.http
    if draft.endpoint.access is Access.RESTRICTED:
        if auth.type is AuthType.NONE:
            yield draft.error(
                Reason.AUTH_MISMATCH,
                ("auth", "type"),
                "the endpoint is RESTRICTED and may not be read without a credential",
                "give auth.type and auth.credentialRef",
            )
        elif auth.optional:
            yield draft.error(
                Reason.AUTH_MISMATCH, ("auth", "optional"), "the credential of a RESTRICTED endpoint cannot be optional"
            )
    if auth.type is AuthType.NONE:
        return
    if auth.location is AuthLocation.BODY and (
        http.method is HttpMethod.GET or http.body_template.kind is BodyKind.NONE
    ):
        yield draft.error(
            Reason.AUTH_MISMATCH,
            ("auth", "location"),
            "the credential goes into a body, but the request has none",
            "use POST with a FORM or JSON body, or put it into a HEADER",
        )
    if auth.type is AuthType.API_KEY and not auth.name:
        yield draft.error(
            Reason.AUTH_MISMATCH,
            ("auth", "name"),
            "the name of the header or parameter that holds the key is missing",
            "api_key",
        )
    if auth.type is AuthType.OAUTH2:
        yield from _oauth2(draft)
    if auth.optional and not draft.second:
        yield draft.warning(
            Reason.ANONYMOUS,
            ("auth", "optional"),
            "without its secret the endpoint is read anonymously, at the lower rate",
        )


def _oauth2(draft: Draft) -> Iterator[Problem]:
    oauth2 = draft.at.auth.oauth2
    url = urlsplit(oauth2.token_url)
    if url.scheme != "https" or not url.hostname:
        yield draft.error(
            Reason.AUTH_MISMATCH, ("auth", "oauth2", "tokenUrl"), "OAUTH2 needs the https URL that gives tokens"
        )
    elif not on_hosts(url.netloc, draft.pack.hosts):
        yield draft.error(
            Reason.HOST_INVALID,
            ("auth", "oauth2", "tokenUrl"),
            f"{url.netloc} is not among the declared hosts",
            "add it to hosts",
        )
    if not oauth2.refresh:
        yield draft.error(
            Reason.AUTH_MISMATCH,
            ("auth", "oauth2", "refresh"),
            "tokens must be renewed: a harvest is longer than a token lives",
            "remove this line",
        )


def _credential(draft: Draft) -> Iterator[Problem]:
    auth = draft.at.auth
    if auth.type is AuthType.NONE or (auth.type is AuthType.CUSTOM and auth.credential_ref is None):
        return
    known = draft.pack.credentials
    members = {name: one for name, one in known.items() if auth.credential_ref in {name, one.pool}}
    if not members:
        yield draft.error(
            Reason.UNSAFE,
            ("auth", "credentialRef"),
            f"there is no credential {auth.credential_ref!r}" if auth.credential_ref else "credentialRef is missing",
            f"declare it under credentials (known: {', '.join(known) or 'none'})",
        )
    for name, credential in members.items():
        yield from _member(draft, name, credential)
    if auth.credential_ref in known and len(members) > 1:
        yield draft.error(
            Reason.UNSAFE,
            ("auth", "credentialRef"),
            f"{auth.credential_ref!r} is a credential and a pool of others",
            "give the pool another name",
        )


def _member(draft: Draft, name: str, credential: Credential) -> Iterator[Problem]:
    auth = draft.at.auth
    if credential.type is not auth.type:
        yield draft.error(
            Reason.AUTH_MISMATCH,
            ("auth", "credentialRef"),
            f"the credential is of type {credential.type}, the endpoint wants {auth.type}",
        )
    if credential.endpoints and draft.name not in credential.endpoints:
        yield draft.error(
            Reason.AUTH_MISMATCH,
            ("auth", "credentialRef"),
            f"the credential is bound to {', '.join(credential.endpoints)}",
            f"add {draft.name} to credentials.{name}.endpoints",
        )
    missing = [one for one in NEEDED.get(auth.type, ()) if one not in credential.secrets]
    if missing:
        yield draft.source.problem(
            Reason.AUTH_MISMATCH,
            ("credentials", name, "secrets"),
            f"{auth.type} reads the secret {missing[0]!r}, which is not there",
            f"add {missing[0]}: env:NAME",
        )


def _safety(draft: Draft) -> Iterator[Problem]:
    auth = draft.at.auth
    if auth.type is AuthType.CUSTOM and not (auth.signing_hook or auth.token_hook):
        yield draft.error(
            Reason.UNSAFE,
            ("auth", "signingHook"),
            "CUSTOM authentication needs the name of a signing hook, or of a token hook",
        )
    if auth.token_hook and (auth.type is not AuthType.CUSTOM or not auth.name):
        yield draft.error(
            Reason.AUTH_MISMATCH,
            ("auth", "tokenHook"),
            "a token hook needs auth.type: CUSTOM, and auth.name says where its token goes",
        )
    if not draft.at.http.redact_logs:
        yield draft.error(
            Reason.UNSAFE,
            ("http", "redactLogs"),
            "secrets must be kept out of logs and stored requests",
            "remove this line",
        )
    if not draft.at.rate_limit.retry_after_respect:
        yield draft.error(
            Reason.UNSAFE,
            ("rateLimit", "retryAfterRespect"),
            "Retry-After is always respected (ch. 4.10.8)",
            "remove this line",
        )


def _base_url(draft: Draft) -> Iterator[Problem]:
    try:
        url = base_url(draft)
    except Invalid as error:
        yield draft.error(Reason.EXPR_INVALID, ("http", "baseUrl"), error.detail, error.advice)
        return
    if url is None:
        return
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        yield draft.error(Reason.HOST_INVALID, ("http", "baseUrl"), f"{url!r} is not a URL: {error}")
        return
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        yield draft.error(
            Reason.HOST_INVALID, ("http", "baseUrl"), f"{url!r} is not an http URL", "https://api.example.org"
        )
    elif parts.scheme == "http" and not draft.at.http.allow_http:
        yield draft.error(
            Reason.HOST_INVALID,
            ("http", "baseUrl"),
            "the base URL is not HTTPS",
            "use https://, or say http.allowHttp: true where the provider has no TLS",
        )
    if parts.username is not None or parts.query or parts.fragment:
        yield draft.error(
            Reason.HOST_INVALID,
            ("http", "baseUrl"),
            "a base URL holds no user, query or fragment",
            "use queryTemplate, auth",
        )


def base_url(draft: Draft) -> str | None:
    """The base URL with its parameters; None where it is missing, or where a required parameter has no value yet."""
    text = draft.at.http.base_url
    if not text:
        return None
    template = compile_template(text, base_url_names(draft.at.params), draft.at.expr.allowed_functions)
    rendered = template.text(Context({"params": draft.params}))
    if rendered is None and draft.complete:
        raise Invalid("expr_failed", f"{text!r} has no value", advice="give the parameters it reads")
    return rendered


def on_hosts(netloc: str, hosts: list[str]) -> bool:
    """Whether a host, with its port if it has one, is declared; `*.x.org` means every host below x.org."""
    host = netloc.lower()
    bare = host if host.endswith("]") else host.rpartition(":")[0] or host
    for declared in (entry.lower() for entry in hosts):
        if declared.startswith("*.") and bare.endswith(declared[1:]):
            return True
        if declared in {host, bare}:
            return True
    return False
