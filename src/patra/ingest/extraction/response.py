"""Turns the body of an answer into the items of the page and what it says about the rest of the list (ch. 4.7).

One `Reader` a leg, compiled once. It knows where things stand, not what they mean: whether an answer is an error is
`classify.py`'s business, whether a list goes on `pagination.py`'s, what becomes of an item `mapping.py`'s.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import msgspec
from lxml import etree

from patra.ingest.expressions.cleaners import clean
from patra.ingest.expressions.paths import Path, Steps, compile_path, items_at, text_at
from patra.ingest.extraction.body_parser import Document
from patra.ingest.packs.extensions import ExtensionPoint, load_extension
from patra.ingest.packs.spec import Leg
from patra.ingest.vocabulary.codes import ResponseFormat, UpdateTime
from patra.ingest.vocabulary.instants import read_instant
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import parse_instant
from patra.kernel.errors import Invalid

MAX_ID = 1024  # characters; the contract of `ingest.record.changed` takes 2000
MAX_ID_BYTES = 2048  # an index row of PostgreSQL holds 2700, the names of source and endpoint among them
_NULL = msgspec.Raw(b"null")


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A page. `items` is None where the document has no list, not even an empty one."""

    items: list[Any] | None
    null_items: int = 0
    """Nulls in the list: places without a record."""
    untold: bool = False
    """XML: the path does not show whether the place of the list is missing, or only its items are."""
    total: int | None = None
    has_more: bool | None = None
    token: str | None = None
    url: str | None = None


class Identity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Which record an item is, and which version of it."""

    id: str
    updated_at: int | None
    version: str | None = None
    deleted: bool = False


class Polluted(msgspec.Struct, frozen=True, kw_only=True):
    """L3: an item without an identity; `path` says where it was looked for."""

    code: RunReason
    path: str
    detail: str
    id: str | None = None


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
        self._timeless = self._updated is None and response.update_time is UpdateTime.NONE
        self._version = self._optional(response.version_path)
        self._deleted = self._optional(response.deleted_path)
        self._has_more = self._optional(response.has_more_path)
        self._total = self._optional(response.total_path)
        self._token = self._optional(pagination.next_token_path)
        self._token_param = pagination.next_token_param
        hook = pagination.next_token_hook
        self._token_hook = None if hook is None else load_extension(ExtensionPoint.PAGING, hook)
        self._url = self._optional(pagination.next_url_path)
        self._link = pagination.next_url_link

    @property
    def timeless(self) -> bool:
        """Its records have no time: they lie in no window, and outside none."""
        return self._timeless

    def page(self, document: Document, headers: Mapping[str, str], url: str) -> Listed:
        """What a document says of its page; `url` is where it came from, for relative next URLs."""
        root = document.root
        following = link_target(headers.get("link", ""), self._link) if self._link else None
        if following is None and self._url is not None:
            following = self._url.text(root)
        items, nulls = self._list_items(root) if document.items is None else (list(document.items), 0)
        return Listed(
            items=items,
            null_items=nulls,
            untold=items is None and self._untold,
            total=_whole(self._total.text(root)) if self._total else None,
            has_more=_truth(self._has_more.first(root)) if self._has_more else None,
            token=self._next_token(root),
            url=urljoin(url, following) if following else None,
        )

    def identity(self, item: Any, *, dated: bool = True) -> Identity | Polluted:
        """Which record an item is. `dated`: it must say when it was last changed."""
        value = self._id.first(item)
        found = value.strip() if type(value) is str else text_at(value)
        if found and self._id_apply:
            found = text_at(clean(self._id_apply, found))
        if not found:
            return Polluted(code=RunReason.NO_ID, path=self._id.source, detail="no id there")
        if len(found) > MAX_ID or not found.isprintable() or not (found.isascii() or _fits(found)):
            return Polluted(code=RunReason.FIELD_INVALID, path=self._id.source, detail=_no_id(found))
        updated_at: int | None = None
        if self._updated is not None:
            raw = self._updated.first(item)
            if type(raw) is not str:
                raw = _plain(raw)
            updated_at = parse_instant(raw) if self._usual and isinstance(raw, str) else None
            if updated_at is None:
                moment = read_instant(raw, self._formats, self._zone)
                if moment is None:
                    detail = f"{_display_value(raw)} means no instant"
                    return Polluted(code=RunReason.NO_UPDATED_AT, path=self._updated.source, detail=detail, id=found)
                updated_at = moment.at
        elif self._timeless:
            updated_at = 0
        elif dated:
            return Polluted(code=RunReason.NO_UPDATED_AT, path="updatedAtPath", detail="the pack names none", id=found)
        if self._version is None and self._deleted is None:
            return Identity(id=found, updated_at=updated_at)
        version = self._version.text(item) if self._version else None
        return Identity(id=found, updated_at=updated_at, version=version, deleted=self._is_deleted(item))

    def _list_items(self, root: Any) -> tuple[list[Any] | None, int]:
        """The items, and how many nulls stand among them: a null is not a record, but a place of the list."""
        items = items_at(self._items, root)
        if items is None:
            return ([] if self._parent is not None and self._is_place(self._parent.find(root)) else None), 0
        there = [item for item in items if item is not None and item != _NULL]
        return there, len(items) - len(there)

    def _is_place(self, found: list[Any]) -> bool:
        if self._format is ResponseFormat.XML or not found:
            return bool(found)
        return isinstance(found[0], list) or found[0] == {}

    @property
    def needs(self) -> tuple[Steps, ...]:
        """How far it is looked into an item to see which record it is."""
        return tuple(path.lead for path in (self._id, self._updated, self._version, self._deleted) if path)

    def _next_token(self, root: Any) -> str | None:
        if self._token_hook is not None:
            try:
                found = self._token_hook(root)
                return None if found is None else str(found)
            except Exception as error:
                detail = f"the paging hook failed on a page: {type(error).__name__}: {error}"
                raise Invalid("paging_hook_failed", detail, advice="fix the hook, then run the window again") from error
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


def link_target(header: str, relation: str) -> str | None:
    """The URL of a relation in a `Link` header (RFC 8288); some servers quote it with apostrophes."""
    for target, params in re.findall(r"<([^<>]*)>((?:\s*;\s*[^,;=<>]+(?:=(?:\"[^\"]*\"|[^,;]*))?)*)", header):
        named = re.search(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s;,]*))", params, re.IGNORECASE)
        if named and relation.lower() in (named[1] or named[2] or named[3] or "").lower().split():
            return target
    return None


def page_digest(ids: list[str]) -> str:
    """The identity of a page: its ids, in their order."""
    return sha256("\n".join(ids).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _parent_of(items_path: str, fmt: ResponseFormat) -> str | None:
    """The place that holds the list: it is there although the list is empty; None where that is unknown.

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


def _plain(value: Any) -> Any:
    """Elements become their text; JSON stays as it is, since a date may be a structure."""
    return text_at(value) if isinstance(value, etree._Element) else value  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def _fits(found: str) -> bool:
    return len(found.encode("utf-8", "surrogatepass")) <= MAX_ID_BYTES


def _no_id(found: str) -> str:
    """Why a text is not an id."""
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


def _display_value(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
