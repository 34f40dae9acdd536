"""Who looks at the console: a session cookie stands for a token; without tokens, everyone on the loopback port.

Every act carries a form token that is derived from the cookie, so that another site, which cannot read the cookie,
cannot make the form. `Origin` and `Sec-Fetch-Site` are checked as well, in both modes.
"""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256

import msgspec
from starlette.responses import Response

from patra.app.access.actor import UNBOUND, Actor
from patra.app.access.sessions import COOKIE_BYTES, Sessions
from patra.web.auth import LOCAL, Gate
from patra.web.problem import Problem

COOKIE = "patra_console"


class Visitor(msgspec.Struct, frozen=True, kw_only=True):
    """A visitor with a cookie; `fresh` when the cookie must still be set."""

    actor: Actor
    cookie: str
    fresh: bool = False

    @property
    def form_token(self) -> str:
        return form_token(self.cookie)


def form_token(cookie: str) -> str:
    return sha256(b"patra console form\x00" + cookie.encode()).hexdigest()


class Access:
    """Signs people in and knows them again."""

    def __init__(self, gate: Gate, sessions: Sessions) -> None:
        self._gate = gate
        self._sessions = sessions
        self.open = gate.open

    def visitor(self, cookie: str) -> Visitor | None:
        """The actor that a cookie stands for; without tokens, every visitor is the local admin."""
        if self._gate.open:
            return Visitor(actor=LOCAL, cookie=cookie or secrets.token_urlsafe(COOKIE_BYTES), fresh=not cookie)
        token_hash = self._sessions.token_hash(cookie) if cookie else None
        if token_hash is None:
            return None
        actor = self._gate.holder(bytes.fromhex(token_hash))
        if actor is None or actor.scope != UNBOUND:  # no longer in force
            return None
        return Visitor(actor=actor, cookie=cookie)

    def sign_in(self, presented: str) -> Visitor | None:
        """A session for a token; None for one that is not known, or bound to less than all of Patra."""
        digest = sha256(presented.strip().encode()).digest()
        found = self._gate.holder(digest)
        if found is None or found.scope != UNBOUND:
            return None
        return Visitor(actor=found, cookie=self._sessions.begin(digest.hex()), fresh=True)

    def sign_out(self, cookie: str) -> None:
        if cookie and not self._gate.open:
            self._sessions.end(cookie)

    def refusal(self, method: str, headers: Mapping[str, str], server: str) -> Problem | None:
        """The checks of every address of Patra, for every caller; `server` is the address that the request reached."""
        return self._gate.refusal(method, headers, server)

    @staticmethod
    def is_form_of(visitor: Visitor, presented: str) -> bool:
        return hmac.compare_digest(visitor.form_token.encode(), presented.encode())


def set_cookie(response: Response, cookie: str, *, secure: bool) -> None:
    response.set_cookie(COOKIE, cookie, path="/console", httponly=True, samesite="strict", secure=secure)


def drop_cookie(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/console", httponly=True, samesite="strict")


def local_path(text: str, fallback: str = "/console/") -> str:
    """An address of the console and of nothing else: where a form leads back to is the client's word."""
    path = text.partition("?")[0]
    inside = path == "/console" or path.startswith("/console/")
    steps = path.startswith("/console/do") or "\\" in text or ".." in path
    return text if inside and not steps else fallback
