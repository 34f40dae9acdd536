"""A pack and an endpoint go in; one polite request is sent, and what was asked, answered and mapped comes out.

The tool that a pack's author works with: it goes through the same renderer, rate gate, transport, classifier, reader
and mapper as the executor, and writes nothing anywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.ingest.classify import Verdict
from patra.ingest.codes import Operation, Role
from patra.ingest.compiler import LoadedPack, Overrides, compile_spec, offered
from patra.ingest.escaping import Refused
from patra.ingest.fetching import Deferred, fetch
from patra.ingest.line import Line
from patra.ingest.mapping import Flaw
from patra.ingest.problem import Problem
from patra.ingest.reading import Polluted
from patra.ingest.request import At
from patra.ingest.services import Services
from patra.ingest.spec import Leg, Spec
from patra.ingest.works import Origin, work_of
from patra.kernel.clock import format_instant
from patra.kernel.ids import new_id


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What to try."""

    endpoint: str
    params: Mapping[str, Any] = {}
    since: int | None = None
    until: int | None = None
    ids: Sequence[str] = ()
    records: int = 3


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The request with its secrets hidden, the verdict, what the page says, the first records."""

    method: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    body: str | None = None
    status: int | None = None
    verdict: str = ""
    detail: str = ""
    advice: str = ""
    total: int | None = None
    items: int | None = None
    following: str | None = None
    records: list[dict[str, Any]] = []
    begins: str = ""


def tried(loaded: LoadedPack, wanted: Wanted, services: Services) -> Tried | tuple[Problem, ...]:
    """Send one request; the problems where the pack does not compile."""
    now = services.clock.now()
    operation = _operation(loaded, wanted)
    overrides = Overrides(params=wanted.params, sections={"retry": {"maxAttempts": 1}})
    compiled = compile_spec(loaded, wanted.endpoint, operation, overrides)
    spec = compiled.spec
    if spec is None:
        return compiled.problems
    detail = operation is Operation.UPDATE and spec.detail is not None
    leg: Leg = spec.detail if detail and spec.detail is not None else spec
    credential = loaded.pack.credentials.get(leg.auth.credential_ref or "")
    line = Line(spec, leg, credential)
    at = _first(spec, leg, wanted, now)
    shown = line.shown(at)
    if isinstance(shown, Refused):
        return Tried(verdict=str(shown.code), detail=f"{shown.place}: {shown.detail}")
    asked = Tried(
        method=shown.method,
        url=shown.url,
        headers=dict(shown.headers),
        body=None if shown.body is None else shown.body.decode("utf-8", "replace"),
    )
    found = fetch(services, line, at, lambda _: False, task="try", correlation=new_id(), fragile=False)
    if isinstance(found, Deferred):
        return msgspec.structs.replace(asked, verdict=str(found.code), detail=found.detail)
    listed = found.listed
    return msgspec.structs.replace(
        asked,
        status=found.answer.status if found.answer is not None else None,
        verdict=_words(found.verdict),
        detail=found.verdict.detail,
        advice=found.verdict.advice,
        total=listed.total if listed is not None else None,
        items=len(listed.items or []) if listed is not None else None,
        following=(listed.token or listed.url) if listed is not None else None,
        records=[
            _record(line, line.item(item), now) for item in ((listed.items or []) if listed else [])[: wanted.records]
        ],
        begins=found.answer.body[:600].decode("utf-8", "replace") if found.answer is not None else "",
    )


def _operation(loaded: LoadedPack, wanted: Wanted) -> Operation:
    endpoint = loaded.pack.endpoints.get(wanted.endpoint)
    if endpoint is None:
        return Operation.HARVEST
    if wanted.ids or endpoint.role is Role.DETAIL:
        return Operation.UPDATE
    return next(iter(offered(loaded.pack, wanted.endpoint)), Operation.HARVEST)


def _first(spec: Spec, leg: Leg, wanted: Wanted, now: int) -> At:
    """The first page of the newest whole window, or of the one that was asked for."""
    unit = spec.window.unit_us
    until = wanted.until if wanted.until is not None else (now - spec.window.safety_lag_us) // unit * unit
    since = wanted.since if wanted.since is not None else until - spec.window.min_us
    pagination = leg.pagination
    return At(
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


def _record(line: Line, item: Any, now: int) -> dict[str, Any]:
    identity = line.reader.identity(item, dated=bool(line.leg.response.updated_at_path))
    if isinstance(identity, Polluted):
        return {"id": identity.id, "wrong": f"{identity.path}: {identity.detail}"}
    out: dict[str, Any] = {"id": identity.id}
    if identity.updated_at is not None:
        out["updated"] = format_instant(identity.updated_at)
    if identity.deleted:
        return {**out, "deleted": True}
    plan = {"source": line.source, "endpoint": line.endpoint, "operation": line.operation.value}
    fields = line.mapper(item, now, plan)
    if isinstance(fields, Flaw):
        return {**out, "wrong": f"{fields.place}: {fields.detail}"}
    misfit = _misfit(line, fields, identity.id)
    return {**out, **fields} if misfit is None else {**out, **fields, "wrong": f"no work: {misfit}"}


def _misfit(line: Line, fields: dict[str, Any], identifier: str) -> str | None:
    """Why the fields of an output of shape `work` are none: such a record lands, and is left out of `works`."""
    if line.leg.mapping.output.shape != "work":
        return None
    try:
        work_of(fields, Origin(source=line.source, endpoint=line.endpoint, id=identifier))
    except msgspec.ValidationError as error:
        return str(error)
    return None


def _words(verdict: Verdict) -> str:
    level = f" ({verdict.level})" if verdict.level else ""
    rule = f", rule {verdict.rule}" if verdict.rule else ""
    return f"{verdict.action.value}{level}: {verdict.code.text}{rule}"
