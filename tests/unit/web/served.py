"""A real server on a free port, and a plain client for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import urllib3

from patra.app.component import BuiltComponent, Component, Context
from patra.app.configuration.settings import Settings, StoreSettings, WebSettings
from patra.app.loops import Loop
from patra.app.wiring import COMPONENTS, Patra, build
from patra.kernel.clock import Clock
from patra.web.asgi import app, every_endpoint
from patra.web.endpoint import Endpoint
from patra.web.uvicorn_server import serving


class Client:
    def __init__(self, url: str, patra: Patra) -> None:
        self.url = url
        self.patra = patra
        self._pool = urllib3.PoolManager(retries=False, timeout=30.0)

    def __call__(
        self, method: str, path: str, *, token: str = "", body: Any = None, headers: dict[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        return self._pool.request(method, self.url + path, body=body, headers=sent | (headers or {}))

    def get(self, path: str, **kwargs: Any) -> urllib3.BaseHTTPResponse:
        return self("GET", path, **kwargs)

    def post(self, path: str, **kwargs: Any) -> urllib3.BaseHTTPResponse:
        return self("POST", path, **kwargs)


def web_settings(**web: Any) -> Settings:
    return Settings(store=StoreSettings(url="sqlite:///:memory:"), web=WebSettings(port=0, **web))


def with_loops(*loops: Loop) -> tuple[Component, ...]:
    def join(ground: Context) -> BuiltComponent:
        return BuiltComponent(engine=object(), loops=loops)

    return (*COMPONENTS, Component(name="example", join=join))


@contextmanager
def served(
    settings: Settings | None = None,
    endpoints: Sequence[Endpoint] = (),
    parts: Sequence[Component] = COMPONENTS,
    clock: Clock | None = None,
) -> Iterator[Client]:
    """A Patra in memory with its own endpoints and those given."""
    settings = settings or web_settings()
    patra = build(settings, clock, parts=parts)
    try:
        with serving(app(patra, [*every_endpoint(patra), *endpoints]), settings.web) as running:
            yield Client(running.url, patra)
    finally:
        patra.close(5)


def problem(response: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    """The body of a refusal, whose form is checked."""
    assert response.headers["Content-Type"] == "application/problem+json"
    body = msgspec.json.decode(response.data)
    assert body["status"] == response.status
    assert body["code"]
    assert body["title"]
    return body
