"""Examines what an installation needs: what was found, and what to do about it.

Nothing is repaired and nothing is left behind: the doctor only looks (a write is tried and rolled back).
"""

import importlib.util
import platform
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from patra.app import outbox_admin
from patra.app.component import Check, Component, Health
from patra.app.configuration.egress_targets import refused_targets, targets
from patra.app.configuration.exposure import check_exposure
from patra.app.configuration.secrets import resolve
from patra.app.configuration.settings import Settings
from patra.app.configuration.settings_loader import Loaded
from patra.app.wiring import COMPONENTS, Patra, build
from patra.kernel.clock import MINUTE, SECOND, format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid, MigrationMismatch, PatraError
from patra.kernel.safety.redact import redact_text, redact_url

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35, 0)  # RETURNING
MIN_FREE_DISK_BYTES = 1 << 30
MIN_WRITABLE_DISK_BYTES = 64 << 20
"""What the store's journal may grow by before it is written back: with less, commits fail."""
CLOCK_TOLERANCE = 2 * SECOND
BUILT_AFTER = 1_767_225_600 * SECOND  # 2026-01-01: a clock before that is wrong
CONNECT_SECONDS = 3.0

# extra: (a module of it, what it is for)
EXTRAS: dict[str, tuple[str, str]] = {
    "postgres": ("psycopg", "a PostgreSQL store"),
    "redis": ("redis", "a rate gate shared by several machines"),
    "nats": ("nats", "a bus over NATS JetStream"),
    "parquet": ("duckdb", "Parquet files"),
    "s3": ("obstore", "object storage"),
    "otel": ("opentelemetry.sdk", "sending traces"),
    "keyring": ("keyring", "secrets in the system's keyring"),
    "studio": ("espeakng_loader", "speech and film"),
}


class _UndoError(Exception):
    """Rolls the trial write back."""


def examine(loaded: Loaded, parts: Sequence[Component] = COMPONENTS) -> Iterator[Check]:
    """Every check in the order in which to fix things: the machine, the settings, the store, the services."""
    yield _python()
    yield _sqlite()
    yield _settings(loaded)
    yield _exposure(loaded)
    yield from _egress(loaded)
    yield from _store(loaded, parts)
    if endpoint := loaded.settings.telemetry.otlp_endpoint:
        yield reachable("telemetry", endpoint, "check telemetry.otlp_endpoint, or empty it to send no traces")
    else:
        yield Check(name="telemetry", health=Health.OFF, found="no collector configured (telemetry.otlp_endpoint)")
    yield from _redis(loaded)
    yield from _extras(loaded)


def own_checks(patra: Patra) -> list[Check]:
    """What a running process can find out by itself: the store answers, migrations, the outbox, its engines."""
    found = [_run_check("store", lambda: _reads(patra)), _run_check("migrations", lambda: _check_migrations(patra))]
    found.append(_run_check("outbox", lambda: outbox_admin.check(patra.db)))
    return [*found, *(_run_check("engine", check) for check in patra.checks)]


def _reads(patra: Patra) -> Check:
    patra.db.read(lambda tx: tx.server_now())
    return Check(name="store", health=Health.OK, found="it answers")


def _redis(loaded: Loaded) -> Iterator[Check]:
    """The shared rate gate; without its Redis each process keeps to a part of the rates by itself."""
    place, url = "ingest.redis_url", loaded.settings.ingest.redis_url
    if url and urlsplit(url := resolve(url, place)).hostname:
        advice = f"start it, or correct {place}: until then each process keeps to the rates for itself"
        yield reachable("ingest.redis", url, advice)


def reachable(name: str, url: str, advice: str) -> Check:
    """Whether something listens at the host and port of a URL; also for the checks of engines."""
    parts = urlsplit(url)
    port = parts.port or {
        "https": 443,
        "http": 80,
        "nats": 4222,
        "redis": 6379,
        "rediss": 6379,
        "postgresql": 5432,
    }.get(parts.scheme, 0)
    try:
        with socket.create_connection((parts.hostname or "", port), timeout=CONNECT_SECONDS):
            return Check(name=name, health=Health.OK, found=f"{redact_url(url)} answers")
    except OSError as error:
        found = f"{redact_url(url)} cannot be reached: {error.strerror or error}"
        return Check(name=name, health=Health.BROKEN, found=found, advice=advice)


def _python() -> Check:
    found = f"{platform.python_implementation()} {platform.python_version()}"
    good = sys.version_info >= OLDEST_PYTHON
    advice = "" if good else "install Python 3.11 or newer"
    return Check(name="python", health=Health.OK if good else Health.BROKEN, found=found, advice=advice)


def _sqlite() -> Check:
    good = sqlite3.sqlite_version_info >= OLDEST_SQLITE
    advice = "" if good else "use a Python that brings SQLite 3.35 or newer"
    return Check(
        name="sqlite", health=Health.OK if good else Health.BROKEN, found=sqlite3.sqlite_version, advice=advice
    )


def _settings(loaded: Loaded) -> Check:
    where = loaded.file or "no file, defaults and variables only"
    if loaded.unread:
        names = ", ".join(loaded.unread)
        advice = "look for a typing error; `patra config show` lists every setting"
        return Check(name="settings", health=Health.WARNING, found=f"{where}; read by nothing: {names}", advice=advice)
    return Check(name="settings", health=Health.OK, found=where)


def _exposure(loaded: Loaded) -> Check:
    """What is open to whom."""
    try:
        found = check_exposure(loaded.settings.web)
    except ConfigInvalid as error:
        text = f"{error.place}: {error.detail}"
        return Check(name="exposure", health=Health.BROKEN, found=text, advice=error.advice)
    names = ", ".join(found.shown_names)
    text = f"the API is open to {found.api}; POST /events to {found.intake}; called by {names}"
    return Check(name="exposure", health=Health.OK, found=text)


def _egress(loaded: Loaded) -> Iterator[Check]:
    """Whether the servers that the settings name may be called."""
    try:
        found = targets(loaded.settings)
        problems = refused_targets(found)
    except ConfigInvalid as error:
        problems, found = [error], []
    for error in problems:
        text = f"{error.place}: {error.detail}"
        yield Check(name="egress", health=Health.BROKEN, found=text, advice=error.advice)
    if found and not problems:
        names = ", ".join(target.place for target in found)
        yield Check(name="egress", health=Health.OK, found=f"no private address that no setting names: {names}")


def _store(loaded: Loaded, parts: Sequence[Component]) -> Iterator[Check]:
    url = resolve(loaded.settings.store.url, "store.url")
    shown = redact_url(url)
    if urlsplit(url).scheme.startswith("postgres") and urlsplit(url).hostname:
        listens = reachable("store", url, "start the database, or correct store.url")
        if listens.health is Health.BROKEN:
            yield listens
            return
    file = shown.removeprefix("sqlite:///") if shown.startswith("sqlite:///") else None
    if file and file != ":memory:" and not Path(file).exists():
        folder = Path(file).resolve().parent
        advice = "`patra up` or `patra migrate` creates it"
        yield Check(name="store", health=Health.WARNING, found=f"{shown} does not exist yet", advice=advice)
        if folder.is_dir():
            yield _disk(folder)
        return
    try:
        patra = build(_looking(loaded), parts=parts)
    except ConfigInvalid as error:  # of the store, or of a part that was built on it
        place = error.place or "store.url"
        name = "store" if place.startswith("store.") else place
        advice = error.advice or "correct this setting"
        yield Check(name=name, health=Health.BROKEN, found=error.detail, advice=advice)
        return
    except PatraError as error:
        advice = "start the database, or correct store.url"
        yield Check(name="store", health=Health.BROKEN, found=error.detail, advice=advice)
        return
    try:
        checks: list[tuple[str, Callable[[Patra], Check]]] = [
            ("store", lambda patra: _answers(patra, shown)),
            ("migrations", _check_migrations),
            ("store writable", _writable),
            ("clock", _clock),
        ]
        migrated = True
        for name, check in checks:
            yield (result := _run_check(name, lambda check=check: check(patra)))
            if result.name == "store" and result.health is Health.BROKEN:
                return
            if result.name == "migrations":
                migrated = result.health is Health.OK
        if file and file != ":memory:":
            yield _disk(Path(file).resolve().parent)
        if migrated:
            yield _run_check("outbox", lambda: outbox_admin.check(patra.db))
        for check in patra.checks if migrated else ():  # the engines look into their tables
            yield _run_check("engine", check)
    finally:
        patra.close(0)


def _looking(loaded: Loaded) -> Settings:
    settings = loaded.settings
    return msgspec.structs.replace(settings, store=msgspec.structs.replace(settings.store, migrate_on_start=False))


def _run_check(name: str, check: Callable[[], Check]) -> Check:
    """What a check finds, or that it failed; what others wrote (an alert, say) shows no secret and no person."""
    try:
        found = check()
    except PatraError as error:
        found = Check(name=name, health=Health.BROKEN, found=str(error), advice="see the checks above")
    return msgspec.structs.replace(found, found=redact_text(found.found))


def _answers(patra: Patra, shown: str) -> Check:
    patra.db.read(lambda tx: tx.server_now())
    return Check(name="store", health=Health.OK, found=f"{shown} answers")


def _check_migrations(patra: Patra) -> Check:
    try:
        pending = patra.pending()
    except MigrationMismatch as error:
        return Check(
            name="migrations", health=Health.BROKEN, found=error.detail, advice="run the version that wrote it"
        )
    if pending:
        names = ", ".join(f"{migration.package} {migration.number:04}" for migration in pending)
        advice = "run `patra migrate` (`patra up` does it too unless store.migrate_on_start is false)"
        return Check(name="migrations", health=Health.WARNING, found=f"missing: {names}", advice=advice)
    return Check(name="migrations", health=Health.OK, found="up to date")


def _writable(patra: Patra) -> Check:
    def attempt(tx: Tx) -> None:
        tx.script("CREATE TABLE app_doctor_was_here (x BIGINT)")
        raise _UndoError

    try:
        patra.db.run(attempt)
    except _UndoError:
        return Check(name="store writable", health=Health.OK, found="a trial write was rolled back")
    except PatraError as error:
        advice = "check the permissions of the file and its folder, or of the database role"
        return Check(name="store writable", health=Health.BROKEN, found=error.detail, advice=advice)
    raise AssertionError("unreachable")


def _clock(patra: Patra) -> Check:
    ours = patra.clock.now()
    theirs = patra.db.read(lambda tx: tx.server_now())
    apart = abs(ours - theirs)
    if ours < BUILT_AFTER:
        found, advice = f"this machine says {format_instant(ours)}", "set the clock (NTP)"
    elif apart > MINUTE:
        found, advice = f"{apart / SECOND:.0f} s apart from the database's", "set both clocks (NTP): deadlines go wrong"
    elif apart > CLOCK_TOLERANCE:
        found, advice = f"{apart / SECOND:.1f} s apart from the database's", "set both clocks (NTP)"
        return Check(name="clock", health=Health.WARNING, found=found, advice=advice)
    else:
        return Check(name="clock", health=Health.OK, found=f"{apart / SECOND:.3f} s apart from the database's")
    return Check(name="clock", health=Health.BROKEN, found=found, advice=advice)


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    shown = f"{free / (1 << 30):.1f} GiB" if free >= 1 << 30 else f"{free >> 20} MiB"
    found = f"{shown} free in {folder}"
    if free < MIN_WRITABLE_DISK_BYTES:
        advice = "make room now: what is sent to this store is answered with 503 until there is"
        return Check(name="disk", health=Health.BROKEN, found=found, advice=advice)
    if free < MIN_FREE_DISK_BYTES:
        return Check(name="disk", health=Health.WARNING, found=found, advice="make room: a full disk stops every write")
    return Check(name="disk", health=Health.OK, found=found)


def _extras(loaded: Loaded) -> Iterator[Check]:
    needed = {
        "postgres": resolve(loaded.settings.store.url, "store.url").startswith("postgres"),
        "otel": bool(loaded.settings.telemetry.otlp_endpoint),
        "s3": bool(loaded.settings.ingest.history_url or loaded.settings.studio.artifacts_url),
    }
    for extra, (module, purpose) in EXTRAS.items():
        name = f"extra {extra}"
        if _is_installed(module):
            yield Check(name=name, health=Health.OK, found=f"installed: {purpose}")
        elif needed.get(extra):
            advice = f"pip install 'patra[{extra}]'"
            yield Check(name=name, health=Health.BROKEN, found=f"missing, but configured: {purpose}", advice=advice)
        else:
            yield Check(name=name, health=Health.OFF, found=f"not installed: {purpose}")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
