"""Acts of operators on the bus over HTTP, each with its audit row (C§6, B5)."""

from collections.abc import Callable
from typing import Any

import msgspec

from patra.app.components.bus import bus_of
from patra.bus import operations
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.versions import VersionRange, parse_range
from patra.bus.consuming.dead_letter import Filter
from patra.bus.consuming.version_stages import Stage
from patra.bus.publishing.envelope import Refused
from patra.bus.store import groups
from patra.bus.store import version_stages as store_stages
from patra.bus.transports import webhook
from patra.kernel.clock import SECOND
from patra.kernel.db import Tx
from patra.kernel.safety.redact import redact_url
from patra.web.api.bus.shapes import (
    Changed,
    DiscardAsked,
    FreezeState,
    Hook,
    HookAsked,
    Hooks,
    LetterAnswer,
    ReplayAsked,
    Rotated,
    StageAsked,
    Stages,
    StageState,
    answer,
    problem,
    to_shape,
)
from patra.web.auth import LOCAL
from patra.web.endpoint import Request
from patra.web.problem import Problem


def name_of(request: Request) -> str:
    return (request.actor or LOCAL).name


def act_on(request: Request, work: Callable[[Tx], Any], subject: str, **detail: Any) -> Any:
    """An operation of the bus and its audit row; a refusal leaves none, since nothing was done."""

    def both(tx: Tx) -> Any:
        done = work(tx)
        if not isinstance(done, Refused):
            request.audit(tx, subject, detail)
        return done

    done = request.patra.db.run(both)
    request.audited = True
    return problem(done) if isinstance(done, Refused) else done


def replay(request: Request) -> LetterAnswer | Problem:
    asked: ReplayAsked = request.body
    bus, by = bus_of(request.patra).bus, name_of(request)

    def work(tx: Tx) -> operations.Done | Refused:
        if asked.event_ids is not None:
            return operations.replay(tx, bus, asked.group, asked.event_ids, by=by, confirm=asked.confirm)
        wanted = Filter(group=asked.group, event_type=asked.type or None, error_code=asked.error_code or None)
        return operations.replay_found(tx, bus, wanted, by=by, confirm=asked.confirm, limit=asked.limit)

    asked_for = {"event_ids": asked.event_ids, "type": asked.type, "error_code": asked.error_code}
    return _done_answer(act_on(request, work, asked.group, **asked_for))


def discard(request: Request) -> LetterAnswer | Problem:
    asked: DiscardAsked = request.body
    bus, by = bus_of(request.patra).bus, name_of(request)

    def work(tx: Tx) -> operations.Done | Refused:
        return operations.discard(tx, bus, asked.group, asked.event_ids, by=by, reason=asked.reason)

    return _done_answer(act_on(request, work, asked.group, event_ids=asked.event_ids, reason=asked.reason))


def _done_answer(done: operations.Done | Problem) -> LetterAnswer | Problem:
    if isinstance(done, Problem):
        return done
    return LetterAnswer(letters=done.letters, refused={i: answer(refused) for i, refused in done.refused.items()})


def pause(request: Request) -> Changed | Problem:
    group, bus, by = request.path["group"], bus_of(request.patra).bus, name_of(request)
    done = act_on(request, lambda tx: operations.pause(tx, bus, group, by=by), group)
    return done if isinstance(done, Problem) else Changed(changed=done)


def resume(request: Request) -> Changed | Problem:
    group, bus, by = request.path["group"], bus_of(request.patra).bus, name_of(request)
    done = act_on(request, lambda tx: operations.resume(tx, bus, group, by=by), group)
    return done if isinstance(done, Problem) else Changed(changed=done)


def freeze(request: Request) -> FreezeState | Problem:
    name, bus, by = request.path["type"], bus_of(request.patra).bus, name_of(request)
    reason = request.body.reason
    done = act_on(request, lambda tx: operations.freeze(tx, bus, name, by=by, reason=reason), name, reason=reason)
    return _not_there(done) if isinstance(done, Problem) else to_shape(done, FreezeState)


def thaw(request: Request) -> FreezeState | Problem:
    name, bus, by = request.path["type"], bus_of(request.patra).bus, name_of(request)
    done = act_on(request, lambda tx: operations.thaw(tx, bus, name, by=by), name)
    return _not_there(done) if isinstance(done, Problem) else to_shape(done, FreezeState)


def _not_there(refused: Problem) -> Problem:
    """A type that stands in the path and not in the catalogue: the address leads nowhere."""
    return msgspec.structs.replace(refused, status=404) if refused.code == Reason.TYPE_UNKNOWN.value else refused


def stages(request: Request) -> Stages:
    return Stages(stages=[to_shape(one, StageState) for one in request.patra.db.read(store_stages.find)])


def set_stage(request: Request) -> StageState | Problem:
    asked: StageAsked = request.body
    name, bus, by = request.path["type"], bus_of(request.patra).bus, name_of(request)
    to = Stage(asked.stage)
    done = act_on(
        request,
        lambda tx: operations.set_stage(tx, bus, name, to, by=by, tenants=asked.tenants, share=asked.share),
        name,
        stage=asked.stage,
        tenants=asked.tenants,
        share=asked.share,
    )
    return done if isinstance(done, Problem) else to_shape(done, StageState)


def hooks(request: Request) -> Hooks:
    found, states = request.patra.db.read(lambda tx: (groups.webhooks(tx), groups.webhook_states(tx)))
    return Hooks(webhooks=[_hook(h, states[h.name]) for h in found])


def _hook(h: groups.Webhook, state: groups.WebhookState) -> Hook:
    url = redact_url(h.url)
    told: Hook = to_shape(state, Hook, name=h.name, url=url, group=webhook.group(h.name), tenants=list(h.tenants))
    return told


def rotate_hook(request: Request) -> Rotated | Problem:
    name, bus, by = request.path["name"], bus_of(request.patra).bus, name_of(request)
    overlap = request.body.overlap_seconds
    keys = bus_of(request.patra).webhook_keys
    made = request.act(lambda tx: webhook.rotate(tx, bus, name, by=by, overlap=overlap * SECOND, keys=keys), name)
    return Rotated(secret=made) if made else Problem(404, Reason.GROUP_UNKNOWN.value, "There is no such webhook", name)


def add_hook(request: Request) -> Hook | Problem:
    asked: HookAsked = request.body
    wanted: dict[str, VersionRange] = {}
    for event_type, text in asked.types.items():
        if (versions := parse_range(text)) is None:
            return Problem(
                400,
                Reason.VERSION_UNKNOWN.value,
                Reason.VERSION_UNKNOWN.text,
                f"{text!r} is not a range such as `>=1,<2`",
            )
        wanted[event_type] = versions
    engine, by = bus_of(request.patra), name_of(request)
    keys, networks, tenants = engine.webhook_keys, engine.webhook_networks, asked.tenants
    made = act_on(
        request,
        lambda tx: webhook.add(
            tx, engine.bus, asked.name, asked.url, wanted, by=by, tenants=tenants, keys=keys, networks=networks
        ),
        asked.name,
        types=asked.types,
        tenants=asked.tenants,
    )
    if isinstance(made, Problem):
        return made
    return Hook(name=made.name, url=made.url, group=webhook.group(made.name), secret=made.secret, tenants=asked.tenants)


def remove_hook(request: Request) -> Changed | Problem:
    name, bus, by = request.path["name"], bus_of(request.patra).bus, name_of(request)
    gone = request.act(lambda tx: webhook.remove(tx, bus, name, by=by), name)
    return Changed(changed=True) if gone else Problem(404, Reason.GROUP_UNKNOWN.value, "There is no such webhook", name)
