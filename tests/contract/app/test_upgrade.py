"""Stores that earlier releases made are migrated, and everything in them is read, on both databases.

`stores/make.py` made them, with the release itself; each has a billed impression and click, a lapsed closure, a rejected
event, a finished harvest of twelve records, their events on the bus as dead letters of one group, and a film.
"""

import lzma
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from patra.app.access.actor import command_line_actor
from patra.app.integrity import verify as verify_bytes
from patra.app.postgres_backup import back_up, restore
from patra.app.story.search import story
from patra.app.wiring import packages
from patra.attribution.commit import commit
from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.ack import BatchAck
from patra.attribution.intake.batch import read_batch
from patra.attribution.settlement.counts import settle
from patra.attribution.verify import verify as verify_attribution
from patra.bus import operations
from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import load
from patra.bus.consuming.dead_letter import Filter
from patra.bus.publishing.envelope import Refused
from patra.ingest.operations.coverage import coverage
from patra.kernel.clock import DAY, SECOND, format_instant
from patra.kernel.db import Database, migrate, open_database, pending_migrations
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from patra.studio import views
from tests.conftest import schema_of_its_own
from tests.contract.ingest.running.world import T1 as INGEST_UNTIL
from tests.unit.attribution.said import T0, envelope, event

STORES = Path(__file__).parent / "stores"
RELEASES = sorted({path.name.rsplit(".", 2)[0] for path in STORES.glob("*.xz")})
SCHEMA = b"patra_store_of_a_release"
RECORDS = 12
UNTIL = format_instant(INGEST_UNTIL)


def content(release: str, database: str) -> bytes:
    return lzma.decompress((STORES / f"{release}.{database}.xz").read_bytes())


@contextmanager
def store_of(release: str, database: str, folder: Path, request: pytest.FixtureRequest) -> Generator[Database]:
    """The store as the release left it."""
    if database == "sqlite":
        path = folder / "patra.db"
        path.write_bytes(content(release, database))
        with closing(open_database(f"sqlite:///{path}")) as db:
            yield db
        return
    with schema_of_its_own(request.getfixturevalue("postgres_server")) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
            connection.execute(content(release, database).replace(SCHEMA, str(schema).encode()))
        with closing(open_database(url)) as db:
            yield db


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def upgraded(
    request: pytest.FixtureRequest, release: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    with store_of(release, request.param, tmp_path_factory.mktemp("store"), request) as db:
        migrate(db, packages())
        yield db


def rows(db: Database, text: str) -> list[Any]:
    return db.read(lambda tx: tx.fetch(statement("asked", text)))


def test_there_is_a_store_of_every_release_before_this_one() -> None:
    changelog = (Path(__file__).parents[3] / "CHANGELOG.md").read_text("utf-8")
    released = [line.split("[")[1].split("]")[0] for line in changelog.splitlines() if line.startswith("## [")]
    assert sorted(released[1:]) == RELEASES, "make it: see stores/make.py"
    assert all((STORES / f"{one}.{kind}.xz").exists() for one in RELEASES for kind in ("sqlite", "postgres"))


def test_every_migration_is_applied(upgraded: Database) -> None:
    assert pending_migrations(upgraded, packages()) == []


def test_the_settlement_counts_what_was_billed(upgraded: Database) -> None:
    found = upgraded.read(lambda tx: settle(tx, T0, T0 + DAY, "placement"))
    assert [(line.app_id, line.placement, line.impressions, line.clicks) for line in found.lines] == [
        ("app", "home", 1, 1)
    ]


def test_verification_finds_nothing(upgraded: Database) -> None:
    assert verify_attribution(upgraded, ManualClock(T0 + DAY)).findings == []
    assert verify_bytes(upgraded).damages == []
    assert verify_bytes(upgraded).rows["ing_record"] == RECORDS


@pytest.mark.parametrize(
    ("key", "kind", "told"),
    [
        ("b2/impression", "attribution.event", {"batch_received", "event_decided", "billable_fact_recorded"}),
        ("ref|ra|billable_click", "attribution.billingKey", {"event_decided", "billable_fact_recorded"}),
        ("ref|lapsed", "attribution.closureKey", {"closure_opened"}),
    ],
)
def test_the_story_of_a_key_is_told(upgraded: Database, key: str, kind: str, told: set[str]) -> None:
    found = story(upgraded, key, kind=kind)
    assert found.outcome == "found"
    assert {entry.what for entry in found.entries} >= told


def test_the_watermark_stands_where_it_stood_and_every_record_is_found(upgraded: Database) -> None:
    assert rows(upgraded, "SELECT cursor_value FROM ing_cursor") == [(UNTIL,)]
    found = [provider_id for (provider_id,) in rows(upgraded, "SELECT provider_id FROM ing_record")]
    assert len(found) == RECORDS
    told = story(upgraded, found[0])
    assert {"batch_landed", "record_changed", "event_published"} <= {entry.what for entry in told.entries}


def test_windows_read_since_there_is_a_ledger_add_up(upgraded: Database, release: str) -> None:
    found = upgraded.read(lambda tx: coverage(tx, "hostile", "search")).sum
    ledger = (0, 0, 0) if release == "0.1.0" else (4, 4, RECORDS)  # which 0.1.0 did not have
    assert (found.windows, found.complete, found.landed) == ledger


def test_dead_letters_are_found_with_their_events_and_handed_out_again(upgraded: Database) -> None:
    letters = upgraded.read(lambda tx: operations.find_letters(tx, Filter(group="ledger"), limit=100))
    assert len(letters) == RECORDS
    told = story(upgraded, letters[0].event_id, kind="bus.event_id")
    assert {"event_published", "dead_letter_written", "record_changed"} <= {entry.what for entry in told.entries}
    bus = Bus(load(), ManualClock(T0 + 365 * DAY))
    first = letters[0].event_id
    done = upgraded.run(lambda tx: operations.replay(tx, bus, "ledger", [first], by="operator", confirm="ledger"))
    assert not isinstance(done, Refused)
    left = upgraded.read(lambda tx: operations.find_letters(tx, Filter(group="ledger"), limit=100))
    assert {one.event_id for one in left} == {one.event_id for one in letters[1:]}


def test_the_film_is_listed_with_its_shots(upgraded: Database) -> None:
    (run,) = upgraded.read(lambda tx: views.recent(tx, 10))
    assert (run.title, run.stage, run.run_id is not None) == ("The Small Boat", "completed", True)
    assert {one.state for one in upgraded.read(lambda tx: views.shots(tx, str(run.run_id)))} == {"made"}
    assert story(upgraded, str(run.run_id)).outcome == "found"


def test_keys_of_before_are_known_and_new_events_are_billed(upgraded: Database) -> None:
    """Last: it adds to what the others count."""
    events = [event("click"), event("impression", "later", renderAttemptId="later")]
    body = msgspec.json.encode(envelope(*events))
    (ack,) = commit(upgraded, [read_batch(body, T0 + 60 * SECOND)])
    assert isinstance(ack, BatchAck)
    assert [item.ackReasonCode for item in ack.ackItems] == [Reason.DEDUP_COMMITTED, Reason.ACCEPTED]
    found = upgraded.read(lambda tx: settle(tx, T0, T0 + DAY, "app"))
    assert (found.impressions, found.clicks) == (2, 1)
    assert verify_attribution(upgraded, ManualClock(T0 + DAY)).findings == []


def test_a_store_of_an_earlier_release_is_backed_up_restored_and_then_migrated(
    release: str, request: pytest.FixtureRequest, postgres_server: str, tmp_path: Path
) -> None:
    clock = ManualClock(T0 + DAY)
    with store_of(release, "postgres", tmp_path, request) as db:
        manifest = back_up(db, tmp_path / "copy", clock)
    with schema_of_its_own(postgres_server) as url, closing(open_database(url)) as db:
        restore(tmp_path / "copy", db, clock, command_line_actor())
        applied = db.read(lambda tx: tx.fetch(statement("applied", "SELECT count(*) FROM krn_migration")))
        assert applied == [(len(manifest.migrations),)]
        migrate(db, packages())
        found = db.read(lambda tx: settle(tx, T0, T0 + DAY, "app"))
        assert (found.impressions, found.clicks) == (1, 1)
        assert verify_attribution(db, clock).findings == []
