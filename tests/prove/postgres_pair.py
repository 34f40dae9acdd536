"""A PostgreSQL primary and its synchronous standby, which take turns: one is killed, the other is promoted, the first comes back."""

import shutil
from pathlib import Path

import psycopg

from tests.prove.chaos_faults import Postgres, until

REPLICATION = "SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby' AND state = 'streaming'"


class Pair:
    """Two servers in folders of their own. What the primary acknowledges is on the disk of both once `join` returned.

    After a failover the new primary acknowledges alone until the other one has joined it again: nobody may kill it before.
    """

    def __init__(
        self, first: Path, second: Path, environment: dict[str, str] | None = None, *, fsync: bool = True
    ) -> None:
        """Without `fsync` a kill still loses nothing, since the machine stays on; only its power may not fail."""
        for folder in (first, second):
            folder.mkdir()
        options = {
            "hot_standby": "on",
            "wal_keep_size": "64MB",
            "wal_retrieve_retry_interval": "200ms",  # a standby that was promoted while it slept wakes up after this
            "fsync": "on" if fsync else "off",
        }
        self.primary = Postgres(first, options, environment or {})
        self.standby = Postgres(second, options, {})

    @property
    def url(self) -> str:
        """Both servers, in an order that never changes."""
        ports = sorted((self.primary.port, self.standby.port))
        return f"postgresql://postgres@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/postgres?connect_timeout=2"

    def start(self) -> None:
        self.primary.make()
        self.primary.start()
        self.join()

    def join(self) -> None:
        """Make the standby anew from the primary, and let the primary wait for it from now on."""
        shutil.rmtree(self.standby.data, ignore_errors=True)
        self.standby.copy(self.primary)
        self.standby.start()
        until(lambda: self._replication() is not None, "the standby to stream")
        self._configure("synchronous_standby_names", "standby")
        until(lambda: self._replication() == "sync", "the standby to be synchronous")

    def fail_over(self) -> None:
        """Kill the primary with -9 and promote the standby, which waits for nobody yet."""
        self.primary.close()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def close(self) -> None:
        for one in (self.primary, self.standby):
            one.close()

    def _replication(self) -> str | None:
        with self.connect(self.primary) as connection:
            row = connection.execute(REPLICATION).fetchone()
        return None if row is None else row[0]

    def _configure(self, name: str, value: str) -> None:
        with self.connect(self.primary) as connection:
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")

    @staticmethod
    def connect(server: Postgres) -> "psycopg.Connection[tuple]":
        url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres?connect_timeout=5"
        return psycopg.connect(url, autocommit=True)
