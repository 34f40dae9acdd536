"""Compiles a JSONPath whose filters look at their own node only (`$.link[?@.type == 'pdf'].URL`) into plain loops.

Nearly every filter of a pack is of this kind, and a general query costs ten times as much. What it finds is what the
library would find, value by value (a property test holds them equal). Each node is looked at once for each step of the
path, so its work is bounded by the document. Any other path is left to the library (`path_bounds`).

Nothing of a path becomes code: what enters the text is written here, a name that is counted here, or a text as `repr`
writes it (decision 0082).
"""

from collections.abc import Callable, Sequence
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

json_kind: Callable[[Any], type] = type
"""What JSON gives are dicts and lists themselves, never kinds of them."""


class _Unsupported(Exception):  # noqa: N818  it never leaves this module
    """The path is more than this compiles."""


def compiled_walk(query: JSONPathQuery, begin: int = 0) -> Step | None:
    """A function that finds what the query finds below nodes to which its segments before `begin` have led.

    None where the query is more than this compiles.
    """
    try:
        return _Walk(query.segments[begin:]).function()
    except (
        _Unsupported,
        SyntaxError,
        RecursionError,
        MemoryError,
    ):  # also more loops within each other than Python has
        return None


class _Walk:
    """The text of one function, and the objects that its names stand for."""

    def __init__(self, segments: Sequence[object]) -> None:
        self._names: dict[str, Any] = {**_NAMES}
        self._lines = ["def walk(nodes):", "    found = []", "    for node in nodes:"]
        self._indent = "        "
        node = "node"
        for number, segment in enumerate(segments):
            node = self._step(_only_selector(segment), node, f"node{number}")
        self._add(f"found.append({node})")

    def function(self) -> Step:
        exec("\n".join([*self._lines, "    return found"]), self._names)  # noqa: S102  our own text: see above
        return self._names["walk"]

    def _add(self, line: str, *, under: bool = False) -> None:
        self._lines.append(self._indent + line)
        if under:
            self._indent += " "

    def _step(self, selector: object, node: str, below: str) -> str:
        """Go on to the nodes below a node; gives the variable that holds them."""
        match selector:
            case NameSelector(name=name):
                self._add(f"if type({node}) is dict and {name!r} in {node}:", under=True)
                self._add(f"{below} = {node}[{name!r}]")
            case IndexSelector(index=index):
                self._add(f"if type({node}) is list and -len({node}) <= {index:d} < len({node}):", under=True)
                self._add(f"{below} = {node}[{index:d}]")
            case WildcardSelector():
                self._each(node, below)
            case FilterSelector():
                self._each(node, below)
                self._add(f"if {self._test(selector.expression, below)}:", under=True)
            case _:
                raise _Unsupported
        return below

    def _each(self, node: str, below: str) -> None:
        self._add(f"for {below} in {node} if type({node}) is list else children({node}):", under=True)

    # --- filters

    def _test(self, expression: Expression, node: str) -> str:
        match expression:
            case FilterExpression():
                return self._test(expression.expression, node)
            case LogicalExpression():
                sign = "and" if expression.operator == "&&" else "or"
                return f"({self._test(expression.left, node)} {sign} {self._test(expression.right, node)})"
            case PrefixExpression():
                return f"(not {self._test(expression.right, node)})"
            case ComparisonExpression():
                return self._comparison(expression, node)
            case RelativeFilterQuery() if not expression.query.empty():
                return f"({self._value(expression, node)} is not MISSING)"
            case FunctionExtension():
                return self._matching(expression, node)
            case _:
                raise _Unsupported

    def _comparison(self, expression: ComparisonExpression, node: str) -> str:
        left, right = self._value(expression.left, node), self._value(expression.right, node)
        of_texts = isinstance(expression.right, StringLiteral)  # nearly all of them are
        match expression.operator:
            case "==":
                return f"({left} == {right})" if of_texts else f"equal({left}, {right})"
            case "!=":
                return f"({left} != {right})" if of_texts else f"(not equal({left}, {right}))"
            case "<":
                return f"less({left}, {right})"
            case ">":
                return f"less({right}, {left})"
            case "<=":
                return f"(less({left}, {right}) or equal({left}, {right}))"
            case ">=":
                return f"(less({right}, {left}) or equal({left}, {right}))"
            case _:
                raise _Unsupported

    def _value(self, expression: Expression, node: str) -> str:
        """A literal, or the one value that a chain of names and indexes leads to; `MISSING` where it leads nowhere."""
        if isinstance(expression, StringLiteral):
            return repr(expression.value)
        if isinstance(expression, FilterExpressionLiteral):
            return self._name_object("literal", cast("FilterExpressionLiteral[Any]", expression).value)
        if not isinstance(expression, RelativeFilterQuery):
            raise _Unsupported
        found = node  # the node itself, `@`
        for segment in expression.query.segments:
            there, held = (found, found) if found == node else (x := self._name_object("x", None), f"({x} := {found})")
            match _only_selector(segment):
                case NameSelector(name=name):
                    found = f"({there}[{name!r}] if type({held}) is dict and {name!r} in {there} else MISSING)"
                case IndexSelector(index=index):
                    inside = f"-len({there}) <= {index:d} < len({there})"
                    found = f"({there}[{index:d}] if type({held}) is list and {inside} else MISSING)"
                case _:
                    raise _Unsupported
        return found

    def _matching(self, expression: FunctionExtension, node: str) -> str:
        """`match()` and `search()` with a pattern that is written out."""
        if expression.name not in {"match", "search"} or len(expression.args) != 2:
            raise _Unsupported
        subject, source = expression.args
        if not isinstance(source, StringLiteral):
            raise _Unsupported
        value, x = self._value(subject, node), self._name_object("x", None)
        try:
            compiled = pattern(source.value)
        except Invalid:
            return "(not 1)"  # as RFC 9535 has it for a pattern that is none
        found = compiled.matches if expression.name == "match" else compiled.matches_part
        known = self._name_object("known", lru_cache(maxsize=_KNOWN_TEXTS)(found))
        short = f"{known}({x}) if len({x}) <= {_MAX_KNOWN_CHARS} else {self._name_object('found', found)}({x})"
        return f"(type({x} := {value}) is str and ({short}))"

    def _name_object(self, kind: str, thing: Any) -> str:
        name = f"{kind}{len(self._names)}"
        self._names[name] = thing
        return name


def _only_selector(segment: object) -> object:
    if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
        raise _Unsupported
    return segment.selectors[0]


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


_KNOWN_TEXTS = 512
_MAX_KNOWN_CHARS = 200
"""What filters look at are kinds and licences: a handful of texts in a provider's records."""

_NAMES: dict[str, Any] = {
    "__builtins__": {},
    "type": type,
    "dict": dict,
    "list": list,
    "str": str,
    "len": len,
    "MISSING": object(),
    "children": children,
    "equal": _equal,
    "less": _less,
}
