"""Questions about events, groups, dead letters and contracts go in; answers come out."""

from typing import Any

import msgspec

import patra
from patra.app.bus import bus_of
from patra.bus import operations, pages
from patra.bus.cloudevents import structured
from patra.bus.deadletter import DeadLetter, Filter, L, violations
from patra.bus.envelope import decode_trusted
from patra.bus.reasons import R
from patra.bus.store import events, groups
from patra.bus.timeline import timeline
from patra.kernel.db import Tx
from patra.web.api.bus.shapes import (
    FreezeState,
    Group,
    Groups,
    Happened,
    Health,
    LetterDetail,
    LetterQuery,
    Letters,
    Refusal,
    RefusalQuery,
    Refusals,
    Timeline,
    Types,
    TypeSummary,
    instants,
    shown,
)
from patra.web.endpoint import Reply, Request
from patra.web.problem import Problem


def events_by_key(request: Request) -> Any:
    key = request.path["key"]

    def look(tx: Tx) -> list[events.Stored]:
        return events.by_id(tx, key) or events.by_trace(tx, key) or events.by_correlation(tx, key)

    found = request.patra.db.read(look)
    return Reply([structured(decode_trusted(row.body)) for row in found if row.body is not None])


def timeline_of(request: Request) -> Timeline:
    return Timeline(
        entries=[shown(e, Happened) for e in request.patra.db.read(lambda tx: timeline(tx, request.path["key"]))]
    )


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
            for name, kind in sorted(bus_of(request.patra).bus.catalogue.types.items())
        ]
    )


def asyncapi(request: Request) -> Reply:
    return Reply(pages.asyncapi(bus_of(request.patra).bus.catalogue, patra.__version__))


def one_type(request: Request) -> bytes | Problem:
    kind = bus_of(request.patra).bus.catalogue.types.get(request.path["type"])
    if kind is None:
        return Problem(404, R.TYPE_UNKNOWN.value, R.TYPE_UNKNOWN.text, request.path["type"])
    return pages.page(kind).encode()


def all_groups(request: Request) -> Groups:
    return Groups(groups=[shown(g, Group) for g in request.patra.db.read(groups.totals)])


def health(request: Request) -> Health:
    state = bus_of(request.patra).health()
    return Health(
        frozen=[shown(f, FreezeState) for f in state.frozen], dead_letters=state.dead_letters, troubles=state.troubles
    )


def refusals(request: Request) -> Refusals:
    query: RefusalQuery = request.query
    found = request.patra.db.read(lambda tx: events.refusals(tx, limit=query.limit, code=query.code))
    return Refusals(refusals=[shown(row, Refusal) for row in found])


def letters(request: Request) -> Letters | Problem:
    query: LetterQuery = request.query
    if query.state not in {*L, "all"}:
        return Problem(
            400, "query_invalid", "A query parameter is wrong", "state is open, replaying, replayed, discarded or all"
        )
    wanted = Filter(
        group=query.group or None,
        event_type=query.type or None,
        event_id=query.event_id or None,
        error_code=query.error_code or None,
        trace_id=query.trace_id or None,
        tenant_id=query.tenant_id or None,
        state=None if query.state == "all" else L(query.state),
    )
    found = request.patra.db.read(
        lambda tx: operations.find_letters(tx, wanted, limit=query.limit, before=query.before or None)
    )
    return Letters(
        dead_letters=[_shown(one) for one in found],
        next=found[-1].letter_id if len(found) == query.limit else None,
    )


def letter(request: Request) -> LetterDetail | Problem:
    group, event_id = request.path["group"], request.path["event_id"]
    wanted = Filter(group=group, event_id=event_id, state=None)
    found = request.patra.db.read(lambda tx: operations.find_letters(tx, wanted, limit=1))
    if not found:
        return Problem(404, R.LETTER_UNKNOWN.value, R.LETTER_UNKNOWN.text, f"{group}/{event_id}")
    return LetterDetail(
        dead_letter=_shown(found[0]), violations=violations(bus_of(request.patra).bus.catalogue, found[0])
    )


def _shown(one: DeadLetter) -> dict[str, Any]:
    """C§6's record, the envelope as JSON."""
    return {**instants(msgspec.to_builtins(one)), "envelope": msgspec.Raw(one.envelope.encode())}
