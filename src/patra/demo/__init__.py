"""What `patra demo` shows: one step an engine, run against a Patra that is already up.

A step gets a `Demo` and gives lines to print, one after the other as they become true. `prepare` runs before the
process starts and may add settings by key (a simulated provider's address, say); `show` runs when it answers; `live`
goes on producing until the demonstration ends. A step may add links to `demo.walk`. An engine adds its step to `STEPS`;
films come first, since they are made in the background while the others are shown.

| file | shows |
|---|---|
| sdk_traffic.py | attribution: two apps, duplicates, late and hostile events |
| orders.py | bus: a contract, two consumers, a dead letter that is replayed and one that waits |
| providers.py, providers_http.py | the simulated providers |
| providers_crossref.py, providers_openalex.py, providers_pubmed.py | what each of them answers |
| providers_show.py | ingest: three providers, a crash and a recovery |
| films.py | studio: a film in English and one in Chinese |
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

import msgspec


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A place of the console that is worth a look, and what is to be seen there."""

    path: str
    text: str


class Demo(msgspec.Struct, frozen=True, kw_only=True):
    """The running demonstration: where it answers, and a folder that is gone afterwards."""

    url: str
    folder: Path
    once: bool = False
    """Whether it ends when everything has been shown."""
    stop: Event = msgspec.field(default_factory=Event)
    at_end: ExitStack = msgspec.field(default_factory=ExitStack)
    walk: list[Link] = msgspec.field(default_factory=list[Link])

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.folder / 'patra.db'}"

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """A request of a client; gives the status and the answer."""
        from urllib3 import PoolManager  # noqa: PLC0415  a demonstration starts before its steps are loaded

        pool = PoolManager(timeout=30.0, retries=False)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = pool.request("POST", self.url + path, body=data, headers={"Content-Type": "application/json"})
        return answer.status, msgspec.json.decode(answer.data) if answer.data else None


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An engine's part of the demonstration."""

    name: str
    show: Callable[[Demo], Iterable[str]]
    prepare: Callable[[Path], Mapping[str, Any]] | None = None
    live: Callable[[Demo], None] | None = None


def _of(module: str, name: str) -> Callable[..., Any]:
    """A function of a step's module, which is loaded when the step begins: the first page comes before it."""

    def call(*given: Any) -> Any:
        return getattr(import_module(f"patra.demo.{module}"), name)(*given)

    return call


STEPS: tuple[Step, ...] = (
    Step(
        name="Studio: a film in English and one in Chinese",
        show=_of("films", "show"),
        prepare=_of("films", "prepare"),
    ),
    Step(
        name="Attribution: two apps send events, some twice, some late, some hostile",
        show=_of("sdk_traffic", "show"),
        live=_of("sdk_traffic", "go_on"),
    ),
    Step(
        name="Bus: a contract, two consumers, and a dead letter",
        show=_of("orders", "show"),
        prepare=_of("orders", "prepare"),
        live=_of("orders", "go_on"),
    ),
    Step(
        name="Ingest: three providers, throttling, a crowded day, a crash and a recovery",
        show=_of("providers_show", "show"),
        prepare=lambda _: {"ingest.executors": 0},  # the step brings executors of its own, and kills one
        live=_of("providers_show", "go_on"),
    ),
)
