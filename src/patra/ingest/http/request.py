"""Turns a leg of a snapshot and where its paging stands into the request, or why none is sent (ch. 4.2, 4.8).

Everything is compiled once for a leg. What expressions give is encoded for its place and checked again after rendering:
no line breaks or control characters, no way out of a path segment, no undeclared host, the rules of the parameters.
Rendering the same state twice gives the same bytes; `hidden` renders it with the secrets' names in place of secrets.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import msgspec

from patra.ingest.expressions.escaping import Pairs, Refusal, Refused, encoded_pairs, printable, visible
from patra.ingest.expressions.scopes import request_names
from patra.ingest.expressions.template import Template, compile_template
from patra.ingest.expressions.values import Context, Env, Instant
from patra.ingest.http.body_template import BodyRenderer, evaluate_template, rendered_text
from patra.ingest.packs.checks import on_hosts
from patra.ingest.packs.sections import Auth
from patra.ingest.packs.spec import Leg
from patra.ingest.vocabulary.codes import AuthLocation, AuthType, BodyKind, NullPolicy, Operation, ParamLocation, Role
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern
from patra.kernel.safety.http_url import HttpUrl, parse_http_url


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None = None


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a slice and its paging stand; what is not known is None."""

    source: str
    endpoint: str
    operation: Operation
    now: int
    window_from: int | None = None
    window_to: int | None = None
    window_until: int | None = None
    """The upper bound to send; the window's end unless it is given."""
    page_no: int | None = None
    page_index: int = 0
    page_size: int | None = None
    offset: int | None = None
    token: str | None = None
    url: str | None = None
    page_from: int | None = None
    page_to: int | None = None
    key_from: int | None = None
    key_to: int | None = None
    ids: Sequence[str] = ()
    passed: int = 0
    """Records of the list that stand before this page; nothing is rendered from it, the answer is judged by it."""
    total: int | None = None
    """How many there are in the whole list, as an earlier page of it said; likewise."""


def takes_token(auth: Auth) -> bool:
    """Whether a token is asked for before a request is made."""
    return auth.type is AuthType.OAUTH2 or auth.token_hook is not None


class Renderer:
    """One leg, compiled. Raises Invalid when it is built from a leg that never passed the checks."""

    def __init__(self, leg: Leg, hosts: Sequence[str], secrets: Sequence[str] = ()) -> None:
        self.leg = leg
        self._hosts = list(hosts)
        self._policy = leg.expr.null_policy
        self._secret_names = tuple(secrets)
        self._last: tuple[Position, Request] | None = None  # without secrets it is shown as it was sent
        variables = leg.expr.vars
        names = dict(request_names(leg.params, secrets, variables, detail=leg.role is Role.DETAIL))
        allowed = leg.expr.allowed_functions

        def parse_template(text: str) -> Template:
            return compile_template(text, names, allowed)

        def each(values: Mapping[str, Any]) -> list[tuple[str, list[Template]]]:
            return [
                (k, [parse_template(v)] if isinstance(v, str) else [parse_template(i) for i in v])
                for k, v in values.items()
            ]

        http = leg.http
        self._vars = [(name, parse_template(text)) for name, text in variables.items()]
        self._path = parse_template(http.path_template)
        self._agent = parse_template(http.user_agent)
        self._headers = [(name, parse_template(text)) for name, text in http.headers_template.items()]
        self._query = each(http.query_template)
        self._next_query = each(http.next_query_template) if http.next_query_template is not None else None
        self._form = each(http.body_template.fields) if http.body_template.kind is BodyKind.FORM else []
        self._body = BodyRenderer(http.body_template, parse_template)
        self._params = [
            (p, parse_template(p.expr) if p.expr is not None else None, pattern(p.pattern) if p.pattern else None)
            for p in leg.mapping.request_params
        ]

    def render(self, at: Position, secrets: Mapping[str, str] | None = None) -> Request | Refused:
        """The request at a place of the paging. `secrets` are those of the leg's credential, resolved."""
        if not secrets and (last := self._last) is not None and last[0] is at:
            return last[1]
        try:
            found = self._request(at, secrets or {})
        except Refusal as refusal:
            return refusal.refused
        if not secrets:
            self._last = at, found
        return found

    def masked_request(self, at: Position) -> Request | Refused:
        """The same request with `{name}` for each secret: what may be stored, hashed and compared."""
        names = (*self._secret_names, *(["accessToken"] if takes_token(self.leg.auth) else []))
        return self.render(at, {name: f"{{{name}}}" for name in names})

    def _request(self, at: Position, secrets: Mapping[str, str]) -> Request:
        context = self._context(at, secrets)
        placed = self._place_parameters(context)
        query = self._pairs(
            context, self._query if at.page_index == 0 or self._next_query is None else self._next_query
        )
        query += [(name, value) for where, name, value in placed if where is ParamLocation.QUERY]
        headers = [(name, self._header(context, name, template)) for name, template in self._headers]
        headers = [("User-Agent", self._header(context, "userAgent", self._agent)), *headers]
        headers += [
            (name, visible(value, f"params.{name}")) for where, name, value in placed if where is ParamLocation.HEADER
        ]
        form = self._pairs(context, self._form, "http.bodyTemplate.fields")
        extra = [(name, value) for where, name, value in placed if where is ParamLocation.BODY]
        auth = self._auth(secrets)
        if auth is not None:
            where, name, value = auth
            match where:
                case AuthLocation.HEADER:
                    headers.append((name, visible(value, "auth")))
                case AuthLocation.QUERY:
                    query.append((name, value))
                case AuthLocation.BODY:
                    extra.append((name, value))
        content_type, body = self._body.render(context, form, extra)
        if content_type:
            headers.append(("Content-Type", content_type))
        url = self._url(context, query, at.url, own=auth[1] if auth and auth[0] is AuthLocation.QUERY else None)
        return Request(
            method=str(self.leg.http.method),
            url=url,
            headers=tuple((name, value) for name, value in headers if value is not None),
            body=body,
        )

    # --- what expressions can read

    def _context(self, at: Position, secrets: Mapping[str, str]) -> Context:
        expr = self.leg.expr
        env = Env(now=at.now, time_format=expr.time_format, zone=expr.timezone, max_text=expr.max_output)
        found: dict[str, Any] = {}
        values: dict[str, Any] = {
            "plan": {"source": at.source, "endpoint": at.endpoint, "operation": at.operation.value},
            "window": {
                "from": _instant(at.window_from),
                "to": _instant(at.window_to),
                "until": _instant(at.window_to if at.window_until is None else at.window_until),
            },
            "page": {
                "no": at.page_no,
                "index": at.page_index,
                "size": at.page_size,
                "offset": at.offset,
                "token": at.token,
                "url": at.url,
                "from": _instant(at.page_from),
                "to": _instant(at.page_to),
            },
            "key": {"from": at.key_from, "to": at.key_to},
            "ids": list(at.ids),
            "id": at.ids[0] if at.ids else None,
            "params": self.leg.params,
            "credential": secrets,
            "expr": found,
        }
        context = Context(values, env)
        for name, template in self._vars:  # each once, so that one that uses another twice does not cost double
            found[name] = evaluate_template(template, context, f"expr.vars.{name}")
        return context

    def _place_parameters(self, context: Context) -> list[tuple[ParamLocation, str, str]]:
        """The parameters that place themselves, after their own rules."""
        out: list[tuple[ParamLocation, str, str]] = []
        for param, template, matcher in self._params:
            place = f"params.{param.name}"
            value = self.leg.params.get(param.name) if template is None else evaluate_template(template, context, place)
            if value is None:
                if param.required:
                    raise Refusal(Reason.RENDER_FAILED, place, "the parameter has no value")
                continue
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            for item in items:
                text = rendered_text(item, context, place)
                if len(text) > param.max_length:
                    raise Refusal(Reason.RENDER_REFUSED, place, f"longer than {param.max_length} characters")
                if param.values and text not in param.values:
                    raise Refusal(Reason.RENDER_REFUSED, place, "not in the list of values")
                if matcher is not None and not matcher.matches(text):
                    raise Refusal(Reason.RENDER_REFUSED, place, f"does not match {matcher.source}")
                if param.location is not ParamLocation.NONE:
                    out.append((param.location, param.name_as, printable(text, place)))
        return out

    # --- the parts of a request

    def _pairs(
        self, context: Context, templates: list[tuple[str, list[Template]]], section: str = "http.queryTemplate"
    ) -> Pairs:
        out: Pairs = []
        for name, values in templates:
            place = f"{section}.{name}"
            for template in values:
                value = evaluate_template(template, context, place)
                if value is None:
                    if self._policy is NullPolicy.FAIL:
                        raise Refusal(
                            Reason.RENDER_FAILED, place, f"{template.source!r} has no value, and nullPolicy is fail"
                        )
                    if self._policy is NullPolicy.EMPTY:
                        out.append((name, ""))
                    continue
                items = cast("list[Any]", value) if isinstance(value, list) else [value]
                out += [(name, printable(rendered_text(item, context, place), place)) for item in items]
        return out

    def _header(self, context: Context, name: str, template: Template) -> str | None:
        place = f"http.headersTemplate.{name}"
        value = evaluate_template(template, context, place)
        if value is None:
            if self._policy is NullPolicy.FAIL:
                raise Refusal(Reason.RENDER_FAILED, place, f"{template.source!r} has no value, and nullPolicy is fail")
            return "" if self._policy is NullPolicy.EMPTY else None
        return visible(rendered_text(value, context, place), place)

    def _auth(self, secrets: Mapping[str, str]) -> tuple[AuthLocation, str, str] | None:
        auth = self.leg.auth
        match auth.type:
            case AuthType.API_KEY:
                secret, name, prefix = secrets.get("apiKey"), auth.name, auth.prefix
            case AuthType.BEARER:
                secret, name, prefix = secrets.get("token"), auth.name or "Authorization", auth.prefix or "Bearer "
            case AuthType.OAUTH2:
                secret, name, prefix = (
                    secrets.get("accessToken"),
                    auth.name or "Authorization",
                    auth.prefix or "Bearer ",
                )
            case AuthType.CUSTOM if auth.token_hook is not None:
                secret, name, prefix = secrets.get("accessToken"), auth.name, auth.prefix
            case AuthType.NONE | AuthType.CUSTOM:
                return None
        if secret is None:
            if auth.optional:
                return None
            raise Refusal(Reason.RENDER_FAILED, "auth.credentialRef", "the secret is not there")
        return auth.location, name, printable(f"{prefix}{secret}", "auth")

    def _url(self, context: Context, query: Pairs, following: str | None, own: str | None) -> str:
        http = self.leg.http
        base = urlsplit(http.base_url)
        path = base.path.rstrip("/") + self._rendered_path(context)
        if following is None:
            text = encoded_pairs(query, http.query_safe, plus=http.space_as_plus)
        else:
            target = self._following(following)
            if not self.leg.pagination.pin_path:
                base, path = target, target.path
            given = {name for name, _ in parse_qsl(target.query or "", keep_blank_values=True)}
            added = [(n, v) for n, v in query if n not in given and (n == own or self.leg.pagination.carry_query)]
            text = "&".join(
                part for part in (target.query, encoded_pairs(added, http.query_safe, plus=http.space_as_plus)) if part
            )
        url = urlunsplit((base.scheme, base.netloc, path or "/", text, ""))
        if len(url) > self.leg.limits.max_url_length:
            raise Refusal(
                Reason.RENDER_TOO_LONG,
                "limits.maxUrlLength",
                f"the URL has {len(url)} characters, more than the provider takes; use POST or fewer ids",
            )
        return url

    def _following(self, url: str) -> HttpUrl:
        """The provider's URL of the next page: absolute, or relative to ours; on a declared host (ruling I8)."""
        base = urlsplit(self.leg.http.base_url)
        text = url.strip()
        if text.startswith("/") and not text.startswith("//"):
            text = f"{base.scheme}://{base.netloc}{text}"
        try:
            target = parse_http_url(text)
            allowed = {"https", "http"} if self.leg.http.allow_http else {"https", base.scheme}
            fine = target.scheme in allowed and on_hosts(target.netloc, self._hosts)
            printable(text, "pagination.nextUrlPath")
        except ValueError as error:
            raise Refusal(Reason.RENDER_OFF_HOST, "pagination.nextUrlPath", f"no URL: {error}") from error
        if not fine:
            raise Refusal(
                Reason.RENDER_OFF_HOST,
                "pagination.nextUrlPath",
                f"{target.scheme}://{target.netloc} is not a declared host",
            )
        query = quote(target.query or "", safe="%=&+;:@/?!$'()*,~[]")
        return msgspec.structs.replace(target, query=query)

    def _rendered_path(self, context: Context) -> str:
        http = self.leg.http
        place = "http.pathTemplate"

        def segment(text: str) -> str:
            printable(text, place)
            if any(part in {".", ".."} for part in text.split("/")):
                raise Refusal(Reason.RENDER_UNSAFE, place, "`.` or `..` as a part of the path")
            return quote(text, safe=http.path_safe)

        try:
            text = self._path.encode_text(context, segment)
        except Invalid as error:
            raise Refusal(Reason.RENDER_FAILED, place, error.detail) from error
        if text is None:
            raise Refusal(Reason.RENDER_FAILED, place, f"an expression of {http.path_template!r} has no value")
        if any(part in {".", ".."} for part in text.split("/")):
            raise Refusal(Reason.RENDER_UNSAFE, place, "`.` or `..` as a part of the path")
        whole = quote(text, safe="/%:@!$&'()*+,;=-._~")
        return whole if not whole or whole.startswith("/") else f"/{whole}"


def _instant(at: int | None) -> Instant | None:
    return None if at is None else Instant(at)
