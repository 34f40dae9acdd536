"""Settings go in, a whole Patra comes out: the store opened, the tables there, every engine joined to its loops.

This is the one place where things are built and put together; nothing happens on import.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

import msgspec

from patra.app import attribution, bus, ingest, studio
from patra.app.loops import Loop, LoopState, Supervisor, chosen
from patra.app.parts import Check, Ground, Joined, Part
from patra.app.references import resolve
from patra.app.settings import Settings
from patra.kernel.clock import Clock, SystemClock
from patra.kernel.db import Database, Migration, migrate, open_database, pending_migrations
from patra.kernel.errors import PatraError
from patra.kernel.telemetry import get_logger

log = get_logger()

# In the order in which they stand on each other: a part may use those before it.
PARTS: tuple[Part, ...] = (
    Part(name="kernel", migrations="patra.kernel"),
    Part(name="app", migrations="patra.app"),
    Part(name="bus", migrations="patra.bus", join=bus.join),
    Part(name="attribution", migrations="patra.attribution", join=attribution.join),
    Part(name="ingest", migrations="patra.ingest", join=ingest.join),
    Part(name="studio", migrations="patra.studio", join=studio.join),
)


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this process can do its work, and if not, every reason why."""

    ready: bool
    reasons: list[str]
    loops: list[LoopState]


class Patra:
    """One process's worth: the store, the engines, and the loops it runs."""

    def __init__(self, ground: Ground, parts: Sequence[Part], joined: Sequence[Joined]) -> None:
        self.ground = ground
        self.settings = ground.settings
        self.db = ground.db
        self.clock = ground.clock
        self.engine = ground.engine
        self.parts = tuple(parts)
        self.loops: list[Loop] = [loop for part in joined for loop in part.loops]
        self.checks: list[Callable[[], Check]] = [check for part in joined for check in part.checks]
        self.supervisor = Supervisor((), ground.clock)
        self._joined = tuple(joined)
        self._closed = False

    def start(self, wanted: Iterable[str] = ()) -> list[Loop]:
        """Start the loops that are wanted (all of them when none is named); gives those started."""
        loops = chosen(self.loops, wanted)
        self.supervisor = Supervisor(loops, self.clock)
        self.supervisor.start()
        log.info("loops_started", loops=[loop.name for loop in loops])
        return loops

    def readiness(self) -> Readiness:
        """Ask the store and the loops, now."""
        loops = self.supervisor.states()
        reasons = [trouble for loop in loops if (trouble := loop.trouble)]
        try:
            pending = self.pending()
        except PatraError as error:
            reasons.insert(0, str(error))
        else:
            if pending:
                names = ", ".join(f"{migration.package} {migration.number:04}" for migration in pending)
                reasons.insert(0, f"migrations are missing: {names}; run `patra migrate`")
        return Readiness(ready=not reasons, reasons=reasons, loops=loops)

    def pending(self) -> list[Migration]:
        return pending_migrations(self.db, packages(self.parts))

    def close(self, seconds: float) -> list[str]:
        """Stop intake, finish what is in hand within the bound, release leases, close the store.

        Gives the loops that did not end in time; their leases run out by themselves.
        """
        if self._closed:
            return []
        self._closed = True
        until = time.monotonic() + seconds
        with ExitStack() as last_to_first:
            last_to_first.callback(self.db.close)
            for part in self._joined:
                if part.release:
                    last_to_first.callback(part.release)
            for part in self._joined:
                if part.stop_intake:
                    part.stop_intake()
            late = self.supervisor.stop(until - time.monotonic())
        log.info("closed", loops_left_behind=late)
        return late


def packages(parts: Sequence[Part] = PARTS) -> list[str]:
    return [part.migrations for part in parts if part.migrations]


def open_store(settings: Settings) -> Database:
    store = settings.store
    url = resolve(store.url, "store.url")
    return open_database(url, synchronous=store.synchronous.upper(), pool_size=store.pool_size)


def build(settings: Settings, clock: Clock | None = None, parts: Sequence[Part] = PARTS) -> Patra:
    """Open the store, bring its tables up to date if the settings say so, and join every part."""
    db = open_store(settings)
    try:
        if settings.store.migrate_on_start:
            for migration in migrate(db, packages(parts)):
                log.info("migrated", package=migration.package, number=migration.number, migration=migration.name)
        ground = Ground(settings=settings, db=db, clock=clock or SystemClock(), engines={})
        joined: list[Joined] = []
        for part in parts:
            if part.join:
                joined.append(built := part.join(ground))
                ground.engines[part.name] = built.engine
        return Patra(ground, parts, joined)
    except BaseException:
        db.close()
        raise
