"""Turns settings and common ground into the attribution engine, its loops and checks."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from patra.app.bridges.attribution_events import BusArchive
from patra.app.component import BuiltComponent, Check, Context, Health
from patra.app.configuration.attribution_settings import AttributionSettings
from patra.app.configuration.egress_networks import networks
from patra.app.configuration.secrets import is_reference, resolve
from patra.app.loops import Loop, LoopRole
from patra.attribution.app_keys import Keyring
from patra.attribution.delivery.port import Archive
from patra.attribution.delivery.relay import Delivery, handing, open_archive
from patra.attribution.history.files import failing_kinds, history_place
from patra.attribution.history.log_partitions import LOG
from patra.attribution.history.parquet_rows import load_duckdb
from patra.attribution.intake.envelope import legal_id
from patra.attribution.intake.fair_share import AppLimits
from patra.attribution.intake.response_proof import Signing
from patra.attribution.intake.trusted_clock import TrustedClock
from patra.attribution.retention import Keep, Retention, RetentionRounds, into_files
from patra.attribution.settlement.verified_statements import VerifiedStatements
from patra.attribution.storage.billing_tree import BillingTree, billed_twice
from patra.attribution.storage.key_index import Indexer
from patra.attribution.storage.key_index_merge import RunMerger
from patra.attribution.storage.placement_index import Carrier
from patra.attribution.storage.read import deliveries
from patra.attribution.storage.running_sums import MARKS, RunningSums
from patra.attribution.turned_away import TurnedAway
from patra.attribution.verify import REBUILD_ADVICE, last_verification
from patra.attribution.verify_slices import ScheduledVerification
from patra.attribution.writer import Engine, Limits
from patra.bus.runtime import BusEngine
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, format_instant
from patra.kernel.db.partitions import PartitionMaker, Shape, shape
from patra.kernel.errors import ConfigInvalid, Invalid, Transient
from patra.kernel.files import FilePlace
from patra.kernel.safety.redact import redact_url

MIN_SETTLED_DAYS = 30
"""A click is priced by its impression, and may come up to a dedup window later."""


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The attribution engine and what surrounds it in one process."""

    engine: Engine
    keys: Keyring
    indexer: Indexer
    delivery: Delivery | None
    turned_away: TurnedAway
    signing: Signing


def join(ground: Context) -> BuiltComponent:
    """Build the engine on the common ground."""
    settings = ground.settings.attribution
    archive = _archive(ground)
    limits = Limits(
        waiting=settings.waiting_batches,
        group=settings.commit_batches,
        lag=round(settings.timer_lag_seconds * SECOND),
        apps=AppLimits(
            queue_share=settings.app_queue_share,
            rate=settings.app_batches_per_second,
            rates=settings.app_rates,
        ),
        reader=settings.reader_process and (os.cpu_count() or 1) > 1,
    )
    clock = TrustedClock(ground.clock)
    hand = handing(clock) if archive is not None else None
    engine = Engine(ground.db, clock, limits=limits, hand=hand)
    built = Attribution(
        engine=engine,
        keys=Keyring(ground.db, clock),
        indexer=Indexer(ground.db, clock, engine.busy),
        delivery=Delivery(ground.db, archive, clock) if archive is not None else None,
        turned_away=TurnedAway(ground.db, clock),
        signing=_signing(settings),
    )
    in_postgres = ground.db.dialect == "postgres"
    placements = Carrier(ground.db, clock, engine.busy)
    retention, keep, history = _retention(settings)
    rounds = RetentionRounds(ground.db, clock, retention, keep=keep, history=history)
    billing_tree = BillingTree(ground.db, clock, engine.busy)
    merger = RunMerger(ground.db, engine.busy, wait=settings.merge_after_hours * HOUR)
    verification = ScheduledVerification(ground.db, clock, settings.verify_hours * HOUR, engine.busy)
    loops = [
        Loop(name="attribution.timer", run_once=built.engine.sweep, every=SECOND, role=LoopRole.TIMERS),
        Loop(name="attribution.keys", run_once=built.engine.carry, every=SECOND, role=LoopRole.INDEXER),
        Loop(name="attribution.placements", run_once=placements.run_once, every=10 * SECOND, role=LoopRole.INDEXER),
        Loop(name="attribution.billing_tree", run_once=billing_tree.run_once, every=SECOND, role=LoopRole.INDEXER),
        *(
            Loop(
                name=f"attribution.sums_{sums}",
                run_once=RunningSums(ground.db, sums, engine.busy).run_once,
                every=SECOND,
                role=LoopRole.INDEXER,
            )
            for sums in MARKS
        ),
        Loop(
            name="attribution.verify",
            run_once=verification.run_once,
            every=10 * SECOND,
            again=lambda _: False,
            role=LoopRole.UPKEEP,
        ),
        Loop(name="attribution.index", run_once=built.indexer.run_once, every=SECOND, role=LoopRole.INDEXER),
        Loop(name="attribution.index_merge", run_once=merger.run_once, every=10 * SECOND, role=LoopRole.INDEXER),
        Loop(name="attribution.turned_away", run_once=built.turned_away.run_once, every=SECOND, role=LoopRole.INTAKE),
        Loop(name="attribution.retention", run_once=rounds.run_once, every=10 * MINUTE, role=LoopRole.UPKEEP),
    ]
    if in_postgres:  # beside every intake: who writes makes room for what he writes
        maker = PartitionMaker(ground.db, ground.clock, LOG)
        loops.append(Loop(name="attribution.partitions", run_once=maker.run_once, every=SECOND, role=LoopRole.INTAKE))
    if built.delivery is not None:
        loops.append(
            Loop(name="attribution.archive", run_once=built.delivery.run_once, every=SECOND // 2, role=LoopRole.RELAY)
        )
    return BuiltComponent(
        engine=built,
        loops=loops,
        checks=[
            lambda: _archive_check(settings.archive, ground.db.read(deliveries)),
            lambda: _verification_check(ground.db.read(last_verification)),
            lambda: _billing_check(ground.db.read(billed_twice)),
            *([lambda: log_check(ground.db.read(lambda tx: shape(tx, LOG)))] if in_postgres else []),
            *([lambda: _history_check(ground.db.read(failing_kinds))] if history is not None else []),
        ],
        stop_intake=built.engine.close,
        warm=built.engine.warm,
        release=lambda: _release(built, archive),
    )


def _archive(ground: Context) -> Archive | None:
    settings = ground.settings.attribution
    if settings.archive == "bus":
        return BusArchive(ground.db, ground.engine(BusEngine).bus)
    return open_archive(
        settings.archive, resolve(settings.archive_key, "attribution.archive_key"), networks(ground.settings)
    )


def _signing(settings: AttributionSettings) -> Signing:
    """The signing secrets of apps; two entries of one app overlap while its secret is changed."""
    secrets: dict[str, tuple[str, ...]] = {}
    for index, entry in enumerate(settings.signing_secrets):
        place = f"attribution.signing_secrets[{index}]"
        app_id, _, reference = entry.partition("=")
        if not legal_id(app_id) or not is_reference(reference):
            raise ConfigInvalid(
                "config_wrong_value",
                "it does not bind an app to a reference",
                place=place,
                advice="write APP=env:NAME or APP=file:PATH",
            )
        secrets[app_id] = (*secrets.get(app_id, ()), resolve(reference, place))
    return Signing(secrets=secrets, required=settings.require_signing)


def _retention(settings: AttributionSettings) -> tuple[Retention, Keep | None, FilePlace | None]:
    history = history_of(settings)
    if settings.keep_facts_days and settings.archive == "store" and not settings.purge_folder and history is None:
        raise ConfigInvalid(
            "config_purge_folder_missing",
            "facts are to be purged, and the store itself is their only archive",
            place="attribution.keep_facts_days",
            advice="set attribution.history_folder or attribution.purge_folder, or archive elsewhere",
        )

    def days(count: int) -> int | None:
        return count * DAY or None

    statements = VerifiedStatements()
    if settings.keep_settled_days and (history is None or settings.keep_settled_days < MIN_SETTLED_DAYS):
        raise ConfigInvalid(
            "config_wrong_value",
            f"facts of closed periods leave the store only for history, and after {MIN_SETTLED_DAYS} days or more",
            place="attribution.keep_settled_days",
            advice="set attribution.history_folder and more days, or 0",
        )
    kept = Retention(
        log=days(settings.keep_log_days),
        rejects=days(settings.keep_rejects_days),
        audits=days(settings.keep_audits_days),
        facts=days(settings.keep_facts_days),
        verified=None if settings.purge_unclosed_facts else statements,
        settled=days(settings.keep_settled_days),
        statements=statements,
    )
    return kept, into_files(Path(settings.purge_folder)) if settings.purge_folder else None, history


def history_of(settings: AttributionSettings) -> FilePlace | None:
    """Where rows past their retention go; None where no place is named."""
    url = settings.history_url
    place = history_place(settings.history_folder, resolve(url, "attribution.history_url") if url else "")
    if place is not None:
        load_duckdb()
    return place


def kept_history(settings: AttributionSettings) -> FilePlace:
    """The same; raises Invalid where there is none."""
    place = history_of(settings)
    if place is None:
        raise Invalid(
            "attribution_history_missing",
            "there is no history here: `attribution.history_folder` and `attribution.history_url` are empty",
        )
    return place


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
            advice="no settlement counts them; `patra attribution settle` says how many, `find` which",
        )
    return Check(name="attribution archive", health=Health.OK, found=found)


def _verification_check(last: tuple[int, int] | None) -> Check:
    """What the last `patra attribution verify` found."""
    name = "attribution verification"
    if last is None:
        return Check(name=name, health=Health.OK, found="not run yet (attribution.verify_hours)")
    at, findings = last
    if findings:
        return Check(
            name=name,
            health=Health.BROKEN,
            found=f"{findings} finding{'s' * (findings != 1)} at {format_instant(at)}",
            advice=f"settle nothing before `patra attribution verify` is clean; {REBUILD_ADVICE}",
        )
    return Check(name=name, health=Health.OK, found=f"clean at {format_instant(at)}")


def _billing_check(twice: int) -> Check:
    """Whether every billing key was billed once."""
    name = "attribution billing keys"
    if not twice:
        return Check(name=name, health=Health.OK, found="each billed once")
    return Check(
        name=name,
        health=Health.BROKEN,
        found=f"{twice} facts of keys that were billed before; settlement leaves them out",
        advice="close no period; `patra attribution verify` names the keys, `find` shows the decisions",
    )


def log_check(found: Shape) -> Check:
    """Whether the log's partitions are ahead of its writers."""
    name = "attribution log"
    if not found.partitions:
        return Check(name=name, health=Health.OK, found="one table, as stores of 0.2.0 have it")
    text = f"{len(found.partitions)} partitions, {max(found.ahead, 0):,} lines ahead"
    if found.beyond:
        return Check(
            name=name,
            health=Health.WARNING,
            found=f"{text}; {found.beyond:,} lines in none of them",
            advice="lines that were brought back leave by themselves; else let a process of this release take batches",
        )
    return Check(name=name, health=Health.OK, found=text)


def _history_check(failing: Mapping[str, int]) -> Check:
    """Whether rows past their retention leave for history."""
    name = "attribution history"
    if not failing:
        return Check(name=name, health=Health.OK, found="every kind of rows is moved")
    since = ", ".join(f"{kind} since {format_instant(at)}" for kind, at in failing.items())
    return Check(
        name=name,
        health=Health.WARNING,
        found=f"rows past their retention stay in the store: {since}",
        advice="`patra attribution history check` names missing and damaged files; the log names the error",
    )


def _release(built: Attribution, archive: Archive | None) -> None:
    built.engine.close()
    with suppress(Transient):
        built.turned_away.run_once()
    if archive is not None:
        archive.close()
