"""The values of expressions, and the bounds that hold for every one of them (ch. 4.8).

JSON values, and two kinds of integers that know what they count: `Instant` (µs since 1970) and `Span` (µs).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

import msgspec

from patra.ingest.vocabulary.instants import write_instant
from patra.kernel.errors import Invalid

MAX_LIST = 10_000
MAX_INT = 2**63 - 1


class Instant(int):
    """Microseconds since 1970-01-01T00:00:00Z."""

    __slots__ = ()


class Span(int):
    """A length of time in microseconds."""

    __slots__ = ()


class Env(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation may know beside its names: the instant that `now()` means, how times are written, bounds."""

    now: int = 0
    time_format: str = "ISO"
    zone: str = "UTC"
    max_text: int = 65_536


class Context(msgspec.Struct, frozen=True):
    """The names of one evaluation: `{"window": {"from": Instant(…)}, "page": {"offset": 0}, …}`."""

    values: Mapping[str, Any]
    env: Env = Env()


def evaluation_failure(detail: str, advice: str = "") -> Invalid:
    """An evaluation that cannot go on; the request or the record that asked for it is refused with this reason."""
    return Invalid("expr_failed", detail, advice=advice)


def kind(value: Any) -> str:
    """What a value is, for people."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case Instant():
            return "an instant"
        case Span():
            return "a duration"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def text_of(value: Any, env: Env) -> str:
    """A value as text: times by the format of the pack, true and false in small letters; lists have none."""
    if type(value) is str and len(value) <= env.max_text:
        return value
    match value:
        case str():
            return bounded_text(value, env)
        case bool():
            return "true" if value else "false"
        case Instant():
            return write_instant(value, env.time_format, env.zone)
        case Span():
            raise evaluation_failure("a duration has no text; add it to an instant or take a number of it")
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
        case None:
            raise evaluation_failure("nothing has no text; use coalesce(…, '')")
        case _:
            raise evaluation_failure(f"{kind(value)} cannot be written into text; use join(…, ',') or json(…)")


def bounded_text(value: str, env: Env) -> str:
    if len(value) > env.max_text:
        raise evaluation_failure(f"the text would have {len(value)} characters, the bound is {env.max_text}")
    return value


def bounded_list(value: Sequence[Any]) -> list[Any]:
    if len(value) > MAX_LIST:
        raise evaluation_failure(f"the list would have {len(value)} items, the bound is {MAX_LIST}")
    return list(value)


def bounded_number(value: float) -> int | float:
    if isinstance(value, int):
        if abs(value) > MAX_INT:
            raise evaluation_failure("the number is too large")
        return value
    if not math.isfinite(value):
        raise evaluation_failure("the number is not finite")
    return value


def number_of(value: Any) -> int | float:
    """A number, or a text that is one."""
    if isinstance(value, bool) or value is None:
        raise evaluation_failure(f"{kind(value)} is not a number")
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and len(value) <= 32:
        text = value.strip()
        try:
            return bounded_number(int(text)) if text.lstrip("+-").isdecimal() else bounded_number(float(text))
        except ValueError:
            pass
    raise evaluation_failure(f"{kind(value)} is not a number")


def list_of(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return bounded_list(cast("Sequence[Any]", value))
    raise evaluation_failure(f"{kind(value)} is not a list")


def truth(value: Any) -> bool:
    """Nothing, false, zero, empty text and empty lists are false."""
    return bool(value)


def same(left: Any, right: Any) -> bool:
    """Equal in kind and value: `1 == '1'` is false, `1 == 1.0` is true."""
    if type(left) is str or left is None:
        return type(left) is type(right) and left == right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return (type(left) is type(right) and left == right) or (_plain(left) and _plain(right) and left == right)


def orderable_pair(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values that can be compared by order."""
    if isinstance(left, str) and isinstance(right, str):
        return left, right
    if isinstance(left, Instant) and isinstance(right, Instant):
        return int(left), int(right)
    if isinstance(left, Span) and isinstance(right, Span):
        return int(left), int(right)
    if _plain(left) and _plain(right):
        return left, right
    raise evaluation_failure(f"{kind(left)} and {kind(right)} have no order")


def _plain(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool | Instant | Span)


def arithmetic(operator: str, left: Any, right: Any, env: Env) -> Any:
    """`+ - * / %` on numbers; `+` joins texts; instants and durations add and subtract as they should."""
    if type(left) is int and type(right) is int:
        return bounded_number(_numbers(operator, left, right))
    if isinstance(left, str) and isinstance(right, str) and operator == "+":
        if len(left) + len(right) > env.max_text:
            raise evaluation_failure(f"the text would pass the bound of {env.max_text} characters")
        return left + right
    if isinstance(left, Instant | Span) or isinstance(right, Instant | Span):
        return _times(operator, left, right)
    if _plain(left) and _plain(right):
        return bounded_number(_numbers(operator, left, right))
    raise evaluation_failure(f"{kind(left)} {operator} {kind(right)} means nothing")


def _numbers(operator: str, left: float, right: float) -> int | float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _ if right == 0:
            raise evaluation_failure("division by zero")
        case "/":
            return left // right if _whole(left, right) else left / right
        case _:
            return left % right


def _whole(left: float, right: float) -> bool:
    return isinstance(left, int) and isinstance(right, int) and left % right == 0


def _times(operator: str, left: Any, right: Any) -> Any:
    match operator, left, right:
        case "+", Instant(), Span():
            return _instant(int(left) + int(right))
        case "+", Span(), Instant():
            return _instant(int(left) + int(right))
        case "-", Instant(), Span():
            return _instant(int(left) - int(right))
        case "-", Instant(), Instant():
            return Span(int(left) - int(right))
        case "+", Span(), Span():
            return _span(int(left) + int(right))
        case "-", Span(), Span():
            return _span(int(left) - int(right))
        case "*", Span(), int() if not isinstance(right, bool | Instant | Span):
            return _span(int(left) * right)
        case "/", Span(), Span() if right:
            return int(left) / int(right)
        case _:
            raise evaluation_failure(f"{kind(left)} {operator} {kind(right)} means nothing")


def _instant(value: int) -> Instant:
    return Instant(bounded_number(value))


def _span(value: int) -> Span:
    return Span(bounded_number(value))
