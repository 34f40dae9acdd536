"""The secret values that this process holds, and texts without them.

A pattern finds a key by its shape or by the name in front of it. A provider that repeats our key in a sentence of its
own is found only by its value: code that reads a secret registers it here (`know_secret`), and everything that is
stored, logged or shown passes `scrub_known`, by way of `redact`. Secrets are found in the forms in which servers repeat
them: as they are, escaped for URLs, JSON and HTML, in hex, and in base64 wherever in the encoded bytes they stand.
"""

import base64
import html
import json
import re
import threading
from urllib.parse import quote, quote_plus, unquote, urlsplit

MIN_SECRET_CHARACTERS = 6  # a shorter one would be found in innocent words
MAX_SECRETS = 512  # the oldest go first: access tokens are renewed for ever
WORDLIKE_CHARACTERS = 12
"""A secret of up to this length may be a word (`secret`) that also names a parameter."""
EXCERPT_MARGIN_BYTES = 8192
"""How much more than an excerpt is read, so that a secret at its end is found whole."""
MASK = "***"

_ESCAPE = re.compile("%[0-9A-F]{2}")


class KnownSecrets:
    """A set of secrets, shared by the threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, frozenset[str]] = {}
        self._forms: tuple[str, ...] = ()
        self._bytes: tuple[bytes, ...] = ()

    def add(self, secret: str) -> None:
        """Remember a secret; one that is too short to be distinguished from other text is not."""
        if len(secret) < MIN_SECRET_CHARACTERS or secret in self._secrets:
            return
        with self._lock:
            while len(self._secrets) >= MAX_SECRETS:
                self._secrets.pop(next(iter(self._secrets)))
            self._secrets[secret] = _forms(secret)
            every = {form for forms in self._secrets.values() for form in forms}
            self._forms = tuple(sorted(every, key=lambda form: (-len(form), form)))  # the longest first
            self._bytes = tuple(form.encode("utf-8", "surrogateescape") for form in self._forms)

    def scrub(self, text: str, longer_than: int = 0) -> str:
        """The text with every form of every secret masked that is longer than so many characters."""
        for form in self._forms:
            if len(form) > longer_than and form in text:
                text = text.replace(form, MASK)
        return text

    def found_in(self, body: bytes) -> bool:
        for form in self._bytes:  # noqa: SIM110  asked several times for each record, mostly without any secret
            if form in body:
                return True
        return False


_KNOWN = KnownSecrets()


def know_secret(secret: str) -> str:
    """Remember a secret of this process; of a URL only its password is one. Gives it back."""
    if "://" in secret:
        for password in _passwords(secret):
            _KNOWN.add(password)
    else:
        _KNOWN.add(secret)
    return secret


def scrub_known(text: str, longer_than: int = 0) -> str:
    """The text without any secret that this process holds, or any that is longer than so many characters."""
    return _KNOWN.scrub(text, longer_than)


def holds_secret(body: bytes) -> bool:
    """Whether bytes hold a secret of this process."""
    return _KNOWN.found_in(body)


def _passwords(url: str) -> set[str]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return set()
    return {password, unquote(password)} if password else set()


def _forms(secret: str) -> frozenset[str]:
    raw = secret.encode("utf-8", "surrogateescape")
    in_urls = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    found = {
        secret,
        *in_urls,
        *(_ESCAPE.sub(lambda match: match[0].lower(), form) for form in in_urls),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(secret)[1:-1].replace("/", "\\/"),
        html.escape(secret),
        raw.hex(),
        raw.hex().upper(),
        *_base64_forms(raw),
    }
    return frozenset(form for form in found if len(form) >= MIN_SECRET_CHARACTERS)


def _base64_forms(raw: bytes) -> set[str]:
    """What is in base64 whenever the secret is encoded, whatever stands before and behind it (`user:secret`)."""
    found: set[str] = set()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode()
        start = (0, 2, 3)[before]  # characters that depend on what stands before
        whole = (before + len(raw)) * 8 // 6  # and none that depend on what follows
        inner = encoded[start:whole]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in found if len(form) >= MIN_SECRET_CHARACTERS + 2}
