"""The whole studio on each database, at the smallest size that is still a film, with a clock set by hand.

`each_…` runs on both databases. The others run on SQLite, or wherever `PATRA_TEST_STUDIO` says: with `postgres` the whole
suite runs there.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from patra.bus.bus import Bus
from patra.bus.catalogue.catalogue import load
from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import events
from patra.kernel.clock import SECOND
from patra.kernel.db import Database, migrate, open_database
from patra.kernel.testing import ManualClock
from patra.studio.film.quality import QUALITIES, Quality
from patra.studio.gateway import Options, Submission
from patra.studio.pipeline import Studio
from patra.studio.profiles import Engine, Profile, load_profiles
from patra.studio.storage.artifacts import ArtifactStore, Remote
from tests.contract.studio.standin import StandIn, standing_in

CHAPTER = "The Small Boat\n\nThe sea was calm at dusk, and the harbour slept.\n\nA boy named Tom sat alone in a small boat on the water.\n\nThat night Tom followed the lighthouse all the way home."
TINY = Quality(name="draft", width=160, height=90, fps=8, preset="ultrafast", crf=32, smooth=1.0, audio_kbit=64)


class Site:
    """A studio, its store, its clock; `drain` lets everything happen that can happen now."""

    def __init__(self, db: Database, folder: Path, clock: ManualClock, profiles: dict[str, Profile]) -> None:
        self.db = db
        self.folder = folder
        self.clock = clock
        self.profiles = profiles
        self.remote: Remote | None = None
        self.studio = self.opened()

    def opened(self, profiles: dict[str, Profile] | None = None) -> Studio:
        """Another process on the same store."""
        studio = Studio(
            self.db,
            Bus(load(), self.clock),
            ArtifactStore(self.folder, self.remote),
            profiles or self.profiles,
            workers=1,
        )
        studio.join()
        return studio

    def submit(self, chapter: str = CHAPTER, **wishes: object) -> str:
        return self.studio.submit(Submission(chapter=chapter, options=Options(**wishes)))

    def drain(self, run_id: str = "", *, until: Callable[[], bool] = lambda: False, turns: int = 400) -> None:
        """Turns until the run has ended, `until` holds, or nothing happens any more however long one waits."""
        idle = 0
        for _ in range(turns):
            done = self.studio.run_once()
            if until() or (run_id and self._stage(run_id) in {"completed", "failed", "cancelled"} and done.events == 0):
                return
            idle = 0 if done.events or done.jobs or done.films else idle + 1
            if idle:
                self.clock.advance(30 * SECOND)
            if idle > 6:
                return

    def queued(self) -> None:
        """All events are handled, and no worker has looked yet."""
        while self.studio.dispatch().events:
            pass

    def _stage(self, run_id: str) -> str:
        found = self.db.read(lambda tx: tx.lookup("stu_run", columns=("stage",), key=("run_id",), keys=[(run_id,)]))
        return found[0][0] if found else ""

    def stage(self, run_id: str) -> str:
        return self._stage(run_id)

    def log(self, run_id: str) -> list:
        """The envelopes of a run's task, in the order of publishing."""
        task = self.studio.progress(run_id).task_id
        stored = self.db.read(lambda tx: events.by_correlation(tx, task, 10_000))
        return [decode_trusted(one.body) for one in sorted(stored, key=lambda s: s.seq)]

    def types(self, run_id: str) -> list[str]:
        return [envelope.event_type for envelope in self.log(run_id)]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUALITIES, "draft", TINY)


def _site(url: str, tmp_path: Path, profiles: dict[str, Profile]) -> Site:
    db = open_database(url, synchronous="OFF")  # what a power cut does is the kernel's test
    migrate(db, ["patra.kernel", "patra.bus", "patra.studio"])
    return Site(db, tmp_path / "artifacts", ManualClock(), profiles)


@pytest.fixture
def one_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if os.environ.get("PATRA_TEST_STUDIO") == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 'patra.db'}"


@pytest.fixture
def site(one_url: str, tmp_path: Path) -> Iterator[Site]:
    made = _site(one_url, tmp_path, load_profiles())
    yield made
    made.db.close()


@pytest.fixture
def each_site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    made = _site(database_url, tmp_path, load_profiles())
    yield made
    made.db.close()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str]]:
    """A run that is over, on each database, for all tests that only read what it left."""
    folder = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setitem(QUALITIES, "draft", TINY)
        url = f"sqlite:///{folder / 'patra.db'}"
        if request.param == "postgres":
            url = stack.enter_context(schema(request.getfixturevalue("postgres_server"), f"told_{os.getpid()}"))
        made = _site(url, folder, load_profiles())
        stack.callback(made.db.close)
        run_id = made.submit()
        made.drain(run_id)
        yield made, run_id


@contextmanager
def schema(server: str, name: str) -> Generator[str]:
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}".encode())
        yield f"{server}?options={quote(f'-csearch_path={name}')}"
        admin.execute(f"DROP SCHEMA {name} CASCADE".encode())


@pytest.fixture
def server() -> Iterator[StandIn]:
    with standing_in() as standin:
        yield standin


@pytest.fixture
def served(one_url: str, tmp_path: Path, server: StandIn) -> Iterator[Site]:
    """A studio whose profiles point to the stand-in, with the local ones as the way out."""
    made = _site(one_url, tmp_path, load_profiles() | remote_profiles(server))
    yield made
    made.db.close()


@pytest.fixture
def each_served(database_url: str, tmp_path: Path, server: StandIn) -> Iterator[Site]:
    made = _site(database_url, tmp_path, load_profiles() | remote_profiles(server))
    yield made
    made.db.close()


def remote_profiles(server: StandIn, timeout: float = 60.0) -> dict[str, Profile]:
    common = {"url": server.url, "model": "stand-in", "grade": 90, "cost_micros": 10, "timeout_seconds": timeout}
    made = [
        Profile(profile_id="chat", worker_type="llm", engine=Engine.OPENAI_CHAT, api_key="secret-key", **common),
        Profile(profile_id="speech", worker_type="audio", engine=Engine.OPENAI_SPEECH, voice="anna", **common),
        Profile(profile_id="picture", worker_type="video", engine=Engine.HTTP_VIDEO, **common),
    ]
    return {profile.profile_id: profile for profile in made}


PREFER_SERVERS = {"llm": ["chat"], "audio": ["speech"], "video": ["picture"]}
