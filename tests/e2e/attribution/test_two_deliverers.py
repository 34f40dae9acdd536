"""Two processes deliver from one store, one is killed with -9: the archive has every record once, none is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from patra.attribution.commit import commit
from patra.attribution.delivery.http_archive import HttpArchive
from patra.attribution.delivery.relay import POLICY, Delivery, handing
from patra.attribution.intake.batch import read_batch
from patra.attribution.storage.read import deliveries, every_decision
from patra.attribution.verify import verify
from patra.kernel.clock import SECOND, SystemClock
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.testing import ManualClock
from tests.e2e.attribution.clients import body, event
from tests.prove.attribution_kills import Receiver
from tests.unit.attribution.said import PACKAGES

ATTEMPTS = 120

DELIVER = """
import sys
from patra.attribution.delivery.http_archive import HttpArchive
from patra.attribution.delivery.relay import Delivery
from patra.kernel.clock import SystemClock
from patra.kernel.db import open_database
db = open_database(sys.argv[1])
delivery = Delivery(db, HttpArchive(sys.argv[2]), SystemClock())
print("ready", flush=True)
sys.stdin.readline()
while not delivery.relay.run_once().idle:
    print("turn", flush=True)
"""


@pytest.fixture
def store(postgres_url: str) -> Iterator[tuple[Database, str]]:
    db = open_database(postgres_url)
    migrate(db, PACKAGES)
    yield db, postgres_url
    db.close()


def test_no_record_is_doubled_or_lost_where_one_of_two_delivering_processes_is_killed(store: tuple[Database, str]):
    db, url = store
    clock = SystemClock()
    events = [event(kind, f"{n}", f"{n}-{kind}") for n in range(ATTEMPTS) for kind in ("impression", "click")]
    batches = [read_batch(body(f"b{at}", events[at : at + 100]), clock.now()) for at in range(0, len(events), 100)]
    commit(db, batches, hand=handing(clock))
    receiver = Receiver(seed=7)
    with receiver.serving() as archive:
        crew = [
            subprocess.Popen(
                [sys.executable, "-c", DELIVER, url, archive],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[3],
            )
            for _ in range(2)
        ]
        for process in crew:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in crew:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        killed, other = crew
        assert killed.stdout is not None
        assert killed.stdout.readline() in {"turn\n", ""}  # it has taken some, and holds others
        os.kill(killed.pid, signal.SIGKILL)
        for process in (killed, other):
            process.communicate()
        assert other.returncode == 0
        later = ManualClock(clock.now() + POLICY.hold)  # what the dead one held falls due
        delivery = Delivery(db, HttpArchive(archive), later)
        while db.read(deliveries):  # the archive fails now and then
            delivery.relay.run_once()
            later.advance(30 * SECOND)
    decisions = list(every_decision(db))
    assert {status for one in decisions for status in one.statuses if status} == {"committed"}
    wanted = [record.key for one in decisions for record in one.records]
    assert len(wanted) == len(set(wanted)) >= 3 * len(events)
    assert set(receiver.first) == set(wanted)
    assert receiver.trouble == []
    assert verify(db, clock).findings == []
