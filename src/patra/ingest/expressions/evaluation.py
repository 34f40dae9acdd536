"""The closures that a compiled expression is made of: calls, walks, comparisons, arithmetic, indexing."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from patra.ingest.expressions.functions import Function
from patra.ingest.expressions.values import (
    Context,
    Env,
    arithmetic,
    evaluation_failure,
    kind,
    orderable_pair,
    same,
    truth,
)

Eval = Callable[[Context], Any]


class Node(NamedTuple):
    """What a closure computes, for those who write it as text (`expression_code`): its kind, and its parts in order."""

    kind: str
    parts: tuple[Any, ...]


def guard_function(function: Function) -> Callable[..., Any]:
    """The function, called with an Env and values; what it cannot do is a failed evaluation."""
    call = function.call

    def guard(env: Env, *values: Any) -> Any:
        try:
            return call(env, *values)
        except (ValueError, TypeError, OverflowError) as error:
            raise evaluation_failure(f"{function.name}: {error}") from error

    return guard


def call_function(function: Function, arguments: list[Eval]) -> Eval:
    if function.name == "coalesce":
        return first_present(arguments)
    call, guard = function.call, guard_function(function)

    def evaluate(c: Context) -> Any:
        return guard(c.env, *[argument(c) for argument in arguments])

    def single(c: Context) -> Any:
        value = only(c)
        try:
            return call(c.env, value)
        except (ValueError, TypeError, OverflowError) as error:
            raise evaluation_failure(f"{function.name}: {error}") from error

    def pair(c: Context) -> Any:
        first, second = one(c), other(c)
        try:
            return call(c.env, first, second)
        except (ValueError, TypeError, OverflowError) as error:
            raise evaluation_failure(f"{function.name}: {error}") from error

    if len(arguments) == 1:  # these two are most of all calls
        only = arguments[0]
        return single
    if len(arguments) == 2:
        one, other = arguments
        return pair
    return evaluate


def looked_up(value: Eval, first: Callable[[Any], Any]) -> Eval:
    """`jsonPath` along a path that names one place: a chain of lookups, which cannot fail."""
    return lambda c: first(value(c))


def first_present(arguments: list[Eval]) -> Eval:
    """`coalesce`: what stands behind the first value that is there is not computed."""

    def evaluate(c: Context) -> Any:
        for argument in arguments:
            if (value := argument(c)) is not None:
                return value
        return None

    return evaluate


def walk_of(path: tuple[str, ...]) -> Eval:
    if len(path) == 1:
        (name,) = path
        return lambda c: c.values.get(name)
    if len(path) == 2:
        root, member = path

        def pair(c: Context) -> Any:
            group: Any = c.values.get(root)
            return group.get(member) if _kind(group) is dict else _below(group, member)

        return pair

    def walk(c: Context) -> Any:
        value: Any = c.values
        for name in path:
            value = value.get(name) if _kind(value) is dict else _below(value, name)
        return value

    return walk


_kind: Callable[[Any], type] = type


def _below(value: Any, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


def choose_branch(test: Eval, then: Eval, other: Eval) -> Eval:
    return lambda c: then(c) if truth(test(c)) else other(c)


def either(left: Eval, right: Eval) -> Eval:
    return lambda c: truth(left(c)) or truth(right(c))


def both(left: Eval, right: Eval) -> Eval:
    return lambda c: truth(left(c)) and truth(right(c))


def compare_values(sign: str, left: Eval, right: Eval) -> Eval:
    match sign:
        case "==":
            return lambda c: same(left(c), right(c))
        case "!=":
            return lambda c: not same(left(c), right(c))
        case _:
            compare = comparison(sign)
            return lambda c: compare(left(c), right(c))


def comparison(sign: str) -> Callable[[Any, Any], bool]:
    """Compares two values by order; those that have none are a failed evaluation."""
    compare = _ORDER[sign]
    return lambda left, right: compare(*orderable_pair(left, right))


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compute_value(operator: str, left: Eval, right: Eval) -> Eval:
    return lambda c: arithmetic(operator, left(c), right(c), c.env)


def member_of(item: Any, items: Any) -> bool:
    if isinstance(items, list | tuple):
        return any(same(item, other) for other in cast("list[Any]", items))
    raise evaluation_failure(f"`in` wants a list, not {kind(items)}")


def item_at(value: Eval, place: Eval) -> Eval:
    def get(c: Context) -> Any:
        whole, key = value(c), place(c)
        if whole is None:
            return None
        if isinstance(whole, list | tuple) and isinstance(key, int) and not isinstance(key, bool):
            items = cast("list[Any]", whole)
            return items[key] if -len(items) <= key < len(items) else None
        if isinstance(whole, Mapping) and isinstance(key, str):
            return cast("Mapping[str, Any]", whole).get(key)
        raise evaluation_failure(f"{kind(whole)} has no place {key!r}")

    return get
