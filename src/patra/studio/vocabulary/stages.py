"""The machines of a run, a job, a piece of hub work and a film: states, events, and nothing else (C§2)."""

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


class StageTransition(StrEnum):
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
        (Stage.QUEUED, StageTransition.START): Stage.PLANNING,
        (Stage.PLANNING, StageTransition.FIRST_ROUTE): Stage.ROUTING,
        (Stage.ROUTING, StageTransition.ALL_ROUTED): Stage.EXECUTING,
        (Stage.EXECUTING, StageTransition.ALL_SETTLED): Stage.COMPOSING,
        (Stage.COMPOSING, StageTransition.COMPOSED): Stage.PUBLISHING,
        (Stage.PUBLISHING, StageTransition.PUBLISHED): Stage.COMPLETED,
        **{(stage, StageTransition.FAIL): Stage.FAILED for stage in _UNDER_WAY},
        **{(stage, StageTransition.CANCEL): Stage.CANCELLED for stage in _UNDER_WAY if stage is not Stage.PUBLISHING},
        **{(stage, StageTransition.REPLAN): Stage.PLANNING for stage in _ENDED},
        **{(stage, StageTransition.REEXECUTE): Stage.EXECUTING for stage in _ENDED},
        **{(stage, StageTransition.RECOMPOSE): Stage.COMPOSING for stage in _ENDED},
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


class JobTransition(StrEnum):
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
        (Job.WAITING, JobTransition.READY): Job.CREATED,
        (Job.WAITING, JobTransition.SKIP): Job.FAILED,
        (Job.CREATED, JobTransition.CLAIM): Job.CLAIMED,
        (Job.CLAIMED, JobTransition.CLAIM): Job.CLAIMED,
        **{(state, JobTransition.SUCCEED): Job.SUCCEEDED for state in _OPEN},
        (
            Job.CANCELLED,
            JobTransition.SUCCEED,
        ): Job.SUCCEEDED,  # it was done already; a resumed run need not do it again
        **{(state, JobTransition.FAIL): Job.FAILED for state in _OPEN},
        **{(state, JobTransition.CANCEL): Job.CANCELLED for state in (Job.WAITING, *_OPEN)},
        **{(state, JobTransition.AGAIN): Job.WAITING for state in (*_OPEN, Job.SUCCEEDED, Job.FAILED, Job.CANCELLED)},
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


class WorkTransition(StrEnum):
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
        **{
            (state, WorkTransition.CREATE): Work.QUEUED
            for state in (Work.ANNOUNCED, Work.DONE, Work.FAILED, Work.CANCELLED)
        },
        (Work.QUEUED, WorkTransition.CLAIM): Work.LEASED,
        (Work.LEASED, WorkTransition.EXPIRE): Work.QUEUED,
        (Work.LEASED, WorkTransition.REPORT): Work.REPORTED,
        (Work.REPORTED, WorkTransition.SUCCEED): Work.DONE,
        (Work.REPORTED, WorkTransition.RETRY): Work.QUEUED,
        (Work.REPORTED, WorkTransition.FALL_BACK): Work.QUEUED,
        (Work.REPORTED, WorkTransition.GIVE_UP): Work.FAILED,
        (Work.QUEUED, WorkTransition.GIVE_UP): Work.FAILED,
        **{
            (state, WorkTransition.CANCEL): Work.CANCELLED
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


class FilmTransition(StrEnum):
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
        (Film.WANTED, FilmTransition.TAKE): Film.LEASED,
        (Film.LEASED, FilmTransition.EXPIRE): Film.WANTED,
        (Film.LEASED, FilmTransition.RETRY): Film.WANTED,
        (Film.LEASED, FilmTransition.PUBLISH): Film.PUBLISHED,
        (Film.LEASED, FilmTransition.GIVE_UP): Film.FAILED,
        (Film.WANTED, FilmTransition.CANCEL): Film.CANCELLED,
        (Film.LEASED, FilmTransition.CANCEL): Film.CANCELLED,
        **{(state, FilmTransition.AGAIN): Film.WANTED for state in (Film.PUBLISHED, Film.FAILED, Film.CANCELLED)},
    },
)
