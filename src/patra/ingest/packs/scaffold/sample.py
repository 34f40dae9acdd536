"""Turns the body of an answer into its format, the path to its records and the records.

The records are the richest list that is reached without going through another list. A work that is answered alone has
lists too, of authors or references: what stands beside a title or a DOI is part of a record, not a list of records.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from patra.ingest.expressions.paths import compile_path, items_at, parse_xml
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.kernel.errors import Invalid

LISTS = frozenset(
    {
        *("items", "results", "result", "data", "hits", "docs", "doc", "records", "record", "works", "group", "events"),
        *(
            "studies",
            "study",
            "collection",
            "articles",
            "article",
            "entries",
            "entry",
            "item",
            "publications",
            "papers",
        ),
    }
)
"""What lists of records are called."""

PREFIXES = {
    "http://www.w3.org/2005/Atom": "a",
    "http://a9.com/-/spec/opensearch/1.1/": "s",
    "http://arxiv.org/schemas/atom": "x",
    "http://www.openarchives.org/OAI/2.0/": "o",
    "http://www.openarchives.org/OAI/2.0/oai_dc/": "oai_dc",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://purl.org/rss/1.0/": "r",
    "http://www.loc.gov/MARC21/slim": "m",
}
ATOM, OAI = "http://www.w3.org/2005/Atom", "http://www.openarchives.org/OAI/2.0/"
MAX_DEPTH = 6
MAX_SAMPLE_RECORDS = 50
"""Records that are looked at."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it came; `url` is what was asked, where that is known."""

    body: bytes
    url: str | None = None
    headers: Mapping[str, str] = {}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A sample, read. `single` says that the answer is one record and not a list."""

    format: ResponseFormat
    document: Any
    namespaces: Mapping[str, str]
    items_path: str
    records: Sequence[Any]
    single: bool = False


class _Candidate(msgspec.Struct, frozen=True):
    path: str
    records: list[Any]
    score: float
    single: bool = False


def read(sample: Sample, items_path: str | None = None) -> Found:
    """The sample, read; `items_path` says where the records are. Raises Invalid where there are none."""
    body = sample.body.lstrip(b"\xef\xbb\xbf \r\n\t")
    if body.startswith(b"<"):
        return _read_xml(body, items_path)
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(
            "sample_unreadable",
            f"the sample is neither JSON nor XML: {error}",
            advice="save the body of an answer as it came: curl -o sample.json 'https://…'",
        ) from error
    if items_path is not None:
        return _given_place(ResponseFormat.JSON, document, {}, items_path)
    if _lists_ids(document, 0):
        raise _nothing()
    best = max(_json_lists(document, "$", "", 0, alone=False), key=lambda one: one.score, default=None)
    if best is None:
        raise _nothing()
    return Found(
        format=ResponseFormat.JSON,
        document=document,
        namespaces={},
        items_path=best.path,
        records=best.records[:MAX_SAMPLE_RECORDS],
        single=best.single,
    )


def child(path: str, name: str) -> str:
    """A JSONPath one name further down."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    return f"{path}.{name}" if plain else f"{path}['{name.translate({39: chr(92) + chr(39), 92: chr(92) * 2})}']"


def local_name(tag: str) -> str:
    return tag.rpartition("}")[2]


def qualify_tag(tag: str, namespaces: Mapping[str, str]) -> str:
    """An element's name as an XPath step: `namespaces` are prefixes by URI."""
    uri, _, name = tag.rpartition("}")
    return f"{namespaces[uri[1:]]}:{name}" if uri else name


def elements(node: Any) -> list[Any]:
    return [one for one in node if isinstance(one.tag, str)]


def _given_place(fmt: ResponseFormat, document: Any, prefixes: Mapping[str, str], path: str) -> Found:
    items = items_at(compile_path(path, fmt, prefixes), document) or []
    records = [one for one in items if not isinstance(one, str | int | float | bool | None)]
    if not records:
        raise Invalid("sample_empty", f"{path} finds no records in the sample", advice="give another --items")
    return Found(
        format=fmt,
        document=document,
        namespaces=prefixes,
        items_path=path,
        records=records[:MAX_SAMPLE_RECORDS],
        single=fmt is ResponseFormat.JSON and path == "$" and isinstance(document, dict),
    )


def _nothing() -> Invalid:
    return Invalid(
        "sample_empty",
        "there are no records in the sample, or only ids",
        advice="take an answer that holds records; an API that lists ids first needs two endpoints:"
        " start from an answer with records, and see twoPhase in `patra ingest packs pubmed`",
    )


def _json_lists(node: Any, path: str, name: str, depth: int, *, alone: bool) -> Iterator[_Candidate]:
    """Lists of objects below a node, and objects that are records by themselves."""
    if isinstance(node, list):
        records: list[Any] = [one for one in cast("list[Any]", node) if isinstance(one, dict)]
        if records and not alone:
            known = 3.0 if name.lower() in LISTS else 1.0
            yield _Candidate(path, records, known * _leaves(records[0]) * min(len(records), 20) / (1 + depth))
        return
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return
    members = cast("dict[str, Any]", node)
    listed = {key for key, value in members.items() if isinstance(value, list) and key.lower() in LISTS}
    if _are_described(members) and not listed:
        yield _Candidate(path, [members], 1000.0 / (1 + depth), single=True)
        alone = True
    keyed = _key_name(members)
    if keyed is not None:
        records: list[Any] = [value for value in members.values() if isinstance(value, dict) and keyed in value]
        yield _Candidate(f"{path}[?@.{keyed}]", records, 3.0 * _leaves(records[0]) * min(len(records), 20))
    for key, value in members.items():
        yield from _json_lists(value, child(path, key), key, depth + 1, alone=alone and key not in listed)


def _are_described(members: Mapping[str, Any]) -> bool:
    names = {key.lower() for key in members}
    return "protocolsection" in names or (bool(names & {"title", "doi", "display_name"}) and len(names) >= 4)


def _key_name(members: Mapping[str, Any]) -> str | None:
    """Records that are the members of an object by their ids: a name that each of them has."""
    inside = [cast("dict[str, Any]", value) for value in members.values() if isinstance(value, dict)]
    if len(inside) < 2 or len(inside) < 0.6 * len(members) or not any(key.isdigit() for key in members):
        return None
    shared = set(inside[0]).intersection(*inside[1:])
    return next((key for key in inside[0] if key in shared and re.fullmatch(r"[A-Za-z_]\w*", key)), None)


def _lists_ids(node: Any, depth: int) -> bool:
    """Whether the answer is a list of ids, as of a search whose records come from elsewhere."""
    if not isinstance(node, dict) or depth > 2:
        return False
    members = cast("dict[str, Any]", node)
    named = (value for key, value in members.items() if re.fullmatch(r"id_?list|ids", key.lower()))
    if any(
        isinstance(value, list) and not isinstance(next(iter(cast("list[Any]", value)), None), dict) for value in named
    ):
        return True
    return any(_lists_ids(value, depth + 1) for value in members.values())


def _leaves(node: Any) -> int:
    if isinstance(node, dict):
        return sum(_leaves(value) for value in cast("dict[str, Any]", node).values())
    if isinstance(node, list):
        return min(sum(_leaves(value) for value in cast("list[Any]", node)[:3]), 10)
    return 1


def _read_xml(body: bytes, items_path: str | None) -> Found:
    try:
        root = parse_xml(body)
    except Exception as error:
        raise Invalid("sample_unreadable", f"the sample is not XML: {error}", advice="is it an error page?") from error
    if root is None or local_name(root.tag).lower() == "html":
        raise Invalid("sample_unreadable", "the sample is a web page, not an answer of an API")
    prefixes = _prefixes(root)
    by_prefix = {prefix: uri for uri, prefix in prefixes.items()}
    if items_path is not None:
        return _given_place(ResponseFormat.XML, root, by_prefix, items_path)
    step = qualify_tag(root.tag, prefixes)
    best = max(_xml_lists(root, f"/{step}", prefixes, 0), key=lambda one: one.score, default=None)
    if OAI in prefixes and local_name(root.tag) == "OAI-PMH":
        records = compile_path("//o:record", ResponseFormat.XML, by_prefix).find(root)
        best = _Candidate("//o:record", records, 1.0)
    ids = any(local_name(one.tag).lower() == "idlist" for one in elements(root))
    if ids or best is None or not best.records or all(len(elements(one)) == 0 for one in best.records):
        raise _nothing()
    return Found(
        format=ResponseFormat.XML,
        document=root,
        namespaces=by_prefix,
        items_path=best.path,
        records=best.records[:MAX_SAMPLE_RECORDS],
        single=best.single,
    )


def _prefixes(root: Any) -> dict[str, str]:
    """A prefix for each namespace of a document, by URI."""
    found: dict[str, str] = {}
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        uri, _, _ = element.tag.rpartition("}")
        if uri and uri[1:] not in found:
            own = next((prefix for prefix, name in element.nsmap.items() if prefix and name == uri[1:]), "")
            wanted = PREFIXES.get(uri[1:]) or (own if re.fullmatch(r"[A-Za-z_]\w{0,20}", own) else "") or "n"
            taken = set(found.values())
            name, number = wanted, 2
            while name in taken:
                name, number = f"{wanted}{number}", number + 1
            found[uri[1:]] = name
    return found


def _xml_lists(node: Any, path: str, prefixes: Mapping[str, str], depth: int) -> Iterator[_Candidate]:
    children = elements(node)
    counts = Counter(one.tag for one in children)
    names = {local_name(tag).lower() for tag, count in counts.items() if count == 1}
    listed = {tag for tag in counts if local_name(tag).lower() in LISTS}
    if names & {"title", "doi", "brief_title"} and len(children) >= 4 and not listed:
        yield _Candidate(path, [node], 1000.0 / (1 + depth), single=True)
        return
    for tag, count in counts.items():
        records = [one for one in children if one.tag == tag and len(elements(one))]
        if not records:
            continue
        step = f"{path}/{qualify_tag(tag, prefixes)}"
        rich = sum(1 for one in records[0].iter() if isinstance(one.tag, str) and not len(one))
        known = 3.0 if tag in listed else 1.0
        yield _Candidate(step, records, known * rich * min(len(records), 20) / (1 + depth))
        if count == 1 and depth < MAX_DEPTH:
            yield from _xml_lists(records[0], step, prefixes, depth + 1)
