"""Turns a pack, an endpoint, an operation and what a trigger says into a sealed snapshot or every reason why not.

Merge, check, normalise, seal (ch. 3.3). Nothing is read or written here: the same input gives the same snapshot, byte
for byte.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import msgspec

from patra.ingest.expressions.template import has_expression
from patra.ingest.packs.checks import BUILT_IN, DEFAULT_TYPE, FITS, ITEM_ID, Dictionary, Draft, base_url, check
from patra.ingest.packs.checks.given_params import given_param, given_params
from patra.ingest.packs.checks.windows import by_key, no_list
from patra.ingest.packs.merge import Merged, Origin, Tree, merge
from patra.ingest.packs.problems import Problem, Severity, Source, TreePath, errors, order_problems, unknown_name
from patra.ingest.packs.schema import MAX_JITTER, MAX_LOOK_BACK, Pack, Schedule
from patra.ingest.packs.sections import Field, NamedRule, Output, Param
from patra.ingest.packs.spec import CursorSpec, Leg, RequestParam, Spec, priority_of, reading_hash, seal_spec
from patra.ingest.packs.spec import Mapping as SpecMapping
from patra.ingest.packs.yaml.yaml_document import Document
from patra.ingest.vocabulary.codes import (
    CursorType,
    Dimension,
    MissedTicks,
    NamespaceScope,
    Operation,
    PaginationType,
    Role,
)
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.canonical import fingerprint
from patra.kernel.clock import DAY, parse_duration


class LoadedPack(msgspec.Struct, frozen=True, kw_only=True):
    """A pack that was read without errors: its tree as given, its typed form, its hash, its places in the file."""

    tree: Tree
    pack: Pack
    hash: str
    source: Source = Source()


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger says: values of parameters, and a tree of sections (level 5)."""

    params: Mapping[str, Any] = {}
    sections: Tree = {}


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot, or None with the problems that forbid it; warnings come with a snapshot too."""

    spec: Spec | None
    problems: tuple[Problem, ...]
    origins: Mapping[TreePath, Origin]
    tree: Tree = {}
    """The merged sections as they were given, without the platform's defaults."""

    @property
    def warnings(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity is Severity.WARNING]


def load_pack(document: Document) -> LoadedPack | None:
    """The pack of a document without errors, else None."""
    if errors(document.problems):
        return None
    tree = _without_empty(document.tree)
    return LoadedPack(tree=tree, pack=msgspec.convert(tree, Pack), hash=fingerprint(tree), source=document.source)


def _without_empty(tree: Tree) -> Tree:
    """The tree without mappings that say nothing, which the registry has no row for."""
    out = {
        key: value for key, value in tree.items() if value != {} or key not in {"defaults", "credentials", "schedules"}
    }
    endpoints: Tree = {}
    for name, endpoint in tree["endpoints"].items():
        kept: Tree = dict(endpoint)
        if "output" in kept:
            kept["output"] = {key: value for key, value in kept["output"].items() if key != "fields" or value != {}}
        endpoints[name] = {key: value for key, value in kept.items() if value != {}}
    out["endpoints"] = endpoints
    return out


def check_pack(loaded: LoadedPack, dictionary: Dictionary = BUILT_IN) -> list[Problem]:
    """Every problem of every endpoint and operation that the pack offers, and of its references."""
    pack, found = loaded.pack, list(_references(loaded))
    for name in pack.endpoints:
        for operation in offered_operations(pack, name):
            draft = _draft(loaded, name, operation, Overrides(), complete=False)
            found += check(draft, dictionary)
    return order_problems(found)


def offered_operations(pack: Pack, name: str) -> tuple[Operation, ...]:
    """Those that it names; else HARVEST and, by time, BACKFILL for lists, UPDATE where details are linked."""
    endpoint = pack.endpoints[name]
    if endpoint.supports:
        return tuple(endpoint.supports)
    if endpoint.role is Role.DETAIL:
        return (Operation.UPDATE,)
    if endpoint.role is Role.METRICS:
        return ()
    linked = endpoint.two_phase.linked_endpoint or endpoint.defaults.two_phase.linked_endpoint
    by_time = _cursor_type(pack, name, Operation.BACKFILL) is not CursorType.ID
    return (
        Operation.HARVEST,
        *([Operation.BACKFILL] if by_time else []),
        *([Operation.UPDATE] if linked else []),
    )


def _cursor_type(pack: Pack, name: str, operation: Operation) -> CursorType | None:
    """What the sections say, the nearest to the operation first."""
    endpoint = pack.endpoints[name]
    own = endpoint.operations.get(operation)
    levels = [*([own] if own is not None else []), endpoint, endpoint.defaults, pack.defaults]
    return next((level.cursor.type for level in levels if level.cursor.type is not None), None)


def compile_spec(
    loaded: LoadedPack,
    endpoint: str,
    operation: Operation,
    overrides: Overrides | None = None,
    dictionary: Dictionary = BUILT_IN,
) -> Compiled:
    """Compile one snapshot."""
    given = overrides or Overrides()
    if endpoint not in loaded.pack.endpoints:
        problem = Source().problem(  # what a trigger says stands in no file
            Reason.ENDPOINT_UNKNOWN,
            ("endpoint",),
            f"{loaded.pack.source} has no endpoint {endpoint!r}",
            unknown_name(endpoint, loaded.pack.endpoints),
        )
        return Compiled(spec=None, problems=(problem,), origins={})
    if (no := no_list(loaded.pack, endpoint, operation)) is not None:
        return Compiled(spec=None, problems=(no,), origins={})
    draft = _draft(loaded, endpoint, operation, given, complete=True)
    problems = order_problems([*given_params(draft, given.params), *check(draft, dictionary)])
    if errors(problems):
        return Compiled(spec=None, problems=tuple(problems), origins=draft.merged.origins, tree=draft.merged.tree)
    degradations = sorted({problem.code.value for problem in problems})
    spec = seal_spec(_spec(loaded, draft, degradations))
    if operation is Operation.BACKFILL and Operation.HARVEST in offered_operations(loaded.pack, endpoint):
        forward = _draft(loaded, endpoint, Operation.HARVEST, given, complete=True)
        spec = msgspec.structs.replace(spec, harvest_cursor=_spec(loaded, forward, []).cursor)
    if operation is Operation.UPDATE:
        spec = _of_refresh(loaded, spec)
    return Compiled(spec=spec, problems=tuple(problems), origins=draft.merged.origins, tree=draft.merged.tree)


def _draft(
    loaded: LoadedPack, name: str, operation: Operation, given: Overrides, *, complete: bool, second: bool = False
) -> Draft:
    sections = given.sections if not second else {}
    merged = _with_substitute(merge(loaded.tree, name, operation, sections))
    params: dict[str, Any] = {key: param.default for key, param in merged.sections.params.items()}
    params |= {key: value for key, value in given.params.items() if key in params}
    detail = None
    if not second:
        endpoint = loaded.pack.endpoints[name]
        linked = merged.sections.two_phase.linked_endpoint
        if linked is None and operation is Operation.UPDATE and endpoint.role is Role.DETAIL:
            linked = name
        if linked in loaded.pack.endpoints and (merged.sections.two_phase.enabled or operation is Operation.UPDATE):
            detail = _draft(loaded, linked, operation, given, complete=complete, second=True)
    return Draft(
        pack=loaded.pack,
        name=name,
        operation=operation,
        merged=merged,
        source=loaded.source,
        params=params,
        detail=detail,
        second=second,
        complete=complete,
    )


def _with_substitute(merged: Merged) -> Merged:
    """`window.substituteKey`: where there is no update time, the instant of an output field stands for it (4.4.3)."""
    at = merged.sections
    key = at.window.substitute_key
    field = at.output.fields.get(key) if key is not None else None
    if key is None or field is None or at.response.updated_at_path:
        return merged
    path = field if isinstance(field, str) else field.path
    if path is None or has_expression(path):
        return merged
    formats = at.response.updated_at_format if isinstance(field, str) else field.format
    replace = msgspec.structs.replace
    response = replace(at.response, updated_at_path=path, updated_at_format=formats)
    window = replace(at.window, watermark_key=at.window.watermark_key or key)
    return replace(merged, sections=replace(at, response=response, window=window))


def check_schedule(loaded: LoadedPack, name: str, schedule: Schedule) -> Iterator[Problem]:
    """What is wrong with a schedule of a pack, or with one that an operator adds beside it."""
    pack, source = loaded.pack, loaded.source
    if schedule.endpoint not in pack.endpoints:
        yield source.problem(
            Reason.PACK_BAD_REFERENCE,
            ("schedules", name, "endpoint"),
            f"{pack.source} has no endpoint {schedule.endpoint!r}",
            unknown_name(schedule.endpoint, pack.endpoints),
        )
        return
    if schedule.operation not in offered_operations(pack, schedule.endpoint):
        yield source.problem(
            Reason.OPERATION_UNSUPPORTED,
            ("schedules", name, "operation"),
            f"{pack.source} {schedule.endpoint} does not offer {schedule.operation}",
            f"it offers: {', '.join(offered_operations(pack, schedule.endpoint)) or 'nothing'}",
        )
        return
    draft = _draft(loaded, schedule.endpoint, schedule.operation, Overrides(), complete=False)
    for key, value in schedule.params.items():
        yield from given_param(draft, key, value, source, ("schedules", name, "params", key))
    faults = [*_schedule_faults(schedule)]
    if by_key(draft) and schedule.last is not None:
        faults.append(("last", "a harvest by ID has no window: it goes on from the largest number that was read"))
    if by_key(draft) and schedule.missed is MissedTicks.ALL:
        faults.append(("missed", "a harvest by ID reads all that is new: missed ticks cannot be made up one by one"))
    for field, wrong in faults:
        yield source.problem(Reason.SCHEDULE_INVALID, ("schedules", name, field), wrong)


def _schedule_faults(schedule: Schedule) -> Iterator[tuple[str, str]]:
    """What a schedule lacks, or says without effect: the field and why."""
    if schedule.timezone != "UTC" and schedule.timezone not in available_timezones():
        yield "timezone", f"{schedule.timezone!r} is not a time zone; Europe/Berlin is one"
    for field, text, most in (("jitter", schedule.jitter, MAX_JITTER), ("last", schedule.last, MAX_LOOK_BACK)):
        if text is not None and parse_duration(text) > most:
            yield field, f"{text} is longer than P{most // DAY}D"
    match schedule.operation:
        case Operation.BACKFILL if schedule.last is None:
            yield "last", "a BACKFILL has no watermark to begin at: say how far back it goes, such as last: P30D"
        case Operation.UPDATE if schedule.last is not None:
            yield "last", "UPDATE has no window; update.staleAfter says which records are fetched again"
        case Operation.HARVEST if schedule.reread:
            yield "reread", "a HARVEST reads what is new; use BACKFILL to read a window again"
        case Operation.UPDATE if schedule.reread:
            yield "reread", "UPDATE has no window to read again"
        case _:
            pass


def _references(loaded: LoadedPack) -> Iterator[Problem]:
    """Names in schedules and credentials that refer to nothing."""
    pack, source = loaded.pack, loaded.source
    for name, schedule in pack.schedules.items():
        yield from check_schedule(loaded, name, schedule)
    for name, credential in pack.credentials.items():
        for index, endpoint in enumerate(credential.endpoints):
            if endpoint not in pack.endpoints:
                yield source.problem(
                    Reason.PACK_BAD_REFERENCE,
                    ("credentials", name, "endpoints", index),
                    f"there is no endpoint {endpoint!r}",
                    f"known: {', '.join(pack.endpoints)}",
                )


def _spec(loaded: LoadedPack, draft: Draft, degradations: list[str]) -> Spec:
    at, operation = draft.at, draft.operation
    leg = _leg(draft)
    hosts = list(
        dict.fromkeys([*loaded.pack.hosts, *(_host(one) for one in (leg, _leg(draft.detail) if draft.detail else leg))])
    )
    _, scopes, direction = FITS[operation]
    kind = at.cursor.type or DEFAULT_TYPE[operation]
    scope = at.cursor.scope or (NamespaceScope.EXPR if NamespaceScope.EXPR in scopes else NamespaceScope.CUSTOM)
    selecting = {name: leg.params[name] for name, param in at.params.items() if param.selects}
    selection = fingerprint([draft.name, selecting, at.cursor.revision])[:16]
    namespace = {
        NamespaceScope.EXPR: f"{draft.name}:{selection}",
        NamespaceScope.GLOBAL: f"global:{at.cursor.revision}",
        NamespaceScope.CUSTOM: "",
    }[scope]
    by_id = operation is Operation.UPDATE or kind is CursorType.ID
    key = at.cursor.key or (ITEM_ID if by_id else at.window.watermark_key or ITEM_ID)
    return Spec(
        **{name: getattr(leg, name) for name in leg.__struct_fields__},
        provenance_code=loaded.pack.source,
        operation=operation,
        pack_version=loaded.pack.version,
        pack_hash=loaded.hash,
        hosts=hosts,
        window=at.window,
        cursor=CursorSpec(
            type=kind,
            scope=scope,
            direction=at.cursor.direction or direction,
            key=key,
            namespace_key=namespace,
            overlap=at.cursor.overlap,
        ),
        selection_key=f"{loaded.pack.source}/{draft.name}:{selection}",
        two_phase=at.two_phase,
        detail=_leg(draft.detail) if draft.detail else None,
        planning=msgspec.structs.replace(
            at.planning,
            dimension=_dimension(draft),
            priority=priority_of(at.planning, operation),
        ),
        update=at.update,
        degradations=degradations,
    )


def _of_refresh(loaded: LoadedPack, spec: Spec) -> Spec:
    """Records of a refresh belong to the list that links to the endpoint, and any leg that writes them is current."""
    others = (name for name in loaded.pack.endpoints if name != spec.endpoint_code)
    linking = [name for name in others if _links(loaded, name, spec.endpoint_code)]
    home = linking[0] if spec.role is Role.DETAIL and len(linking) == 1 else ""
    hashes = {spec.record_expr_hash}
    for operation in offered_operations(loaded.pack, home or spec.endpoint_code):
        draft = _draft(loaded, home or spec.endpoint_code, operation, Overrides(), complete=False)
        detailed = draft.at.two_phase.enabled or operation is Operation.UPDATE
        hashes.add(reading_hash(_leg(draft.detail if draft.detail is not None and detailed else draft)))
    return msgspec.structs.replace(spec, record_endpoint=home, current_expr_hashes=sorted(hashes))


def _links(loaded: LoadedPack, name: str, detail: str) -> bool:
    return merge(loaded.tree, name, Operation.UPDATE, {}).sections.two_phase.linked_endpoint == detail


def _dimension(draft: Draft) -> Dimension:
    """Where the provider cannot filter by time, every window would read the whole list: it is cut by pages (8.2.1)."""
    if draft.operation is Operation.UPDATE or draft.at.cursor.type is CursorType.ID:
        return Dimension.ID
    if draft.at.planning.dimension is not Dimension.AUTO:
        return draft.at.planning.dimension
    whole = draft.operation is Operation.HARVEST and not draft.at.window.supports_updated_since
    by_time = draft.at.pagination.type is PaginationType.TIME
    return Dimension.PAGE if whole and not by_time else Dimension.TIME


def _leg(draft: Draft) -> Leg:
    at = draft.at
    return Leg(
        endpoint_code=draft.name,
        role=draft.endpoint.role,
        access=draft.endpoint.access,
        http=msgspec.structs.replace(at.http, base_url=(base_url(draft) or "").rstrip("/")),
        auth=at.auth,
        pagination=at.pagination,
        ordering=at.ordering,
        response=at.response,
        errors=[NamedRule(**msgspec.structs.asdict(at.errors[name]), name=name) for name in draft.merged.rules],
        expr=at.expr,
        mapping=SpecMapping(
            request_params=[_request_param(name, param) for name, param in at.params.items()],
            output=msgspec.structs.replace(at.output, fields=_fields(at.output)),
        ),
        params=dict(draft.params),
        retry=at.retry,
        rate_limit=at.rate_limit.for_params(draft.params),
        limits=at.limits,
        batching=at.batching,
    )


def _request_param(name: str, param: Param) -> RequestParam:
    return RequestParam(
        name=name,
        location=param.location,
        name_as=param.name_as or name,
        required=param.required,
        expr=param.expr,
        pattern=param.pattern,
        values=param.values,
        max_length=param.max_length,
    )


def _fields(output: Output | Field) -> dict[str, Field | str]:
    """Plain texts become fields, at every depth."""
    out: dict[str, Field | str] = {}
    for name, field in output.fields.items():
        if isinstance(field, str):
            out[name] = Field(expr=field) if has_expression(field) else Field(path=field)
        else:
            out[name] = msgspec.structs.replace(field, fields=_fields(field))
    return out


def _host(leg: Leg) -> str:
    return urlsplit(leg.http.base_url).netloc.lower()
