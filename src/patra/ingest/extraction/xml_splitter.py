"""Turns a large XML body into its items as texts of their own, and the document without them.

The tree of a page is ten times its text. Of a large page the tree is therefore never built: an item is written down as
it ends and taken out, and read again when its turn comes. What is found must be what would have been found in the
whole: where a path could look from the document into an item, or from an item out of it, nothing is split.
"""

import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

import msgspec
from lxml import etree

SPLIT_FROM_BYTES = 2 * 1024 * 1024
_ONE = r"(?:[A-Za-z_][\w.-]*:)?[A-Za-z_][\w.-]*"
_PLACE = re.compile(rf"//?{_ONE}(?:/{_ONE})*").fullmatch
_OUTER = re.compile(rf"//?{_ONE}(?:/{_ONE})*(?:/@{_ONE})?").fullmatch
_NAME = re.compile(r"[A-Za-z_][\w.-]*(?![\w.:-])")
_OUTSIDE = re.compile(r"\.\.|(?:^|[\s(|,\[])/|ancestor|parent|preceding|following|id\s*\(")


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Where items stand: whole ways from the root, or names at any depth; the names that paths from the document look
    for, and those whose text they take.
    """

    ways: frozenset[tuple[str, ...]]
    anywhere: frozenset[str]
    outer: frozenset[str]
    texts: frozenset[str]


def split_of(
    items_path: str, outside: Iterable[str], inside: Iterable[str], namespaces: Mapping[str, str]
) -> Split | None:
    """How answers can be split whose items stand at a path; None where they cannot.

    `outside`: the paths that start at the document, `inside`: those that start at an item.
    """
    ways: set[tuple[str, ...]] = set()
    anywhere: set[str] = set()
    for part in (part.strip() for part in items_path.split("|")):
        if _PLACE(part) is None:
            return None
        names = [_qualify_name(name, namespaces) for name in part.lstrip("/").split("/")]
        if part.startswith("//"):
            if len(names) > 1:
                return None
            anywhere.add(names[0])
        else:
            ways.add(tuple(names))
    outer: set[str] = set()
    texts: set[str] = set()
    for path in (part.strip() for whole in outside for part in whole.split("|")):
        plain = path.removesuffix("[normalize-space()]")
        if _OUTER(plain) is None:
            return None
        outer.update(_NAME.findall(plain))
        texts.update(_NAME.findall(plain.rpartition("/")[2]))
    if any(_OUTSIDE.search(path) for path in inside):
        return None
    return Split(ways=frozenset(ways), anywhere=frozenset(anywhere), outer=frozenset(outer), texts=frozenset(texts))


def split(body: bytes, how: Split) -> tuple[Any, list[bytes]] | None:
    """The root without its items, and the items; None where the body has to be read as one. Raises XMLSyntaxError."""
    if b"<!ENTITY" in body:
        return None
    found: list[bytes] = []
    way: list[str] = []
    depth = 0  # where the item stands that is being read; 0 for none
    events = etree.iterparse(
        BytesIO(body),
        events=("start", "end"),
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
        remove_comments=True,
    )
    for event, element in events:
        if event == "start":
            way.append(element.tag)
            is_item = element.tag in how.anywhere or tuple(way) in how.ways
            if (depth and is_item) or ((depth or is_item) and _local(element.tag) in how.outer):
                return None
            if is_item and not how.texts.isdisjoint(map(_local, way)):
                return None
            depth = depth or (len(way) if is_item else 0)
        else:
            if len(way) == depth:
                found.append(etree.tostring(element, encoding="utf-8", with_tail=False))
                _take_out(element)
                depth = 0
            way.pop()
    return events.root, found


def _take_out(element: Any) -> None:
    """Empty it, and forget those before it: the parser still needs the last."""
    element.clear(keep_tail=False)
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None and element.getprevious().tag == element.tag:
        parent.remove(element.getprevious())


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _qualify_name(name: str, namespaces: Mapping[str, str]) -> str:
    prefix, colon, local = name.rpartition(":")
    return f"{{{namespaces.get(prefix, '')}}}{local}" if colon else name
