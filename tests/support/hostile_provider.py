"""A provider with every bad habit that the issue trackers of harvesters know, and a truth to compare with.

It pages by offset, page, token, URL, Link header and time, in JSON and XML, lists ids and gives details. By chance
(from a seed) it throttles, fails, cuts connections, truncates bodies, answers with HTML or with an error in place of
its list, repeats pages, lets cursors expire, gives short pages and loses next links, now and then or for good; some of
its records have no id; it caps the depth of its lists and moves records while they are read. It counts what it was
asked, second by second.
"""

import json
import random
import threading
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from xml.sax.saxutils import escape, quoteattr

import msgspec

from patra.kernel.clock import format_instant, parse_instant
from tests.support.provider_server import Reply, serving

__all__ = ["Asked", "Habits", "Item", "Provider", "Reply", "crowded", "serving"]

START = "*"


class Item(msgspec.Struct, frozen=True, order=True):
    """A record of the provider."""

    updated: int
    id: str
    title: str = ""


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """How it misbehaves. Chances are per request, in thousandths."""

    seed: int = 1
    limit: int = 0
    """Most requests in any second; more are answered with 429. 0: no limit."""
    retry_after: str | None = None
    throttles: int = 0
    """Answers with 429 although the limit is kept."""
    fails: int = 0
    cuts: int = 0
    truncates: int = 0
    html: int = 0
    errors: int = 0
    """Answers 200 with an error in place of the list, in the right format."""
    repeats: int = 0
    drops_next: int = 0
    """A page of a chain has no next link although there is more."""
    shortens: int = 0
    """A page lacks its last record; the total counts it. Not by time, where no total tells."""
    nameless: int = 0
    """Every so manieth record has lost its id: null in a JSON list, an empty element in XML. 0: none."""
    broken_at: int = 0
    """Lists of a window with this instant are broken: their first page lacks its last record, and a link is lost."""
    expires: int = 0
    """A cursor dies: 404 with `cursor-invalid`."""
    depth: int = 0
    """Deepest record that offsets reach; beyond it the answer is an error. 0: no cap."""
    moves: int = 0
    """A record of the list that is read is changed, so that it leaves the window."""
    move_to: int = 0
    latency: float = 0.0
    same_token: bool = False
    """The token stays the same text while the list moves on (Crossref)."""


class Asked(msgspec.Struct, frozen=True):
    at: float
    path: str
    status: int


class Provider:
    """The provider: its records, its habits, its memory of what it was asked."""

    def __init__(self, items: Iterable[Item], habits: Habits | None = None) -> None:
        self.habits = habits or Habits()
        self.asked: list[Asked] = []
        self.limited = 0
        self._items = sorted(items)
        self._by_id = {item.id: item for item in self._items}
        self._lock = threading.Lock()
        self._chance = random.Random(self.habits.seed)
        self._recent: deque[float] = deque()
        self._cursors: dict[str, tuple[Any, ...]] = {}
        self._last: dict[str, list[Item]] = {}
        self._broken: set[str] = set()
        self._number = 0

    @property
    def truth(self) -> dict[str, int]:
        """Every record's id and update time, as things stand now."""
        with self._lock:
            return {item.id: item.updated for item in self._items}

    def is_nameless(self, item: Item) -> bool:
        every = self.habits.nameless
        return every > 0 and int(item.id.lstrip("abcdefghijklmnopqrstuvwxyz-")) % every == every - 1

    @property
    def named_truth(self) -> dict[str, int]:
        """The truth, without records that have no id: they cannot land."""
        with self._lock:
            return {item.id: item.updated for item in self._items if not self.is_nameless(item)}

    def most_in_a_second(self) -> int:
        """The most requests that arrived within any second."""
        times = sorted(one.at for one in self.asked)
        most = start = 0
        for end, at in enumerate(times):
            while at - times[start] >= 1.0:
                start += 1
            most = max(most, end - start + 1)
        return most

    def change(self, identifier: str, updated: int) -> None:
        """A record is updated."""
        with self._lock:
            self._change(self._by_id[identifier], updated)

    def _change(self, item: Item, updated: int) -> None:
        del self._items[bisect_left(self._items, item)]
        new = Item(updated, item.id, item.title + "'")
        insort(self._items, new)
        self._by_id[item.id] = new

    # --- one request

    def answer(self, method: str, target: str, body: bytes) -> Reply:
        """What is answered; a `Reply` may say that the connection is cut on the way."""
        arrived = time.monotonic()
        url = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        with self._lock:
            reply = self._limited(arrived) or self._faulty(url.path) or self._served(method, url.path, query, body)
            self.asked.append(Asked(arrived, target, reply.status))
        if self.habits.latency:
            threading.Event().wait(self.habits.latency)
        return reply

    def _by_chance(self, thousandths: int) -> bool:
        return thousandths > 0 and self._chance.randrange(1000) < thousandths

    def _limited(self, now: float) -> Reply | None:
        if not self.habits.limit:
            return None
        while self._recent and now - self._recent[0] >= 1.0:
            self._recent.popleft()
        self._recent.append(now)
        if len(self._recent) <= self.habits.limit:
            return None
        self.limited += 1
        return self._slow_down()

    def _slow_down(self) -> Reply:
        headers = {} if self.habits.retry_after is None else {"Retry-After": self.habits.retry_after}
        return Reply(status=429, body=b"<html>slow down</html>", kind="text/html", headers=headers)

    def _faulty(self, path: str) -> Reply | None:
        h = self.habits
        if path.startswith("/plain"):
            return None
        if self._by_chance(h.throttles):
            return self._slow_down()
        if self._by_chance(h.fails):
            return Reply(status=self._chance.choice([500, 502, 503]), body=b"upstream", kind="text/plain")
        if self._by_chance(h.html):
            return Reply(status=200, body=b"<!DOCTYPE html><html><body>maintenance</body></html>", kind="text/html")
        return None

    def _served(self, method: str, path: str, query: dict[str, str], body: bytes) -> Reply:
        form = dict(parse_qsl(body.decode())) if method == "POST" else query
        xml = query.get("format") == "xml" or form.get("format") == "xml"
        if path == "/details":
            found = [self._by_id[one] for one in form.get("ids", "").split(",") if one in self._by_id]
            return self._sent(found, {"total": len(found)}, xml=xml, ids=False)
        walk = _WALKS.get(path)
        if walk is None:
            return Reply(status=404, body=b"Resource not found.", kind="text/plain")
        return walk(self, path, query, xml)

    def selection(self, query: dict[str, str]) -> list[Item]:
        """The records of the window that is asked for, in the order that is asked for."""
        since, until = parse_instant(query.get("from", "")), parse_instant(query.get("until", ""))
        low = 0 if since is None else bisect_left(self._items, Item(since, ""))
        high = len(self._items) if until is None else bisect_left(self._items, Item(until, ""))
        found = self._items[low:high]
        if "low" in query:  # ids end in a number
            keys = range(int(query["low"]), int(query["high"]) + 1)
            found = [item for item in found if int(item.id.lstrip("abcdefghijklmnopqrstuvwxyz-")) in keys]
        return found[::-1] if query.get("order", "desc") == "desc" else found

    def _moved(self, found: list[Item]) -> None:
        """After an answer: a record that was already read leaves the window, and everything behind it shifts."""
        if found and self._by_chance(self.habits.moves) and self.habits.move_to:
            item = self._chance.choice(found)
            stays = self.is_nameless(item) or item.updated == self.habits.broken_at
            if self._by_id.get(item.id) == item and not stays:
                self._number += 1
                self._change(item, self.habits.move_to + self._number)

    def _is_broken(self, query: dict[str, str]) -> bool:
        since, until = parse_instant(query.get("from", "")) or 0, parse_instant(query.get("until", "")) or 0
        return since <= self.habits.broken_at < until

    def _shortened(self, found: list[Item], *, broken: bool) -> list[Item]:
        """A page as it is shown: without its last record where the list is broken, or by chance."""
        return found[:-1] if found and (broken or self._by_chance(self.habits.shortens)) else found

    def _page(
        self, query: dict[str, str], start: int, path: str, extra: Callable[[int, int, int], dict[str, Any]], xml: bool
    ) -> Reply:
        size = int(query.get("size", "10"))
        every = self.selection(query)
        if self.habits.depth and start + size > self.habits.depth and start > 0 and start >= self.habits.depth:
            return Reply(status=400, body=b'{"error": "too deep"}', kind="application/json")
        found = every[start : start + size]
        listed = f"{path} {query.get('from')} {query.get('until')}"  # of another list it repeats nothing
        if self._by_chance(self.habits.repeats) and self._last.get(listed):
            shown = self._last[listed]
        else:
            shown = self._shortened(found, broken=start == 0 and self._is_broken(query))
            self._last[listed] = shown
        reply = self._sent(shown, {"total": len(every), **extra(start, size, len(every))}, xml=xml, ids="ids" in query)
        if reply.cut is None and shown is found:
            self._moved(found)
        return reply

    def _sent(self, found: list[Item], more: dict[str, Any], *, xml: bool, ids: bool) -> Reply:
        rows = [None if self.is_nameless(item) else item for item in found]
        body = (_xml if xml else _json)(rows, more, ids=ids)
        headers = {"Link": f'<{more["link"]}>; rel="next"'} if more.get("link") else {}
        kind = "application/xml" if xml else "application/json"
        if self._by_chance(self.habits.errors):
            wrong = b"<error>try again later</error>" if xml else b'{"error": "try again later"}'
            return Reply(status=200, body=wrong, kind=kind)
        if self._by_chance(self.habits.truncates):
            return Reply(status=200, body=body[: len(body) // 2], kind=kind, headers=headers)
        if self._by_chance(self.habits.cuts):
            return Reply(status=200, body=body, kind=kind, headers=headers, cut=len(body) // 2)
        return Reply(status=200, body=body, kind=kind, headers=headers)

    # --- ways to walk a list

    def by_offset(self, path: str, query: dict[str, str], xml: bool) -> Reply:
        return self._page(query, int(query.get("offset", "0")), path, _no_more, xml)

    def by_page(self, path: str, query: dict[str, str], xml: bool) -> Reply:
        size = int(query.get("size", "10"))
        start = (int(query.get("page", "1")) - 1) * size

        def more(begin: int, width: int, total: int) -> dict[str, Any]:
            return {"more": begin + width < total} if "more" in query else {}

        return self._page(query, start, path, more, xml)

    def by_token(self, path: str, query: dict[str, str], xml: bool) -> Reply:
        """A cursor holds a snapshot of the list, as good servers do; with `same_token` it moves by itself."""
        del path
        token = query.get("token", START)
        if token == START:
            self._number += 1
            token = f"c{self._number}.0"
            self._opened(token, query)
            if self.habits.same_token:
                self._cursors[token.partition(".")[0] + "@"] = (0,)
        name, _, place = token.partition(".")
        if name not in self._cursors or self._by_chance(self.habits.expires):
            self._cursors.pop(name, None)
            body = b'{"status": "failed", "message": [{"type": "cursor-invalid"}]}'
            return Reply(status=404, body=body, kind="application/json")
        every = list(self._cursors[name])
        size = int(query.get("size", "10"))
        start = self._cursors[name + "@"][0] if self.habits.same_token else int(place)
        found = every[start : start + size]
        following = f"{name}.0" if self.habits.same_token else f"{name}.{start + size}"
        if self.habits.same_token:
            self._cursors[name + "@"] = (start + len(found),)
        if not self.habits.same_token and (start + size >= len(every) or self._loses_link(name)):
            following = None
        shown = self._shortened(found, broken=start == 0 and name in self._broken)
        reply = self._sent(shown, {"total": len(every), "next": following}, xml=xml, ids="ids" in query)
        self._moved([item for item in found if self._by_id.get(item.id) == item])
        return reply

    def _opened(self, token: str, query: dict[str, str]) -> None:
        """A cursor begins: a snapshot of its list, which may be a broken one."""
        name = token.partition(".")[0]
        self._cursors[name] = tuple(self.selection(query))
        if self._is_broken(query):
            self._broken.add(name)

    def _loses_link(self, name: str) -> bool:
        return name in self._broken or self._by_chance(self.habits.drops_next)

    def by_url(self, path: str, query: dict[str, str], xml: bool) -> Reply:
        token = query.get("cursor")
        if token is None:
            self._number += 1
            token = f"u{self._number}.0"
            self._opened(token, query)
        name, _, place = token.partition(".")
        if name not in self._cursors or self._by_chance(self.habits.expires):
            self._cursors.pop(name, None)
            return Reply(status=404, body=b'{"message": [{"type": "cursor-invalid"}]}', kind="application/json")
        every, start, size = list(self._cursors[name]), int(place), int(query.get("size", "10"))
        found = every[start : start + size]
        keep = {key: value for key, value in query.items() if key not in {"cursor", "from", "until", "order"}}
        following = f"{path}?{urlencode({**keep, 'cursor': f'{name}.{start + size}'})}"
        if start + size >= len(every) or self._loses_link(name):
            following = None
        place_of = "link" if path == "/link" else "next"
        shown = self._shortened(found, broken=start == 0 and name in self._broken)
        reply = self._sent(shown, {"total": len(every), place_of: following}, xml=xml, ids="ids" in query)
        self._moved([item for item in found if self._by_id.get(item.id) == item])
        return reply

    def by_time(self, path: str, query: dict[str, str], xml: bool) -> Reply:
        """No pages: the first `size` records of the window, in rising order."""
        every = self.selection({**query, "order": "asc"})
        found = every[: int(query.get("size", "10"))]
        reply = self._sent(found, {}, xml=xml, ids="ids" in query)
        self._last[path] = found
        return reply


_WALKS: dict[str, Callable[[Provider, str, dict[str, str], bool], Reply]] = {
    "/offset": Provider.by_offset,
    "/page": Provider.by_page,
    "/token": Provider.by_token,
    "/url": Provider.by_url,
    "/link": Provider.by_url,
    "/time": Provider.by_time,
}


def _no_more(_start: int, _size: int, _total: int) -> dict[str, Any]:
    return {}


def _json(found: list[Item | None], more: dict[str, Any], *, ids: bool) -> bytes:
    items: list[Any] = [
        item and (item.id if ids else {"id": item.id, "updated": format_instant(item.updated), "title": item.title})
        for item in found
    ]
    return json.dumps({**{k: v for k, v in more.items() if k != "link"}, "items": items}).encode()


def _xml(found: list[Item | None], more: dict[str, Any], *, ids: bool) -> bytes:
    rows = [
        ("<id/>" if ids else "<record/>")
        if item is None
        else f"<id>{escape(item.id)}</id>"
        if ids
        else f"<record id={quoteattr(item.id)} updated={quoteattr(format_instant(item.updated))}>"
        f"<title>{escape(item.title)}</title></record>"
        for item in found
    ]
    head = "".join(f" {key}={quoteattr(str(value))}" for key, value in more.items() if value is not None)
    return f"<?xml version='1.0'?><list{head}>{''.join(rows)}</list>".encode()


def crowded(count: int, start: int, end: int, *, seed: int = 1, crowd: bool = True) -> list[Item]:
    """Records over a time; with `crowd`, half of them lie within one hour of it. No two have the same instant."""
    chance = random.Random(seed)
    hour = 3_600_000_000
    middle = start + (end - start) // 2 // hour * hour
    instants: set[int] = set()
    while len(instants) < count:
        dense = crowd and len(instants) < count // 2
        low, high = (middle, min(middle + hour, end)) if dense else (start, end)
        instants.add(chance.randrange(low, high) // 1000 * 1000)
    return [Item(at, f"r{number:06}", f"Title {number}") for number, at in enumerate(sorted(instants))]
