"""Turns a JSON value into its RFC 8785 bytes and their sha256: same meaning, same bytes, same hash (ruling A2).

msgspec writes the bytes where its output provably is the canonical one: no floats, and no key beyond the code points
whose UTF-16 order is their own order. Everything else goes through the rfc8785 library. What has no canonical form is
refused with the path of the first offender.
"""

import math
from hashlib import sha256
from typing import Any, NoReturn, cast

import msgspec
import rfc8785

from patra.kernel.errors import NotCanonical

MAX_INTEGER = 2**53 - 1
"""Past this an integer is not exact as an IEEE 754 double, which is what JSON numbers are (RFC 8785 §3.2.2.3)."""

_FIRST_SURROGATE = "\ud800"
# Types that msgspec would turn into text on its way; left as they are, so that the check below refuses them.
_NOT_JSON = (bytes, bytearray, memoryview)

_encode = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of dict, list, tuple, str, int, float, bool, None and msgspec Structs, nested at will."""
    try:
        if _plain(value):
            return _encode(value)
        return rfc8785.dumps(_check_value(value, "$"))
    except UnicodeEncodeError:
        _check_value(value, "$")  # names the place of the lone surrogate that msgspec met
        raise
    except RecursionError:
        raise NotCanonical("too_deep", "the value is nested too deeply, or contains itself") from None


def fingerprint(value: Any) -> str:
    """The sha256 of the canonical form, in lower-case hex."""
    return sha256(canonical(value)).hexdigest()


def sha256_hex(text: str | bytes) -> str:
    """The sha256 of the bytes, or of the text in UTF-8, in lower-case hex."""
    return sha256(text if isinstance(text, bytes) else _utf8(text)).hexdigest()


def key16(text: str) -> bytes:
    """The first 16 bytes of the text's sha256: a key of fixed width for tables that hold millions."""
    return sha256(_utf8(text)).digest()[:16]


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        _refuse("lone_surrogate", "the text contains half of a surrogate pair", "$")


def _plain(value: Any) -> bool:
    """Whether msgspec's sorted encoding is the canonical one (lone surrogates aside: the encoder raises on them)."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]  a cast would cost a call a node
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return -MAX_INTEGER <= value <= MAX_INTEGER
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or not (key.isascii() or max(key) < _FIRST_SURROGATE):
                return False
            if type(item) is not str and not _plain(item):
                return False
        return True
    if kind is list or kind is tuple:
        for item in value:  # noqa: SIM110  all() over a generator is half as fast
            if type(item) is not str and not _plain(item):
                return False
        return True
    return False


def _check_value(value: Any, path: str) -> Any:
    """The value in plain Python types, or NotCanonical with the path of what cannot be one."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, path)
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            _refuse("integer_out_of_range", "the integer lies beyond ±(2^53-1)", path)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            _refuse("number_not_finite", f"{value} is not a JSON number", path)
        return float(value)
    if isinstance(value, dict):
        return _checked_object(cast("dict[Any, Any]", value), path)
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        return [_check_value(item, f"{path}[{index}]") for index, item in enumerate(items)]
    if isinstance(value, msgspec.Struct):
        return _check_value(_fields(value, path), path)
    raise NotCanonical("not_json", f"{type(value).__name__} is not a JSON type", path=path)


def _checked_object(value: dict[Any, Any], path: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            _refuse("key_not_text", f"the key {key!r} is not text", path)
        place = f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]"
        out[_text(key, place)] = _check_value(item, place)
    return out


def _text(value: str, path: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            _refuse("lone_surrogate", "the text contains half of a surrogate pair", path)
    return str.__str__(value)  # a StrEnum member becomes its plain value


def _fields(value: msgspec.Struct, path: str) -> Any:
    """A Struct and all below it as msgspec would write it: renamed, tagged, defaults omitted as it declares."""
    try:
        return msgspec.to_builtins(value, builtin_types=_NOT_JSON, order="deterministic")
    except (TypeError, ValueError) as error:
        _refuse("not_json", f"{type(value).__name__}: {error}", path)


def _refuse(code: str, detail: str, path: str) -> NoReturn:
    raise NotCanonical(code, detail, path=path)
