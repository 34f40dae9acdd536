"""Tokens of the store over HTTP: made, listed, rotated and revoked by an admin whose own token is bound to nothing."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from patra.app.access.actor import Role, Scope
from patra.app.access.tokens import NewToken, TokenView, add_token, revoke_token, rotate_token, tokens
from patra.app.components.bus_publishers import configured_scopes
from patra.app.wiring import Patra
from patra.kernel.clock import SECOND
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, Request

MAX_LIFETIME_SECONDS = 100 * 366 * 86_400
Lifetime = Annotated[
    int, Meta(ge=1, le=MAX_LIFETIME_SECONDS, description="After how many seconds it expires; null: never.")
]


class TokenAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to be made; what is empty of its scopes stands for everything that the role allows."""

    name: Annotated[str, Meta(description="Who holds it; the audit names them so.")]
    role: Literal["viewer", "operator", "admin", "publisher"]
    engines: list[str] = []
    app: Annotated[str, Meta(description="Of a viewer or publisher: the one app it reads or sends for.")] = ""
    tenants: list[str] = []
    producers: Annotated[list[str], Meta(description="Of a publisher: the modules it speaks for.")] = []
    groups: Annotated[list[str], Meta(description="Of a publisher: the groups it takes events for.")] = []
    lifetime_seconds: Lifetime | None = None


class RotationAsked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long the old token stays in force beside the new one."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=MAX_LIFETIME_SECONDS)] = 86_400
    lifetime_seconds: Lifetime | None = None


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    tokens: list[TokenView]


class RevokedTokens(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    revoked: int


def routes(patra: Patra) -> list[Endpoint]:
    del patra  # handlers find it in their request
    return [
        Endpoint(
            method="GET",
            path="/tokens",
            handler=_list,
            role=Role.ADMIN,
            unbound=True,
            summary="Tokens that the store keeps, by the beginning of their hash",
            response=Tokens,
        ),
        Endpoint(
            method="POST",
            path="/tokens",
            handler=_add,
            role=Role.ADMIN,
            unbound=True,
            act="token.new",
            summary="Make a token, shown once",
            request=TokenAsked,
            response=NewToken,
            status=201,
            problems={400: "The name is taken, or the scopes do not fit the role"},
        ),
        Endpoint(
            method="POST",
            path="/tokens/{name}/rotate",
            handler=_rotate,
            role=Role.ADMIN,
            unbound=True,
            act="token.rotate",
            summary="Give a holder a new token with the same scopes, shown once; the old one stays for a while",
            request=RotationAsked,
            response=NewToken,
            problems={400: "There is no token in force of this name"},
        ),
        Endpoint(
            method="POST",
            path="/tokens/{name}/revoke",
            handler=_revoke,
            role=Role.ADMIN,
            unbound=True,
            act="token.revoke",
            summary="End every token of a holder, at once",
            response=RevokedTokens,
            problems={400: "There is no token in force of this name"},
        ),
    ]


def _list(request: Request) -> Tokens:
    now = request.patra.clock.now()
    return Tokens(tokens=request.patra.db.read(lambda tx: tokens(tx, now)))


def _add(request: Request) -> NewToken:
    asked: TokenAsked = request.body
    scope = Scope(
        engines=tuple(asked.engines),
        app=asked.app,
        tenants=tuple(asked.tenants),
        producers=tuple(asked.producers),
        groups=tuple(asked.groups),
    )
    role, now, by = Role(asked.role), request.patra.clock.now(), (request.actor or LOCAL).name
    lifetime = _microseconds(asked.lifetime_seconds)
    configured = configured_scopes(request.patra.settings)
    return request.act(
        lambda tx: add_token(tx, asked.name, role, scope, by=by, now=now, lifetime=lifetime, configured=configured),
        asked.name,
        role=asked.role,
        scope=str(scope),
    )


def _rotate(request: Request) -> NewToken:
    asked: RotationAsked = request.body
    name, now, by = request.path["name"], request.patra.clock.now(), (request.actor or LOCAL).name
    overlap, lifetime = asked.overlap_seconds * SECOND, _microseconds(asked.lifetime_seconds)
    return request.act(
        lambda tx: rotate_token(tx, name, by=by, now=now, overlap=overlap, lifetime=lifetime),
        name,
        overlap_seconds=asked.overlap_seconds,
    )


def _revoke(request: Request) -> RevokedTokens:
    name, now = request.path["name"], request.patra.clock.now()
    return RevokedTokens(name=name, revoked=request.act(lambda tx: revoke_token(tx, name, now=now), name))


def _microseconds(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND
