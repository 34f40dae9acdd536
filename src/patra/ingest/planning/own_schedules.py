"""Schedules that operators add beside those of packs: checked as a pack's are, kept in the store (ch. 5.2.1)."""

from typing import Any

import msgspec

from patra.ingest.packs import registry
from patra.ingest.packs.compiler import Compiled, LoadedPack, Overrides, check_schedule, compile_spec
from patra.ingest.packs.problems import Problem, Source, errors
from patra.ingest.packs.schema import Schedule
from patra.ingest.packs.sections.base import NAME
from patra.ingest.packs.text_kinds import KINDS
from patra.ingest.planning import store
from patra.ingest.planning.operations import Act, known_schedule
from patra.ingest.planning.schedule import Scheduled, ScheduledExport
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern


def schedule_of(job: str, said: dict[str, Any], then: ScheduledExport | None, topic: str = "") -> Scheduled:
    """What an operator said, as a schedule; `said` has the names of the pack format."""
    source, _, name = job.partition("/")
    if not name or not pattern(NAME).matches_part(name):
        raise Invalid(Reason.SCHEDULE_INVALID, f"{job!r} is not a SOURCE/NAME", advice="crossref/nightly, say")
    for field, kind in (("cron", "cron"), ("jitter", "duration"), ("last", "duration")):
        if field in said:
            try:
                KINDS[kind].check(said[field])
            except Invalid as error:
                raise Invalid(error.code, error.detail, place=field, advice=error.advice) from None
    try:
        schedule = msgspec.convert(said, Schedule)
    except msgspec.ValidationError as error:
        raise Invalid(Reason.SCHEDULE_INVALID, str(error)) from None
    return Scheduled(source=source, name=name, schedule=schedule, own=True, then=then, topic=topic)


def add(tx: Tx, entry: Scheduled, *, by: str, now: int, why: str = "") -> Act:
    """Keep a schedule that compiles; it fires for its latest tick at once, then as it says."""
    _check(tx, entry)
    if any(known.job == entry.job for known in store.all_schedules(tx)):
        raise Invalid(Reason.SCHEDULE_EXISTS, f"there is a schedule {entry.job}", advice=_how_to_change(tx, entry.job))
    store.add_schedule(tx, entry, by=by, now=now)
    return Act(act="ingest.add_schedule", subject=entry.job, changed=1, detail={**_entry_fields(entry), "why": why})


def change(tx: Tx, entry: Scheduled, *, by: str, now: int, why: str, keep_export: bool = False) -> Act:
    """Replace a schedule of an operator; ticks before the change are not missed. It stays on or off as it was."""
    known = _own(tx, entry.job)
    changed = msgspec.structs.replace(entry, then=known.then, topic=known.topic) if keep_export else entry
    _check(tx, changed)
    store.change_schedule(tx, changed, by=by, now=now)
    _unfollow(tx, known)
    detail = {**_entry_fields(changed), "was": _entry_fields(known), "why": why}
    return Act(act="ingest.change_schedule", subject=entry.job, changed=1, detail=detail)


def _check(tx: Tx, entry: Scheduled) -> None:
    if entry.topic and entry.schedule.operation is Operation.UPDATE:
        raise Invalid(
            Reason.SCHEDULE_INVALID,
            f"UPDATE reads known records again: it finds nothing for a topic, and {entry.job} has {entry.topic!r}",
            advice="HARVEST and BACKFILL find records for a topic",
        )
    loaded = registry.read_pack(tx, entry.source)
    if loaded is None:
        raise registry.unknown_source(tx, entry.source)
    said_here = msgspec.structs.replace(loaded, source=Source())
    _refuse(errors(list(check_schedule(said_here, entry.name, entry.schedule))), f"schedules.{entry.name}.")
    _refuse(errors(_compile_schedule(tx, loaded, entry.schedule).problems))


def _compile_schedule(tx: Tx, loaded: LoadedPack, schedule: Schedule) -> Compiled:
    given = Overrides(params=schedule.params, sections={})
    return compile_spec(loaded, schedule.endpoint, schedule.operation, given, registry.dictionary(tx))


def _selection(tx: Tx, entry: Scheduled) -> str | None:
    """What a schedule searches for; None where its pack no longer says so."""
    loaded = registry.read_pack(tx, entry.source)
    spec = _compile_schedule(tx, loaded, entry.schedule).spec if loaded is not None else None
    return spec.selection_key if spec is not None else None


def _unfollow(tx: Tx, was: Scheduled) -> None:
    """The topic of a schedule as it was no longer follows its search, unless a schedule still says so.

    A run by hand that names the topic follows the search again.
    """
    selection = _selection(tx, was) if was.topic else None
    if selection is None:
        return
    others = (one for one in store.all_schedules(tx) if one.topic == was.topic)
    if all(_selection(tx, one) != selection for one in others):
        store.unfollow_topic(tx, was.topic, selection)


def _entry_fields(entry: Scheduled) -> dict[str, Any]:
    then = msgspec.to_builtins(entry.then)
    return {"schedule": msgspec.to_builtins(entry.schedule), "then": then, "topic": entry.topic}


def _own(tx: Tx, job: str) -> Scheduled:
    """A schedule that an operator added; one of a pack can only be turned off."""
    known = known_schedule(tx, job)
    if not known.own:
        raise Invalid(
            Reason.SCHEDULE_EXISTS,
            f"{job} belongs to its pack",
            advice=f"`patra ingest schedule disable {job}` turns it off",
        )
    return known


def remove(tx: Tx, job: str, *, why: str) -> Act:
    """Forget a schedule that an operator added."""
    known = _own(tx, job)
    changed = store.remove_schedule(tx, job)
    _unfollow(tx, known)
    return Act(act="ingest.remove_schedule", subject=job, changed=int(changed), detail={"why": why})


def _how_to_change(tx: Tx, job: str) -> str:
    if known_schedule(tx, job).own:
        return f"`patra ingest schedule change {job} …` changes it: what it has read stays read"
    return f"it belongs to its pack: choose another name, or `patra ingest schedule enable {job}` as it is"


def _refuse(found: list[Problem], prefix: str = "") -> None:
    """Refuse for the first problem; a place in the schedule is named without `prefix`, as the arguments are."""
    if found:
        first = msgspec.structs.replace(found[0], path=found[0].path.removeprefix(prefix), advice="")
        raise Invalid(first.code, str(first).removesuffix(f" [{first.code}]"), advice=found[0].advice)
