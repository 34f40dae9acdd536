"""One of each world for a whole session: making them takes longer than most of the tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from patra.kernel.telemetry import setup_logging
from tests.e2e.console.world import World, world


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world for tests that only look."""
    with _made(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="session")
def acting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world for tests that act; each acts on something of its own."""
    with _made(tmp_path_factory) as made:
        yield made


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world that asks for tokens."""
    with _made(tmp_path_factory, tokens=True) as made:
        yield made


@contextmanager
def _made(factory: pytest.TempPathFactory, *, tokens: bool = False) -> Iterator[World]:
    setup_logging(level="critical")
    with world(factory.mktemp("world"), tokens=tokens) as made:
        yield made


@pytest.fixture(scope="module")
def looking(browser: Browser) -> Iterator[Page]:
    """One page for many looks: only what the last navigation showed is there."""
    made = browser.new_context(viewport={"width": 1440, "height": 900})
    yield made.new_page()
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page whose errors fail the test: refused scripts and styles, exceptions, missing files."""
    made = context.new_page()
    troubles: list[str] = []
    made.on("pageerror", lambda error: troubles.append(str(error)))
    made.on("console", lambda message: troubles.append(message.text) if "Content Security" in message.text else None)
    yield made
    assert troubles == []
