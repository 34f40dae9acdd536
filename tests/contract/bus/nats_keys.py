"""Keys and tokens of a NATS operator, account and user, as `nsc` would make them."""

import base64
import hashlib
import json
import os
import time

import nkeys


def user_seed() -> tuple[str, str]:
    """The seed of a user and its public key."""
    pair = _pair(nkeys.PREFIX_BYTE_USER)
    return bytes(pair.seed).decode(), pair.public_key.decode()


class Operator:
    """An operator with one account that may use JetStream, and one user in it."""

    def __init__(self) -> None:
        self._operator = _pair(nkeys.PREFIX_BYTE_OPERATOR)
        self._account, self._system = _pair(nkeys.PREFIX_BYTE_ACCOUNT), _pair(nkeys.PREFIX_BYTE_ACCOUNT)

    def server_config(self) -> str:
        operator = _token(self._operator, _name(self._operator), "operator", {})
        limits = dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf"], -1) | {
            "wildcards": True
        }
        stores = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)
        accounts = {
            _name(self._account): _token(self._operator, _name(self._account), "account", {"limits": limits | stores}),
            _name(self._system): _token(self._operator, _name(self._system), "account", {"limits": limits}),
        }
        preload = "\n".join(f"  {name}: {token}" for name, token in accounts.items())
        return (
            f"operator: {operator}\nsystem_account: {_name(self._system)}\n"
            f"resolver: MEMORY\nresolver_preload: {{\n{preload}\n}}\n"
        )

    def credentials(self) -> str:
        """The text of a credentials file."""
        user = _pair(nkeys.PREFIX_BYTE_USER)
        token = _token(self._account, _name(user), "user", {"subs": -1, "data": -1, "payload": -1})
        return (
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{bytes(user.seed).decode()}\n------END USER NKEY SEED------\n"
        )


def _pair(prefix: int) -> nkeys.KeyPair:
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), prefix))


def _name(pair: nkeys.KeyPair) -> str:
    return pair.public_key.decode()


def _token(issuer: nkeys.KeyPair, subject: str, kind: str, rules: dict[str, object]) -> str:
    body = {
        "iat": int(time.time()),
        "iss": _name(issuer),
        "name": kind,
        "sub": subject,
        "nats": {**rules, "type": kind, "version": 2},
    }
    digest = hashlib.new("sha512_256", json.dumps(body).encode()).digest()
    body["jti"] = base64.b32encode(digest).decode().rstrip("=")
    signed = f"{_base64({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_base64(body)}"
    return f"{signed}.{base64.urlsafe_b64encode(issuer.sign(signed.encode())).decode().rstrip('=')}"


def _base64(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
