"""An operator's word goes in over HTTP; the act, its audit row, and an answer come out (C§6, B5)."""

from collections.abc import Callable
from typing import Any

import msgspec

from patra.app.bus import bus_of
from patra.bus import operations, webhook
from patra.bus.deadletter import Filter
from patra.bus.envelope import Refused
from patra.bus.reasons import R
from patra.bus.store import groups
from patra.bus.versions import VersionRange, parse_range
from patra.kernel.db import Tx
from patra.kernel.redact import redact_url
from patra.web.api.bus.shapes import (
    Changed,
    DiscardAsked,
    FreezeState,
    Hook,
    HookAsked,
    Hooks,
    LetterAnswer,
    ReplayAsked,
    answer,
    problem,
    shown,
)
from patra.web.auth import LOCAL
from patra.web.endpoint import Request
from patra.web.problem import Problem


def _by(request: Request) -> str:
    return (request.actor or LOCAL).name


def _act(request: Request, work: Callable[[Tx], Any], subject: str, **detail: Any) -> Any:
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
    bus, by = bus_of(request.patra).bus, _by(request)

    def work(tx: Tx) -> operations.Done | Refused:
        if asked.event_ids is not None:
            return operations.replay(tx, bus, asked.group, asked.event_ids, by=by, confirm=asked.confirm)
        wanted = Filter(group=asked.group, event_type=asked.type or None, error_code=asked.error_code or None)
        return operations.replay_found(tx, bus, wanted, by=by, confirm=asked.confirm, limit=asked.limit)

    asked_for = {"event_ids": asked.event_ids, "type": asked.type, "error_code": asked.error_code}
    return _done(_act(request, work, asked.group, **asked_for))


def discard(request: Request) -> LetterAnswer | Problem:
    asked: DiscardAsked = request.body
    bus, by = bus_of(request.patra).bus, _by(request)

    def work(tx: Tx) -> operations.Done | Refused:
        return operations.discard(tx, bus, asked.group, asked.event_ids, by=by, reason=asked.reason)

    return _done(_act(request, work, asked.group, event_ids=asked.event_ids, reason=asked.reason))


def _done(done: operations.Done | Problem) -> LetterAnswer | Problem:
    if isinstance(done, Problem):
        return done
    return LetterAnswer(letters=done.letters, refused={i: answer(refused) for i, refused in done.refused.items()})


def pause(request: Request) -> Changed | Problem:
    group, bus, by = request.path["group"], bus_of(request.patra).bus, _by(request)
    done = _act(request, lambda tx: operations.pause(tx, bus, group, by=by), group)
    return done if isinstance(done, Problem) else Changed(changed=done)


def resume(request: Request) -> Changed | Problem:
    group, bus, by = request.path["group"], bus_of(request.patra).bus, _by(request)
    done = _act(request, lambda tx: operations.resume(tx, bus, group, by=by), group)
    return done if isinstance(done, Problem) else Changed(changed=done)


def freeze(request: Request) -> FreezeState | Problem:
    name, bus, by = request.path["type"], bus_of(request.patra).bus, _by(request)
    reason = request.body.reason
    done = _act(request, lambda tx: operations.freeze(tx, bus, name, by=by, reason=reason), name, reason=reason)
    return _not_there(done) if isinstance(done, Problem) else shown(done, FreezeState)


def thaw(request: Request) -> FreezeState | Problem:
    name, bus, by = request.path["type"], bus_of(request.patra).bus, _by(request)
    done = _act(request, lambda tx: operations.thaw(tx, bus, name, by=by), name)
    return _not_there(done) if isinstance(done, Problem) else shown(done, FreezeState)


def _not_there(refused: Problem) -> Problem:
    """A type that stands in the path and not in the catalogue: the address leads nowhere."""
    return msgspec.structs.replace(refused, status=404) if refused.code == R.TYPE_UNKNOWN.value else refused


def hooks(request: Request) -> Hooks:
    found = request.patra.db.read(groups.webhooks)
    return Hooks(webhooks=[Hook(name=h.name, url=redact_url(h.url), group=webhook.group(h.name)) for h in found])


def add_hook(request: Request) -> Hook | Problem:
    asked: HookAsked = request.body
    wanted: dict[str, VersionRange] = {}
    for event_type, text in asked.types.items():
        if (versions := parse_range(text)) is None:
            return Problem(
                400, R.VERSION_UNKNOWN.value, R.VERSION_UNKNOWN.text, f"{text!r} is no range such as `>=1,<2`"
            )
        wanted[event_type] = versions
    bus, by = bus_of(request.patra).bus, _by(request)
    made = _act(
        request, lambda tx: webhook.add(tx, bus, asked.name, asked.url, wanted, by=by), asked.name, types=asked.types
    )
    if isinstance(made, Problem):
        return made
    return Hook(name=made.name, url=made.url, group=webhook.group(made.name), secret=made.secret)


def remove_hook(request: Request) -> Changed | Problem:
    name, bus, by = request.path["name"], bus_of(request.patra).bus, _by(request)
    gone = request.act(lambda tx: webhook.remove(tx, bus, name, by=by), name)
    return Changed(changed=True) if gone else Problem(404, R.GROUP_UNKNOWN.value, "There is no such webhook", name)
