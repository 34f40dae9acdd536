"""Compiles a JSONPath (RFC 9535) or XPath 1.0 into a function that finds values (ch. 4.7).

Most paths name one place (`$.message['next-cursor']`); those become a chain of lookups of our own, twenty times faster
than a general query, and so do filters of a node by its own values (`path_filters`). Other filters run with our linear
patterns in place of the library's. XML is parsed without entities,
network or unbounded trees. XPath has one function beyond XPath's own: `with-id(ids, nodes)`, which follows references.
What a search may cost is bounded (`path_bounds`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathQuery
from jsonpath_rfc9535.exceptions import JSONPathError
from jsonpath_rfc9535.function_extensions import ExpressionType, FilterFunction
from jsonpath_rfc9535.segments import JSONPathChildSegment
from jsonpath_rfc9535.selectors import IndexSelector, NameSelector, WildcardSelector
from lxml import etree

from patra.ingest.expressions.path_bounds import bound, bounded_values, check_size, looks_beyond
from patra.ingest.expressions.path_filters import children, compiled_walk, json_kind
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern

_ELEMENT = etree._Element  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  lxml exports no public name
MAX_PATH = 500
MAX_DESCENTS = 3
"""Most `//` or `..` in one path: each multiplies the work by the size of the document."""

Find = Callable[[Any], list[Any]]


class Path:
    """A compiled path: `find` gives every value, `first` the first or None, `text` its text.

    `steps` are the names, indexes and wildcards (None) of a JSONPath that is made of nothing else; `lead` are those
    that any JSONPath begins with, and `tail` goes on from the values that they lead to, if it needs nothing else.
    """

    __slots__ = ("find", "first", "format", "lead", "source", "steps", "tail")

    def __init__(
        self,
        source: str,
        fmt: ResponseFormat,
        find: Find,
        first: Callable[[Any], Any] | None = None,
        steps: "Steps | None" = None,
        lead: "Steps" = (),
        tail: Callable[[list[Any]], list[Any]] | None = None,
    ) -> None:
        self.source = source
        self.format = fmt
        self.find = find
        self.steps = steps
        self.lead = lead if steps is None else steps
        self.tail = tail
        self.first: Callable[[Any], Any] = first or self._search

    def _search(self, node: Any) -> Any:
        return next((value for value in self.find(node) if value is not None), None)

    def text(self, node: Any) -> str | None:
        """The first value as text, trimmed; None where there is none or it is not a single value."""
        return text_at(self.first(node))

    def __repr__(self) -> str:
        return f"Path({self.source!r})"


def compile_path(source: str, fmt: ResponseFormat, namespaces: Mapping[str, str] | None = None) -> Path:
    """The path, compiled once for all callers. Raises Invalid with what is wrong."""
    if len(source) > MAX_PATH:
        raise _invalid(source[:40] + "…", f"a path has at most {MAX_PATH} characters")
    if fmt is ResponseFormat.XML:
        return _xpath(source, tuple(sorted((namespaces or {}).items())))
    return json_path(source)


def text_at(value: Any) -> str | None:
    """A found value as text: an element's text with all below it, a number or truth as JSON writes it."""
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return None
    if json_kind(value) is _ELEMENT and not len(value):  # so it is with most: no text but its own
        return (value.text or "").strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if isinstance(value, _ELEMENT):
        if next(value.iter(_FORMULA), None) is None:
            return "".join(cast("list[str]", list(value.itertext()))).strip()
        return "".join(_reading_order(value, inside=value.tag == _FORMULA)).strip()
    return None


_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_FORMULA = f"{_MATHML}math"


def _reading_order(element: Any, *, inside: bool) -> Iterator[str]:
    """The texts below an element, as a person reads them.

    White space between the elements of a formula is layout. Scripts before a base, which MathML writes after it, are
    put before it: 129Xe.
    """
    bare = inside and element.tag != f"{_MATHML}mtext"
    yield (element.text or "").strip() if bare else element.text or ""
    parts = list(element)
    mark = next((at for at, part in enumerate(parts) if part.tag == f"{_MATHML}mprescripts"), None)
    for part in parts if mark is None else [*parts[mark:], *parts[:mark]]:
        yield from _reading_order(part, inside=inside or part.tag == _FORMULA)
        yield (part.tail or "").strip() if inside else part.tail or ""


def items_at(path: Path, document: Any) -> list[Any] | None:
    """The items of a page: what the path finds, or the list that it finds; None where it finds nothing at all."""
    found = path.find(document)
    if len(found) == 1 and isinstance(found[0], list):
        return cast("list[Any]", found[0])
    return found or None


class _Regex(FilterFunction):
    """`match()` and `search()` of RFC 9535 on our own patterns."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    @property
    def arg_types(self) -> list[ExpressionType]:
        return [ExpressionType.VALUE, ExpressionType.VALUE]

    @property
    def return_type(self) -> ExpressionType:
        return ExpressionType.LOGICAL

    def __call__(self, text: object, source: object) -> bool:
        if not isinstance(text, str) or not isinstance(source, str):
            return False
        try:
            compiled = pattern(source)
        except Invalid:
            return False
        return compiled.matches(text) if self._whole else compiled.matches_part(text)


@lru_cache(maxsize=1)
def json_environment() -> JSONPathEnvironment:
    environment = JSONPathEnvironment()
    environment.function_extensions["match"] = _Regex(whole=True)
    environment.function_extensions["search"] = _Regex(whole=False)
    return environment


@lru_cache(maxsize=4096)
def json_path(source: str) -> Path:
    """A JSONPath, compiled once."""
    if len(source) > MAX_PATH:
        raise _invalid(source[:40] + "…", f"a path has at most {MAX_PATH} characters")
    try:
        query = json_environment().compile(source)
    except (JSONPathError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise _invalid(source, f"not a JSONPath: {what}", "write it as in RFC 9535, such as $.items[*]") from error
    if source.count("..") > MAX_DESCENTS:
        raise _invalid(source, f"more than {MAX_DESCENTS} times `..`")
    steps = _steps(query)
    if len(steps) < len(query.segments):
        if (walk := compiled_walk(query)) is not None:
            tail = compiled_walk(query, len(steps))
            return Path(source, ResponseFormat.JSON, lambda node: walk([node]), lead=steps, tail=tail)
        lead = () if "$" in source[1:] else steps  # a filter may look at the whole document
        return Path(source, ResponseFormat.JSON, _query_find(query, steps), lead=lead)
    if None in steps:
        return Path(source, ResponseFormat.JSON, _fan(steps), steps=steps)
    first = _getter(steps)
    return Path(source, ResponseFormat.JSON, lambda node: [] if (v := first(node)) is None else [v], first, steps)


Steps = tuple[str | int | None, ...]


def _steps(query: JSONPathQuery) -> Steps:
    """The path as names, indexes and wildcards (None), up to where it is anything else."""
    found: list[str | int | None] = []
    for segment in query.segments:
        if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
            break
        match segment.selectors[0]:
            case NameSelector() as selector:
                found.append(selector.name)
            case IndexSelector() as selector:
                found.append(selector.index)
            case WildcardSelector():
                found.append(None)
            case _:
                break
    return tuple(found)


def _query_find(query: JSONPathQuery, lead: Steps) -> Find:
    """A general query; it is not begun where the way to its first filter leads nowhere, as it mostly does."""
    bound(query)
    there = _getter(lead[: lead.index(None)] if None in lead else lead)
    return lambda node: [] if there(node) is None else bounded_values(query, node)


def _getter(steps: Steps) -> Callable[[Any], Any]:
    """Lookups one after the other; whatever is not there is None. Most of all paths are one or two steps."""
    match steps:
        case (str(name),):
            return lambda node: node.get(name) if json_kind(node) is dict else None
        case (str(name), str(below)):

            def both(node: Any) -> Any:
                if json_kind(node) is not dict:
                    return None
                inner = node.get(name)
                return inner.get(below) if json_kind(inner) is dict else None

            return both
        case (str(name), int(index)):

            def one(node: Any) -> Any:
                if json_kind(node) is not dict:
                    return None
                inner = node.get(name)
                return inner[index] if json_kind(inner) is list and -len(inner) <= index < len(inner) else None

            return one
        case (int(index),):
            return lambda node: node[index] if json_kind(node) is list and -len(node) <= index < len(node) else None
        case (_, _, _, *_):
            head, tail = _getter(steps[:2]), _getter(steps[2:])
            return lambda node: tail(head(node))
        case (int(), _):
            head, tail = _getter(steps[:1]), _getter(steps[1:])
            return lambda node: tail(head(node))
        case _:
            return lambda node: node  # the whole


def _fan(steps: Steps) -> Find:
    """Lookups that spread at each wildcard; nothing counts as not there, except as an item of the last wildcard."""
    ways = [None if step is None else _getter((step,)) for step in steps]
    if steps[-1] is None and None not in steps[:-1]:  # the items of one list: so it is with most
        there = _getter(steps[:-1])
        return lambda node: children(there(node))

    def find(node: Any) -> list[Any]:
        nodes: list[Any] = [node]
        for get in ways:
            if get is not None:
                nodes = [v for n in nodes if (v := get(n)) is not None]
            elif len(nodes) == 1:
                nodes = children(nodes[0])
            else:
                nodes = [item for n in nodes for item in children(n)]
        return nodes

    return find


def with_id(_context: object, ids: Any, nodes: Any) -> list[Any]:
    """XPath: the nodes whose `id` is among the words of `ids`, in the order of the words (an IDREFS of JATS, say)."""
    if not isinstance(nodes, list):
        return []
    known = {node.get("id"): node for node in cast("list[Any]", nodes) if isinstance(node, _ELEMENT)}
    texts = [text_at(one) or "" for one in (cast("list[Any]", ids) if isinstance(ids, list) else [ids])]
    words = dict.fromkeys(word for text in texts for word in text.split())
    return [known[word] for word in words if word in known]


FUNCTIONS = {(None, "with-id"): with_id}


@lru_cache(maxsize=4096)
def _xpath(source: str, namespaces: tuple[tuple[str, str], ...]) -> Path:
    if (
        source.count("//") + source.count("descendant") + source.count("following") + source.count("preceding")
        > MAX_DESCENTS
    ):
        raise _invalid(
            source, f"more than {MAX_DESCENTS} steps over whole subtrees", "name the way to the place instead"
        )
    try:
        compiled = etree.XPath(
            source, namespaces=dict(namespaces) or None, extensions=FUNCTIONS, regexp=False, smart_strings=False
        )
        compiled(etree.Element("probe"))  # unknown prefixes and functions are noticed only when it runs
    except (etree.XPathError, ValueError) as error:
        raise _invalid(source, f"not an XPath 1.0: {error}", "declare prefixes in response.namespaces") from error

    beyond = looks_beyond(source)

    def find(node: Any) -> list[Any]:
        if beyond:
            check_size(beyond, node)
        found = compiled(node)
        if isinstance(found, list):
            return cast("list[Any]", found)
        return [] if found == "" or found != found else [found]  # noqa: PLR0124  "" and NaN mean that nothing is there

    def first(node: Any) -> Any:
        found = find(node)
        return found[0] if found else None

    return Path(source, ResponseFormat.XML, find, first)


def parse_xml(body: bytes) -> Any:
    """A document's root, parsed so that a hostile one cannot expand, call out or grow without bound."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
        dtd_validation=False,
        remove_comments=True,
    )
    return etree.fromstring(body, parser)


def _invalid(source: str, what: str, advice: str = "") -> Invalid:
    return Invalid("path_invalid", f"{source!r}: {what}", advice=advice)


def last_name(path: str) -> str:
    """The field that a path ends at: `updated` of `$.meta.updated` and of `/entry/atom:updated`; none of several."""
    names = re.findall(r"[\w-]+", path.removesuffix("/text()"))
    return names[-1] if names and "," not in path else ""
