"""The whitelist: the only functions that expressions can call, each with its arity, its text and its bounds (ch. 4.8).

None of them reads a clock, a file, a network or an attribute; each refuses to make a text or list beyond the bounds
before it makes it. `jsonPath` and `matches` take their path and pattern as literals, compiled with the expression.
"""

import base64
import math
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, cast
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from patra.ingest.expressions.values import (
    Env,
    Instant,
    Span,
    bounded_list,
    bounded_number,
    bounded_text,
    evaluation_failure,
    kind,
    list_of,
    number_of,
    text_of,
)
from patra.ingest.vocabulary.instants import read_instant, write_instant
from patra.kernel.clock import parse_duration
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """A function of the whitelist. `literal` is the argument that must be a literal text, counted from 0."""

    name: str
    call: Callable[..., Any]
    fewest: int
    most: int
    usage: str
    text: str
    literal: int | None = None


FUNCTIONS: dict[str, Function] = {}


def _function(
    usage: str, text: str, fewest: int, most: int | None = None, literal: int | None = None
) -> Callable[..., Any]:
    name = usage.partition("(")[0]

    def declare(call: Callable[..., Any]) -> Callable[..., Any]:
        top = fewest if most is None else most
        FUNCTIONS[name] = Function(
            name=name, call=call, fewest=fewest, most=top, usage=usage, text=text, literal=literal
        )
        return call

    return declare


MAX_ARGUMENTS = 32
"""Most arguments of a function that takes any number of them."""


@_function("now()", "The instant of the run; the same for all of one batch, and kept with it.", 0)
def _now(env: Env) -> Instant:
    return Instant(env.now)


@_function("formatDateTime(instant, 'yyyy-MM-dd', 'UTC')", "An instant as text; the zone may be left out.", 2, 3)
def _format_date_time(env: Env, at: Any, fmt: Any, zone: Any = None) -> str | None:
    if at is None:
        return None
    if not isinstance(at, Instant):
        raise evaluation_failure(
            f"formatDateTime wants an instant, not {kind(at)}", "parseDateTime makes one of a text"
        )
    return write_instant(at, text_of(fmt, env), text_of(zone, env) if zone is not None else env.zone)


@_function(
    "parseDateTime(text, 'yyyy/MM/dd')", "An instant from text or number; without a format by what it looks like.", 1, 2
)
def _parse_date_time(env: Env, value: Any, fmt: Any = None) -> Instant | None:
    if isinstance(value, Instant) or value is None:
        return value
    found = read_instant(value, (text_of(fmt, env) if fmt is not None else "AUTO",), env.zone)
    return None if found is None else Instant(found.at)


@_function("duration('P1D')", "A length of time: `window.to - duration('PT1S')`.", 1)
def _duration(env: Env, text: Any) -> Span:
    return Span(parse_duration(text_of(text, env)))


@_function(
    "coalesce(a, b, …)", "The first argument that is not null; those behind it are not computed.", 1, MAX_ARGUMENTS
)
def _coalesce(_: Env, *values: Any) -> Any:
    for value in values:
        if value is not None:
            return value
    return None


@_function("concat(a, b, …)", "The texts one after the other; null counts as empty.", 1, MAX_ARGUMENTS)
def _concat(env: Env, *values: Any) -> str:
    bound = env.max_text
    texts = [
        value if type(value) is str and len(value) <= bound else text_of(value, env)
        for value in values
        if value is not None
    ]
    whole = "".join(texts)  # of few texts, each of them bounded
    if len(whole) > bound:
        raise evaluation_failure(f"the text would pass the bound of {bound} characters")
    return whole


@_function("join(list, ',')", "The items of a list as one text; nulls are left out.", 2)
def _join(env: Env, items: Any, separator: Any) -> str | None:
    return None if items is None else _join_texts(env, text_of(separator, env), list_of(items))


@_function("lower(text)", "In small letters.", 1)
def _lower(env: Env, value: Any) -> str | None:
    return None if value is None else text_of(value, env).lower()


@_function("upper(text)", "In capital letters.", 1)
def _upper(env: Env, value: Any) -> str | None:
    return None if value is None else bounded_text(text_of(value, env).upper(), env)


@_function("trim(text)", "Without white space at its ends; empty becomes null.", 1)
def _trim(env: Env, value: Any) -> str | None:
    return None if value is None else text_of(value, env).strip() or None


@_function("replace(text, 'find', 'with')", "Every occurrence replaced; `find` is plain text, not a pattern.", 3)
def _replace(env: Env, value: Any, find: Any, by: Any) -> str | None:
    if value is None:
        return None
    whole, old, new = text_of(value, env), text_of(find, env), text_of(by, env)
    if not old:
        raise evaluation_failure("replace needs a text to find")
    if len(whole) + whole.count(old) * (len(new) - len(old)) > env.max_text:
        raise evaluation_failure(f"the text would pass the bound of {env.max_text} characters")
    return whole.replace(old, new)


@_function("substring(text, from, to)", "Characters from the one number up to the other, counted from 0.", 2, 3)
def _substring(env: Env, value: Any, begin: Any, end: Any = None) -> str | None:
    return None if value is None else text_of(value, env)[_index(begin) : None if end is None else _index(end)]


@_function("before(text, sep)", "What stands before the first separator; null where there is none.", 2)
def _before(env: Env, value: Any, separator: Any) -> str | None:
    head, found, _ = _part_text(env, value, separator)
    return head if found else None


@_function("after(text, sep)", "What stands after the first separator; null where there is none.", 2)
def _after(env: Env, value: Any, separator: Any) -> str | None:
    _, found, tail = _part_text(env, value, separator)
    return tail if found else None


@_function("padLeft(text, width, '0')", "Filled up on the left.", 3)
def _pad_left(env: Env, value: Any, width: Any, fill: Any) -> str | None:
    char, size = text_of(fill, env), _index(width)
    if len(char) != 1 or size > 1000:
        raise evaluation_failure("padLeft fills with one character, up to 1,000")
    return None if value is None else text_of(value, env).rjust(size, char)


@_function("split(text, ',')", "A list of the parts.", 2)
def _split(env: Env, value: Any, separator: Any) -> list[Any] | None:
    if not (by := text_of(separator, env)):
        raise evaluation_failure("split needs a separator")
    return None if value is None else bounded_list(text_of(value, env).split(by))


@_function("first(list)", "The first item; null of an empty list.", 1)
def _first(_: Env, items: Any) -> Any:
    found = list_of(items) if items is not None else []
    return found[0] if found else None


@_function("last(list)", "The last item; null of an empty list.", 1)
def _last(_: Env, items: Any) -> Any:
    found = list_of(items) if items is not None else []
    return found[-1] if found else None


@_function(
    "lists(a, b, …)", "The items of all lists as one list; what is not a list is one item, null none.", 1, MAX_ARGUMENTS
)
def _lists(_: Env, *values: Any) -> list[Any] | None:
    """No item at all is null."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    parts = (list_of(value) if isinstance(value, list | tuple) else [value] for value in there)
    return bounded_list([item for part in parts for item in part]) or None


@_function("distinct(list)", "Each item once, in order.", 1)
def _distinct(_: Env, items: Any) -> list[Any]:
    found = list_of(items) if items is not None else []
    kept: dict[bytes, Any] = {}
    for item in found:
        kept.setdefault(msgspec.json.encode(item), item)
    return list(kept.values())


@_function("length(x)", "How many characters or items.", 1)
def _length(_: Env, value: Any) -> int:
    if isinstance(value, str | list | tuple | dict):
        return len(cast("list[Any]", value))
    if value is None:
        return 0
    raise evaluation_failure(f"{kind(value)} has no length")


@_function("contains(x, y)", "Whether a text holds a text, or a list an item.", 2)
def _contains(env: Env, whole: Any, part: Any) -> bool:
    if whole is None:
        return False
    return part in list_of(whole) if isinstance(whole, list | tuple) else text_of(part, env) in text_of(whole, env)


@_function("startsWith(text, 'a')", "Whether a text begins so.", 2)
def _starts_with(env: Env, whole: Any, part: Any) -> bool:
    return whole is not None and text_of(whole, env).startswith(text_of(part, env))


@_function("endsWith(text, 'a')", "Whether a text ends so.", 2)
def _ends_with(env: Env, whole: Any, part: Any) -> bool:
    return whole is not None and text_of(whole, env).endswith(text_of(part, env))


@_function("matches(text, '[0-9]+')", "Whether the whole text matches a pattern, given as a literal.", 2, literal=1)
def _matches(env: Env, value: Any, source: str) -> bool:
    return value is not None and pattern(source).matches(text_of(value, env))


@_function("number(x)", "A number from text; null where it is none.", 1)
def _number(_: Env, value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            return number_of(value)
        except Invalid:
            return None
    return None if value is None else number_of(value)


@_function("text(x)", "A value as text.", 1)
def _text(env: Env, value: Any) -> str | None:
    return None if value is None else text_of(value, env)


@_function("min(a, b, …)", "The smallest number.", 1, MAX_ARGUMENTS)
def _min(_: Env, *values: Any) -> int | float:
    return min(number_of(value) for value in values)


@_function("max(a, b, …)", "The largest number.", 1, MAX_ARGUMENTS)
def _max(_: Env, *values: Any) -> int | float:
    return max(number_of(value) for value in values)


@_function("floor(x)", "Rounded down.", 1)
def _floor(_: Env, value: Any) -> int | float:
    return bounded_number(math.floor(number_of(value)))


@_function("ceil(x)", "Rounded up.", 1)
def _ceil(_: Env, value: Any) -> int | float:
    return bounded_number(math.ceil(number_of(value)))


@_function("urlEncode(text)", "Percent-encoded, for a value inside a value.", 1)
def _url_encode(env: Env, value: Any) -> str | None:
    return None if value is None else bounded_text(quote(text_of(value, env), safe=""), env)


@_function("urlParam(url, 'cursor')", "A query parameter of a URL; null where it has none.", 2)
def _url_param(env: Env, url: Any, name: Any) -> str | None:
    if url is None:
        return None
    wanted = text_of(name, env)
    pairs = parse_qsl(urlsplit(text_of(url, env)).query, keep_blank_values=True, max_num_fields=1000)
    return next((value for key, value in pairs if key == wanted), None)


@_function("base64(text)", "In base 64.", 1)
def _base64(env: Env, value: Any) -> str | None:
    return None if value is None else bounded_text(base64.b64encode(text_of(value, env).encode()).decode(), env)


@_function("sha256(text)", "Its sha256 in lower-case hex.", 1)
def _sha256(env: Env, value: Any) -> str | None:
    return None if value is None else sha256(text_of(value, env).encode()).hexdigest()


@_function("json(x)", "A value as JSON text.", 1)
def _json(env: Env, value: Any) -> str:
    return bounded_text(msgspec.json.encode(value).decode(), env)


@_function(
    "jsonPath(x, '$.a.b')",
    "The first value that a JSONPath finds, given as a literal; null where it finds none.",
    2,
    literal=1,
)
def _json_path(_: Env, value: Any, find: Callable[[Any], list[Any]]) -> Any:
    found = find(value)
    return found[0] if found else None


@_function("jsonPaths(x, '$.a[*]')", "All values that a JSONPath finds, as a list.", 2, literal=1)
def _json_paths(_: Env, value: Any, find: Callable[[Any], list[Any]]) -> list[Any]:
    return bounded_list(find(value))


def _join_texts(env: Env, separator: str, items: Sequence[Any]) -> str:
    bound = env.max_text
    texts = [
        item if type(item) is str and len(item) <= bound else text_of(item, env) for item in items if item is not None
    ]
    if sum(map(len, texts)) + len(separator) * len(texts) > env.max_text:
        raise evaluation_failure(f"the text would pass the bound of {env.max_text} characters")
    return separator.join(texts)


def _part_text(env: Env, value: Any, separator: Any) -> tuple[str, str, str]:
    if not (by := text_of(separator, env)):
        raise evaluation_failure("a separator is needed")
    return ("", "", "") if value is None else text_of(value, env).partition(by)


def _index(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 2**31:
        return value
    raise evaluation_failure(f"{kind(value)} is not a place in a text")
