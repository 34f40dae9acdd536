"""A leg of a snapshot and where its paging stands go in; the request, or why none is sent, comes out (ch. 4.2, 4.8).

Everything is compiled once for a leg. What expressions give is encoded for its place and checked again after rendering:
no line breaks or control characters, no way out of a path segment, no undeclared host, the rules of the parameters.
Rendering the same state twice gives the same bytes; `hidden` renders it with the secrets' names in place of secrets.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import msgspec

from patra.ingest.checks import on_hosts
from patra.ingest.codes import AuthLocation, AuthType, BodyKind, NullPolicy, Operation, ParamLocation, Role
from patra.ingest.escaping import Pairs, Refusal, Refused, encoded_pairs, printable, visible, xml_text
from patra.ingest.names import request_names
from patra.ingest.reasons import R
from patra.ingest.spec import Leg
from patra.ingest.template import Template, compile_template
from patra.ingest.values import Context, Env, Instant, Span, text_of
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None = None


class At(msgspec.Struct, frozen=True, kw_only=True):
    """Where a slice and its paging stand; what is not known is None."""

    source: str
    endpoint: str
    operation: Operation
    now: int
    window_from: int | None = None
    window_to: int | None = None
    page_no: int | None = None
    page_index: int = 0
    page_size: int | None = None
    offset: int | None = None
    token: str | None = None
    url: str | None = None
    page_from: int | None = None
    page_to: int | None = None
    ids: Sequence[str] = ()
    passed: int = 0
    """Records of the list that stand before this page; nothing is rendered from it, the answer is judged by it."""
    total: int | None = None
    """How many there are in the whole list, as an earlier page of it said; likewise."""


class Renderer:
    """One leg, compiled. Raises Invalid when it is built from a leg that never passed the checks."""

    def __init__(self, leg: Leg, hosts: Sequence[str], secrets: Sequence[str] = ()) -> None:
        self.leg = leg
        self._hosts = list(hosts)
        self._policy = leg.expr.null_policy
        self._secret_names = tuple(secrets)
        self._last: tuple[At, Request] | None = None  # without secrets it is shown as it was sent
        variables = leg.expr.vars
        names = dict(request_names(leg.params, secrets, variables, detail=leg.role is Role.DETAIL))
        allowed = leg.expr.allowed_functions

        def compiled(text: str) -> Template:
            return compile_template(text, names, allowed)

        def each(values: Mapping[str, Any]) -> list[tuple[str, list[Template]]]:
            return [(k, [compiled(v)] if isinstance(v, str) else [compiled(i) for i in v]) for k, v in values.items()]

        http = leg.http
        self._vars = [(name, compiled(text)) for name, text in variables.items()]
        self._path = compiled(http.path_template)
        self._agent = compiled(http.user_agent)
        self._headers = [(name, compiled(text)) for name, text in http.headers_template.items()]
        self._query = each(http.query_template)
        self._next_query = each(http.next_query_template) if http.next_query_template is not None else None
        self._form = each(http.body_template.fields) if http.body_template.kind is BodyKind.FORM else []
        self._json = (
            _compiled_json(http.body_template.json, compiled) if http.body_template.kind is BodyKind.JSON else None
        )
        self._text = compiled(http.body_template.text)
        self._params = [
            (p, compiled(p.expr) if p.expr is not None else None, pattern(p.pattern) if p.pattern else None)
            for p in leg.mapping.request_params
        ]

    def render(self, at: At, secrets: Mapping[str, str] | None = None) -> Request | Refused:
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

    def hidden(self, at: At) -> Request | Refused:
        """The same request with `{name}` for each secret: what may be stored, hashed and compared."""
        names = (*self._secret_names, *(["accessToken"] if self.leg.auth.type is AuthType.OAUTH2 else []))
        return self.render(at, {name: f"{{{name}}}" for name in names})

    def _request(self, at: At, secrets: Mapping[str, str]) -> Request:
        context = self._context(at, secrets)
        placed = self._placed(context)
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
        content_type, body = self._body(context, form, extra)
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

    def _context(self, at: At, secrets: Mapping[str, str]) -> Context:
        expr = self.leg.expr
        env = Env(now=at.now, time_format=expr.time_format, zone=expr.timezone, max_text=expr.max_output)
        found: dict[str, Any] = {}
        values: dict[str, Any] = {
            "plan": {"source": at.source, "endpoint": at.endpoint, "operation": at.operation.value},
            "window": {"from": _instant(at.window_from), "to": _instant(at.window_to)},
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
            "ids": list(at.ids),
            "id": at.ids[0] if at.ids else None,
            "params": self.leg.params,
            "credential": secrets,
            "expr": found,
        }
        context = Context(values, env)
        for name, template in self._vars:  # each once, so that one that uses another twice does not cost double
            found[name] = _evaluated(template, context, f"expr.vars.{name}")
        return context

    def _placed(self, context: Context) -> list[tuple[ParamLocation, str, str]]:
        """The parameters that place themselves, after their own rules."""
        out: list[tuple[ParamLocation, str, str]] = []
        for param, template, matcher in self._params:
            place = f"params.{param.name}"
            value = self.leg.params.get(param.name) if template is None else _evaluated(template, context, place)
            if value is None:
                if param.required:
                    raise Refusal(R.RENDER_FAILED, place, "the parameter has no value")
                continue
            items = cast("list[Any]", value) if isinstance(value, list) else [value]
            for item in items:
                text = _text(item, context, place)
                if len(text) > param.max_length:
                    raise Refusal(R.RENDER_REFUSED, place, f"longer than {param.max_length} characters")
                if param.values and text not in param.values:
                    raise Refusal(R.RENDER_REFUSED, place, "not in the list of values")
                if matcher is not None and not matcher.matches(text):
                    raise Refusal(R.RENDER_REFUSED, place, f"does not match {matcher.source}")
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
                value = _evaluated(template, context, place)
                if value is None:
                    if self._policy is NullPolicy.FAIL:
                        raise Refusal(
                            R.RENDER_FAILED, place, f"{template.source!r} has no value, and nullPolicy is fail"
                        )
                    if self._policy is NullPolicy.EMPTY:
                        out.append((name, ""))
                    continue
                items = cast("list[Any]", value) if isinstance(value, list) else [value]
                out += [(name, printable(_text(item, context, place), place)) for item in items]
        return out

    def _header(self, context: Context, name: str, template: Template) -> str | None:
        place = f"http.headersTemplate.{name}"
        value = _evaluated(template, context, place)
        if value is None:
            if self._policy is NullPolicy.FAIL:
                raise Refusal(R.RENDER_FAILED, place, f"{template.source!r} has no value, and nullPolicy is fail")
            return "" if self._policy is NullPolicy.EMPTY else None
        return visible(_text(value, context, place), place)

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
            case AuthType.NONE | AuthType.CUSTOM:
                return None
        if secret is None:
            if auth.optional:
                return None
            raise Refusal(R.RENDER_FAILED, "auth.credentialRef", "the secret is not there")
        return auth.location, name, printable(f"{prefix}{secret}", "auth")

    def _body(self, context: Context, form: Pairs, extra: Pairs) -> tuple[str | None, bytes | None]:
        match self.leg.http.body_template.kind:
            case BodyKind.NONE:
                return None, None
            case BodyKind.FORM:
                return "application/x-www-form-urlencoded", encoded_pairs([*form, *extra], "", plus=True).encode()
            case BodyKind.JSON:
                value = _json_value(self._json, context)
                if extra and isinstance(value, dict):
                    value = {**cast("dict[str, Any]", value), **dict(extra)}
                return "application/json", msgspec.json.encode(value)
            case BodyKind.XML | BodyKind.TEXT as kind:
                encode: Callable[[str], str] = xml_text if kind is BodyKind.XML else str
                place = "http.bodyTemplate.text"
                try:
                    text = self._text.encoded(context, encode)
                except Invalid as error:
                    raise Refusal(R.RENDER_FAILED, place, error.detail) from error
                if text is None:
                    raise Refusal(R.RENDER_FAILED, place, "an expression of the body has no value")
                return ("application/xml" if kind is BodyKind.XML else "text/plain; charset=utf-8"), text.encode()

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
            given = {name for name, _ in parse_qsl(target.query, keep_blank_values=True)}
            added = [(n, v) for n, v in query if n not in given and (n == own or self.leg.pagination.carry_query)]
            text = "&".join(
                part for part in (target.query, encoded_pairs(added, http.query_safe, plus=http.space_as_plus)) if part
            )
        url = urlunsplit((base.scheme, base.netloc, path or "/", text, ""))
        if len(url) > self.leg.limits.max_url_length:
            raise Refusal(
                R.RENDER_TOO_LONG,
                "limits.maxUrlLength",
                f"the URL has {len(url)} characters, more than the provider takes; use POST or fewer ids",
            )
        return url

    def _following(self, url: str) -> Any:
        """The provider's URL of the next page: absolute, or relative to ours; on a declared host (ruling I8)."""
        base = urlsplit(self.leg.http.base_url)
        try:
            target = urlsplit(url.strip())
            if not target.netloc and target.path.startswith("/") and not target.scheme:
                target = target._replace(scheme=base.scheme, netloc=base.netloc)
            allowed = {"https", "http"} if self.leg.http.allow_http else {"https", base.scheme}
            fine = target.scheme in allowed and target.username is None and on_hosts(target.netloc, self._hosts)
            printable(url.strip(), "pagination.nextUrlPath")
        except ValueError as error:
            raise Refusal(R.RENDER_OFF_HOST, "pagination.nextUrlPath", f"no URL: {error}") from error
        if not fine:
            raise Refusal(
                R.RENDER_OFF_HOST,
                "pagination.nextUrlPath",
                f"{target.scheme}://{target.hostname} is not a declared host",
            )
        return target._replace(fragment="", query=quote(target.query, safe="%=&+;:@/?!$'()*,~[]"))

    def _rendered_path(self, context: Context) -> str:
        http = self.leg.http
        place = "http.pathTemplate"

        def segment(text: str) -> str:
            printable(text, place)
            if any(part in {".", ".."} for part in text.split("/")):
                raise Refusal(R.RENDER_UNSAFE, place, "`.` or `..` as a part of the path")
            return quote(text, safe=http.path_safe)

        try:
            text = self._path.encoded(context, segment)
        except Invalid as error:
            raise Refusal(R.RENDER_FAILED, place, error.detail) from error
        if text is None:
            raise Refusal(R.RENDER_FAILED, place, f"an expression of {http.path_template!r} has no value")
        if any(part in {".", ".."} for part in text.split("/")):
            raise Refusal(R.RENDER_UNSAFE, place, "`.` or `..` as a part of the path")
        whole = quote(text, safe="/%:@!$&'()*+,;=-._~")
        return whole if not whole or whole.startswith("/") else f"/{whole}"


def _evaluated(template: Template, context: Context, place: str) -> Any:
    try:
        return template.value(context)
    except Invalid as error:
        raise Refusal(R.RENDER_FAILED, place, error.detail) from error


def _text(value: Any, context: Context, place: str) -> str:
    try:
        return text_of(value, context.env)
    except Invalid as error:
        raise Refusal(R.RENDER_FAILED, place, error.detail) from error


def _instant(at: int | None) -> Instant | None:
    return None if at is None else Instant(at)


_Json = Any


def _compiled_json(value: Any, compiled: Callable[[str], Template]) -> _Json:
    match value:
        case str():
            return compiled(value)
        case dict():
            return {key: _compiled_json(item, compiled) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_compiled_json(item, compiled) for item in cast("list[Any]", value)]
        case _:
            return value


def _json_value(value: _Json, context: Context) -> Any:
    match value:
        case Template():
            found = _evaluated(value, context, "http.bodyTemplate.json")
            return text_of(found, context.env) if isinstance(found, Instant | Span) else found
        case dict():
            return {key: _json_value(item, context) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_json_value(item, context) for item in cast("list[Any]", value)]
        case _:
            return value
