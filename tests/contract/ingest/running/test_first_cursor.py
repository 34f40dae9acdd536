"""A cursor without a row: one executor at a time writes the first, or two would overwrite each other's value."""

import threading
import time
from types import SimpleNamespace

from patra.ingest.landing.cursor_store import _lock_cursor
from patra.kernel.db import migrate, open_database
from patra.kernel.db.queries import statement

HERE = SimpleNamespace(
    mark={"source": "s", "operation": "BACKFILL", "key": "updated", "scope": "GLOBAL", "namespace": "n"}
)
WAITING = statement("waiting_for_a_lock", "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")


def test_the_second_waits_for_the_first_and_finds_its_value(postgres_url):
    one, other = open_database(postgres_url), open_database(postgres_url)
    migrate(one, ["patra.kernel", "patra.ingest"])
    found = []
    second = threading.Thread(target=lambda: found.append(other.run(lambda tx: _lock_cursor(tx, HERE))))

    def first(tx):
        assert _lock_cursor(tx, HERE) is None
        second.start()
        until = time.monotonic() + 20
        while not tx.fetch(WAITING):
            assert time.monotonic() < until, "the second did not wait"
        row = {
            "provenance_code": "s",
            "operation_code": "BACKFILL",
            "cursor_key": "updated",
            "namespace_scope_code": "GLOBAL",
            "namespace_key": "n",
            "cursor_type_code": "TIME",
            "cursor_value": "v",
            "normalized_instant": 7,
            "created_at": 1,
            "updated_at": 1,
        }
        tx.insert("ing_cursor", [row])

    one.run(first)
    second.join(20)
    assert [row[:2] for row in found] == [("v", 7)]
    one.close()
    other.close()
