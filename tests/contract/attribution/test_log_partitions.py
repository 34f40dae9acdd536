"""The log of a new PostgreSQL store is partitioned: made ahead of the writers, dropped whole, and nothing is lost between."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
import psycopg
import pytest

from patra.app import postgres_backup
from patra.app.access.actor import command_line_actor
from patra.app.component import Health
from patra.app.components.attribution import log_check
from patra.app.configuration.settings import Settings, StoreSettings
from patra.app.wiring import build, packages
from patra.attribution import verify as verifying
from patra.attribution import verify_slices
from patra.attribution.commit import commit
from patra.attribution.history import kinds
from patra.attribution.history.ask import check_files
from patra.attribution.history.files import CODES, Span, add_span, files_between
from patra.attribution.history.kinds import LogLines
from patra.attribution.history.log_lines import restore_log
from patra.attribution.history.log_partitions import LOG, past_partitions, stretches
from patra.attribution.intake.batch import read_batch
from patra.attribution.log_export import export_log
from patra.attribution.retention import Retention, purge_once
from patra.attribution.verify import verify
from patra.attribution.verify_slices import verify_slice
from patra.kernel.clock import DAY, HOUR, SECOND
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db import partitions as parts
from patra.kernel.db.partitions import (
    PartitionMaker,
    hold_still,
    newest_instant,
    partitions,
    shape,
)
from patra.kernel.db.queries import statement
from patra.kernel.errors import StoreBusy, Transient
from patra.kernel.files import FolderPlace
from patra.kernel.testing import ManualClock
from tests.conftest import schema_of_its_own
from tests.contract.attribution.test_history import Killed, Mortal
from tests.unit.attribution.said import PACKAGES, T0, envelope, event

WIDTH = 4
KEPT = 30 * DAY
LATER = T0 + 200 * DAY
CONSTRAINTS = statement(
    "constraints", "SELECT conname FROM pg_constraint WHERE conrelid = to_regclass('att_log_rest') AND contype = 'c'"
)


@pytest.fixture
def store(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A store with partitions of four lines each, two of them."""
    monkeypatch.setattr(parts, "LEAST_NUMBERS", WIDTH)
    with closing(open_database(postgres_url)) as db:
        migrate(db, PACKAGES)
        narrow(db, 2)
        yield db


def narrow(db: Database, count: int) -> None:
    """Partitions of few lines in the place of those that a new store has."""

    def work(tx: Any) -> None:
        for one in partitions(tx, LOG):
            tx.script(f"DROP TABLE {one.name}")
        for n in range(count):
            first, end = n * WIDTH, (n + 1) * WIDTH
            tx.script(f"CREATE TABLE att_log_{first} PARTITION OF att_log FOR VALUES FROM ({first}) TO ({end})")

    db.run(work)


def send(db: Database, number: int, day: float = 0.0) -> None:
    """One line of the log."""
    body = envelope(event("impression", f"i{number}", renderAttemptId=f"ra{number}"), batch=f"b{number}")
    commit(db, [read_batch(msgspec.json.encode(body), T0 + round(day * DAY) + number * SECOND)])


def bounds(db: Database) -> list[tuple[int, int]]:
    return [(one.first, one.end) for one in db.read(lambda tx: partitions(tx, LOG))]


def numbers(db: Database, table: str = "att_log") -> list[int]:
    asked = statement("numbers", f"SELECT number FROM {table} ORDER BY number")
    return [number for (number,) in db.read(lambda tx: tx.fetch(asked))]


def maker(db: Database, now: int = T0) -> PartitionMaker:
    return PartitionMaker(db, ManualClock(now), LOG)


def make_all(db: Database) -> int:
    one, steps = maker(db), 0
    while done := one.run_once().steps:
        steps += done
    return steps


@contextmanager
def reading(url: str, table: str) -> Generator[None]:
    """Somebody who reads a table for a long time, as a backup does."""
    with psycopg.connect(url) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE".encode())
        yield


def log(db: Database, place: FolderPlace | None = None) -> list[bytes]:
    return list(export_log(db, LATER, place))


# --- how a store begins -----------------------------------------------------------------------------------------------


def test_a_new_store_begins_with_partitions_far_ahead_of_its_writers(postgres_url: str):
    with closing(open_database(postgres_url)) as db:
        migrate(db, PACKAGES)
        assert db.read(lambda tx: shape(tx, LOG)).ahead > 3_000_000
        send(db, 1)
        assert numbers(db, "att_log_0") == [1]
        assert make_all(db) == 0
    with closing(open_database("sqlite:///:memory:")) as db:
        migrate(db, PACKAGES)
        assert db.read(lambda tx: partitions(tx, LOG)) == []


def test_a_store_that_an_earlier_release_made_keeps_its_table_though_it_is_empty(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
):
    migrations: Any = import_module("patra.kernel.db.migrate")
    ours: Callable[..., list[Any]] = migrations._files
    with closing(open_database(postgres_url)) as db:
        with monkeypatch.context() as earlier:

            def of_then(package: str, dialect: str) -> list[Any]:
                return [one for one in ours(package, dialect) if one.number < 30]

            earlier.setattr(migrations, "_files", of_then)
            migrate(db, PACKAGES)
        assert [one.number for one in migrate(db, PACKAGES)][:1] == [30]
        assert db.read(lambda tx: partitions(tx, LOG)) == []
        assert maker(db).run_once().steps == 0
        send(db, 1)
        assert numbers(db) == [1]
        assert "one table" in log_check(db.read(lambda tx: shape(tx, LOG))).found


# --- made ahead -------------------------------------------------------------------------------------------------------


def test_partitions_are_made_before_the_writers_come_near(store: Database):
    for number in range(1, 40):
        send(store, number)
        make_all(store)
        assert store.read(lambda tx: shape(tx, LOG)).ahead >= WIDTH
    assert numbers(store, "att_log_rest") == []
    assert numbers(store) == list(range(1, 40))
    found = bounds(store)
    assert [end for _, end in found[:-1]] == [first for first, _ in found[1:]]


def test_a_partition_holds_about_the_lines_of_a_day(store: Database):
    for number in range(1, 8):
        send(store, number)
    for number in range(8, 40):
        send(store, number, day=5)
    one = maker(store, T0 + 5 * DAY + HOUR)
    while bounds(store)[-1][1] == 2 * WIDTH:
        assert one.run_once().steps == 1
    first, end = bounds(store)[-1]
    assert end - first == 32


def test_a_turn_with_nothing_to_do_asks_for_one_number_alone(store: Database):
    send(store, 1)
    make_all(store)
    reads: Any = OnlyReads(store)
    one = PartitionMaker(reads, ManualClock(T0), LOG)
    one.run_once()
    reads.writes = False
    assert one.run_once().steps == 0


class OnlyReads:
    def __init__(self, db: Database) -> None:
        self.writes = True
        self.read = db.read
        self._db = db

    def run(self, work: Callable[[Any], Any]) -> Any:
        assert self.writes
        return self._db.run(work)


def test_while_a_backup_reads_the_default_partition_none_is_made_and_nobody_waits(store: Database, postgres_url: str):
    for number in range(1, 4):
        send(store, number)
    before = bounds(store)
    with reading(postgres_url, "att_log_rest"):
        assert maker(store).run_once().steps == 0
        send(store, 4)
    assert bounds(store) == before
    assert make_all(store) > 0


def test_a_vacuum_of_one_partition_keeps_no_other_from_being_made_or_dropped(store: Database, postgres_url: str):
    for number in range(1, 10):
        send(store, number)
        make_all(store)
    before = bounds(store)
    with psycopg.connect(postgres_url) as other:  # a vacuum holds this lock for hours, where a partition is large
        other.execute(b"LOCK TABLE att_log_8 IN SHARE UPDATE EXCLUSIVE MODE")
        for number in range(10, 15):
            send(store, number)
        assert make_all(store) > 0
        purge_once(store, T0 + KEPT + HOUR, Retention(log=KEPT))
    assert bounds(store)[-1] > before[-1]
    assert bounds(store)[0][0] == 8


def test_two_processes_make_each_partition_once(store: Database, postgres_url: str):
    for number in range(1, 8):
        send(store, number)
    with psycopg.connect(postgres_url) as other:
        name = "(to_regclass('att_log')::oid::bigint % 2147483647)::int"
        other.execute(f"SELECT pg_advisory_xact_lock(7026818, {name})".encode())
        assert maker(store).run_once().steps == 0
    make_all(store)
    made = bounds(store)
    assert make_all(store) == 0
    assert bounds(store) == made


def test_a_process_that_is_overtaken_between_its_look_and_its_act_makes_nothing_twice(
    store: Database, monkeypatch: pytest.MonkeyPatch
):
    for number in range(1, 4):
        send(store, number)
    looked = parts.partitions
    with closing(open_database(store.url)) as other:

        def overtaken(tx: Any, table: Any) -> Any:
            found = looked(tx, table)
            monkeypatch.setattr(parts, "partitions", looked)
            make_all(other)
            return found

        monkeypatch.setattr(parts, "partitions", overtaken)
        assert maker(store).run_once().steps == 1
    assert len(bounds(store)) == 3


def test_commits_do_not_wait_for_the_lock_of_who_makes_partitions(store: Database, postgres_url: str):
    with psycopg.connect(postgres_url) as other:
        name = "(to_regclass('att_log')::oid::bigint % 2147483647)::int"
        other.execute(f"SELECT pg_advisory_xact_lock(7026818, {name})".encode())
        send(store, 1)
    assert numbers(store) == [1]


# --- where nobody makes them ------------------------------------------------------------------------------------------


def test_lines_that_no_partition_takes_are_kept_and_reported_until_partitions_are_made_again(store: Database):
    for number in range(1, 20):
        send(store, number)
    before = log(store)
    assert numbers(store, "att_log_rest") == list(range(8, 20))
    check = log_check(store.read(lambda tx: shape(tx, LOG)))
    assert check.health is Health.WARNING
    assert "12 lines" in check.found
    assert make_all(store) >= 3  # a constraint, its validation, the partition
    assert log(store) == before
    assert store.read(lambda tx: tx.fetch(CONSTRAINTS, None))[1:] == []  # that of the states is left
    first, _ = bounds(store)[-1]
    for number in range(20, first + 3):
        send(store, number)
    assert numbers(store, f"att_log_{bounds(store)[2][0]}") != []
    assert numbers(store) == list(range(1, first + 3))
    assert verify(store, ManualClock(T0 + DAY)).findings == []


def test_a_table_whose_partitions_are_all_past_is_still_partitioned(store: Database):
    for number in range(1, 20):
        send(store, number, day=0 if number < 19 else 40)
    while purge_once(store, T0 + KEPT + 2 * DAY, Retention(log=KEPT)).log:
        pass
    assert bounds(store) == [(4, 8)]
    assert numbers(store) == [19]
    assert make_all(store) > 0
    assert len(bounds(store)) > 1


def test_a_constraint_that_the_writers_have_reached_is_taken_back_before_it_refuses_a_line(store: Database):
    for number in range(1, 10):
        send(store, number)
    one = maker(store)
    assert one.run_once().steps == 1
    guard = [name for (name,) in store.read(lambda tx: tx.fetch(CONSTRAINTS)) if "without" in name]
    assert len(guard) == 1
    first = int(guard[0].split("_")[-2])
    store.run(lambda tx: tx.script(f"SELECT setval('att_log_number_seq', {first})"))
    assert one.run_once().steps == 1
    assert [name for (name,) in store.read(lambda tx: tx.fetch(CONSTRAINTS)) if "without" in name] == []
    send(store, 10)
    assert make_all(store) > 0
    assert numbers(store)[-1] == first + 1


def test_where_partitions_ran_out_the_next_one_waits_its_turn_among_the_writers(store: Database, postgres_url: str):
    """Else writers who come one after the other would keep it from ever being made."""
    for number in range(1, 10):
        send(store, number)
    waiting = b"SELECT 1 FROM pg_locks WHERE relation = to_regclass('att_log_rest') AND NOT granted"
    with psycopg.connect(postgres_url) as writer, psycopg.connect(postgres_url, autocommit=True) as observer:
        writer.execute(b"INSERT INTO att_log (number, place, at, kind) VALUES (11, 0, 0, 'tick')")
        made: list[int] = []
        thread = Thread(target=lambda: made.append(maker(store).run_once().steps))
        thread.start()
        seen = False
        while thread.is_alive() and not seen:
            seen = observer.execute(waiting).fetchone() is not None
        writer.commit()
        thread.join()
    assert seen


def test_rows_of_the_default_partition_are_not_read_under_a_lock(store: Database, postgres_url: str):
    """They are validated while somebody writes into the partition."""
    for number in range(1, 10):
        send(store, number)
    one = maker(store)
    assert one.run_once().steps == 1
    with psycopg.connect(postgres_url) as writer:
        writer.execute(b"INSERT INTO att_log (number, place, at, kind) VALUES (11, 0, 0, 'tick')")
        assert one.run_once().steps == 1
        with pytest.raises(StoreBusy):  # to attach it waits for nobody
            store.run(lambda tx: parts.step_ahead(tx, LOG, T0))
    assert one.run_once().steps == 1


# --- dropped whole ----------------------------------------------------------------------------------------------------


def test_a_partition_whose_lines_are_all_past_is_dropped(store: Database):
    for number in range(1, 12):
        send(store, number, day=0 if number < 9 else 20)
        make_all(store)
    now = T0 + KEPT + DAY // 2
    assert purge_once(store, now, Retention(log=KEPT)).log == 7 + 1  # one more of the partition that is written
    assert bounds(store)[0][0] == 8
    assert numbers(store) == [9, 10, 11]
    assert verify(store, ManualClock(now)).findings == []
    assert b"purgedBefore" in log(store)[0]


def test_a_full_partition_that_is_partly_past_loses_its_lines_one_by_one_after_a_day(store: Database):
    for number in range(1, 10):
        send(store, number, day=0 if number < 3 else 20)
        make_all(store)
    purge = Retention(log=KEPT)
    assert purge_once(store, T0 + KEPT + DAY // 2, purge).log == 0
    assert purge_once(store, T0 + KEPT + DAY + HOUR, purge).log == 2
    assert numbers(store) == list(range(3, 10))
    assert purge_once(store, T0 + 20 * DAY + KEPT + HOUR, purge).log == 6
    assert bounds(store)[0] == (8, 12)
    assert numbers(store) == [9]  # the newest line: numbers go on from it


def test_a_process_that_looks_while_another_drops_a_partition_goes_on(store: Database):
    """The list is of its snapshot, the table is gone: its turn of retention ended in an error of the database."""
    fill(store)
    before = T0 + HOUR
    with closing(open_database(store.url)) as other:

        def look(tx: Any) -> tuple[Any, ...]:
            first = partitions(tx, LOG)[0]
            assert purge_once(other, before + KEPT, Retention(log=KEPT)).log
            gone = newest_instant(tx, LOG, first)
            return gone, first in partitions(tx, LOG), next(stretches(tx, before, into_files=True)).first

        assert store.read(look) == (None, False, -(2**62))
    assert bounds(store)[0][0] > 0


def test_nothing_is_dropped_that_somebody_reads_and_nobody_waits_for_it(store: Database, postgres_url: str):
    for number in range(1, 10):
        send(store, number)
        make_all(store)
    now = T0 + KEPT + HOUR
    with reading(postgres_url, "att_log"):
        purge_once(store, now, Retention(log=KEPT))
        assert bounds(store)[0][0] == 0
        send(store, 10)
    purge_once(store, now, Retention(log=KEPT))
    assert bounds(store)[0][0] == 8


def test_a_line_that_comes_late_into_a_full_partition_keeps_it(store: Database, postgres_url: str):
    """A commit that drew its number long ago: dropping waits for it, for a short time, and then sees its line."""
    for number in range(1, 10):
        send(store, number)
        make_all(store)
    store.run(lambda tx: tx.script("DELETE FROM att_log WHERE number = 2"))
    now = T0 + KEPT + HOUR
    late = f"INSERT INTO att_log (number, place, at, kind) VALUES (2, 0, {now}, 'tick')"
    with psycopg.connect(postgres_url) as writer:
        writer.execute(late.encode())
        purge_once(store, now, Retention(log=KEPT))
        assert bounds(store)[0][0] == 0
        writer.commit()
    purge_once(store, now, Retention(log=KEPT))
    assert bounds(store)[0][0] == 0
    assert 2 in numbers(store)


# --- into files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> FolderPlace:
    return FolderPlace(tmp_path / "history", CODES)


def fill(db: Database, count: int = 10) -> None:
    for number in range(1, count):
        send(db, number)
        make_all(db)


def purge(db: Any, place: Any, now: int) -> None:
    while purge_once(db, now, Retention(log=KEPT), history=place).log:
        pass


def test_a_partition_is_dropped_once_all_its_lines_are_in_verified_files(
    store: Database, place: FolderPlace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 2)
    fill(store)
    before = log(store)
    now = T0 + KEPT + HOUR
    assert purge_once(store, now, Retention(log=KEPT), history=place).log == 2
    assert numbers(store) == list(range(1, 10))  # in a file, and still there
    spans: list[Span] = store.read(files_between)
    assert [(one.first, one.last, one.verified_at, one.deleted_at) for one in spans] == [(1, 2, now, None)]
    purge(store, place, now)
    assert bounds(store)[0][0] == 8
    assert numbers(store) == [9]
    assert {(one.deleted_at, one.held_until) for one in store.read(files_between)} == {(now, None)}
    assert log(store, place) == before
    found = verify(store, ManualClock(now))
    assert (found.findings, found.history) == ([], {"log": 8})


def test_no_file_crosses_from_one_partition_into_the_next(store: Database, place: FolderPlace):
    fill(store, 14)
    purge(store, place, T0 + KEPT + HOUR)
    spans: list[Span] = store.read(files_between)
    assert [(one.first, one.last) for one in spans][:2] == [(1, 3), (4, 7)]


def test_a_partition_with_a_line_in_no_file_stays_and_loses_the_others_after_a_day(store: Database, place: FolderPlace):
    fill(store)
    now = T0 + KEPT + HOUR
    with reading(store.url, "att_log"):
        purge(store, place, now)  # nothing is dropped meanwhile
    store.run(lambda tx: tx.script("INSERT INTO att_log (number, place, at, kind) VALUES (0, 0, 0, 'tick')"))
    purge(store, place, now)
    assert bounds(store)[0] == (0, 4)
    purge(store, place, now + DAY + HOUR)
    assert 1 not in numbers(store)
    purge(store, place, now + 3 * DAY)
    assert bounds(store)[0][0] == 8
    assert {one.deleted_at is None for one in store.read(files_between)} == {False}


def test_two_processes_that_look_for_the_same_lines_put_them_into_one_file(store: Database, place: FolderPlace):
    fill(store)
    now, before = T0 + KEPT + HOUR, T0 + HOUR
    first, last = store.read(lambda tx: LogLines().next_span(tx, before)) or (0, 0)
    assert purge_once(store, now, Retention(log=KEPT), history=place).log == 3  # another one, meanwhile
    store.run(lambda tx: add_span(tx, "log", first, last, before, now))
    purge(store, place, now)
    assert [(one.first, one.last) for one in store.read(files_between)] == [(1, 3), (4, 7), (8, 8)]
    assert bounds(store)[0][0] == 8
    assert check_files(store, place).rows == 8


def test_lines_twice_in_files_do_not_stand_for_others_that_are_in_none(
    store: Database, place: FolderPlace, monkeypatch: pytest.MonkeyPatch
):
    """As a process of an earlier release may do, and then history cannot be reached."""
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 2)
    fill(store)
    now = T0 + KEPT + HOUR
    store.run(lambda tx: tx.script("DELETE FROM att_log WHERE number < 4"))
    assert purge_once(store, now, Retention(log=KEPT), history=place).log == 2
    names = "kind, first, last, cutoff, planned_at, file, row_count, sha256, first_at, last_at, held_until, verified_at"
    twice = f"INSERT INTO att_history_file ({names}) SELECT {names} FROM att_history_file"
    store.run(lambda tx: tx.script(twice))
    away = Mortal(store, place, 2**30)
    monkeypatch.setattr(away, "put", unreachable)
    for _ in range(2):
        with suppress(Transient):
            purge_once(store, now, Retention(log=KEPT), history=away)  # pyright: ignore[reportArgumentType]
    assert numbers(store) == list(range(4, 10))


def unreachable(name: str, content: bytes) -> None:
    raise Transient("attribution_history_unavailable", name)


def test_a_process_that_is_killed_at_any_act_leaves_every_line_once(
    postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(kinds, "MAX_FILE_ROWS", 3)
    monkeypatch.setattr(parts, "LEAST_NUMBERS", WIDTH)
    now, killed = T0 + KEPT + HOUR, 0
    for acts in range(40):
        with schema_of_its_own(postgres_server) as url, closing(open_database(url)) as db:
            migrate(db, PACKAGES)
            narrow(db, 4)
            for number in range(1, 10):
                send(db, number)
            before = log(db)
            place = FolderPlace(tmp_path / f"history{acts}", CODES)
            mortal = Mortal(db, place, acts)
            try:
                while purge_once(mortal, now, Retention(log=KEPT), history=mortal).log:  # pyright: ignore[reportArgumentType]
                    pass
            except Killed:
                killed += 1
            purge(db, place, now)
            assert log(db, place) == before, acts
            assert bounds(db)[0][0] == 8, acts
            assert verify(db, ManualClock(now)).findings == [], acts
            if not killed or killed <= acts:
                break
    assert killed > 15


def test_lines_that_are_brought_back_leave_again_and_no_writer_waits(store: Database, place: FolderPlace):
    fill(store)
    now = T0 + KEPT + HOUR
    purge(store, place, now)
    restored = restore_log(store, place, begin=T0 - DAY, end=T0 + DAY, now=now, hold=3 * DAY)
    assert restored.lines == 8
    assert numbers(store, "att_log_rest") == list(range(1, 8))
    for number in range(10, 20):  # partitions are made though the default one has rows
        send(store, number, day=31)
        make_all(store)
    assert numbers(store, "att_log_rest") == list(range(1, 8))
    purge(store, place, now + 4 * DAY)
    assert numbers(store, "att_log_rest") == []
    assert verify(store, ManualClock(now + 4 * DAY)).findings == []


def test_lines_that_an_operator_holds_are_not_dropped(store: Database, place: FolderPlace):
    fill(store)
    now = T0 + KEPT + HOUR
    with reading(store.url, "att_log"):
        purge(store, place, now)
    restore_log(store, place, begin=T0 - DAY, end=T0 + DAY, now=now, hold=10 * DAY)
    purge(store, place, now + 5 * DAY)
    assert numbers(store) == list(range(1, 10))
    purge(store, place, now + 11 * DAY)
    assert numbers(store) == [9]


# --- copied and looked at ---------------------------------------------------------------------------------------------


def test_a_backup_of_partitions_is_restored_into_partitions(
    postgres_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with schema_of_its_own(postgres_server) as url, closing(open_database(url)) as db:
        migrate(db, packages())
        high = 5_000_000
        send(db, 1)
        db.run(lambda tx: tx.script(f"SELECT setval('att_log_number_seq', {high})"))
        make_all(db)
        send(db, 2)
        file = tmp_path / "store.backup"
        manifest = postgres_backup.back_up(db, file, ManualClock(T0))
        assert manifest.rows["att_log"] == 2
        whole = log(db)
    with schema_of_its_own(postgres_server) as url, closing(open_database(url)) as again:
        postgres_backup.restore(file, again, ManualClock(T0), command_line_actor())
        assert log(again) == whole
        assert numbers(again, "att_log_rest") == []
        assert again.read(lambda tx: shape(tx, LOG)).ahead > 0
        make_all(again)
        send(again, 3)
        assert numbers(again) == [1, high + 1, high + 2]
        assert verify(again, ManualClock(T0)).findings == []


def test_no_partition_is_dropped_while_a_backup_is_taken(store: Database, tmp_path: Path):
    migrate(store, packages())
    fill(store)
    now = T0 + KEPT + HOUR
    found: list[list[tuple[int, int]]] = []
    with closing(open_database(store.url)) as other:
        backup: Any = postgres_backup
        copied = backup._write_table

        def slow(tx: Any, archive: Any, name: str, columns: Any) -> Any:
            if name == "att_app_key":
                purge_once(other, now, Retention(log=KEPT))
                found.append(bounds(other))
            return copied(tx, archive, name, columns)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(postgres_backup, "_write_table", slow)
            postgres_backup.back_up(store, tmp_path / "store.backup", ManualClock(T0))
    assert found[0][0][0] == 0


@pytest.mark.parametrize("module", [verifying, verify_slices])
def test_no_verification_misses_lines_of_a_partition_that_is_dropped_while_it_reads(
    store: Database, monkeypatch: pytest.MonkeyPatch, module: Any
):
    """Dropping is not of the snapshot: a decision of it had no line any more, and settling was advised against."""
    fill(store)
    now = T0 + KEPT + HOUR
    clock = ManualClock(now)
    name, turn = {verifying: ("mark", 4), verify_slices: ("decisions_after", 1)}[module]
    ours: Callable[..., Any] = getattr(module, name)
    calls: list[Any] = []
    with closing(open_database(store.url)) as other:

        def late(tx: Any, *more: Any) -> Any:
            found = ours(tx, *more)
            calls.append(more)
            if len(calls) == turn:  # before the first look at the log in that transaction
                purge_once(other, now, Retention(log=KEPT))
            return found

        assert verify_slice(store, now, size=1).findings == []
        monkeypatch.setattr(module, name, late)
        found = verify(store, clock).findings if module is verifying else verify_slice(store, now).findings
    assert found == []
    assert bounds(store)[0][0] == 0
    monkeypatch.setattr(module, name, ours)
    assert purge_once(store, now, Retention(log=KEPT)).log
    assert bounds(store)[0][0] > 0
    assert verify(store, clock).findings == []


def test_the_doctor_shows_partitions_and_a_process_makes_them(postgres_url: str):
    patra = build(Settings(store=StoreSettings(url=postgres_url)))
    try:
        migrate(patra.db, packages())
        assert "attribution.partitions" in [loop.name for loop in patra.loops]
        checks = [check() for check in patra.checks]
        found = [one for one in checks if one.name == "attribution log"]
        assert [one.health for one in found] == [Health.OK]
        assert "3 partitions, 3,145,727 lines ahead" in found[0].found
    finally:
        patra.close(0)


def test_a_partition_is_looked_after_by_one_at_a_time(store: Database):
    fill(store)
    first = store.read(lambda tx: partitions(tx, LOG))[0]
    with closing(open_database(store.url)) as other:

        def held(tx: Any) -> tuple[bool, bool]:
            mine = hold_still(tx, LOG, first)
            return mine, other.run(lambda beside: hold_still(beside, LOG, first))

        assert store.run(held) == (True, False)
    assert store.read(lambda tx: past_partitions(tx, T0 - DAY)) == []
