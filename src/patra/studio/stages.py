"""The machines of a run, a job, a piece of hub work and a film: states, events, and nothing else (C§2, STYLE)."""

from enum import StrEnum

from patra.kernel.machine import Machine


class Stage(StrEnum):
    """A run's stages, as the contract of `run.stage.changed` names them."""

    QUEUED = "queued"
    PLANNING = "planning"
    ROUTING = "routing"
    EXECUTING = "executing"
    COMPOSING = "composing"
    PUBLISHING = "publishing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class On(StrEnum):
    START = "start"
    FIRST_ROUTE = "first_route"
    ALL_ROUTED = "all_routed"
    ALL_SETTLED = "all_settled"
    COMPOSED = "composed"
    PUBLISHED = "published"
    FAIL = "fail"
    CANCEL = "cancel"
    REPLAN = "replan"
    REEXECUTE = "reexecute"
    RECOMPOSE = "recompose"


_UNDER_WAY = (Stage.QUEUED, Stage.PLANNING, Stage.ROUTING, Stage.EXECUTING, Stage.COMPOSING, Stage.PUBLISHING)
_ENDED = (Stage.COMPLETED, Stage.FAILED, Stage.CANCELLED)

RUN = Machine(
    "studio_run",
    version="s_run_v1",
    initial=Stage.QUEUED,
    edges={
        (Stage.QUEUED, On.START): Stage.PLANNING,
        (Stage.PLANNING, On.FIRST_ROUTE): Stage.ROUTING,
        (Stage.ROUTING, On.ALL_ROUTED): Stage.EXECUTING,
        (Stage.EXECUTING, On.ALL_SETTLED): Stage.COMPOSING,
        (Stage.COMPOSING, On.COMPOSED): Stage.PUBLISHING,
        (Stage.PUBLISHING, On.PUBLISHED): Stage.COMPLETED,
        **{(stage, On.FAIL): Stage.FAILED for stage in _UNDER_WAY},
        **{(stage, On.CANCEL): Stage.CANCELLED for stage in _UNDER_WAY if stage is not Stage.PUBLISHING},
        **{(stage, On.REPLAN): Stage.PLANNING for stage in _ENDED},
        **{(stage, On.REEXECUTE): Stage.EXECUTING for stage in _ENDED},
        **{(stage, On.RECOMPOSE): Stage.COMPOSING for stage in _ENDED},
    },
)
PROGRESS = {
    Stage.QUEUED: 0,
    Stage.PLANNING: 5,
    Stage.ROUTING: 10,
    Stage.EXECUTING: 15,
    Stage.COMPOSING: 85,
    Stage.PUBLISHING: 95,
    Stage.COMPLETED: 100,
    Stage.FAILED: 100,
    Stage.CANCELLED: 100,
}
ENDED = frozenset(_ENDED)


class Job(StrEnum):
    """A job as the Orchestrator knows it."""

    WAITING = "waiting"  # for the jobs it needs
    CREATED = "created"
    CLAIMED = "claimed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobOn(StrEnum):
    READY = "ready"
    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    SKIP = "skip"  # what it needs has failed
    AGAIN = "again"


_OPEN = (Job.CREATED, Job.CLAIMED)
JOB = Machine(
    "studio_job",
    version="s_job_v1",
    initial=Job.WAITING,
    edges={
        (Job.WAITING, JobOn.READY): Job.CREATED,
        (Job.WAITING, JobOn.SKIP): Job.FAILED,
        (Job.CREATED, JobOn.CLAIM): Job.CLAIMED,
        (Job.CLAIMED, JobOn.CLAIM): Job.CLAIMED,
        **{(state, JobOn.SUCCEED): Job.SUCCEEDED for state in _OPEN},
        (Job.CANCELLED, JobOn.SUCCEED): Job.SUCCEEDED,  # it was done already; a resumed run need not do it again
        **{(state, JobOn.FAIL): Job.FAILED for state in _OPEN},
        **{(state, JobOn.CANCEL): Job.CANCELLED for state in (Job.WAITING, *_OPEN)},
        **{(state, JobOn.AGAIN): Job.WAITING for state in (*_OPEN, Job.SUCCEEDED, Job.FAILED, Job.CANCELLED)},
    },
)
SETTLED = frozenset({Job.SUCCEEDED, Job.FAILED, Job.CANCELLED})


class Work(StrEnum):
    """A job as the Worker Hub holds it."""

    ANNOUNCED = "announced"  # routed, not yet to be done
    QUEUED = "queued"
    LEASED = "leased"
    REPORTED = "reported"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class WorkOn(StrEnum):
    CREATE = "create"
    CLAIM = "claim"
    EXPIRE = "expire"
    REPORT = "report"
    SUCCEED = "succeed"
    RETRY = "retry"
    FALL_BACK = "fall_back"
    GIVE_UP = "give_up"
    CANCEL = "cancel"


WORK = Machine(
    "studio_work",
    version="s_work_v1",
    initial=Work.ANNOUNCED,
    edges={
        **{(state, WorkOn.CREATE): Work.QUEUED for state in (Work.ANNOUNCED, Work.DONE, Work.FAILED, Work.CANCELLED)},
        (Work.QUEUED, WorkOn.CLAIM): Work.LEASED,
        (Work.LEASED, WorkOn.EXPIRE): Work.QUEUED,
        (Work.LEASED, WorkOn.REPORT): Work.REPORTED,
        (Work.REPORTED, WorkOn.SUCCEED): Work.DONE,
        (Work.REPORTED, WorkOn.RETRY): Work.QUEUED,
        (Work.REPORTED, WorkOn.FALL_BACK): Work.QUEUED,
        (Work.REPORTED, WorkOn.GIVE_UP): Work.FAILED,
        (Work.QUEUED, WorkOn.GIVE_UP): Work.FAILED,
        **{
            (state, WorkOn.CANCEL): Work.CANCELLED
            for state in (Work.ANNOUNCED, Work.QUEUED, Work.LEASED, Work.REPORTED)
        },
    },
)


class Film(StrEnum):
    """A film as the Composer holds it."""

    WANTED = "wanted"
    LEASED = "leased"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FilmOn(StrEnum):
    TAKE = "take"
    EXPIRE = "expire"
    RETRY = "retry"
    PUBLISH = "publish"
    GIVE_UP = "give_up"
    CANCEL = "cancel"
    AGAIN = "again"


FILM = Machine(
    "studio_film",
    version="s_film_v1",
    initial=Film.WANTED,
    edges={
        (Film.WANTED, FilmOn.TAKE): Film.LEASED,
        (Film.LEASED, FilmOn.EXPIRE): Film.WANTED,
        (Film.LEASED, FilmOn.RETRY): Film.WANTED,
        (Film.LEASED, FilmOn.PUBLISH): Film.PUBLISHED,
        (Film.LEASED, FilmOn.GIVE_UP): Film.FAILED,
        (Film.WANTED, FilmOn.CANCEL): Film.CANCELLED,
        (Film.LEASED, FilmOn.CANCEL): Film.CANCELLED,
        **{(state, FilmOn.AGAIN): Film.WANTED for state in (Film.PUBLISHED, Film.FAILED, Film.CANCELLED)},
    },
)
