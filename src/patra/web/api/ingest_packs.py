"""Packs loaded and put on trial over HTTP; schedules of operators added, changed and removed (ch. 3.5, 5.2.1)."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from patra.app.access.actor import Role
from patra.ingest.packs import registry, secret_grants, staged_release
from patra.ingest.packs.compiler import LoadedPack, check_pack, load_pack
from patra.ingest.packs.diff import Change, difference
from patra.ingest.packs.problems import Problem as PackProblem
from patra.ingest.packs.problems import errors as errors_of
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.yaml.yaml_document import read_document
from patra.ingest.planning import own_schedules
from patra.ingest.planning.operations import promote_pack, roll_back_pack
from patra.ingest.planning.schedule import Scheduled
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.errors import Invalid
from patra.web.api.ingest_acts import TAG, Done, act_audited, missing
from patra.web.auth import LOCAL
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

Why = Annotated[str, Meta(max_length=500, description="The reason, for the audit.")]
Job = Annotated[str, Meta(min_length=1, max_length=400, description="SOURCE/NAME, as in `GET /ingest/schedules`.")]
NO_SOURCE = frozenset({Reason.SOURCE_UNKNOWN})
NO_TRIAL = frozenset({Reason.NOT_STAGED, Reason.SOURCE_UNKNOWN})
NO_SCHEDULE = frozenset({Reason.SCHEDULE_UNKNOWN, Reason.SOURCE_UNKNOWN})


class PackText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pack as YAML."""

    text: Annotated[str, Meta(min_length=1, max_length=1_000_000, description="The file's text.")]
    name: Annotated[str, Meta(max_length=200, description="Its name, for messages.")] = "pack.yaml"


class TrialText(PackText, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pack as YAML that is put on trial."""

    source: Annotated[str, Meta(max_length=200, description="Refuse a pack of any other source.")] = ""
    share: Annotated[int, Meta(ge=1, le=100, description="How many plans of a hundred are made from it.")] = 20
    why: Why = ""


class PackLoaded(msgspec.Struct, frozen=True, kw_only=True):
    """What was written into the registry."""

    source: str
    version: int
    first: bool
    changes: list[Change]
    warnings: list[str]


class PackDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What loading the pack would change."""

    source: str
    changes: list[Change]


class PackStaged(msgspec.Struct, frozen=True, kw_only=True):
    """The version that is on trial, and what it changes against the one in force."""

    source: str
    version: int
    share: int
    changes: list[Change]
    warnings: list[str]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The version in force and the one on trial: what became of their plans since the trial began."""

    source: str
    share: int
    by: str
    since: str
    results: list[staged_release.Results]
    changes: list[Change]


class WhyWish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason, for the audit."""

    why: Why = ""


class Promotion(WhyWish, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version is put in force, and why."""

    version: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="`version_no` of the trial that was looked at: refused where another one is on trial by now."),
    ] = None


class OwnSchedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule beside those of a pack, in the words of the pack format."""

    job: Job
    endpoint: Annotated[str, Meta(min_length=1, max_length=200)]
    cron: Annotated[str, Meta(max_length=100, description="minute hour day month weekday, as `0 3 * * 1-5`.")]
    operation: Literal["HARVEST", "BACKFILL", "UPDATE"] = "HARVEST"
    timezone: Annotated[str, Meta(max_length=60, description="Zone of `cron`.")] = "UTC"
    jitter: Annotated[str, Meta(max_length=40, description="Fire later by up to this, at most P7D.")] = "PT0S"
    missed: Annotated[
        Literal["ONCE", "ALL", "NONE"],
        Meta(description="Ticks while nothing ran: the latest stands for all, each is made up, or skipped."),
    ] = "ONCE"
    last: Annotated[str, Meta(max_length=40, description="Read the last so much of time; BACKFILL needs it.")] = ""
    reread: Annotated[bool, Meta(description="BACKFILL: read the whole of `last` again each time.")] = False
    params: Annotated[dict[str, Any], Meta(description="Values of the pack's parameters.")] = {}
    priority: Annotated[Annotated[int, Meta(ge=0, le=999)] | None, Meta(description="The smaller runs first.")] = None
    why: Why = ""


class ScheduleRemoval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which schedule is removed, and why."""

    job: Job
    why: Why = ""


EXPORTS = "Which file is written after its plans is said on the command line alone: it is one of the server's machine."


def routes() -> list[Endpoint]:
    return [*_of_packs(), *_of_schedules()]


def _of_packs() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    unread = {422: "The pack cannot be loaded; `problems` says why, with the line."}
    no_trial = {404: "There is no such source, or no version of it, or another one, is on trial."}
    return [
        group.post("/ingest/packs/diff", _diff, "ingest.pack_diff", "What loading a pack would change",
                   request=PackText, response=PackDifference, problems=unread),
        group.post("/ingest/packs", _load, "ingest.pack_load", "Check a pack and write it into the registry",
                   request=PackText, response=PackLoaded, problems=unread, role=Role.ADMIN),
        group.post(
            "/ingest/packs/stage", _stage, "ingest.pack_stage", "Put a new version of a pack on trial",
            description="A share of the plans to come is made from it, the others from the version in force.",
            request=TrialText, response=PackStaged, role=Role.ADMIN,
            problems={**unread, 404: "No version of the source is loaded."},
        ),
        group.get("/ingest/sources/{source}/trial", _trial, "The version in force and the one on trial, compared",
                  Trial, problems=no_trial),
        group.post("/ingest/sources/{source}/promote", _promote, "ingest.pack_promote",
                   "Put the version on trial in force for all plans to come",
                   request=Promotion, response=Done, problems=no_trial, role=Role.ADMIN),
        group.post("/ingest/sources/{source}/rollback", _roll_back, "ingest.pack_rollback",
                   "End the trial: plans to come are made from the version in force",
                   request=WhyWish, response=Done, problems=no_trial),
    ]  # fmt: skip


def _of_schedules() -> list[Endpoint]:
    group = EndpointGroup(TAG)
    unknown = {404: "There is no such source or schedule."}
    return [
        group.post(
            "/ingest/schedules", _add, "ingest.add_schedule", "Add a schedule of your own beside those of a pack",
            description=f"It fires for its latest tick at once, then as it says. {EXPORTS}",
            request=OwnSchedule, response=Done, problems=unknown,
        ),
        group.post(
            "/ingest/schedules/change", _change, "ingest.change_schedule", "Change a schedule of your own",
            description="What is not said gets its default; whether it is on, its file and its history stay.",
            request=OwnSchedule, response=Done, problems=unknown,
        ),
        group.post(
            "/ingest/schedules/remove", _remove, "ingest.remove_schedule", "Remove a schedule of your own",
            description="What it has planned stays. A schedule of a pack can only be turned off.",
            request=ScheduleRemoval, response=Done, problems=unknown,
        ),
    ]  # fmt: skip


def _read_pack(request: Request) -> tuple[LoadedPack | None, list[PackProblem]]:
    wish: PackText = request.body
    document = read_document(wish.text, wish.name, Pack)
    loaded = load_pack(document)
    if loaded is None:
        return None, list(document.problems)
    grants = request.patra.db.read(secret_grants.grants_of)
    problems = [*check_pack(loaded), *secret_grants.problems_of(loaded, grants)]
    return (None if errors_of(problems) else loaded), problems


def _refuse_pack(problems: list[PackProblem]) -> Problem:
    told = [str(one) for one in errors_of(problems)]
    return Problem(422, "i_pack_invalid", "The pack cannot be loaded", told[0] if told else "", {"problems": told})


def _diff(request: Request) -> PackDifference | Problem:
    loaded, problems = _read_pack(request)
    if loaded is None:
        return _refuse_pack(problems)
    source = loaded.pack.source
    before = request.patra.db.read(lambda tx: registry.read_tree(tx, source))
    return PackDifference(source=source, changes=difference(before, loaded.tree))


def _load(request: Request) -> PackLoaded | Problem:
    loaded, problems = _read_pack(request)
    if loaded is None:
        return _refuse_pack(problems)
    by, now = (request.actor or LOCAL).name, request.patra.clock.now()
    found = request.act(lambda tx: registry.load(tx, [loaded], by=by, now=now)[0], loaded.pack.source)
    return PackLoaded(
        source=found.source,
        version=found.version_no,
        first=found.first,
        changes=list(found.changes),
        warnings=[str(one) for one in problems],
    )


def _stage(request: Request) -> PackStaged | Problem:
    wish: TrialText = request.body
    loaded, problems = _read_pack(request)
    if loaded is None:
        return _refuse_pack(problems)
    source = loaded.pack.source
    if wish.source not in {"", source}:
        raise Invalid("i_pack_invalid", f"this is a pack of {source}, not of {wish.source}", place="text")
    by, now = (request.actor or LOCAL).name, request.patra.clock.now()

    def work(tx: Tx) -> tuple[int, list[Change]]:
        version = staged_release.stage(tx, loaded, wish.share, by=by, now=now)
        request.audit(tx, source, {"version": version, "share": wish.share, "why": wish.why})
        return version, difference(registry.read_tree(tx, source), loaded.tree)

    try:
        version, changes = request.patra.db.run(work)
    except Invalid as error:
        return missing(error, NO_SOURCE)
    request.audited = True
    warnings = [str(one) for one in problems]
    return PackStaged(source=source, version=version, share=wish.share, changes=changes, warnings=warnings)


def _trial(request: Request) -> Trial | Problem:
    source = request.path["source"]

    def read(tx: Tx) -> Trial:
        results = staged_release.compare(tx, source)
        found = staged_release.staged_version(tx, source)
        if found is None:
            raise AssertionError("what was compared is on trial")
        return Trial(
            source=source,
            share=found.share,
            by=found.by,
            since=format_instant(found.at),
            results=results,
            changes=difference(registry.read_tree(tx, source), found.pack.tree),
        )

    try:
        return request.patra.db.read(read)
    except Invalid as error:
        return missing(error, NO_TRIAL)


def _promote(request: Request) -> Done | Problem:
    source, wish = request.path["source"], request.body
    by, now = (request.actor or LOCAL).name, request.patra.clock.now()
    return act_audited(
        request,
        lambda tx: promote_pack(tx, source, by=by, why=wish.why, now=now, version=wish.version),
        NO_TRIAL,
    )


def _roll_back(request: Request) -> Done | Problem:
    source, why = request.path["source"], request.body.why
    return act_audited(request, lambda tx: roll_back_pack(tx, source, why=why), NO_TRIAL)


def _entry(wish: OwnSchedule) -> Scheduled:
    names = ("endpoint", "operation", "cron", "timezone", "jitter", "missed", "last", "reread", "params", "priority")
    said = {name: value for name in names if (value := getattr(wish, name)) not in (None, "")}
    return own_schedules.schedule_of(wish.job, said, None)


def _add(request: Request) -> Done | Problem:
    wish: OwnSchedule = request.body
    entry, now = _entry(wish), request.patra.clock.now()
    by = (request.actor or LOCAL).name
    return act_audited(request, lambda tx: own_schedules.add(tx, entry, by=by, now=now, why=wish.why), NO_SCHEDULE)


def _change(request: Request) -> Done | Problem:
    wish: OwnSchedule = request.body
    entry, now = _entry(wish), request.patra.clock.now()
    by = (request.actor or LOCAL).name
    return act_audited(
        request,
        lambda tx: own_schedules.change(tx, entry, by=by, now=now, why=wish.why, keep_export=True),
        NO_SCHEDULE,
    )


def _remove(request: Request) -> Done | Problem:
    wish: ScheduleRemoval = request.body
    return act_audited(request, lambda tx: own_schedules.remove(tx, wish.job, why=wish.why), NO_SCHEDULE)
