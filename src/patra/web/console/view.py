"""What a page's function gets and gives: who looks, at what, and how to ask; then a template with its values."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from patra.app.access.actor import Actor
from patra.app.wiring import Patra
from patra.kernel.errors import PatraError
from patra.web.console.calls import Calls, Refusal
from patra.web.console.markup.formats import link
from patra.web.console.reads.series import Series

T = TypeVar("T")
PAGE_SIZE = 50


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is given instead of a page; never shown, whatever it holds."""

    name: str
    content: bytes


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A template and its values. `title` is the answer to the view's question where there is one."""

    title: str
    template: str
    values: Mapping[str, Any] = {}
    status: int = 200
    file: Download | None = None

    def among(self, shared: Mapping[str, Any]) -> "Page":
        """With values that other pages have too; its own come first."""
        return msgspec.structs.replace(self, values={**shared, **self.values})


class View:
    """One look at one address by one person."""

    def __init__(
        self,
        *,
        calls: Calls,
        series: Series,
        actor: Actor,
        route: str,
        path: Mapping[str, str],
        query: Mapping[str, str],
        now: int,
    ) -> None:
        self.calls = calls
        self.series = series
        self.actor = actor
        self.route = route
        self.path = path
        self.query = query
        self.now = now
        self.partial: list[str] = []

    @property
    def patra(self) -> Patra:
        return self.calls.patra

    def filter_value(self, name: str, default: str = "") -> str:
        """A filter of the address."""
        return self.query.get(name, default).strip()

    def filters(self, *names: str) -> dict[str, str]:
        """The filters that are set, in this order."""
        return {name: value for name in names if (value := self.filter_value(name))}

    def ask(self, template: str, path: Mapping[str, str] | None = None, /, **query: Any) -> Any:
        """`GET` of the HTTP interface. Raises Refusal."""
        return self.calls.ask(self.actor, "GET", template, path, query)

    def part(self, name: str, work: Callable[[], T]) -> T | None:
        """A part of a page that may fail for itself: one slow engine never blanks the page."""
        try:
            return work()
        except Refusal as refusal:
            self.partial.append(f"{name}: {refusal.problem.code}")
        except PatraError as error:
            self.partial.append(f"{name}: {error.code}")
        return None

    def wider(
        self, asked: Mapping[str, Mapping[str, Any]], count: Callable[[dict[str, Any]], int]
    ) -> dict[str, Any] | None:
        """For a list that is empty: the filter without which most is found, how much, and the way there.

        `asked` has what each filter asks for, by its name in the address; `time` is the span. `count` looks no further
        than a page.
        """

        def without(name: str) -> int | None:
            rest = [one for other, one in asked.items() if other != name]
            given = {key: value for one in rest for key, value in one.items()}
            return self.part(f"without {name}", lambda: count(given))

        counts = {name: without(name) or 0 for name, given in asked.items() if any(given.values())}
        name = max(counts, key=lambda name: counts[name], default="")
        if not name or not counts[name]:
            return None
        dropped = dict.fromkeys(("from", "to") if name == "time" else (name,), "")
        href = self.here(before="", after="", at="", **dropped)
        return {"name": name, "count": counts[name], "more": counts[name] >= PAGE_SIZE, "href": href}

    def may(self, method: str, template: str) -> bool:
        return self.calls.may(self.actor, method, template)

    def here(self, **changed: Any) -> str:
        """This address with other filters; an empty value drops one."""
        path = self.route
        for name, value in self.path.items():
            path = path.replace("{" + name + "}", value).replace("{" + name + ":path}", value)
        kept = {name: value for name, value in self.query.items() if name != "did"}
        return link(path, {**kept, **changed})


Handler = Callable[[View], Page]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the console; `nav` is the entry of the navigation it belongs to."""

    path: str
    handler: Handler
    nav: str
    live: bool = True
