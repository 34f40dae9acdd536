"""The HTTP interface of operations: alive, ready, busy, who did what."""

from typing import Annotated, cast

import msgspec
from msgspec import Meta
from starlette.requests import Request as RawRequest
from starlette.responses import Response

import patra
from patra.app.access.actor import Role
from patra.app.access.audit import AuditEntry, list_acts
from patra.app.component import Check
from patra.app.configuration.settings import every_setting, sections
from patra.app.configuration.settings_loader import DEFAULT, origin_kind
from patra.app.configuration.settings_section import Section, display_value
from patra.app.doctor import own_checks
from patra.app.loops import LoopState
from patra.app.outbox_admin import UndeliveredMessage, lines, requeue
from patra.app.wiring import Patra, Readiness
from patra.kernel import outbox
from patra.kernel.telemetry import METRICS_MEDIA, metrics_text
from patra.web.endpoint import JSON, Endpoint, Request
from patra.web.problem import Problem

MAX_COUNTED = 10_000
"""Messages of a channel that are counted, for one cannot read a backlog of millions at every look."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What answers here, and where to look."""

    name: str
    version: str
    links: dict[str, str]


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    status: str


class Loops(msgspec.Struct, frozen=True, kw_only=True):
    loops: list[LoopState]


class Woken(msgspec.Struct, frozen=True, kw_only=True):
    woken: str


class AuditQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many acts to give.")] = 100
    before: Annotated[int, Meta(ge=1, le=2**62, description="Give acts older than the one with this id.")] | None = None
    act: Annotated[str, Meta(description="Only acts of this name.")] = ""
    subject: Annotated[str, Meta(description="Only acts on this subject.")] = ""


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """The newest acts first; `next` is the `before` of the next page."""

    acts: list[AuditEntry]
    next: int | None


class OutboxQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    channel: Annotated[str, Meta(description="Only messages of this channel.")] = ""
    after: Annotated[int, Meta(ge=0, le=2**62, description="Only messages behind this number.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to give.")] = 100


class Outbox(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that were refused or given up, the oldest first; `next` is the `after` of the next page."""

    messages: list[UndeliveredMessage]
    next: int | None


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages wait or were not delivered; `more`: counting ended at a bound."""

    channel: str
    state: str
    count: int
    more: bool


class Backlogs(msgspec.Struct, frozen=True, kw_only=True):
    backlog: list[Backlog]


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    checks: list[Check]


class Requeue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which messages are tried again, and why."""

    seqs: Annotated[list[Annotated[int, Meta(ge=0, le=2**62)]], Meta(min_length=1, max_length=1000)]
    why: Annotated[str, Meta(max_length=500)] = ""


class Requeued(msgspec.Struct, frozen=True, kw_only=True):
    channel: str
    changed: int


class SettingLine(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of this process; secrets are hidden. `origin` names the file, variable or option."""

    key: str
    section: str
    value: str
    default: str
    origin: str
    origin_kind: str
    description: str


class SettingLines(msgspec.Struct, frozen=True, kw_only=True):
    settings: list[SettingLine]


def routes(patra: Patra) -> list[Endpoint]:
    del patra  # handlers find it in their request
    return [
        Endpoint(
            method="GET",
            path="/",
            handler=_about,
            role=None,
            summary="What answers here, and where to look",
            response=About,
        ),
        Endpoint(
            method="GET",
            path="/health",
            raw=_health,
            role=None,
            summary="Whether the process is alive",
            description="Says nothing about the store; a failing `/health` means: restart the process.",
            response=Alive,
        ),
        Endpoint(
            method="GET",
            path="/ready",
            handler=_ready,
            role=None,
            summary="Whether the process can do its work: store, migrations, loops",
            description="503 with the reasons while it cannot. Reasons and loops are shown to viewers only.",
            response=Readiness,
        ),
        Endpoint(
            method="GET",
            path="/metrics",
            handler=_metrics,
            role=Role.VIEWER,
            summary="Metrics in Prometheus' text format",
            media=METRICS_MEDIA,
        ),
        Endpoint(
            method="GET",
            path="/loops",
            handler=_loops,
            role=Role.VIEWER,
            summary="The background loops of this process: state, last turn, errors",
            response=Loops,
        ),
        Endpoint(
            method="POST",
            path="/loops/{name}/wake",
            handler=_wake,
            role=Role.OPERATOR,
            act="loop.wake",
            summary="Let a loop take its next turn now",
            response=Woken,
            problems={404: "This process runs no such loop."},
        ),
        Endpoint(
            method="GET",
            path="/audit",
            handler=_audit,
            role=Role.ADMIN,
            summary="What operators did, newest first",
            query=AuditQuery,
            response=AuditPage,
        ),
        Endpoint(
            method="GET",
            path="/settings",
            handler=_settings,
            role=Role.VIEWER,
            summary="The settings of this process and where each came from",
            response=SettingLines,
        ),
        Endpoint(
            method="GET",
            path="/outbox",
            handler=_outbox,
            role=Role.VIEWER,
            summary="Messages to others that were refused or given up",
            query=OutboxQuery,
            response=Outbox,
        ),
        Endpoint(
            method="GET",
            path="/outbox/backlog",
            handler=_backlog,
            role=Role.VIEWER,
            summary="Messages to others by channel and state",
            response=Backlogs,
        ),
        Endpoint(
            method="GET",
            path="/doctor",
            handler=_doctor,
            role=Role.VIEWER,
            summary="Checks that this process makes of itself, and what to do",
            description="`patra doctor` checks the installation as well, from the machine it runs on.",
            response=Checks,
        ),
        Endpoint(
            method="POST",
            path="/outbox/{channel}/requeue",
            handler=_requeue,
            role=Role.OPERATOR,
            act="outbox.requeue",
            summary="Try such messages again",
            request=Requeue,
            response=Requeued,
            problems={409: "What this channel did not deliver is final."},
        ),
    ]


def _about(request: Request) -> About:
    del request
    paths = ("console", "health", "ready", "metrics", "loops", "openapi.json")
    return About(name="patra", version=patra.__version__, links={path: f"/{path}" for path in paths})


async def _health(request: RawRequest) -> Response:
    """Raw, so that it answers while every thread is busy: busy is alive."""
    del request
    return Response(msgspec.json.encode(Alive(status="alive")), media_type=JSON)


def _ready(request: Request) -> Readiness | Problem:
    found = request.patra.readiness()
    if request.actor is None:
        reasons = [] if found.ready else ["ask with a viewer's token, or look into the log"]
        found = Readiness(ready=found.ready, reasons=reasons, loops=[])
    if found.ready:
        return found
    title = "This process cannot do its work now"
    return Problem(503, "not_ready", title, "; ".join(found.reasons), msgspec.structs.asdict(found))


def _metrics(request: Request) -> bytes:
    del request
    return metrics_text()


def _loops(request: Request) -> Loops:
    return Loops(loops=request.patra.supervisor.states())


def _wake(request: Request) -> Woken | Problem:
    name = request.path["name"]
    if not request.patra.supervisor.wake(name):
        return Problem(404, "loop_unknown", "This process runs no such loop", f"`GET /loops` lists them, not {name!r}.")
    return Woken(woken=name)


def _audit(request: Request) -> AuditPage:
    query: AuditQuery = request.query
    acts = request.patra.db.read(
        lambda tx: list_acts(tx, limit=query.limit, before=query.before, act=query.act, subject=query.subject)
    )
    return AuditPage(acts=acts, next=acts[-1].id if len(acts) == query.limit else None)


def _settings(request: Request) -> SettingLines:
    patra = request.patra
    values = {
        f"{section}.{field.name}": (display_value(field, getattr(found, field.name)), getattr(found, field.name))
        for section in sections()
        for found in [cast("Section", getattr(patra.settings, section))]
        for field in msgspec.structs.fields(type(found))
    }
    lines: list[SettingLine] = []
    for setting in every_setting():
        value, raw = values[setting.key]
        is_default = raw == setting.default
        origin = patra.origins.get(setting.key, DEFAULT if is_default else "option")
        lines.append(
            SettingLine(
                key=setting.key,
                section=setting.section,
                value=_text(value),
                default="" if setting.secret else _text(setting.default),
                origin=origin,
                origin_kind="option" if origin == "option" else origin_kind(origin),
                description=setting.description,
            )
        )
    return SettingLines(settings=lines)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _outbox(request: Request) -> Outbox:
    query: OutboxQuery = request.query
    found = request.patra.db.read(lambda tx: lines(tx, channel=query.channel, after=query.after, limit=query.limit))
    return Outbox(messages=found, next=found[-1].seq if len(found) == query.limit else None)


def _backlog(request: Request) -> Backlogs:
    found = request.patra.db.read(lambda tx: outbox.backlog_up_to(tx, MAX_COUNTED))
    return Backlogs(
        backlog=[
            Backlog(channel=channel, state=state, count=count, more=count >= MAX_COUNTED)
            for (channel, state), count in sorted(found.items())
        ]
    )


def _doctor(request: Request) -> Checks:
    return Checks(checks=own_checks(request.patra))


def _requeue(request: Request) -> Requeued:
    asked: Requeue = request.body
    channel, now = request.path["channel"], request.patra.clock.now()
    changed = request.act(lambda tx: requeue(tx, channel, asked.seqs, now), channel, seqs=asked.seqs, why=asked.why)
    return Requeued(channel=channel, changed=changed)
