"""Turns a URL into the database for it."""

from patra.kernel.db.api import Database
from patra.kernel.db.sqlite import SQLiteDatabase
from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.redact import redact_url


def open_database(
    url: str, *, synchronous: str = "FULL", pool_size: int = 8, wait: float = 10.0, silent_seconds: float = 10.0
) -> Database:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///:memory:` or `postgresql://user@host/name`.

    `wait` bounds the seconds spent on another process that writes (SQLite) or on a connection (PostgreSQL), and
    `silent_seconds` those spent on a PostgreSQL server that does not answer.
    """
    if url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return SQLiteDatabase(url.removeprefix("sqlite:///"), synchronous=synchronous, wait=wait)
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from patra.kernel.db.postgres import PostgresDatabase  # noqa: PLC0415  (an extra: psycopg)
        except ModuleNotFoundError as error:
            raise ConfigInvalid(
                "config_extra_missing", "a postgresql:// store needs the extra: pip install 'patra[postgres]'"
            ) from error
        return PostgresDatabase(url, pool_size=pool_size, wait=wait, silent_seconds=silent_seconds)
    raise ConfigInvalid(
        "config_store_url", f"{redact_url(url)!r} is neither sqlite:///FILE nor postgresql://USER@HOST/NAME"
    )
