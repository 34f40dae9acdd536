"""One row of the HTTP interface: method, path, who may, the types of request and answer, and the function between.

A table of these makes both the routes (`server`) and the OpenAPI document (`openapi`), so neither can lie about the
other.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request as RawRequest
from starlette.responses import Response

from patra.app.access.actor import Actor, Role
from patra.app.access.audit import audit
from patra.app.wiring import Patra
from patra.kernel.db import Tx
from patra.web.auth import LOCAL, SAFE_METHODS
from patra.web.problem import Problem

T = TypeVar("T")
JSON = "application/json"


class Reply(msgspec.Struct, frozen=True):
    """An answer that is not simply the struct of `Endpoint.response` with status 200."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Request:
    """What a handler gets: decoded parameters and body, and who is asking."""

    def __init__(
        self,
        *,
        patra: Patra,
        actor: Actor | None,
        act: str,
        path: Mapping[str, str],
        query: Any = None,
        body: Any = None,
    ) -> None:
        self.patra = patra
        self.actor = actor
        self.path = path
        self.query = query
        self.body = body
        self.audited = False
        self._act = act

    def act(self, work: Callable[[Tx], T], subject: str, **detail: Any) -> T:
        """Do the work and write its audit row in one transaction."""

        def both(tx: Tx) -> T:
            result = work(tx)
            self.audit(tx, subject, detail)
            return result

        done = self.patra.db.run(both)
        self.audited = True
        return done

    def audit(self, tx: Tx, subject: str, detail: dict[str, Any]) -> None:
        """Write the audit row in a transaction of the handler's own; then set `audited` when it has committed."""
        audit(tx, self.actor or LOCAL, self._act, subject, detail, self.patra.clock.now())


Handler = Callable[[Request], Any]
TenantOf = Callable[[Patra, Mapping[str, str]], str | None]
"""The tenant of what the parameters of a path name, None where there is no such thing; runs in a thread."""
RawHandler = Callable[[RawRequest], Awaitable[Response]]


class RequestSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A body that no msgspec type describes: its name, schema and example, and the schemas that it refers to by name.

    References are `#/components/schemas/NAME`.
    """

    name: str
    schema: Mapping[str, Any]
    definitions: Mapping[str, Any]
    example: Any


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A handler runs in a thread and gives a struct, bytes, a `Reply` or a `Problem`.

    A raw handler is a coroutine that reads the body itself (`web.body.read_body`) and gives a Starlette response; its
    actor, if any, is in `request.scope["patra.actor"]`. `role=None` asks for no token. An endpoint that writes names
    its `act`, under which the audit keeps it. A token that is bound to an app or to tenants may ask only where
    `app_query`, `tenant_query` or `tenant_of` says what narrows the answer (`web.scopes`).
    """

    method: str
    path: str
    handler: Handler | None = None
    raw: RawHandler | None = None
    role: Role | None
    summary: str
    description: str = ""
    tag: str = "operations"
    request: Any = None
    request_schema: RequestSchema | None = None
    """Of a raw handler: what the OpenAPI document says of the body, which the handler checks itself."""
    query: type[msgspec.Struct] | None = None
    response: Any = None
    status: int = 200
    media: str = JSON
    also: Mapping[int, str] = {}  # other statuses with the same body
    problems: Mapping[int, str] = {}
    act: str = ""
    app_query: str = ""  # the query parameter that narrows the answer to one app
    tenant_query: str = ""  # likewise to one tenant
    tenant_of: TenantOf | None = None  # whose the thing in the path is
    shared: bool = False  # the answer is the same for every tenant and holds nothing of any
    unbound: bool = False  # only for tokens that are bound to no engine, app or tenant
    seconds: float | None = None  # instead of web.request_seconds
    max_body_bytes: int | None = None  # instead of web.max_body_bytes

    def __post_init__(self) -> None:
        if (self.handler is None) is (self.raw is None):
            raise ValueError(f"{self.name}: an endpoint has either a handler or a raw handler")
        fields = () if self.query is None or self.raw is not None else self.query.__struct_fields__
        for name in (self.app_query, self.tenant_query):
            if name and name not in fields:  # `web.dispatch` narrows the decoded query, which is that of a handler
                raise ValueError(f"{self.name}: {name} narrows nothing: no query parameter of a handler is called so")
        if self.writes and self.role is not None and not self.act:
            raise ValueError(f"{self.name}: what operators do is audited: the endpoint must name its act")

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        return self.method not in SAFE_METHODS

    @property
    def body_optional(self) -> bool:
        """Whether nothing at all may be sent: every field of the body has a default."""
        kind = self.request
        if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
            return False
        return all(not field.required for field in msgspec.structs.fields(kind))

    @property
    def parameters(self) -> list[str]:
        """Names in the path: `/loops/{name}/wake` has `name`."""
        return re.findall(r"{(\w+)(?::\w+)?}", self.path)

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it, without Starlette's converters."""
        return re.sub(r"{(\w+):\w+}", r"{\1}", self.path)


class EndpointGroup(msgspec.Struct, frozen=True):
    """Builds the usual endpoints under one tag: viewers read, operators act. `more` are other fields of `Endpoint`."""

    tag: str

    def get(
        self,
        path: str,
        handler: Handler,
        summary: str,
        response: Any,
        query: type[msgspec.Struct] | None = None,
        **more: Any,
    ) -> Endpoint:
        fields: dict[str, Any] = {"role": Role.VIEWER, **more}
        return Endpoint(
            method="GET",
            path=path,
            handler=handler,
            summary=summary,
            tag=self.tag,
            query=query,
            response=response,
            **fields,
        )

    def post(self, path: str, handler: Handler, act: str, summary: str, **more: Any) -> Endpoint:
        fields: dict[str, Any] = {"method": "POST", "role": Role.OPERATOR, **more}
        return Endpoint(path=path, handler=handler, act=act, summary=summary, tag=self.tag, **fields)


Answer = msgspec.Struct | bytes | Reply | Problem | None
