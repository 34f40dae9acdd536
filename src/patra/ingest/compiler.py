"""A pack, an endpoint, an operation and what a trigger says go in; a sealed snapshot or every reason why not comes out.

Merge, check, normalise, seal (ch. 3.3). Nothing is read or written here: the same input gives the same snapshot, byte
for byte.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from patra.ingest.bits import Field, Output, Param
from patra.ingest.checks import BUILT_IN, FITS, Dictionary, Draft, base_url, check
from patra.ingest.codes import Dimension, NamespaceScope, Operation, Role
from patra.ingest.document import Document
from patra.ingest.merge import Origin, Tree, merge
from patra.ingest.pack import Pack
from patra.ingest.problem import Problem, Severity, Source, TreePath, errors, ordered
from patra.ingest.reasons import R
from patra.ingest.spec import PRIORITY, CursorSpec, Leg, RequestParam, Spec, sealed
from patra.ingest.spec import Mapping as SpecMapping
from patra.ingest.template import has_expression
from patra.kernel.canonical import fingerprint
from patra.kernel.pattern import pattern


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
        for operation in offered(pack, name):
            draft = _draft(loaded, name, operation, Overrides(), complete=False)
            found += check(draft, dictionary)
    return ordered(found)


def offered(pack: Pack, name: str) -> tuple[Operation, ...]:
    """Those that it names; else HARVEST and BACKFILL for lists, UPDATE where details are linked."""
    endpoint = pack.endpoints[name]
    if endpoint.supports:
        return tuple(endpoint.supports)
    if endpoint.role is Role.DETAIL:
        return (Operation.UPDATE,)
    if endpoint.role is Role.METRICS:
        return ()
    linked = endpoint.two_phase.linked_endpoint or endpoint.defaults.two_phase.linked_endpoint
    return (Operation.HARVEST, Operation.BACKFILL, *([Operation.UPDATE] if linked else []))


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
        near = difflib.get_close_matches(endpoint, loaded.pack.endpoints, 1)
        problem = loaded.source.problem(
            R.ENDPOINT_UNKNOWN,
            ("endpoints",),
            f"{loaded.pack.source} has no endpoint {endpoint!r}",
            f"did you mean {near[0]}?" if near else f"known: {', '.join(loaded.pack.endpoints)}",
        )
        return Compiled(spec=None, problems=(problem,), origins={})
    draft = _draft(loaded, endpoint, operation, given, complete=True)
    problems = ordered([*_params(draft, given), *check(draft, dictionary)])
    if errors(problems):
        return Compiled(spec=None, problems=tuple(problems), origins=draft.merged.origins, tree=draft.merged.tree)
    degradations = sorted({problem.code.value for problem in problems})
    spec = sealed(_spec(loaded, draft, degradations))
    return Compiled(spec=spec, problems=tuple(problems), origins=draft.merged.origins, tree=draft.merged.tree)


def _draft(
    loaded: LoadedPack, name: str, operation: Operation, given: Overrides, *, complete: bool, second: bool = False
) -> Draft:
    sections = given.sections if not second else {}
    merged = merge(loaded.tree, name, operation, sections)
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


def _references(loaded: LoadedPack) -> Iterator[Problem]:
    """Names in schedules and credentials that refer to nothing."""
    pack, source = loaded.pack, loaded.source
    for name, schedule in pack.schedules.items():
        if schedule.endpoint not in pack.endpoints:
            yield source.problem(
                R.PACK_BAD_REFERENCE,
                ("schedules", name, "endpoint"),
                f"there is no endpoint {schedule.endpoint!r}",
                f"known: {', '.join(pack.endpoints)}",
            )
        elif schedule.operation not in offered(pack, schedule.endpoint):
            yield source.problem(
                R.OPERATION_UNSUPPORTED,
                ("schedules", name, "operation"),
                f"{schedule.endpoint} does not offer {schedule.operation}",
            )
        else:
            draft = _draft(loaded, schedule.endpoint, schedule.operation, Overrides(), complete=False)
            for key, value in schedule.params.items():
                yield from _param(draft, key, value, ("schedules", name, "params", key))
    for name, credential in pack.credentials.items():
        for index, endpoint in enumerate(credential.endpoints):
            if endpoint not in pack.endpoints:
                yield source.problem(
                    R.PACK_BAD_REFERENCE,
                    ("credentials", name, "endpoints", index),
                    f"there is no endpoint {endpoint!r}",
                    f"known: {', '.join(pack.endpoints)}",
                )


def _params(draft: Draft, given: Overrides) -> Iterator[Problem]:
    known = {**draft.at.params, **(draft.detail.at.params if draft.detail else {})}
    for name, value in given.params.items():
        yield from _param(draft, name, value, ("trigger", "params", name))
    for name, param in known.items():
        if param.required and given.params.get(name, param.default) is None:
            yield draft.error(
                R.PARAM_INVALID, ("params", name), f"the parameter {name!r} needs a value", f"--param {name}=…"
            )


def _param(draft: Draft, name: str, value: Any, path: TreePath) -> Iterator[Problem]:
    known: dict[str, Param] = {**draft.at.params, **(draft.detail.at.params if draft.detail else {})}
    param = known.get(name)
    if param is None:
        near = difflib.get_close_matches(name, known, 1)
        yield draft.source.problem(
            R.PARAM_INVALID,
            path,
            f"there is no parameter {name!r}",
            f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}",
        )
        return
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    for text in (str(item) for item in items):
        if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
            yield draft.source.problem(R.PARAM_INVALID, path, f"{name} holds a character that no text can hold")
        elif len(text) > param.max_length:
            yield draft.source.problem(R.PARAM_INVALID, path, f"{name} is longer than {param.max_length} characters")
        elif param.values and text not in param.values:
            yield draft.source.problem(
                R.PARAM_INVALID, path, f"{name} cannot be {text!r}", f"one of {', '.join(param.values)}"
            )
        elif param.pattern and param.expr is None and not pattern(param.pattern).matches(text):
            yield draft.source.problem(R.PARAM_INVALID, path, f"{name} {text!r} does not match {param.pattern}")


def _spec(loaded: LoadedPack, draft: Draft, degradations: list[str]) -> Spec:
    at, operation = draft.at, draft.operation
    leg = _leg(draft)
    hosts = list(
        dict.fromkeys([*loaded.pack.hosts, *(_host(one) for one in (leg, _leg(draft.detail) if draft.detail else leg))])
    )
    types, scopes, direction = FITS[operation]
    scope = at.cursor.scope or (NamespaceScope.EXPR if NamespaceScope.EXPR in scopes else NamespaceScope.CUSTOM)
    selecting = {name: leg.params[name] for name, param in at.params.items() if param.selects}
    selection = fingerprint([draft.name, selecting, at.cursor.revision])[:16]
    namespace = {
        NamespaceScope.EXPR: f"{draft.name}:{selection}",
        NamespaceScope.GLOBAL: f"global:{at.cursor.revision}",
        NamespaceScope.CUSTOM: "",
    }[scope]
    key = at.cursor.key or at.window.watermark_key or "item_id"
    if operation is Operation.UPDATE:
        key = at.cursor.key or "item_id"
    return Spec(
        **{name: getattr(leg, name) for name in leg.__struct_fields__},
        provenance_code=loaded.pack.source,
        operation=operation,
        pack_version=loaded.pack.version,
        pack_hash=loaded.hash,
        hosts=hosts,
        window=at.window,
        cursor=CursorSpec(
            type=at.cursor.type or min(types),
            scope=scope,
            direction=at.cursor.direction or direction,
            key=key,
            namespace_key=namespace,
        ),
        selection_key=f"{loaded.pack.source}/{draft.name}:{selection}",
        two_phase=at.two_phase,
        detail=_leg(draft.detail) if draft.detail else None,
        planning=msgspec.structs.replace(
            at.planning,
            dimension=_dimension(draft),
            priority=at.planning.priority if at.planning.priority is not None else PRIORITY[operation],
        ),
        update=at.update,
        degradations=degradations,
    )


def _dimension(draft: Draft) -> Dimension:
    if draft.operation is Operation.UPDATE:
        return Dimension.ID
    return Dimension.TIME if draft.at.planning.dimension is Dimension.AUTO else draft.at.planning.dimension


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
        errors=[msgspec.structs.replace(at.errors[name], name=name) for name in draft.merged.rules],
        expr=at.expr,
        mapping=SpecMapping(
            request_params=[_request_param(name, param) for name, param in at.params.items()],
            output=msgspec.structs.replace(at.output, fields=_fields(at.output)),
        ),
        params=dict(draft.params),
        retry=at.retry,
        rate_limit=at.rate_limit,
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
