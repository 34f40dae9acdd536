"""Stores as the kernel's suites need them: with a plain table, or with the kernel's own."""

import pytest

from patra.kernel.db import Database, migrate
from tests.contract.kernel.tables import create_thing


@pytest.fixture
def db(database: Database) -> Database:
    """A store with the one table of these tests."""
    create_thing(database)
    return database


@pytest.fixture
def store(database: Database) -> Database:
    """A store with the kernel's tables."""
    migrate(database, ["patra.kernel"])
    return database
