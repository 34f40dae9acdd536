"""The snapshot: everything that an executor needs to run a plan, frozen when the plan was made (ch. 3.3.4, 3.9).

`Spec` is what is stored in `ing_plan.expr_proto_snapshot`. It holds no secrets and refers to nothing that can change:
later changes of the registry do not touch it. A two-phase source has a second `Leg`, the detail endpoint; both have the
same form, so a request is rendered and an answer is read by the same code.

    spec = decode_spec(text)      spec.http.method      spec.detail.response.items_path      spec.window.safety_lag_us
"""
# ruff: noqa: RUF012  msgspec gives each struct an empty default of its own

from typing import Annotated, Any

import msgspec

from patra.ingest.packs.sections import (
    Auth,
    Batching,
    Bit,
    Expr,
    Http,
    Limits,
    NamedRule,
    Ordering,
    Output,
    Pagination,
    Planning,
    RateLimit,
    Response,
    Retry,
    TwoPhase,
    Update,
    Window,
)
from patra.ingest.packs.sections.base import doc
from patra.ingest.packs.yaml.removed_fields import without_removed_fields
from patra.ingest.vocabulary.codes import (
    Access,
    CursorType,
    Dimension,
    Direction,
    NamespaceScope,
    Operation,
    ParamLocation,
    Role,
    Verify,
)
from patra.kernel.canonical import fingerprint

SPEC_VERSION = 1


class RequestParam(Bit, frozen=True, kw_only=True):
    """A parameter that is placed by itself, with the rules that its rendered value must pass."""

    name: Annotated[str, doc("Its name: `${params.name}`.", "term")]
    location: Annotated[ParamLocation, doc("Where it is placed.", "QUERY")] = ParamLocation.NONE
    name_as: Annotated[str, doc("Its name there.", "query")]
    required: Annotated[bool, doc("A request without it is refused.", True)] = False
    expr: Annotated[str | None, doc("Computes what is placed.", "(${params.term})")] = None
    pattern: Annotated[str | None, doc("The rendered value must match.", "[a-z]+")] = None
    values: Annotated[list[str], doc("The rendered value must be one of these.", ["a"])] = []
    max_length: Annotated[int, doc("Longest rendered value.", 4000)] = 4000


class Mapping(Bit, frozen=True, kw_only=True):
    """The fields of a request and of an answer."""

    request_params: Annotated[list[RequestParam], doc("Parameters in order.", [])] = []
    output: Annotated[Output, doc("The fields of a record; plain texts have become fields.", {})] = Output()


class CursorSpec(Bit, frozen=True, kw_only=True, omit_defaults=True):
    """Which watermark the plan moves; a CUSTOM namespace gets its key from the plan."""

    # `omit_defaults`: executors of the release before refuse a field that they do not know
    type: Annotated[CursorType, doc("What is counted.", "TIME")]
    scope: Annotated[NamespaceScope, doc("Who shares it.", "EXPR")]
    direction: Annotated[Direction, doc("Which way it moves.", "FORWARD")]
    key: Annotated[str, doc("`cursor_key`.", "updated_at")]
    namespace_key: Annotated[str, doc("`namespace_key`; empty for CUSTOM.", "search:3f…")]
    overlap: Annotated[int, doc("HARVEST by ID: how far below the largest number it begins.", 1000)] = 0


class Leg(Bit, frozen=True, kw_only=True):
    """One endpoint: how it is asked and how its answers are read."""

    endpoint_code: Annotated[str, doc("`endpoint_name`.", "search")]
    role: Annotated[Role, doc("What it gives.", "SEARCH")]
    access: Annotated[Access, doc("Whether a credential is needed.", "PUBLIC")]
    http: Annotated[Http, doc("The request; `baseUrl` is rendered.", {})]
    auth: Annotated[Auth, doc("Authentication; the credential by name.", {})]
    pagination: Annotated[Pagination, doc("How pages are walked.", {})]
    ordering: Annotated[Ordering, doc("The order of the list.", {})]
    response: Annotated[Response, doc("Where things stand in an answer.", {})]
    errors: Annotated[list[NamedRule], doc("Classification rules in the order in which they are asked.", [])]
    expr: Annotated[Expr, doc("What expressions may do; `vars` in order.", {})]
    mapping: Annotated[Mapping, doc("Parameters and output fields.", {})]
    params: Annotated[dict[str, Any], doc("Values of the parameters.", {"term": "cancer"})]
    retry: Annotated[Retry, doc("Second attempts.", {})]
    rate_limit: Annotated[RateLimit, doc("Token bucket and quotas.", {})]
    limits: Annotated[Limits, doc("What the provider allows.", {})]
    batching: Annotated[Batching, doc("Ids in groups.", {})]


class Spec(Leg, frozen=True, kw_only=True):
    """The snapshot of one source, endpoint and operation."""

    spec_version: Annotated[int, doc("Version of this structure.", 1)] = SPEC_VERSION
    provenance_code: Annotated[str, doc("The source.", "pubmed")]
    operation: Annotated[Operation, doc("The operation.", "HARVEST")]
    pack_version: Annotated[str, doc("Version of the pack it was compiled from.", "1.0.0")]
    pack_hash: Annotated[str, doc("Hash of that pack.", "af8f…")]
    hosts: Annotated[list[str], doc("Hosts that may be asked (ruling I8).", ["eutils.ncbi.nlm.nih.gov"])]
    window: Annotated[Window, doc("The window of time.", {})]
    cursor: Annotated[CursorSpec, doc("The watermark.", {})]
    selection_key: Annotated[
        str, doc("Source, endpoint and the parameters that select: what estimates go by.", "a/b:3f…")
    ]
    two_phase: Annotated[TwoPhase, doc("Whether ids come first.", {})]
    detail: Annotated[Leg | None, doc("The second phase, or what UPDATE asks.", None)] = None
    planning: Annotated[Planning, doc("How the plan is cut; `dimension` and `priority` are decided.", {})]
    update: Annotated[Update, doc("Which records are refreshed.", {})]
    degradations: Annotated[list[str], doc("Lesser ways that are taken, as reason codes.", ["i_no_count"])] = []
    record_expr_hash: Annotated[
        str, doc("Hash of what turns an answer into a record; kept with each record (`ing_record.expr_hash`).", "5b…")
    ] = ""
    current_expr_hashes: Annotated[
        list[str], doc("UPDATE: what a record may have in `ing_record.expr_hash` and be up to date.", ["5b…"])
    ] = []
    harvest_cursor: Annotated[
        CursorSpec | None, doc("BACKFILL: the watermark of the harvest, up to which it goes by default.", None)
    ] = None
    record_endpoint: Annotated[
        str, doc("The endpoint under which records are kept; empty where it is the snapshot's own.", "works")
    ] = ""
    expr_proto_hash: Annotated[str, doc("Hash of what renders requests and reads answers.", "9c…")] = ""
    spec_fingerprint: Annotated[str, doc("Hash of the whole snapshot.", "af8f…")] = ""

    @property
    def dimension(self) -> Dimension:
        return self.planning.dimension

    @property
    def by_key(self) -> bool:
        """Whether it harvests by a key that only grows, instead of by time (4.4.3)."""
        return self.operation is Operation.HARVEST and self.cursor.type is CursorType.ID

    @property
    def priority(self) -> int:
        return priority_of(self.planning, self.operation)

    @property
    def kept_under(self) -> str:
        """The endpoint of its records: a DETAIL endpoint refreshes those of the list that it belongs to."""
        return self.record_endpoint or self.endpoint_code

    @property
    def yields(self) -> Leg:
        """The leg whose answers hold the records."""
        detailed = self.two_phase.enabled or self.operation is Operation.UPDATE
        return self.detail if detailed and self.detail is not None else self


_PRIORITY = {Operation.HARVEST: 100, Operation.UPDATE: 200, Operation.BACKFILL: 300}


def priority_of(planning: Planning, operation: Operation) -> int:
    """What a pack or a trigger says, or what the operation has (ruling I1): the smaller runs first."""
    return planning.priority if planning.priority is not None else _PRIORITY[operation]


_HASHES = ("currentExprHashes", "harvestCursor", "recordEndpoint", "recordExprHash", "exprProtoHash", "specFingerprint")
_EXPRESSIVE = (
    "endpointCode",
    "http",
    "auth",
    "pagination",
    "ordering",
    "response",
    "errors",
    "expr",
    "mapping",
    "params",
)


def reading_hash(leg: Leg) -> str:
    """Hash of what turns an answer of this leg into records."""
    records = msgspec.to_builtins(leg)
    return fingerprint([records["response"], records["mapping"]["output"], records["expr"]])


def seal_spec(spec: Spec) -> Spec:
    """The snapshot with its three hashes."""
    tree: dict[str, Any] = {k: v for k, v in msgspec.to_builtins(spec).items() if k not in _HASHES}
    proto = {name: tree[name] for name in (*_EXPRESSIVE, "provenanceCode", "operation", "hosts", "window", "twoPhase")}
    proto["detail"] = tree["detail"] and {name: tree["detail"][name] for name in _EXPRESSIVE}
    return msgspec.structs.replace(
        spec,
        record_expr_hash=reading_hash(spec.yields),
        expr_proto_hash=fingerprint(proto),
        spec_fingerprint=fingerprint(tree),
    )


_decoder = msgspec.json.Decoder(Spec)

NEWER_VERSION = ("Object contains unknown field", "Invalid enum value")
"""How msgspec begins to say that a snapshot or a slice has what this version does not know."""


def of_newer_version(error: Exception) -> bool:
    """Whether what could not be read was written by a newer version of this program."""
    return isinstance(error, msgspec.ValidationError) and str(error).startswith(NEWER_VERSION)


_NEW_IN_PAGINATION = {"emptyPage": None, "verify": Verify.ONCE.value}
"""Not declared, these are left out: executors of the release before refuse the field, or its value."""


def encode_spec(spec: Spec) -> str:
    """The snapshot of a plan; the release before reads it, unless the pack declares what that one does not have."""
    tree: dict[str, Any] = msgspec.to_builtins(spec)
    legs: list[dict[str, Any]] = [tree, tree["detail"]] if spec.detail is not None else [tree]
    for leg in legs:
        said: dict[str, Any] = leg["pagination"]
        leg["pagination"] = {
            name: value
            for name, value in said.items()
            if name not in _NEW_IN_PAGINATION or value != _NEW_IN_PAGINATION[name]
        }
    return msgspec.json.encode(tree).decode()


def decode_spec(text: str | bytes) -> Spec:
    """The snapshot of a plan; one of an older version may hold fields that are gone since."""
    try:
        return _decoder.decode(text)
    except msgspec.ValidationError:
        return msgspec.convert(without_removed_fields(msgspec.json.decode(text, type=dict[str, Any])), Spec)
