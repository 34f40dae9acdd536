"""The doctor names what is wrong and what to do, and changes nothing."""

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from patra.app import doctor
from patra.app.component import BuiltComponent, Check, Component, Health
from patra.app.configuration.settings_loader import load
from patra.app.doctor import examine, reachable
from patra.app.wiring import COMPONENTS, packages
from patra.attribution.storage.read import CHANNEL
from patra.kernel.db import migrate, open_database
from patra.kernel.outbox import Message, append


def found(folder: Path, environ: dict[str, str] | None = None, **overrides: Any) -> dict[str, Check]:
    values = {key.replace("__", "."): value for key, value in overrides.items()}
    loaded = load(None, environ or {}, {"store.url": f"sqlite:///{folder / 'patra.db'}", **values}, folder)
    return {check.name: check for check in examine(loaded)}


def migrated(folder: Path) -> None:
    db = open_database(f"sqlite:///{folder / 'patra.db'}")
    migrate(db, packages())
    db.close()


def test_a_sound_installation_has_nothing_broken(tmp_path: Path) -> None:
    migrated(tmp_path)
    checks = found(tmp_path)
    assert {name for name, check in checks.items() if check.health is Health.BROKEN} == set()
    for name in ("python", "sqlite", "settings", "store", "migrations", "store writable", "clock", "disk"):
        assert checks[name].health is Health.OK, checks[name]
    assert checks["telemetry"].health is Health.OFF


def test_whatever_is_not_well_comes_with_advice(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        for check in found(folder, telemetry__otlp_endpoint="http://127.0.0.1:1/v1/traces").values():
            assert check.advice or check.health in {Health.OK, Health.OFF}, check


def test_a_store_that_does_not_exist_yet_is_not_created_by_looking(tmp_path: Path) -> None:
    checks = found(tmp_path)
    assert checks["store"].health is Health.WARNING
    assert "patra migrate" in checks["store"].advice
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("free", "health", "shown"),
    [
        (0, Health.BROKEN, "0 MiB free"),
        (63 << 20, Health.BROKEN, "63 MiB free"),
        (500 << 20, Health.WARNING, "500 MiB free"),
        (3 << 30, Health.OK, "3.0 GiB free"),
    ],
)
def test_a_disk_without_room_for_the_next_commits_is_broken_and_no_mere_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, health: Health, shown: str
) -> None:
    """A trial write that is rolled back never reaches the disk: only the room left tells."""
    migrated(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage._replace(free=free))
    check = found(tmp_path)["disk"]
    assert (check.health, check.found.startswith(shown)) == (health, True)


def test_missing_migrations_are_named_and_not_applied(tmp_path: Path) -> None:
    open_database(f"sqlite:///{tmp_path / 'patra.db'}").close()
    for _ in range(2):
        check = found(tmp_path)["migrations"]
        assert check.health is Health.WARNING
        assert "patra.kernel 0001" in check.found


def test_a_file_that_is_no_store_is_broken(tmp_path: Path) -> None:
    (tmp_path / "patra.db").write_bytes(b"not a database, whatever its name says" * 100)
    assert found(tmp_path)["store"].health is Health.BROKEN


def test_a_database_that_cannot_be_reached_is_broken(tmp_path: Path) -> None:
    check = found(tmp_path, store__url="postgresql://patra:hunter2@127.0.0.1:1/patra")["store"]
    assert check.health is Health.BROKEN
    assert "hunter2" not in check.found


def test_a_sound_postgresql_is_well(postgres_url: str, tmp_path: Path) -> None:
    db = open_database(postgres_url)
    migrate(db, packages())
    db.close()
    checks = found(tmp_path, store__url=postgres_url)
    assert {name: check.found for name, check in checks.items() if check.health is Health.BROKEN} == {}
    assert checks["clock"].health is Health.OK


def test_variables_that_nothing_reads_are_a_warning(tmp_path: Path) -> None:
    check = found(tmp_path, {"PATRA_STOER_URL": "x"})["settings"]
    assert check.health is Health.WARNING
    assert "PATRA_STOER_URL" in check.found


def test_a_service_is_reachable_when_something_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert reachable("x", f"http://127.0.0.1:{port}/path", "start it").health is Health.OK
    gone = reachable("x", f"http://user:hunter2@127.0.0.1:{port}/path", "start it")
    assert (gone.health, gone.advice) == (Health.BROKEN, "start it")
    assert "hunter2" not in gone.found


def test_an_engines_own_checks_are_part_of_the_examination(tmp_path: Path) -> None:
    own = Check(name="engine's own", health=Health.WARNING, found="thin ice", advice="walk around")
    parts = (
        *COMPONENTS,
        Component(name="x", join=lambda ground: BuiltComponent(engine=object(), checks=[lambda: own])),
    )
    migrated(tmp_path)
    loaded = load(None, {}, {"store.url": f"sqlite:///{tmp_path / 'patra.db'}"}, tmp_path)
    assert own in list(examine(loaded, parts))


def test_records_that_wait_for_an_archive_that_is_no_longer_named_are_a_warning(tmp_path: Path) -> None:
    migrated(tmp_path)
    archive = {"attribution__archive": "https://ann:pw@archive.example/records?key=k"}
    assert found(tmp_path)["attribution archive"].found == "the store itself"
    db = open_database(f"sqlite:///{tmp_path / 'patra.db'}")
    db.run(lambda tx: append(tx, CHANNEL, [Message(group="g", key="1", payload=b"")], 0))
    waiting = found(tmp_path)["attribution archive"]
    assert (waiting.health, "1 decisions wait" in waiting.found) == (Health.WARNING, True)
    outside = found(tmp_path, **archive)["attribution archive"]
    assert (outside.health, outside.found) == (Health.OK, "https://***@archive.example/records")
    db.run(lambda tx: tx.script("UPDATE krn_outbox SET status = 'given_up'"))
    db.close()
    assert "did not take the records of 1" in found(tmp_path, **archive)["attribution archive"].found


def test_a_wrong_setting_is_named_and_not_laid_at_the_stores_door(tmp_path: Path) -> None:
    migrated(tmp_path)
    wrong = found(tmp_path, ingest__redis_url="somewhere")
    assert "store" not in {name for name, check in wrong.items() if check.health is Health.BROKEN}
    assert "redis://" in wrong["ingest.redis_url"].advice
    unknown = found(tmp_path, store__url="mysql://somewhere/x")["store"]
    assert unknown.health is Health.BROKEN
    assert "mysql" in unknown.found or "sqlite:" in unknown.advice
    assert "cannot be reached" not in unknown.found


def test_a_redis_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    migrated(tmp_path)
    check = found(tmp_path, ingest__redis_url="redis://:geheim@127.0.0.1:1/0")["ingest.redis"]
    assert check.health is Health.BROKEN
    assert "127.0.0.1:1" in check.found
    assert "geheim" not in check.found + check.advice


def test_what_is_open_to_whom_is_said(tmp_path: Path) -> None:
    migrated(tmp_path)
    assert "POST /events to every program on this machine" in found(tmp_path)["exposure"].found
    guarded = found(tmp_path, web__admin_tokens=("sha256:" + "0" * 64,), web__public_url="https://patra.example")
    assert guarded["exposure"].health is Health.OK
    assert "POST /events to holders of app keys" in guarded["exposure"].found
    assert "patra.example" in guarded["exposure"].found
    behind = found(tmp_path, web__public_url="https://patra.example")["exposure"]
    assert behind.health is Health.BROKEN
    assert "patra token new admin" in behind.advice
