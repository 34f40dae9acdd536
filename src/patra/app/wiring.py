"""Turns settings into a whole Patra: the store opened, the tables there, every engine joined to its loops.

This is the one place where things are built and put together; nothing happens on import.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from patra.app.component import BuiltComponent, Check, Component, Context
from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings import Settings, know_secrets
from patra.app.loops import Loop, LoopState, Supervisor, describe, select_loops
from patra.kernel.clock import Clock, SystemClock
from patra.kernel.db import Database, Migration, migrate, open_database, pending_migrations
from patra.kernel.db.migrate import FROM_THE_FUTURE
from patra.kernel.errors import MigrationMismatch, PatraError
from patra.kernel.telemetry import get_logger

if TYPE_CHECKING:
    from patra.ingest.execution.run_to_completion import Drain

log = get_logger()


def _engine(name: str, kind: str) -> Component:
    """A part whose modules are imported when it is joined: a command of one engine does not pay for the others."""

    def join(ground: Context) -> BuiltComponent:
        return import_module(f"patra.app.components.{name}").join(ground)

    return Component(name=name, migrations=f"patra.{name}", join=join, engine=kind)


# In the order in which they stand on each other: a part may use those before it.
COMPONENTS: tuple[Component, ...] = (
    Component(name="kernel", migrations="patra.kernel"),
    Component(name="app", migrations="patra.app"),
    _engine("bus", "patra.bus.runtime:BusEngine"),
    _engine("attribution", "patra.app.components.attribution:Attribution"),
    _engine("ingest", "patra.app.components.ingest:Ingest"),
    _engine("studio", "patra.app.components.studio:StudioEngine"),
)


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this process can do its work, and if not, every reason why."""

    ready: bool
    reasons: list[str]
    loops: list[LoopState]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What the overview of the console says first: what a demonstration is doing, and where to look."""

    text: str
    links: Sequence[tuple[str, str]] = ()
    """Addresses of this server, each with what is to be seen there."""


class Patra:
    """One process's worth: the store, the engines, and the loops it runs."""

    def __init__(self, ground: Context, parts: Sequence[Component], joined: Sequence[BuiltComponent]) -> None:
        self.ground = ground
        self.settings = ground.settings
        self.db = ground.db
        self.clock = ground.clock
        self.engine = ground.engine
        self.parts = tuple(parts)
        self.loops: list[Loop] = [loop for part in joined for loop in part.loops]
        self.checks: list[Callable[[], Check]] = [check for part in joined for check in part.checks]
        self.supervisor = Supervisor((), ground.clock)
        self._started = False
        self.origins: Mapping[str, str] = {}
        """Where each setting came from, by its key; empty where nobody said."""
        self.notice: Notice | None = None
        self._joined = joined
        self._closed = False

    def warm(self) -> None:
        """Let every part read what its first request would wait for; before the loops start, and before it is ready.

        What cannot be read now is read by the first request, as ever: an outage does not keep a process from starting.
        """
        for part in self._joined:
            if part.warm is None:
                continue
            try:
                part.warm()
            except Exception as error:  # noqa: BLE001  whatever it is, the first request meets it and says so
                log.warning("not_warm", reason=describe(error))

    def start(self, wanted: Iterable[str] = (), roles: Iterable[str] = ()) -> list[Loop]:
        """Start the loops that are wanted (all when neither a name nor a role is given); gives those started."""
        loops = select_loops(self.loops, wanted, roles)
        self.supervisor = Supervisor(loops, self.clock)
        self._started = True
        self.supervisor.start()
        log.info("loops_started", loops=[loop.name for loop in loops])
        return loops

    def readiness(self) -> Readiness:
        """Ask the store and the loops, now.

        A store that a newer release has migrated since this process began is no trouble: migrations only add, and
        during a rolling upgrade the processes of the release before serve until the new ones do.
        """
        loops = self.supervisor.states()
        reasons = [trouble for loop in loops if (trouble := loop.trouble)]
        try:
            pending = self._pending_here()
        except PatraError as error:
            reasons.insert(0, str(error))
        else:
            if pending:
                names = ", ".join(f"{migration.package} {migration.number:04}" for migration in pending)
                reasons.insert(0, f"migrations are missing: {names}; run `patra migrate`")
            reasons += [text for part in self._joined if part.trouble and (text := part.trouble())]
        return Readiness(ready=not reasons, reasons=reasons, loops=loops)

    def _pending_here(self) -> list[Migration]:
        try:
            return self.pending()
        except MigrationMismatch as error:
            if error.code != FROM_THE_FUTURE:
                raise
            return []

    def pending(self) -> list[Migration]:
        return pending_migrations(self.db, packages(self.parts))

    def close(self, seconds: float) -> list[str]:
        """Stop intake, finish running work within the bound, release leases, close the store.

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
        if self._started:  # else nothing ran, and a refusal is all there is to say
            log.info("closed", loops_left_behind=late)
        return late


def packages(parts: Sequence[Component] = COMPONENTS) -> list[str]:
    return [part.migrations for part in parts if part.migrations]


def open_store(settings: Settings) -> Database:
    store = settings.store
    url = resolve(store.url, "store.url")
    return open_database(
        url,
        synchronous=store.synchronous.upper(),
        pool_size=store.pool_size,
        silent_seconds=store.silent_seconds,
    )


def build(
    settings: Settings,
    clock: Clock | None = None,
    parts: Sequence[Component] = COMPONENTS,
    *,
    on_demand: bool = False,
) -> Patra:
    """Open the store, bring its tables up to date if the settings say so, and join every part.

    `on_demand` joins a part when its engine is asked for; such a Patra has no loops and no checks.
    """
    know_secrets(settings)
    db = open_store(settings)
    try:
        if settings.store.migrate_on_start:
            applied = migrate(db, packages(parts))
            if applied:
                newest = {one.package: one.number for one in applied}
                log.info("migrated", applied=len(applied), newest=newest)
        joined: list[BuiltComponent] = []

        def join(part: Component) -> bool:
            if part.join is None:
                return False
            joined.append(built := part.join(ground))
            ground.engines[part.name] = built.engine
            return True

        def join_engine(kind: type) -> bool:
            name = f"{kind.__module__}:{kind.__qualname__}"
            return any(join(part) for part in parts if part.engine == name and part.name not in ground.engines)

        ground = Context(
            settings=settings,
            db=db,
            clock=clock or SystemClock(),
            engines={},
            on_demand=join_engine if on_demand else None,
        )
        if not on_demand:
            for part in parts:
                join(part)
        return Patra(ground, parts, joined)
    except BaseException:
        db.close()
        raise


def ingest_run(patra: Patra, *, executors: int = 2) -> "Drain":
    """A run of ingest as the installation has it: with its rate gate, its options and its limits."""
    from patra.app.components.ingest import run_of  # noqa: PLC0415  a process without ingest does not pay for it

    return run_of(patra.ground, executors=executors)
