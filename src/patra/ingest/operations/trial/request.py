"""Turns what a pack's author wants to try into a compiled endpoint and the place of its first request."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from patra.ingest.extraction.page_moves import PagePosition
from patra.ingest.extraction.pagination import places_before
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.http.request import Position
from patra.ingest.http.upper_bound import upper_bound
from patra.ingest.packs.compiler import LoadedPack, Overrides, compile_spec, offered_operations
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.secret_grants import Grant, destination_of, withhold
from patra.ingest.packs.spec import Leg, Spec
from patra.ingest.vocabulary.codes import Operation, Role


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to try."""

    endpoint: str
    params: Mapping[str, Any] = {}
    since: int | None = None
    until: int | None = None
    ids: Sequence[str] = ()
    records: int = 3
    pages: int = 1
    probe_bounds: bool = False
    """Ask also whether the bounds of a window are inclusive where the pack declares it already."""


class Ready(NamedTuple):
    """What a request is sent with, and where it stands; `details` gives the records where the list has ids only."""

    line: EndpointClient
    at: Position
    spec: Spec
    details: EndpointClient | None = None


def prepare_trial(loaded: LoadedPack, wanted: Wanted, now: int, grants: Sequence[Grant]) -> Ready | tuple[Problem, ...]:
    """The endpoint, compiled for one polite attempt, and its first page; or the problems of the pack."""
    operation = _operation(loaded, wanted)
    overrides = Overrides(params=wanted.params, sections={"retry": {"maxAttempts": 1}})
    compiled = compile_spec(loaded, wanted.endpoint, operation, overrides)
    spec = compiled.spec
    if spec is None:
        return compiled.problems
    by_id = operation is Operation.UPDATE and spec.detail is not None
    leg: Leg = spec.detail if by_id and spec.detail is not None else spec
    two_phase = not by_id and spec.two_phase.enabled and spec.detail is not None
    line, at = _client(loaded, spec, leg, grants), _first(spec, leg, wanted, now)
    return Ready(
        line=line,
        at=replace(at, window_until=upper_bound(spec.window, at, line.masked_request)),
        spec=spec,
        details=_client(loaded, spec, spec.detail, grants) if two_phase and spec.detail is not None else None,
    )


def at_place(at: Position, line: EndpointClient, place: PagePosition) -> Position:
    """The request of the same list at another place."""
    before, total = places_before(line.leg.pagination, place)
    return replace(
        at,
        page_no=place.page,
        page_index=place.index,
        page_size=place.size,
        offset=place.offset,
        token=place.token,
        url=place.url,
        page_from=at.page_from if place.since is None else place.since,
        passed=before,
        total=total,
    )


def _client(loaded: LoadedPack, spec: Spec, leg: Leg, grants: Sequence[Grant]) -> EndpointClient:
    members = [one for name, one in loaded.pack.credentials.items() if leg.auth.credential_ref in {name, one.pool}]
    credential = min(members, key=lambda one: one.priority, default=None)
    if credential is not None:
        credential = withhold(credential, destination_of(spec), grants)
    return EndpointClient(spec, leg, credential)


def _operation(loaded: LoadedPack, wanted: Wanted) -> Operation:
    endpoint = loaded.pack.endpoints.get(wanted.endpoint)
    if endpoint is None:
        return Operation.HARVEST
    if wanted.ids or endpoint.role is Role.DETAIL:
        return Operation.UPDATE
    return next(iter(offered_operations(loaded.pack, wanted.endpoint)), Operation.HARVEST)


def _first(spec: Spec, leg: Leg, wanted: Wanted, now: int) -> Position:
    """The first page of the newest whole window, or of the one that was asked for."""
    unit = spec.window.unit_us
    until = wanted.until if wanted.until is not None else (now - spec.window.safety_lag_us) // unit * unit
    since = wanted.since if wanted.since is not None else until - spec.window.min_us
    pagination = leg.pagination
    return Position(
        source=spec.provenance_code,
        endpoint=leg.endpoint_code,
        operation=spec.operation,
        now=now,
        window_from=since,
        window_to=until,
        page_no=pagination.first_page,
        page_size=pagination.page_size,
        offset=pagination.initial.offset,
        token=pagination.initial.token,
        url=pagination.initial.url,
        page_from=since,
        page_to=until,
        ids=tuple(wanted.ids),
    )
