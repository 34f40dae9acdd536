"""A server that is killed with -9 while it writes Parquet files: the archive ends complete, in order, without doubles."""

import signal
import sqlite3
import threading
from pathlib import Path

import duckdb

from patra.attribution.delivery.relay import POLICY, Delivery, open_archive
from patra.attribution.storage.read import every_decision
from patra.client import Answer, Client
from patra.kernel.clock import SystemClock
from patra.kernel.db import open_database
from patra.kernel.testing import ManualClock
from tests.e2e.attribution.clients import event
from tests.e2e.process import PATRA, started

KILLS = 3
PER_LIFE = 600
"""Events that are answered before the server is killed."""


def test_a_parquet_archive_survives_kills_complete_in_order_and_without_doubles(tmp_path: Path):
    told: list[Answer] = []
    for life in range(KILLS):
        with started(
            tmp_path,
            [*PATRA, "up", "--port", "0"],
            PATRA_STORE_URL=f"sqlite:///{tmp_path}/patra.db",
            PATRA_ATTRIBUTION_ARCHIVE=f"parquet:{tmp_path}/archive",
        ) as process:
            url = process.until("listening")["url"]
            threading.Thread(
                target=process.ended, daemon=True
            ).start()  # reads what it says, lest it waits for a reader
            client = Client(url, app_id="app", on_answer=told.append, sleep=lambda _: None)
            for number in range(PER_LIFE // 2):
                for kind in ("ad_filled", "impression"):
                    client.add(event(kind, f"{life}-{number}", f"{life}-{number}-{kind}"))
            client.flush()
            process.signal(signal.SIGKILL)  # some of it was delivered, some of it is being, most of it waits
            client.close()
    assert [answer.status for answer in told] == ["accepted"] * KILLS * PER_LIFE

    (tmp_path / "archive" / "records-leftover.parquet").write_bytes(b"half a file")
    (tmp_path / "archive" / ".records-leftover.parquet.part").write_bytes(b"half a file")
    db = open_database(f"sqlite:///{tmp_path}/patra.db")
    archive = open_archive(f"parquet:{tmp_path}/archive")
    assert archive is not None
    later = ManualClock(SystemClock().now() + POLICY.hold)  # what the dead held falls due
    delivery = Delivery(db, archive, later)
    while not delivery.relay.run_once().idle:
        pass
    decisions = list(every_decision(db))
    archive.close()
    db.close()

    index = sqlite3.connect(tmp_path / "archive" / "index.db")
    files = [name for (name,) in index.execute("SELECT name FROM file ORDER BY rowid")]
    index.close()
    assert sorted(path.name for path in (tmp_path / "archive").iterdir()) == sorted([*files, "index.db"])
    places: dict[tuple[str, str], int] = {}
    for name in files:
        query = f"SELECT record_key, record_status FROM '{tmp_path}/archive/{name}'"
        for row in duckdb.sql(query).fetchall():
            assert row not in places
            places[row] = len(places)
    wanted = {(record.key, record.status.value) for one in decisions for record in one.records}
    assert {answer.server_event_key for answer in told} == {one.decision.subject.source for one in decisions}
    assert set(places) == wanted
    assert {status for _, status in wanted} == {"committed"}
    for one in decisions:
        order = [places[record.key, record.status.value] for record in one.records]
        assert order == sorted(order)
