"""Turns a compiled path into one whose work is bounded: a pack must not keep an executor busy for minutes.

A JSONPath may look at the whole document once for each of its nodes (`$..[?count($..*) > 0]`), and again inside that.
Its segments are counted as they run: every node that is looked at costs one step. An XPath runs in libxml2, which
counts nothing; there, predicates that look beyond their own node are counted beforehand, and the size of the document
decides.
"""

import re
import threading
from collections.abc import Iterable, Iterator
from typing import Any, cast

from jsonpath_rfc9535 import JSONPathQuery
from jsonpath_rfc9535.node import JSONPathNode
from jsonpath_rfc9535.segments import JSONPathChildSegment, JSONPathRecursiveDescentSegment

from patra.kernel.errors import Invalid

MAX_STEPS = 2_000_000
"""Nodes that one search may look at: some seconds."""
MAX_XPATH_COMPARISONS = 100_000_000
_BEYOND = re.compile(r"//|descendant|following|preceding|ancestor|parent::|\.\.|/\*")
"""What in a predicate looks at more than the node that it is about."""


class _Count(threading.local):
    left = MAX_STEPS


_COUNT = _Count()


def bounded_values(query: JSONPathQuery, node: Any) -> list[Any]:
    """What a query that was prepared by `bound` finds. Raises Invalid where it costs more than `MAX_STEPS`."""
    _COUNT.left = MAX_STEPS
    return [found.value for found in query.finditer(node)]


def bound(query: JSONPathQuery) -> JSONPathQuery:
    """The query with every segment counted, also those of queries within its filters."""
    for segment in query.segments:
        match segment:
            case JSONPathRecursiveDescentSegment():
                segment.__class__ = _CountedDescent
            case JSONPathChildSegment():
                segment.__class__ = _CountedChild
            case _:
                raise Invalid("path_invalid", f"a segment of an unknown kind: {segment}")
        for selector in segment.selectors:
            for inner in _queries_within(selector):
                bound(inner)
    return query


def _queries_within(part: Any) -> Iterator[JSONPathQuery]:
    """Queries in the filter expressions of a selector; the library names their parts in `__slots__`."""
    for kind in type(part).__mro__:
        for name in cast("Iterable[str]", getattr(kind, "__slots__", ())):
            value = getattr(part, name, None)
            for one in cast("list[Any]", value) if isinstance(value, list | tuple) else [value]:
                if isinstance(one, JSONPathQuery):
                    yield one
                elif type(one).__module__ == "jsonpath_rfc9535.filter_expressions":
                    yield from _queries_within(one)


def _spend(nodes: Iterable[JSONPathNode]) -> Iterator[JSONPathNode]:
    for node in nodes:
        value: Any = cast("Any", node).value
        _COUNT.left -= 1 + (len(value) if type(value) in {list, dict} else 0)
        if _COUNT.left < 0:
            raise Invalid("path_too_costly", f"the path looks at more than {MAX_STEPS:,} nodes of one document")
        yield node


class _CountedChild(JSONPathChildSegment):
    __slots__ = ()

    def resolve(self, nodes: Iterable[JSONPathNode]) -> Iterable[JSONPathNode]:
        return super().resolve(_spend(nodes))


class _CountedDescent(JSONPathRecursiveDescentSegment):
    __slots__ = ()

    def resolve(self, nodes: Iterable[JSONPathNode]) -> Iterable[JSONPathNode]:
        for node in nodes:
            for below in _spend(self._visit(node)):
                for selector in self.selectors:
                    yield from selector.resolve(below)


def looks_beyond(xpath: str) -> int:
    """How often the predicates of an XPath look at more than their own node; each time multiplies the work."""
    depth, inside = 0, list[str]()
    quote = ""
    for character in xpath:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
        elif depth > 0:
            inside.append(character)
    return len(_BEYOND.findall("".join(inside)))


def check_size(beyond: int, node: Any) -> None:
    """Raises Invalid where such an XPath would cost too much on the document of this node."""
    most = int(MAX_XPATH_COMPARISONS ** (1 / (1 + beyond)))
    for elements, _ in enumerate(node.getroottree().iter(), 1):
        if elements > most:
            raise Invalid(
                "path_too_costly",
                f"a predicate that looks beyond its node {beyond} times is not run on more than {most:,} elements",
            )
