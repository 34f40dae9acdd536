"""App keys: made for an app and shown once; a presented key is traced to its app.

A key is kept as its sha256 only. Once an app has ever been registered, a batch needs a key, also when every key has
been revoked since: revoking must never open the intake (F11).
"""

import secrets
import threading
from hashlib import sha256

import msgspec

from patra.attribution.intake.envelope import legal_id
from patra.attribution.storage.sql import Q
from patra.kernel.clock import SECOND, Clock, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid

PREFIX = "pk_"
FRESH = 2 * SECOND
"""How long a process goes by what it last read: a revoked key is refused everywhere after that."""


class AppKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key as people see it afterwards: by its hash."""

    app_id: str
    key_id: str
    created_at: str
    revoked_at: str | None


def add_key(tx: Tx, app_id: str, now: int) -> str:
    """Register an app, or give it one more key; the key is returned here and never again."""
    if not legal_id(app_id):
        raise Invalid(
            "app_id_invalid", f"{app_id!r} is not an appId", advice="1 to 128 characters of A-Z a-z 0-9 . _ : -"
        )
    key = PREFIX + secrets.token_urlsafe(32)
    tx.insert("att_app_key", [{"key_hash": _hash(key), "app_id": app_id, "created_at": now, "revoked_at": None}])
    return key


def revoke_keys(tx: Tx, app_id: str, now: int, key_id: str | None = None) -> list[str]:
    """Revoke the keys of an app, or the one whose id begins so; gives the ids of those that were in force."""
    if key_id == "":
        raise Invalid("app_key_unknown", "no id of a key was given", advice="`patra attribution app list`")
    found = [key for key in app_keys(tx) if key.app_id == app_id and key.revoked_at is None]
    chosen = [key for key in found if key_id is None or key.key_id.startswith(key_id)]
    if not chosen:
        raise Invalid("app_key_unknown", f"{app_id} has no such key in force", advice="`patra attribution app list`")
    if key_id and len(chosen) > 1:
        raise Invalid("app_key_ambiguous", f"{len(chosen)} keys of {app_id} begin so", advice="give more of the id")
    rows = [(bytes.fromhex(key.key_id),) for key in chosen]
    tx.execute(Q["revoke_keys"], {"now": now}, rows=rows)
    return [key.key_id for key in chosen]


def rotate_key(tx: Tx, app_id: str, now: int) -> str:
    """Revoke every key of an app and give it a new one, in one step."""
    revoke_keys(tx, app_id, now)
    return add_key(tx, app_id, now)


def app_keys(tx: Tx) -> list[AppKey]:
    """Every key there ever was, by app and age."""
    return [
        AppKey(
            app_id=app_id,
            key_id=bytes(key_hash).hex(),
            created_at=format_instant(created_at),
            revoked_at=format_instant(revoked_at) if revoked_at is not None else None,
        )
        for key_hash, app_id, created_at, revoked_at in tx.fetch(Q["app_keys"])
    ]


class Keyring:
    """The keys in force, as one process knows them; read again every two seconds."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at: int | None = None
        self._apps: dict[bytes, str] = {}
        self._registered = False

    @property
    def is_fresh(self) -> bool:
        """Whether what was last read may still be gone by; if not, `refresh` reads again."""
        return self._read_at is not None and 0 <= self._clock.now() - self._read_at < FRESH

    @property
    def has_apps(self) -> bool:
        """Whether any app was ever registered, so that a key is needed."""
        return self._registered

    def app_of(self, key: str) -> str | None:
        """The app that a key speaks for. Keys are found by their hash, so the time taken reveals nothing about them."""
        return self._apps.get(_hash(key))

    def refresh(self) -> None:
        """Read the keys again, unless another thread has just done so."""
        with self._lock:
            if self.is_fresh:
                return
            rows = self._db.read(lambda tx: tx.fetch(Q["app_keys"]))
            self._apps = {bytes(key_hash): app_id for key_hash, app_id, _, revoked_at in rows if revoked_at is None}
            self._registered = bool(rows)
            self._read_at = self._clock.now()


def _hash(key: str) -> bytes:
    return sha256(key.encode()).digest()
