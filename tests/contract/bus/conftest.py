"""One suite for every store and transport: `site` is built on each in turn."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.transports.nats import NatsStream
from patra.kernel.db import Database, open_database
from tests.contract.bus.site import Site
from tests.unit.bus.making import ORDERED, QUICK, THING_2, catalogue, event_type, version

_numbers = itertools.count()

TYPES = catalogue(
    event_type(**QUICK, dead_letter_threshold=3),
    event_type("ordered.happened", **ORDERED, **QUICK, dead_letter_threshold=3),
    event_type(
        "blocking.happened", ordering={"key": ["/payload/key"], "on_dead_letter": "block"}, retry={"max_retries": 0}
    ),
    event_type("dual.happened", versions=[version("1.0", status="retiring"), version("2.0", THING_2)]),
)


@pytest.fixture(params=["store-sqlite", "store-postgres", "nats-sqlite", "nats-postgres"])
def make_site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Builds sites on one store and one transport; with `elsewhere` on a store of its own that shares the transport."""
    transport, _, dialect = request.param.partition("-")
    opened: list[Database | NatsStream] = []
    url = f"sqlite:///{tmp_path / 'bus.db'}" if dialect == "sqlite" else request.getfixturevalue("postgres_url")
    name = f"T{os.getpid()}_{next(_numbers)}"

    def make(types: Catalogue = TYPES, *, elsewhere: bool = False) -> Site:
        db = open_database(f"sqlite:///{tmp_path / 'elsewhere.db'}" if elsewhere else url)
        stream = None
        if transport == "nats":
            stream = NatsStream(request.getfixturevalue("nats_url"), name, prefix=f"{name}.bus")
            opened.append(stream)
        opened.append(db)
        return Site(db, types, stream)

    yield make
    for one in reversed(opened):
        one.close()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    made = make_site()
    made.effects_table()
    return made
