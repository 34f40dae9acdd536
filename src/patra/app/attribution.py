"""Settings and common ground go in; the attribution engine, its loops and checks come out."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from patra.app.attribution_events import BusArchive
from patra.app.loops import Loop
from patra.app.parts import Check, Ground, Health, Joined
from patra.app.references import resolve
from patra.app.settings import AttributionSettings
from patra.attribution.apps import Keyring
from patra.attribution.archive import Archive
from patra.attribution.delivery import Delivery, handing, open_archive
from patra.attribution.engine import Engine, Limits
from patra.attribution.locate import Indexer
from patra.attribution.placements import Carrier
from patra.attribution.reading import deliveries
from patra.attribution.retention import Keep, Purged, Retention, into_files, purge_once
from patra.bus.runtime import BusEngine
from patra.kernel.clock import DAY, MINUTE, SECOND
from patra.kernel.errors import ConfigInvalid
from patra.kernel.redact import redact_url


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The engine of Module F and what stands around it in one process."""

    engine: Engine
    keys: Keyring
    indexer: Indexer
    delivery: Delivery | None


def join(ground: Ground) -> Joined:
    """Build the engine on the common ground."""
    settings = ground.settings.attribution
    archive = _archive(ground)
    limits = Limits(
        waiting=settings.waiting_batches,
        group=settings.commit_batches,
        lag=round(settings.timer_lag_seconds * SECOND),
        reader=settings.reader_process and (os.cpu_count() or 1) > 1,
    )
    hand = handing(ground.clock) if archive is not None else None
    engine = Engine(ground.db, ground.clock, limits=limits, hand=hand)
    built = Attribution(
        engine=engine,
        keys=Keyring(ground.db, ground.clock),
        indexer=Indexer(ground.db, ground.clock, engine.busy),
        delivery=Delivery(ground.db, archive, ground.clock) if archive is not None else None,
    )
    placements = Carrier(ground.db, ground.clock, engine.busy)
    retention, keep = _retention(settings)

    def purge() -> Purged:
        return purge_once(ground.db, ground.clock.now(), retention, keep=keep)

    loops = [
        Loop(name="attribution.timer", run_once=built.engine.sweep, every=SECOND),
        Loop(name="attribution.keys", run_once=built.engine.carry, every=SECOND),
        Loop(name="attribution.placements", run_once=placements.run_once, every=10 * SECOND),
        Loop(name="attribution.index", run_once=built.indexer.run_once, every=SECOND),
        Loop(name="attribution.retention", run_once=purge, every=10 * MINUTE),
    ]
    if built.delivery is not None:
        loops.append(Loop(name="attribution.archive", run_once=built.delivery.relay.run_once, every=SECOND // 2))
    return Joined(
        engine=built,
        loops=loops,
        checks=[lambda: _archive_check(settings.archive, ground.db.read(deliveries))],
        stop_intake=built.engine.close,
        release=lambda: _release(built, archive),
    )


def _archive(ground: Ground) -> Archive | None:
    settings = ground.settings.attribution
    if settings.archive == "bus":
        return BusArchive(ground.db, ground.engine(BusEngine).bus)
    return open_archive(settings.archive, resolve(settings.archive_key, "attribution.archive_key"))


def _retention(settings: AttributionSettings) -> tuple[Retention, Keep | None]:
    if settings.keep_facts_days and settings.archive == "store" and not settings.purge_folder:
        raise ConfigInvalid(
            "config_purge_folder_missing",
            "facts are to be purged, and the store itself is their only archive",
            place="attribution.keep_facts_days",
            advice="set attribution.purge_folder, or archive to Parquet files or an endpoint",
        )

    def days(count: int) -> int | None:
        return count * DAY or None

    kept = Retention(
        log=days(settings.keep_log_days),
        rejects=days(settings.keep_rejects_days),
        audits=days(settings.keep_audits_days),
        facts=days(settings.keep_facts_days),
    )
    return kept, into_files(Path(settings.purge_folder)) if settings.purge_folder else None


def _archive_check(where: str, deliveries: Mapping[str, int]) -> Check:
    """Where records go, and what of them is left behind."""
    found = "the store itself" if where == "store" else redact_url(where.partition("?")[0])
    pending, given_up = deliveries.get("pending", 0), deliveries.get("given_up", 0)
    if pending and where == "store":
        return Check(
            name="attribution archive",
            health=Health.WARNING,
            found=f"{found}, and the records of {pending} decisions wait for another that is no longer named",
            advice="name that archive again until they are delivered: no settlement counts them before",
        )
    if given_up:
        return Check(
            name="attribution archive",
            health=Health.WARNING,
            found=f"{found}, which did not take the records of {given_up} decisions within 15 minutes",
            advice="no settlement counts them; `patra attribution settle` tells how many, `find` of which it is",
        )
    return Check(name="attribution archive", health=Health.OK, found=found)


def _release(built: Attribution, archive: Archive | None) -> None:
    built.engine.close()
    if archive is not None:
        archive.close()


def attribution_of(ground: Any) -> Attribution:
    """The attribution engine of a Patra or of its ground."""
    return ground.engine(Attribution)
