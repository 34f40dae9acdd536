"""The stores of these suites: they try what is landed, not how durably, so SQLite does not wait for the disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from patra.kernel.db import Database, open_database


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        db = open_database(f"sqlite:///{tmp_path / 'patra.db'}", synchronous="OFF")
    else:
        db = open_database(request.getfixturevalue("postgres_url"))
    yield db
    db.close()
