"""Signing secrets of webhooks that are not in the store: derived from a key of the installation and a stored nonce.

With keys configured, a row holds `derived:KEY:NONCE`, and the secret is HMAC-SHA256 of the nonce under that key, so
a reader of the store, a backup or a replica cannot sign. The first key makes new secrets, all of them read those that
are there: a key is replaced by putting a new one in front and rotating the webhooks. Without keys, secrets stand in the
rows as they are.
"""

import base64
import hmac
import secrets
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from patra.bus.store import groups
from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.known_secrets import know_secret

SECRET = "whsec_"  # noqa: S105  a mark in front of secrets, none itself
DERIVED = "derived"
NONCE_BYTES = 16
MIN_KEY_CHARACTERS = 32


class WebhookKeys:
    """The keys of an installation, the newest first."""

    def __init__(self, keys: Sequence[str] = (), place: str = "bus.webhook_keys") -> None:
        for index, key in enumerate(keys):
            if len(key) < MIN_KEY_CHARACTERS:
                raise ConfigInvalid(
                    "config_webhook_key_short",
                    f"the key has fewer than {MIN_KEY_CHARACTERS} characters",
                    place=f"{place}[{index}]",
                    advice="`openssl rand -base64 32` makes a good one",
                )
        self._keys = {_key_id(key): key.encode() for key in reversed(keys)}
        self._newest = _key_id(keys[0]) if keys else ""

    def new(self) -> tuple[str, str]:
        """What the store keeps of a new secret, and the secret itself."""
        if not self._newest:
            secret = _encode_secret(secrets.token_bytes(32))
            return secret, secret
        stored = f"{DERIVED}:{self._newest}:{secrets.token_hex(NONCE_BYTES)}"
        return stored, self._derive_key(stored)

    def reveal(self, webhook: groups.Webhook) -> groups.Webhook | None:
        """The webhook with its secrets, or None where the key of the one in force is not configured.

        An old one whose key is gone no longer signs along.
        """
        secret, old = self._secret(webhook.secret), self._secret(webhook.old_secret)
        if secret is None:
            return None
        until = webhook.old_secret_until if old is not None else 0
        return msgspec.structs.replace(webhook, secret=secret, old_secret=old or "", old_secret_until=until)

    def _secret(self, stored: str) -> str | None:
        if not is_derived(stored):
            return stored
        return self._derive_key(stored) if stored.split(":")[1] in self._keys else None

    def _derive_key(self, stored: str) -> str:
        key = self._keys[stored.split(":")[1]]
        return know_secret(_encode_secret(hmac.digest(key, f"patra webhook\x00{stored}".encode(), "sha256")))


NO_KEYS = WebhookKeys()


def is_derived(stored: str) -> bool:
    return stored.startswith(f"{DERIVED}:")


def _key_id(key: str) -> str:
    """Distinguishes keys; reveals nothing of the key, which is long and random."""
    return sha256(b"patra webhook key\x00" + key.encode()).hexdigest()[:12]


def _encode_secret(secret: bytes) -> str:
    return SECRET + base64.b64encode(secret).decode()
