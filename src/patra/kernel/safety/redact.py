"""Turns text, URLs and data into the same without keys, tokens, passwords, e-mail addresses and phone numbers.

What is stored or logged passes through here. It hides too much rather than too little, is idempotent, and never fails:
invalid input is returned as it is.

| what | where it is found |
|---|---|
| a secret of this process | by its value, in whatever form it is repeated (`known_secrets`) |
| a value | behind a sensitive name (`api_key=…`, `"password": "…"`, `Authorization: …`), in text, URLs, headers, data |
| a credential | by its shape: `Bearer …`, `Basic …`, `user:password@` in URLs, JWTs, known prefixes, private keys |
| a person | e-mail addresses, phone numbers and identity card numbers, anywhere (ingest ch. 14.10) |
"""

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast
from urllib.parse import unquote_plus
from uuid import UUID

import msgspec

from patra.kernel.safety.known_secrets import MASK, WORDLIKE_CHARACTERS, scrub_known

_MAX_DEPTH = 64
_UNTOUCHED = (bool, int, float, type(None), date, time, timedelta, Decimal, UUID)

# --- names -----------------------------------------------------------------------------------------------------------

# Found anywhere in a name that is written without its dashes and capitals.
_TELLING = re.compile(
    "passw(?:or)?d|passphrase|passcode|pwd|secret|token|authorization|credential|signature|cookie|bearer|jwt"
    "|(?:api|access|private|signing|encryption|account|subscription|app|master|shared|session|auth|client)key"
    "|sessionid|email|msisdn|telephone|phonen|mobilen"
).search
# A whole word of a name: `db_pass`, `dbPass`, `X-Auth`.
_TELLING_WORDS = frozenset(
    {"auth", "pass", "sig", "pin", "otp", "psk", "hmac", "mailto", "phone", "mobile", "tel", "fax", "mail"}
)
# Tokens that say where to go on, not who one is: without them a failed page could not be explained.
_HARMLESS = re.compile(
    ".*(?:page|next|before|after|resume|resumption|continuation|fencing|cursor)tokens?(?:path|hint)?"
    "|(?:max|num|total)?tokens?count|(?:max|num|total)tokens|.*credential(?:id|ref|code|name|type)|.*signaturehash"
)
_FIELD = re.compile(r"[\w.-]{1,80}").fullmatch
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@lru_cache(maxsize=4096)
def is_telling(name: str) -> bool:
    """Whether what stands behind this name (of a field, header or parameter) is to be hidden."""
    plain = "".join(c for c in name.lower() if c.isalnum())
    if _HARMLESS.fullmatch(plain):
        return False
    return bool(_TELLING(plain)) or any(word.lower() in _TELLING_WORDS for word in _WORD.findall(name))


# --- text ------------------------------------------------------------------------------------------------------------

_KEY_PREFIX = "(?:[spr]k|gh[pousr]|github_pat|glpat|xox[abposr]|hf|npm|pypi|dop_v1)[-_]"
# Nearly every text of a log line is free of all of these, and passes at the cost of one search.
_SUSPECT = re.compile(
    rf"[@:=%]|\+[0-9]|\([0-9]|[0-9][0-9 ./()-]{{6}}[0-9]|eyJ|{_KEY_PREFIX}|AKIA|ASIA|AIza|-----|(?i:bearer|basic)"
).search
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>\\^`{|}]+")
# A name is taken whole or not at all: no part of one is followed by what must follow.
_NAME = re.compile(r"(?<![\w-])([\w-]++)(\\*+[\"']?+)\s{0,8}+(?:=>|[:=])\s{0,8}")
_WHOLE_LINE = re.compile(r"(?:proxy-?)?authorization|(?:set-?)?cookie2?", re.IGNORECASE).fullmatch
_VALUE = re.compile(
    r"(?P<escaped>\\+[\"'])(?:(?!(?P=escaped)).)*(?P<end>(?P=escaped))?"
    r"|\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?"
    r"|(?:(?:bearer|basic|digest|token|negotiate)\s{1,8})?[^\s&,;\"'<>)\]}]+",
    re.IGNORECASE | re.DOTALL,
).match
_LINE = re.compile(r"[^\r\n]*").match
_BEARER = re.compile(r"\b(bearer\s{1,8})[^\s\"',;<>]+", re.IGNORECASE)
_BASIC = re.compile(r"\b(basic\s{1,8})([A-Za-z0-9+/=_-]{4,})", re.IGNORECASE)
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?"  # a JSON Web Token
    rf"|\b{_KEY_PREFIX}[A-Za-z0-9_-]{{16,}}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{30,}",
    re.DOTALL,
)
# What these look for is in every text that the patterns beside them match, and is found at a fraction of their cost.
_SHAPELY = re.compile(
    r"-----BEGIN|eyJ|[-_](?<=(?:[spr]k|h[pousr]|at|x[abposr]|hf|pm|pi|v1)[-_])[A-Za-z0-9_-]{16}|A(?:KI|SI)A|AIza"
).search
_DIGITS = re.compile(r"[0-9]{17}").search
_EMAIL = re.compile(
    r"(?:(?<![\w.!#$%'+^`~-])[\w.!#$%'+^`~-]+(?:@|(?<=\w)%40)"
    r"|(?<!://\*\*)[*/=?&{|}]@)"  # legal before the @, but rather a part of what stands before the address
    r"(?:[\w-]+\.)+[\w-]*\w"
)
# In a name that is not text: `feed@v1.2`, `banner@2.x` and `banner@2x.png` are none.
_LABEL_EMAIL = re.compile(
    r"(?<![\w.!#$%'+^`~-])[\w.!#$%'+^`~-]+(?:@|(?<=\w)%40)(?![0-9]x\.(?:png|jpe?g|gif|webp|svg|avif)\b)"
    r"(?:[\w-]+\.)+[^\W\d_]{2,}+(?![0-9])"
).search
_LABEL_VALUE = re.compile(r"(?=[^0-9]*[0-9])(?=.*?[^\W\d_]).{12,}", re.DOTALL).match  # of a run without white space
_PHONE = re.compile(
    r"(?=[+(0-9])(?:"  # what each of these begins with: five of them need not be tried at every character
    r"(?P<abroad>(?:(?<![\w+])\+|(?<![\w+.:/-])00(?=[1-9]))\(?[0-9][0-9 ()./-]{6,22}[0-9](?!\w))"  # +49 171 …, 0049 …
    r"|(?<![\w.-])\([0-9]{2,5}\)[ -]?[0-9]{2,4}[ -]?[0-9]{3,5}(?![\w-])"  # (555) 123-4567
    r"|(?<![\w.:/-])(?:1[-. ])?[0-9]{3}[-. ][0-9]{3}[-. ][0-9]{4}(?![\w-])"  # 555-123-4567
    r"|(?<![\w.:/-])1[3-9][0-9](?:[0-9]{8}|(?P<gap>[- ])[0-9]{4}(?P=gap)[0-9]{4})(?![\w-])"  # 13812345678
    r"|(?<![\w.:/-])0[0-9]{1,4}[ /-][0-9]{2,8}(?:[ -][0-9]{2,8}){0,3}(?![\w:-])"  # 0171 2345678, 010-12345678
    r")"
)
_IDENTITY_CARD = re.compile(
    r"(?<![\w.-])[1-9][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{3}[0-9Xx](?![\w.-])"
)


def redact_text(text: str) -> str:
    """The text without what identifies a person or opens a door, and without any secret of this process."""
    # A secret that is a word goes last: masked first, it could hide the name that says what to mask behind it.
    text = scrub_known(text, WORDLIKE_CHARACTERS)
    return scrub_known(_settle_text(_text_once, text) if _SUSPECT(text) else text)


def redact_published(text: str) -> str:
    """A text that was published (a title, an affiliation) without e-mail addresses, keys and our secrets.

    Nothing else is taken from it: "a signature: BRCA1" and a number of eleven digits are what the text is about.
    """
    return scrub_known(_without_addresses(text))


PUBLISHED_MARKS = rf"@|%40|-----BEGIN|eyJ|AKIA|ASIA|AIza|{_KEY_PREFIX}[A-Za-z0-9_-]{{16}}"
"""A pattern of which something stands in every text that `redact_published` changes, unless it is a secret of ours."""


def masked_label(text: str) -> str:
    """A name that others chose and that is handed on with money: itself, unless it holds a secret or an address.

    Then it is a mask with the beginning of its hash: lines stay apart, and a reader who knows the name can compare it.
    Numbers are left alone: they are ids more often than telephones. So are words behind a telling name ("auth: left").
    """
    if not _holds_address_or_key(text) and scrub_known(text) == text:  # secrets become known late: that is never cached
        return text
    return f"{MASK}{sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"


@lru_cache(maxsize=4096)
def _holds_address_or_key(text: str) -> bool:
    if not _SUSPECT(text):
        return False
    return (
        bool(_USERINFO.search(text) or _LABEL_EMAIL(text) or _SHAPES.search(text))
        or _without_schemes(text) != text
        or any(_LABEL_VALUE(run) for start, end, _ in _named_spans(text) for run in text[start:end].split())
    )


def _settle_text(once: Callable[[str], str], text: str) -> str:
    # A mask may uncover what its neighbour hid (a number right behind a word is none, right behind a mask it is).
    for _ in range(8):
        found = once(text)
        if found == text:
            break
        text = found
    return text


def _text_once(text: str) -> str:
    return _plain_text(_URL.sub(lambda match: _url_once(match[0]), text))


def _plain_text(text: str) -> str:
    text = _without_addresses(_without_credentials(text))
    if _DIGITS(text):
        text = _IDENTITY_CARD.sub(MASK, text)
    return _PHONE.sub(_phone, text)


def _without_credentials(text: str) -> str:
    return _without_schemes(_named_values(text))


def _without_schemes(text: str) -> str:
    folded = text.casefold()
    if "bearer" in folded:
        text = _BEARER.sub(rf"\g<1>{MASK}", text)
    return _BASIC.sub(_basic, text) if "basic" in folded else text


def _without_addresses(text: str) -> str:
    """Without what is found by its shape alone, whatever the text is about: keys and e-mail addresses."""
    if _SHAPELY(text):
        text = _SHAPES.sub(MASK, text)
    return _EMAIL.sub(MASK, text) if "@" in text or "%40" in text else text


def _named_values(text: str) -> str:
    out: list[str] = []
    done = 0
    for start, end, quote in _named_spans(text):
        out += (text[done:start], _mask_value(text[start:end], quote))
        done = end
    return "".join(out) + text[done:] if out else text


def _named_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Where the values behind sensitive names begin and end, with the quote that ends the name."""
    done = 0
    for match in _NAME.finditer(text):
        if match.start() < done or not is_telling(match[1]):
            continue
        start = match.end()
        end = _value_end(text, start, whole_line=bool(_WHOLE_LINE(match[1])))
        if end > start:
            yield start, end, match[2]
            done = end


def _value_end(text: str, start: int, *, whole_line: bool) -> int:
    first = text[start : start + 1]
    if first in {"[", "{"}:
        return _closing(text, start)
    match = (_LINE if whole_line and first not in {'"', "'", "\\"} else _VALUE)(text, start)
    return match.end() if match else start


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes; the end of the text if it does not."""
    depth, quote, index = 0, "", start
    while index < len(text):
        char = text[index]
        if quote:
            if char == "\\":
                index += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if depth == 0:
                return index + 1
        index += 1
    return len(text)


def _mask_value(value: str, quote: str) -> str:
    """The mask, in the quotes of the value or else of its name, so that JSON stays JSON."""
    match = re.match(r"\\*[\"']", value)
    if match is None:
        return f"{quote}{MASK}{quote}"
    own = match[0]
    return f"{own}{MASK}{own if value.endswith(own) and len(value) >= 2 * len(own) else ''}"


def _basic(match: re.Match[str]) -> str:
    try:  # "Basic authentication" is prose; credentials decode to user:password
        decoded = b64decode(
            match[2] + "=" * (-len(match[2]) % 4), altchars=b"-_" if {"-", "_"} & set(match[2]) else None
        )
    except (binascii.Error, ValueError):
        return match[0]
    return f"{match[1]}{MASK}" if b":" in decoded else match[0]


def _phone(match: re.Match[str]) -> str:
    digits = sum(char.isdigit() for char in match[0])
    low, high = (8, 17) if match["abroad"] else (9, 13)  # an ISSN has 8, an ORCID 16
    return MASK if low <= digits <= high else match[0]


# --- URLs ------------------------------------------------------------------------------------------------------------

# A password may hold what a URL must not, so it goes to the last @; the bounds keep a hostile text from costing more
# than its length. What looks like a port is none.
_USERINFO = re.compile(r"(://)(?:[^\s/?#@:]{0,256}:(?![0-9]+(?:[/?#\s]|$))\S{0,2048}@|[^\s/?#]{1,1024}@)")
_PARAMETER = re.compile(r"([?&#;])([^=&#;\s]*)=([^&#\s]*)")


def redact_url(url: str) -> str:
    """The URL without user and password, and without the values of sensitive parameters."""
    return scrub_known(_settle_text(_url_once, scrub_known(url, WORDLIKE_CHARACTERS)))


def _url_once(url: str) -> str:
    if "@" in url:
        url = _USERINFO.sub(rf"\g<1>{MASK}@", url)
    return _plain_text(_PARAMETER.sub(_parameter, url))


def _parameter(match: re.Match[str]) -> str:
    name, value = match[2], match[3]
    plain = unquote_plus(name)
    if value and (is_telling(plain) or plain.lower() == "key" or _hides_something(value)):
        value = MASK
    return f"{match[1]}{name}={value}"


def _hides_something(value: str) -> bool:
    for _ in range(3):  # a URL in a parameter of a URL in a parameter
        decoded = unquote_plus(value)
        if decoded == value:
            break
        value = decoded
    return redact_text(value) != value


# --- data ------------------------------------------------------------------------------------------------------------


def redact(value: Any) -> Any:
    """The value with the same shape, its texts redacted, values behind sensitive names hidden.

    Structs become dicts, and objects of a type that is neither data nor text become their redacted text.
    """
    return _data(value, _text_or_same, 0)


def _text_or_same(text: str) -> str:
    found = redact_text(text)
    return text if found == text else found


def _hide_text(text: str) -> str:
    return MASK if text else text


def _data(value: Any, on_text: Callable[[str], str], depth: int) -> Any:
    if isinstance(value, str):
        return on_text(value)
    if isinstance(value, _UNTOUCHED):
        if on_text is _hide_text and not isinstance(value, bool | None):
            return MASK
        return value
    if depth >= _MAX_DEPTH:
        return MASK
    if isinstance(value, bytes | bytearray):
        return on_text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[Any, Any]", value), on_text, depth + 1)
    if isinstance(value, list | tuple | set | frozenset):
        return _items(cast("Iterable[Any]", value), on_text, depth + 1)
    return _object(value, on_text, depth)


def _mapping(value: Mapping[Any, Any], on_text: Callable[[str], str], depth: int) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for key, item in value.items():
        named = isinstance(key, str | bytes)
        telling = named and is_telling(key if isinstance(key, str) else key.decode("latin-1"))
        shown = _data(key, _text_or_same, depth) if named else key
        while shown in out:
            shown += "'" if isinstance(shown, str) else b"'"
        out[shown] = _data(item, _hide_text if telling else on_text, depth)
    return out


def _items(value: Iterable[Any], on_text: Callable[[str], str], depth: int) -> Any:
    items = list(value)
    if len(items) == 2 and isinstance(items[0], str) and _FIELD(items[0]) and is_telling(items[0]):  # a header, say
        found = [on_text(items[0]), _data(items[1], _hide_text, depth)]
    else:
        found = [_data(item, on_text, depth) for item in items]
    if isinstance(value, list):
        return found
    return tuple(found) if isinstance(value, tuple) else type(value)(found)  # pyright: ignore[reportCallIssue]


def _object(value: Any, on_text: Callable[[str], str], depth: int) -> Any:
    try:
        if isinstance(value, msgspec.Struct):
            return _data(msgspec.to_builtins(value), on_text, depth + 1)
        return on_text(str(value))
    except Exception:  # noqa: BLE001  an object that cannot say what it is must not stop a log line
        return MASK
