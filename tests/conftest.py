"""Fixtures that every suite shares: real databases and brokers, and a fresh store for each test."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from patra.kernel.db import Database, open_database
from patra.kernel.safety.known_secrets import KnownSecrets
from tests import services
from tests.support.examples import examples

settings.register_profile(
    "patra",
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("patra")

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test's secrets are must not decide what another's texts look like."""
    monkeypatch.setattr("patra.kernel.safety.known_secrets._KNOWN", KnownSecrets())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    with services.postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A schema of its own on the session's PostgreSQL server, as a URL."""
    with schema_of_its_own(postgres_server) as url:
        yield url


@contextmanager
def schema_of_its_own(server: str) -> Iterator[str]:
    """A new schema on a PostgreSQL server, as a URL; dropped at the end."""
    schema = f"t{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {schema}".encode())
        yield f"{server}?options={quote(f'-csearch_path={schema}')}"
        admin.execute(f"DROP SCHEMA {schema} CASCADE".encode())


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with services.redis() as url:
        yield url


@pytest.fixture(scope="session")
def nats_url() -> Iterator[str]:
    with services.nats() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'patra.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """As `database_url`, opened; not migrated."""
    db = open_database(database_url)
    yield db
    db.close()
