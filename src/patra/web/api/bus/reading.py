"""Turns questions about groups, dead letters, refusals and contracts into answers."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

import patra
from patra.app.components.bus import bus_of
from patra.app.wiring import Patra
from patra.bus import asyncapi as asyncapi_pages
from patra.bus import operations
from patra.bus.catalogue.catalogue import Catalogue
from patra.bus.catalogue.reasons import Reason
from patra.bus.catalogue.registered_types import shown_types
from patra.bus.consuming.dead_letter import DeadLetter, DeadLetterState, Filter, letter_id, violations
from patra.bus.store import dead_letters, events, groups
from patra.kernel.clock import parse_instant
from patra.kernel.safety.redact import redact, redact_text
from patra.web.api.bus.shapes import (
    FreezeState,
    Group,
    Groups,
    Health,
    LetterDetail,
    LetterFilter,
    LetterQuery,
    Letters,
    Refusal,
    RefusalQuery,
    Refusals,
    Types,
    TypeSummary,
    instants,
    mask_fields,
    to_shape,
)
from patra.web.endpoint import Reply, Request
from patra.web.problem import Problem


def types(request: Request) -> Types:
    return Types(
        types=[
            TypeSummary(
                type=name,
                title=kind.title,
                producer=kind.producer,
                consumers=[c.group for c in kind.consumers],
                versions={str(c.version): c.status.value for c in kind.contracts.values()},
                ordered=kind.ordering is not None,
            )
            for name, kind in sorted(_types_of_store(request).types.items())
        ]
    )


def _types_of_store(request: Request) -> Catalogue:
    bus = bus_of(request.patra).bus
    return shown_types(bus.catalogue, request.patra.db.read(bus.registered_elsewhere))


def asyncapi(request: Request) -> Reply:
    return Reply(asyncapi_pages.asyncapi(_types_of_store(request), patra.__version__))


def one_type(request: Request) -> bytes | Problem:
    kind = _types_of_store(request).types.get(request.path["type"])
    if kind is None:
        return Problem(404, Reason.TYPE_UNKNOWN.value, Reason.TYPE_UNKNOWN.text, request.path["type"])
    return asyncapi_pages.page(kind).encode()


def all_groups(request: Request) -> Groups:
    bus = bus_of(request.patra).bus
    found, absent = request.patra.db.read(lambda tx: (groups.totals(tx), operations.absent_consumers(tx, bus)))
    return Groups(groups=[to_shape(g, Group) for g in found], absent=absent)


def health(request: Request) -> Health:
    state, types = bus_of(request.patra).health(), _types_of_store(request).types
    limits = request.patra.db.read(lambda tx: operations.freezes_at(tx, types, state.dead_letters))
    return Health(
        frozen=[to_shape(f, FreezeState) for f in state.frozen],
        dead_letters=state.dead_letters,
        freezes_at=limits,
        troubles=[redact_text(text) for text in state.troubles],
    )


def refusals(request: Request) -> Refusals:
    query: RefusalQuery = request.query
    found = request.patra.db.read(
        lambda tx: events.refusals(
            tx, limit=query.limit, code=query.code, before=query.before, tenant_id=query.tenant_id
        )
    )
    following = found[-1].last_at if len(found) >= query.limit else None
    return Refusals(refusals=[to_shape(row, Refusal) for row in found], next=following)


def bad_query(query: LetterFilter) -> Problem | None:
    wrong = next(
        (name for name in ("since", "until") if (at := getattr(query, name)) and parse_instant(at) is None), ""
    )
    if wrong:
        return Problem(400, "instant_invalid", f"{wrong} is not an RFC 3339 instant with an offset")
    since, until = parse_instant(query.since), parse_instant(query.until)
    if since is not None and until is not None and since >= until:
        return Problem(400, "span_invalid", "The span ends before it begins")
    if query.state in {*DeadLetterState, "all"}:
        return None
    return Problem(
        400, "query_invalid", "A query parameter is wrong", "state is open, replaying, replayed, discarded or all"
    )


def letter_filter(query: LetterFilter) -> Filter:
    return Filter(
        group=query.group or None,
        event_type=query.type or None,
        event_id=query.event_id or None,
        error_code=query.error_code or None,
        trace_id=query.trace_id or None,
        tenant_id=query.tenant_id or None,
        error_shape=query.error_shape or None,
        state=None if query.state == "all" else DeadLetterState(query.state),
        failed_from=parse_instant(query.since),
        failed_to=parse_instant(query.until),
    )


def letters(request: Request) -> Letters | Problem:
    query: LetterQuery = request.query
    if problem := bad_query(query):
        return problem
    wanted = letter_filter(query)
    found = request.patra.db.read(
        lambda tx: operations.find_letters(tx, wanted, limit=query.limit, before=query.before or None)
    )
    return Letters(
        dead_letters=[_letter_fields(one) for one in found],
        next=found[-1].letter_id if len(found) == query.limit else None,
    )


def tenant_of_letter(ground: Patra, path: Mapping[str, str]) -> str | None:
    """Whose event a dead letter holds."""
    found = ground.db.read(lambda tx: dead_letters.by_id(tx, [letter_id(path["group"], path["event_id"])]))
    return found[0].letter.tenant_id if found else None


def letter(request: Request) -> LetterDetail | Problem:
    group, event_id = request.path["group"], request.path["event_id"]
    wanted = Filter(group=group, event_id=event_id, state=None)
    found = request.patra.db.read(lambda tx: operations.find_letters(tx, wanted, limit=1))
    if not found:
        return Problem(404, Reason.LETTER_UNKNOWN.value, Reason.LETTER_UNKNOWN.text, f"{group}/{event_id}")
    wrong = violations(_types_of_store(request), found[0])
    return LetterDetail(
        dead_letter=_letter_fields(found[0]), violations=[replace(one, detail=redact_text(one.detail)) for one in wrong]
    )


def _letter_fields(one: DeadLetter) -> dict[str, Any]:
    """C§6's record with the envelope, both without secrets and personal data. What is replayed is the event itself."""
    envelope = msgspec.json.decode(one.envelope)
    shape = mask_fields(cast("dict[str, Any]", envelope)) if isinstance(envelope, dict) else redact(envelope)
    return {**mask_fields(instants(msgspec.to_builtins(one))), "envelope": shape}
