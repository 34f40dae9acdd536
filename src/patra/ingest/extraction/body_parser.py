"""Turns the bytes of a body into a document: strict first, then as providers really write it (ch. 4.7).

Items of a list may stay as they stand in the body; `read_item` reads one.
"""

import json
from codecs import utf_8_decode
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import msgspec
from lxml import etree

from patra.ingest.expressions.paths import parse_xml
from patra.ingest.extraction.xml_repair import mended_xml
from patra.ingest.extraction.xml_splitter import SPLIT_FROM_BYTES, Split, split
from patra.ingest.vocabulary.codes import ResponseFormat
from patra.kernel.errors import Invalid

SCAN_BYTES = 16_384  # bytes that are looked at in one go
_BOM = b"\xef\xbb\xbf"
_json = msgspec.json.Decoder().decode
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Document(msgspec.Struct, frozen=True):
    """A parsed body: JSON values, or the root element of XML. The items of its list may be left as they stand in the
    body (`msgspec.Raw`): they are decoded one by one when needed.
    """

    root: Any
    format: ResponseFormat
    items: list[bytes] | None = None
    """XML: the items of a large body, taken out of it as texts of their own."""
    replaced: int = 0
    """Bytes that are not text in the charset of the body, or that XML does not allow; U+FFFD stands in their place."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is not what its format says; `truncated` where it only lacks its end."""

    truncated: bool
    detail: str


Parsed: TypeAlias = Document | Unreadable


def parse(
    body: bytes,
    fmt: ResponseFormat,
    charset: str = "utf-8",
    place: tuple[str, ...] = (),
    apart: Split | None = None,
    outline: Callable[[Any], Any] | None = None,
) -> Parsed:
    """The document of a body; the items of the list at `place` stay as they stand in it, large XML is set `apart`.

    `outline` reads no more of it than is needed; what it refuses is read as a whole.
    """
    if fmt is ResponseFormat.XML:
        return _xml(body, apart if len(body) >= SPLIT_FROM_BYTES else None)
    text = body.removeprefix(_BOM)
    try:
        if place:
            _check_utf8(text)  # what is skipped is not looked at
            return Document(_outline_body(text, place, outline), fmt)
        return Document(_json(text), fmt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _lenient(body, charset, str(error))


def read_item(item: bytes | msgspec.Raw) -> Any:
    """An item that was left as it stood in its body; None where nobody can read it."""
    if type(item) is bytes:
        return parse_xml(item)
    try:
        return _json(item)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
    ) as error:  # numbers past every bound: the rest is sound
        found = _lenient(bytes(item), "utf-8", str(error))
        return found.root if isinstance(found, Document) else None


def _check_utf8(body: bytes) -> None:
    """Raises UnicodeDecodeError; piece by piece, since the text itself is not wanted and pieces stay in the cache."""
    if body.isascii():
        return
    view, size, done = memoryview(body), len(body), 0
    while done < size:
        piece = view[done : done + SCAN_BYTES]
        done += utf_8_decode(piece, "strict", done + SCAN_BYTES >= size)[1]


def _outline_body(body: bytes, place: tuple[str, ...], outline: Callable[[Any], Any] | None) -> Any:
    if outline is not None:
        try:
            return outline(body)
        except msgspec.DecodeError:
            pass  # another shape than the paths expect, or no JSON: what it is will be seen
    return _around(body, place)


def _around(body: bytes | msgspec.Raw, place: tuple[str, ...]) -> Any:
    """A document whose list is not looked into: each item is found, none is read."""
    start = bytes(memoryview(body)[:64]).lstrip()[:1]
    if not place:
        return _items(body) if start == b"[" else _json(body)
    if start != b"{":
        return _json(body)
    parts = _parts(body)
    return {name: _around(part, place[1:]) if name == place[0] else _json(part) for name, part in parts.items()}


def _xml(body: bytes, apart: Split | None) -> Parsed:
    found = _strict_xml(body, apart)
    if isinstance(found, Document) or found.truncated:
        return found
    mended, replaced = mended_xml(body)
    again = _strict_xml(mended, apart) if mended != body else found
    return Document(again.root, again.format, again.items, replaced) if isinstance(again, Document) else found


def _strict_xml(body: bytes, apart: Split | None) -> Parsed:
    try:
        if apart is not None and (found := split(body, apart)) is not None and found[1]:
            return Document(found[0], ResponseFormat.XML, found[1])
        return Document(parse_xml(body), ResponseFormat.XML)
    except etree.XMLSyntaxError as error:
        text = str(error)
        truncated = any(mark in text for mark in ("Premature end", "EndTag", "not finished", "Couldn't find end"))
        return Unreadable(truncated=truncated or not body.strip(), detail=text[:200])
    except (ValueError, Invalid) as error:
        return Unreadable(truncated=False, detail=str(error)[:200])


def _lenient(body: bytes, charset: str, first: str) -> Parsed:
    """JSON that is not quite: raw control characters, NaN, halves of surrogates, another charset."""
    replaced = 0
    try:
        text = body.removeprefix(_BOM).decode(charset or "utf-8")
    except (UnicodeError, LookupError):  # no text in it, or no such charset: some send `undefined`
        text = body.decode("utf-8", "replace")
        replaced = text.count("\ufffd") - body.count("\ufffd".encode())
    try:
        value = json.loads(text, strict=False, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        over = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip())
        ended = over or "truncated" in first or "Unterminated" in str(error)
        return Unreadable(truncated=ended, detail=first[:200])
    return Document(_well_formed(value), ResponseFormat.JSON, replaced=replaced)


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_well_formed(item) for item in cast("list[Any]", value)]
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return {_well_formed(key): _well_formed(item) for key, item in pairs}
        case _:
            return value
