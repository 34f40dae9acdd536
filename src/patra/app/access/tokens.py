"""Bearer tokens that the store keeps: scopes, expiry, rotation with overlap, revocation, last use.

Only the sha256 of a token is stored. A process asks the store for every request that presents one, so a token that was
revoked or has expired is refused by the next request, in every process. When a token was last used is written at most
every ten minutes.
"""

import re
import secrets
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Literal

import msgspec

from patra.app.access.actor import UNBOUND, Actor, Role, Scope
from patra.bus.catalogue.catalogue import is_group
from patra.bus.store.groups import WEBHOOK_PREFIX
from patra.kernel.clock import MINUTE, Clock, format_instant
from patra.kernel.db import Database, Queries, Tx
from patra.kernel.errors import Invalid, PatraError
from patra.kernel.telemetry import get_logger

log = get_logger()

Q = Queries.load("patra.app")
PREFIX = "pt_"
TOKEN_BYTES = 32
USED_INTERVAL = 10 * MINUTE
"""How old `used_at` may become before it is written again: a request is not a write each time."""
ENGINES = ("operations", "attribution", "ingest", "bus", "studio")
"""What a token may be bound to: the sections of the HTTP interface."""
FOREVER = 2**62
MAX_SCOPE_ENTRIES = 100
MAX_SCOPE_CHARACTERS = 256

_is_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}").fullmatch


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """A token as people see it afterwards: by the beginning of its hash."""

    name: str
    token_id: str
    state: Literal["active", "expired", "revoked"]
    role: str
    scope: Scope
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    used_at: str | None


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token; it is shown here and never again."""

    name: str
    token: str
    expires_at: str | None


class TokenRefusal(msgspec.Struct, frozen=True):
    """Why a presented token lets nobody in."""

    code: Literal["token_unknown", "token_expired", "token_revoked"]


UNKNOWN = TokenRefusal("token_unknown")


def add_token(
    tx: Tx,
    name: str,
    role: Role,
    scope: Scope = UNBOUND,
    *,
    by: str,
    now: int,
    lifetime: int | None = None,
    configured: Iterable[tuple[str, Scope]] = (),
) -> NewToken:
    """Make a token of a new name; `lifetime` in microseconds, None for one that does not expire.

    `configured` are the publishers that the settings name: a group has one set of tenants there and here.
    """
    if not _is_name(name):
        raise Invalid(
            "token_name_invalid",
            f"{name!r} names no holder",
            advice="1 to 64 letters, digits and . _ - @, a letter first",
        )
    check_scope(role, scope)
    _check_groups(scope, [*configured, *scopes_in_force(tx, now)])
    if any(one.state == "active" for one in tokens(tx, now, name)):
        raise Invalid(
            "token_name_taken",
            f"{name} has a token that is in force",
            advice=f"`patra token rotate {name}` gives a new one, `patra token revoke {name}` ends it",
        )
    return _insert(tx, name, role, scope, by=by, now=now, expires_at=_expiry(now, lifetime))


def rotate_token(tx: Tx, name: str, *, by: str, now: int, overlap: int, lifetime: int | None = None) -> NewToken:
    """Give a holder a new token with the same scopes; the old one stays in force for `overlap` microseconds.

    Without a `lifetime` the new one lives as long as the newest of the old ones was to.
    """
    if overlap < 0:
        raise Invalid("token_overlap_invalid", "an overlap is not negative", place="overlap")
    rows = [row for row in tx.fetch(Q["token_list"], {"name": name}) if _state(row[7], row[6], now) == "active"]
    if not rows:
        raise _no_token(name)
    _, _, role, scope, created_at, _, expires_at, _, _ = rows[-1]
    if lifetime is None and expires_at is not None:
        lifetime = expires_at - created_at
    tx.execute(Q["token_expire"], {"name": name, "until": now + overlap})
    bound = msgspec.json.decode(scope, type=Scope)
    return _insert(tx, name, Role(role), bound, by=by, now=now, expires_at=_expiry(now, lifetime))


def revoke_token(tx: Tx, name: str, *, now: int) -> int:
    """End every token of a holder, at once; gives how many were in force."""
    changed = tx.execute(Q["token_revoke"], {"name": name, "now": now})
    if not changed:
        raise _no_token(name)
    return changed


def tokens(tx: Tx, now: int, name: str = "") -> list[TokenView]:
    """Every token there ever was, or those of one holder, by name and age."""
    return [
        TokenView(
            name=holder,
            token_id=token_hash[:12],
            state=_state(revoked_at, expires_at, now),
            role=role,
            scope=msgspec.json.decode(scope, type=Scope),
            created_at=format_instant(created_at),
            created_by=by,
            expires_at=_shown_instant(expires_at),
            revoked_at=_shown_instant(revoked_at),
            used_at=_shown_instant(used_at),
        )
        for token_hash, holder, role, scope, created_at, by, expires_at, revoked_at, used_at in tx.fetch(
            Q["token_list"], {"name": name}
        )
    ]


def scopes_in_force(tx: Tx, now: int) -> list[tuple[str, Scope]]:
    """The holders of tokens that are in force, and what each is bound to."""
    return [(one.name, one.scope) for one in tokens(tx, now) if one.state == "active"]


class StoredTokens:
    """Whom the tokens of the store stand for."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def holder(self, presented: str) -> Actor | TokenRefusal:
        """Who presents a token. Tokens are found by their hash, so the time taken reveals nothing about them."""
        if not presented.startswith(PREFIX):
            return UNKNOWN
        return self.holder_of_hash(sha256(presented.encode()).hexdigest())

    def holder_of_hash(self, token_hash: str) -> Actor | TokenRefusal:
        now = self._clock.now()
        row = self._db.read(lambda tx: tx.fetch_one(Q["token_find"], {"token": token_hash}))
        if row is None:
            return UNKNOWN
        name, role, scope, expires_at, revoked_at, used_at = row
        match _state(revoked_at, expires_at, now):
            case "revoked":
                return TokenRefusal("token_revoked")
            case "expired":
                return TokenRefusal("token_expired")
            case "active":
                if used_at is None or now - used_at > USED_INTERVAL:
                    self._note_use(token_hash, name, now)
                return Actor(name=name, role=Role(role), scope=msgspec.json.decode(scope, type=Scope))

    def _note_use(self, token_hash: str, name: str, now: int) -> None:
        try:
            asked = {"token": token_hash, "now": now, "since": now - USED_INTERVAL}
            self._db.run(lambda tx: tx.execute(Q["token_used"], asked))
        except PatraError as error:  # a store that cannot be written now may still be read
            log.warning("token_use_not_noted", name=name, code=error.code, detail=error.detail)


def check_scope(role: Role, scope: Scope) -> None:
    """Refuse scopes that nothing holds a token of this role to, and publishers that speak for nobody."""
    listed = (*scope.engines, *scope.tenants, *scope.producers, *scope.groups, scope.app)
    if len(listed) > MAX_SCOPE_ENTRIES or any(len(one) > MAX_SCOPE_CHARACTERS or "\x00" in one for one in listed):
        raise _wrong("scope", f"at most {MAX_SCOPE_ENTRIES} entries of {MAX_SCOPE_CHARACTERS} characters")
    if "" in (*scope.engines, *scope.tenants, *scope.producers, *scope.groups):
        raise _wrong("scope", "an entry is empty")
    if scope.groups and role is not Role.PUBLISHER:
        raise _wrong("groups", "only a publisher consumes for groups")
    if strange := [one for one in scope.groups if one != "*" and not _is_pulled_group(one)]:
        raise _wrong("groups", f"{strange[0]!r} is not a name for a group that programs pull for")
    if unknown := set(scope.engines) - set(ENGINES):
        raise _wrong("engines", f"there is no {min(unknown)!r}; there are {', '.join(ENGINES)}")
    match role:
        case Role.PUBLISHER:
            if scope.engines:
                raise _wrong("engines", "a publisher only publishes; bind it to producers or to an app")
            if not (scope.app or scope.producers or scope.groups):
                raise _wrong("producers", "a publisher speaks for producers of the bus, for groups or for an app")
            if scope.tenants and not (scope.producers or scope.groups):
                raise _wrong("tenants", "tenants narrow the producers and groups of a publisher; name those too")
        case Role.VIEWER:
            if scope.producers:
                raise _wrong("producers", "only a publisher is bound to producers")
            if scope.app and scope.tenants:
                raise _wrong("tenants", "a viewer is bound to an app or to tenants: nothing is narrowed by both")
        case Role.OPERATOR | Role.ADMIN:
            if scope.app or scope.tenants or scope.producers:
                raise _wrong("role", f"what an {role.value} does can be narrowed to engines, and to nothing else")


def _is_pulled_group(name: str) -> bool:
    return is_group(name) and not name.startswith(WEBHOOK_PREFIX)


def shared_group(groups: Collection[str], tenants: Collection[str], other: Scope) -> str | None:
    """A group that another is bound to with other tenants: what one may not see, it would take away from the other."""
    either = {*groups, *other.groups}
    shared = sorted(either if "*" in either else {*groups} & {*other.groups}) if groups and other.groups else []
    every = {"*"}
    return shared[-1] if shared and (set(tenants) or every) != (set(other.tenants) or every) else None


def _check_groups(scope: Scope, others: Iterable[tuple[str, Scope]]) -> None:
    for name, other in others:
        if (group := shared_group(scope.groups, scope.tenants, other)) is not None:
            detail = f"{name} consumes for the group {group} with other tenants: give this one a group of its own"
            raise _wrong("groups", detail)


def _wrong(place: str, detail: str) -> Invalid:
    return Invalid("token_scope_invalid", detail, place=place, advice="see `patra token new --help`")


def _no_token(name: str) -> Invalid:
    return Invalid("token_not_found", f"{name!r} has no token in force", advice="`patra token list` shows them")


def _expiry(now: int, lifetime: int | None) -> int | None:
    if lifetime is None:
        return None
    if lifetime <= 0 or now + lifetime >= FOREVER:
        raise Invalid("token_lifetime_invalid", "a token lives for some time, and not forever", place="expires")
    return now + lifetime


def _insert(tx: Tx, name: str, role: Role, scope: Scope, *, by: str, now: int, expires_at: int | None) -> NewToken:
    token = PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    row = {
        "token_hash": sha256(token.encode()).hexdigest(),
        "name": name,
        "role": role.value,
        "scope": msgspec.json.encode(scope).decode(),
        "created_at": now,
        "created_by": by,
        "expires_at": expires_at,
        "revoked_at": None,
        "used_at": None,
    }
    tx.insert("app_token", [row])
    return NewToken(name=name, token=token, expires_at=_shown_instant(expires_at))


def _state(revoked_at: int | None, expires_at: int | None, now: int) -> Literal["active", "expired", "revoked"]:
    if revoked_at is not None:
        return "revoked"
    return "expired" if expires_at is not None and expires_at <= now else "active"


def _shown_instant(instant: int | None) -> str | None:
    return format_instant(instant) if instant is not None else None
