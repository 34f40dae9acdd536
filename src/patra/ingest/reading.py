"""The body of an answer goes in; the items of the page and what it says about the rest of the list come out (ch. 4.7).

One `Reader` a leg, compiled once. It knows where things stand, not what they mean: whether an answer is an error is
`classify.py`'s business, whether a list goes on `paging.py`'s, what becomes of an item `mapping.py`'s.
"""

import json
import re
from codecs import utf_8_decode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qsl, urljoin, urlsplit

import msgspec
from lxml import etree

from patra.ingest.bits import Field
from patra.ingest.cleaners import clean
from patra.ingest.codes import ResponseFormat
from patra.ingest.paths import Path, Steps, compile_path, items_at, json_path, parse_xml, text_at
from patra.ingest.reasons_running import X
from patra.ingest.spec import Leg
from patra.ingest.splitting import LARGE, Split, split, split_of
from patra.ingest.times import read_instant
from patra.ingest.wants import decoder, wants_of
from patra.kernel.clock import parse_instant
from patra.kernel.errors import Invalid

MAX_ID = 1024  # characters; the contract of `ingest.record.changed` takes 2000
MAX_ID_BYTES = 2048  # an index row of PostgreSQL holds 2700, the names of source and endpoint among them
PIECE = 16_384  # bytes that are looked at in one go
_BOM = b"\xef\xbb\xbf"
_json = msgspec.json.Decoder().decode
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_NULL = msgspec.Raw(b"null")


class Document(msgspec.Struct, frozen=True):
    """A parsed body: JSON values, or the root element of XML. The items of its list may be left as they stand in the
    body (`msgspec.Raw`): whoever needs one reads it, one after the other.
    """

    root: Any
    format: ResponseFormat
    items: list[bytes] | None = None
    """XML: the items of a large body, taken out of it as texts of their own."""
    replaced: int = 0
    """JSON: bytes that are no text in the charset of the body; U+FFFD stands in their place."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A body that is not what its format says; `truncated` where it only lacks its end."""

    truncated: bool
    detail: str


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A page. `items` is None where the document has no list, not even an empty one."""

    items: list[Any] | None
    untold: bool = False
    """XML: the path does not tell whether the place of the list is missing, or only its items are."""
    total: int | None = None
    has_more: bool | None = None
    token: str | None = None
    url: str | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Which record an item is, and which version of it."""

    id: str
    updated_at: int | None
    version: str | None = None
    deleted: bool = False


class Polluted(msgspec.Struct, frozen=True, kw_only=True):
    """L3: an item without an identity; `path` says where it was looked for."""

    code: X
    path: str
    detail: str
    id: str | None = None


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

    `outline` reads no more of it than somebody looks for; what it refuses is read as it stands.
    """
    if fmt is ResponseFormat.XML:
        return _xml(body, apart if len(body) >= LARGE else None)
    text = body.removeprefix(_BOM)
    try:
        if place:
            _check_utf8(text)  # what is skipped is not looked at
            return Document(_outlined(text, place, outline), fmt)
        return Document(_json(text), fmt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _lenient(body, charset, str(error))


def list_split(leg: Leg) -> Split | None:
    """How large answers of a leg in XML can be split."""
    response, pagination = leg.response, leg.pagination
    if response.format is not ResponseFormat.XML:
        return None
    own = [response.total_path, response.has_more_path, pagination.next_token_path, pagination.next_url_path]
    outside = [path for path in [*own, *(rule.path for rule in leg.errors)] if path is not None]
    named = [response.id_path, response.updated_at_path, response.version_path, response.deleted_path]
    inside = [path for path in [*named, *_field_paths(leg.mapping.output.fields)] if path]
    return split_of(response.items_path, outside, inside, response.namespaces)


def _field_paths(fields: Mapping[str, Field | str]) -> Iterator[str]:
    for field in fields.values():
        if isinstance(field, str):
            yield field
            continue
        yield from (path for path in (field.path, field.each, field.expr) if path)
        yield from _field_paths(field.fields)


def list_place(leg: Leg) -> tuple[str, ...]:
    """The names that lead to the list of a leg's answers, if nothing but the list itself is looked for behind them."""
    response, pagination = leg.response, leg.pagination
    if response.format is ResponseFormat.XML:
        return ()
    steps = json_path(response.items_path).steps or ()
    place = tuple(step for step in steps if isinstance(step, str))
    if not place or steps not in {place, (*place, None)}:
        return ()
    others = [response.total_path, response.has_more_path, pagination.next_token_path, pagination.next_url_path]
    for path in [*others, *(rule.path for rule in leg.errors)]:
        way = json_path(path).steps if path is not None else ()
        if way is None or None in way or (len(way) > len(place) and way[: len(place)] == place):
            return ()
    return place


def list_outline(leg: Leg) -> Callable[[Any], Any] | None:
    """A decoder of a leg's answers that reads what its paths lead to, in one go; None where they lead to everything."""
    place = list_place(leg)
    response, pagination = leg.response, leg.pagination
    others = [response.total_path, response.has_more_path, pagination.next_token_path, pagination.next_url_path]
    paths = [path for path in [*others, *(rule.path for rule in leg.errors)] if path is not None]
    wants = wants_of([place, *(json_path(path).lead for path in paths)]) if place else None
    around = wants
    for name in place:
        around = None if around is None else around.get(name)
        if around is None and name != place[-1]:
            return None  # something above the list is wanted as a whole
    return None if wants is None else decoder(wants, place)


class Reader:
    """One leg's paths. Raises Invalid when it is built from a leg that never passed the checks."""

    def __init__(self, leg: Leg, zone: str = "UTC") -> None:
        response, pagination = leg.response, leg.pagination
        self._format = response.format
        self._namespaces = response.namespaces
        self._zone = zone
        self._formats = response.updated_at_format
        self._usual = self._formats[:1] in (("AUTO",), ("ISO",))  # an instant as RFC 3339 writes it is what it says
        self._deleted_values = frozenset(response.deleted_values)
        self._items = self._path(response.items_path)
        self._parent = self._optional(_parent_of(response.items_path, response.format))
        self._untold = self._parent is None and response.format is ResponseFormat.XML
        self._id = self._path(response.id_path)
        self._id_apply = tuple(response.id_apply)
        self._updated = self._optional(response.updated_at_path or None)
        self._version = self._optional(response.version_path)
        self._deleted = self._optional(response.deleted_path)
        self._has_more = self._optional(response.has_more_path)
        self._total = self._optional(response.total_path)
        self._token = self._optional(pagination.next_token_path)
        self._token_param = pagination.next_token_param
        self._url = self._optional(pagination.next_url_path)
        self._link = pagination.next_url_link

    def page(self, document: Document, headers: Mapping[str, str], url: str) -> Listed:
        """What a document says of its page; `url` is where it came from, for relative next URLs."""
        root = document.root
        following = linked(headers.get("link", ""), self._link) if self._link else None
        if following is None and self._url is not None:
            following = self._url.text(root)
        items = self._listed(root) if document.items is None else list(document.items)
        return Listed(
            items=items,
            untold=items is None and self._untold,
            total=_whole(self._total.text(root)) if self._total else None,
            has_more=_truth(self._has_more.first(root)) if self._has_more else None,
            token=self._next_token(root),
            url=urljoin(url, following) if following else None,
        )

    def identity(self, item: Any, *, dated: bool = True) -> Identity | Polluted:
        """Which record an item is. `dated`: it must say when it was last changed."""
        found = self._id.text(item)
        if found and self._id_apply:
            found = text_at(clean(self._id_apply, found))
        if not found:
            return Polluted(code=X.NO_ID, path=self._id.source, detail="no id there")
        if len(found) > MAX_ID or not found.isprintable() or not (found.isascii() or _fits(found)):
            return Polluted(code=X.FIELD_INVALID, path=self._id.source, detail=_no_id(found))
        updated_at: int | None = None
        if self._updated is not None:
            raw = _plain(self._updated.first(item))
            updated_at = parse_instant(raw) if self._usual and isinstance(raw, str) else None
            if updated_at is None:
                moment = read_instant(raw, self._formats, self._zone)
                if moment is None:
                    detail = f"{_shown(raw)} means no instant"
                    return Polluted(code=X.NO_UPDATED_AT, path=self._updated.source, detail=detail, id=found)
                updated_at = moment.at
        elif dated:
            return Polluted(code=X.NO_UPDATED_AT, path="updatedAtPath", detail="the pack names none", id=found)
        return Identity(
            id=found,
            updated_at=updated_at,
            version=self._version.text(item) if self._version else None,
            deleted=self._is_deleted(item),
        )

    def _listed(self, root: Any) -> list[Any] | None:
        items = items_at(self._items, root)
        if items is None:
            return [] if self._parent is not None and self._is_place(self._parent.find(root)) else None
        return [item for item in items if item is not None and item != _NULL]  # a null in a list is no record

    def _is_place(self, found: list[Any]) -> bool:
        if self._format is ResponseFormat.XML or not found:
            return bool(found)
        return isinstance(found[0], list) or found[0] == {}

    @property
    def needs(self) -> tuple[Steps, ...]:
        """How far it is looked into an item to see which record it is."""
        return tuple(path.lead for path in (self._id, self._updated, self._version, self._deleted) if path)

    def _next_token(self, root: Any) -> str | None:
        if self._token is None:
            return None
        token = self._token.text(root)
        if token and self._token_param is not None:
            pairs = parse_qsl(urlsplit(token).query, keep_blank_values=True)
            return next((value for name, value in pairs if name == self._token_param), None)
        return token or None

    def _is_deleted(self, item: Any) -> bool:
        if self._deleted is None:
            return False
        value = self._deleted.first(item)
        if isinstance(value, bool):
            return value
        text = text_at(value)
        if text is None:
            return value is not None
        return text in self._deleted_values if self._deleted_values else bool(text)

    def _path(self, source: str) -> Path:
        return compile_path(source, self._format, self._namespaces)

    def _optional(self, source: str | None) -> Path | None:
        return None if source is None else self._path(source)


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


def linked(header: str, relation: str) -> str | None:
    """The URL of a relation in a `Link` header (RFC 8288)."""
    for target, params in re.findall(r"<([^<>]*)>((?:\s*;\s*[^,;=<>]+(?:=(?:\"[^\"]*\"|[^,;]*))?)*)", header):
        named = re.search(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]*))", params, re.IGNORECASE)
        if named and relation.lower() in (named[1] or named[2] or "").lower().split():
            return target
    return None


def page_digest(ids: list[str]) -> str:
    """What tells one page from another: its ids, in their order."""
    return sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _parent_of(items_path: str, fmt: ResponseFormat) -> str | None:
    """The place that holds the list: it is there although the list is empty; None where that cannot be told.

    Of items anywhere in XML (`//o:record`) it is whatever belongs to their namespace.
    """
    if fmt is ResponseFormat.JSON:
        if (names := re.match(r"\$(?:\.[^.\[\]*\s]+|\['[^'\\]*'\])*(?=\[[*?])", items_path)) is not None:
            return names[0]
        return items_path.removesuffix("[*]") if items_path.endswith("[*]") else None
    if (anywhere := re.fullmatch(r"//([\w.-]+):[\w.-]+", items_path)) is not None:
        return f"//{anywhere[1]}:*"
    head, _, last = items_path.rpartition("/")
    return head if head and not head.endswith("/") and "[" not in last and "(" not in items_path else None


def _check_utf8(body: bytes) -> None:
    """Raises UnicodeDecodeError; piece by piece, since the text itself is not wanted and pieces stay in the cache."""
    if body.isascii():
        return
    view, size, done = memoryview(body), len(body), 0
    while done < size:
        piece = view[done : done + PIECE]
        done += utf_8_decode(piece, "strict", done + PIECE >= size)[1]


def _outlined(body: bytes, place: tuple[str, ...], outline: Callable[[Any], Any] | None) -> Any:
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
    except (UnicodeDecodeError, LookupError):
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


def _plain(value: Any) -> Any:
    """Elements become their text; JSON stays as it is, since a date may be a structure."""
    return text_at(value) if isinstance(value, etree._Element) else value  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _fits(found: str) -> bool:
    return len(found.encode("utf-8", "surrogatepass")) <= MAX_ID_BYTES


def _no_id(found: str) -> str:
    """Why a text is no id."""
    if not found.isprintable():
        return "an id with control characters"
    return f"an id of {len(found)} characters; {MAX_ID} ({MAX_ID_BYTES} bytes) are the most"


def _whole(text: str | None) -> int | None:
    digits = (text or "").replace(",", "").replace(" ", "")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    text = (text_at(value) or "").lower()
    if text in {"true", "yes", "y", "1"}:
        return True
    return False if text in {"false", "no", "n", "0"} else None


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
