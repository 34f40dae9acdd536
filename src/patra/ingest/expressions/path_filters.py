"""Compiles a JSONPath whose filters look at their own node only (`$.link[?@.type == 'pdf'].URL`) into plain lookups.

Nearly every filter of a pack is of this kind, and a general query costs ten times as much. What it finds is what the
library would find, value by value (a property test holds them equal). Each node is looked at once for each step of the
path, so its work is bounded by the document. Any other path is left to the library (`path_bounds`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from jsonpath_rfc9535 import JSONPathQuery
from jsonpath_rfc9535.filter_expressions import (
    ComparisonExpression,
    Expression,
    FilterExpression,
    FilterExpressionLiteral,
    FunctionExtension,
    LogicalExpression,
    PrefixExpression,
    RelativeFilterQuery,
    StringLiteral,
)
from jsonpath_rfc9535.segments import JSONPathChildSegment
from jsonpath_rfc9535.selectors import FilterSelector, IndexSelector, NameSelector, WildcardSelector

from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern

Step = Callable[[list[Any]], list[Any]]
Value = Callable[[Any], Any]
Test = Callable[[Any], bool]

_MISSING = object()
json_kind: Callable[[Any], type] = type
"""What JSON gives are dicts and lists themselves, never kinds of them."""


class _Unsupported(Exception):  # noqa: N818  it never leaves this module
    """The path is more than this compiles."""


def compiled_walk(query: JSONPathQuery, begin: int = 0) -> Step | None:
    """A function that finds what the query finds below nodes to which its segments before `begin` have led.

    None where the query is more than this compiles.
    """
    try:
        steps = [_step(_only_selector(segment)) for segment in query.segments[begin:]]
    except _Unsupported:
        return None

    def walk(nodes: list[Any]) -> list[Any]:
        for step in steps:
            nodes = step(nodes)
            if not nodes:
                break
        return nodes

    return walk


def _only_selector(segment: object) -> object:
    if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
        raise _Unsupported
    return segment.selectors[0]


def _step(selector: object) -> Step:
    match selector:
        case NameSelector(name=name):  # most steps: without a call for each node
            return lambda nodes: [
                value
                for node in nodes
                if json_kind(node) is dict and (value := node.get(name, _MISSING)) is not _MISSING
            ]
        case IndexSelector():
            get = _lookup(selector)
            return lambda nodes: [value for node in nodes if (value := get(node)) is not _MISSING]
        case WildcardSelector():
            return lambda nodes: [child for node in nodes for child in children(node)]
        case FilterSelector():
            test = _test(selector.expression)
            return lambda nodes: [child for node in nodes for child in children(node) if test(child)]
        case _:
            raise _Unsupported


def children(node: Any) -> list[Any]:
    if json_kind(node) is list:
        return node
    return list(node.values()) if json_kind(node) is dict else []


def along(nodes: list[Any], step: str | int) -> list[Any]:
    """What stands under a name or at an index of each node, where there is anything."""
    if isinstance(step, str):
        return [found for node in nodes if json_kind(node) is dict and (found := node.get(step)) is not None]
    lists = [node for node in nodes if json_kind(node) is list and -len(node) <= step < len(node)]
    return [found for node in lists if (found := node[step]) is not None]


def spread(nodes: list[Any]) -> list[Any]:
    return [child for node in nodes for child in children(node)]


def _lookup(selector: NameSelector | IndexSelector) -> Value:
    if isinstance(selector, NameSelector):
        name = selector.name
        return lambda node: node.get(name, _MISSING) if json_kind(node) is dict else _MISSING
    index = selector.index
    return lambda node: node[index] if json_kind(node) is list and -len(node) <= index < len(node) else _MISSING


# --- filters ----------------------------------------------------------------------------------------------------------


def _test(expression: Expression) -> Test:
    match expression:
        case FilterExpression():
            return _test(expression.expression)
        case LogicalExpression():
            left, right = _test(expression.left), _test(expression.right)
            if expression.operator == "&&":
                return lambda node: left(node) and right(node)
            return lambda node: left(node) or right(node)
        case PrefixExpression():
            inner = _test(expression.right)
            return lambda node: not inner(node)
        case ComparisonExpression():
            return _comparison(expression)
        case RelativeFilterQuery() if not expression.query.empty():
            value = _value(expression)
            return lambda node: value(node) is not _MISSING
        case FunctionExtension():
            return _matching(expression)
        case _:
            raise _Unsupported


def _comparison(expression: ComparisonExpression) -> Test:
    left, right, operator = _value(expression.left), _value(expression.right), expression.operator
    if isinstance(expression.right, StringLiteral):
        text = expression.right.value
        if operator == "==" and (name := _only_name(expression.left)) is not None:
            return lambda node: json_kind(node) is dict and node.get(name) == text
        match operator:  # what nearly all of them are
            case "==":
                return lambda node: left(node) == text
            case "!=":
                return lambda node: left(node) != text
            case _:
                pass
    match operator:
        case "==":
            return lambda node: _equal(left(node), right(node))
        case "!=":
            return lambda node: not _equal(left(node), right(node))
        case "<":
            return lambda node: _less(left(node), right(node))
        case ">":
            return lambda node: _less(right(node), left(node))
        case "<=":
            return lambda node: _less(a := left(node), b := right(node)) or _equal(a, b)
        case ">=":
            return lambda node: _less(b := right(node), a := left(node)) or _equal(a, b)
        case _:
            raise _Unsupported


def _only_name(expression: Expression) -> str | None:
    """The name of `@.name`."""
    segments = expression.query.segments if isinstance(expression, RelativeFilterQuery) else ()
    selector = _only_selector(segments[0]) if len(segments) == 1 else None
    return selector.name if isinstance(selector, NameSelector) else None


def _value(expression: Expression) -> Value:
    """A literal, or the one value that a chain of names and indexes leads to; `_MISSING` where it leads nowhere."""
    if isinstance(expression, FilterExpressionLiteral):
        literal: Any = cast("FilterExpressionLiteral[Any]", expression).value
        return lambda _: literal
    if not isinstance(expression, RelativeFilterQuery):
        raise _Unsupported
    found: Value = lambda node: node  # noqa: E731  the node itself, `@`
    for place, segment in enumerate(expression.query.segments):
        selector = _only_selector(segment)
        if not isinstance(selector, NameSelector | IndexSelector):
            raise _Unsupported
        get = _lookup(selector)
        found = get if place == 0 else lambda node, outer=found, get=get: get(outer(node))
    return found


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):  # 1 is no `true`
        return isinstance(left, bool) and isinstance(right, bool) and left == right
    return left == right


def _less(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return isinstance(left, int | float) and isinstance(right, int | float) and left < right


def _matching(expression: FunctionExtension) -> Test:
    """`match()` and `search()` with a pattern that is written out."""
    if expression.name not in {"match", "search"} or len(expression.args) != 2:
        raise _Unsupported
    subject, source = expression.args
    if not isinstance(source, StringLiteral):
        raise _Unsupported
    value = _value(subject)
    try:
        compiled = pattern(source.value)
    except Invalid:
        return lambda _: False  # as RFC 9535 has it for a pattern that is none
    found = compiled.matches if expression.name == "match" else compiled.found
    known = lru_cache(maxsize=_KNOWN_TEXTS)(found)

    def test(node: Any) -> bool:
        text = value(node)
        return isinstance(text, str) and (known(text) if len(text) <= _MAX_KNOWN_CHARS else found(text))

    return test


_KNOWN_TEXTS = 512
_MAX_KNOWN_CHARS = 200
"""What filters look at are kinds and licences: a handful of texts in a provider's records."""
