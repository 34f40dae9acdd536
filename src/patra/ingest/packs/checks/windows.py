"""Window, watermark, cursor and operation (ch. 3.3.3, 4.4.3, 4.15, 4.17 no. 3 and 8, 6)."""

from collections.abc import Iterator

from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem, Source, unknown_name
from patra.ingest.packs.schema import Pack
from patra.ingest.vocabulary.codes import (
    CursorType,
    Dimension,
    Direction,
    NamespaceScope,
    Operation,
    PaginationType,
    Role,
)
from patra.ingest.vocabulary.reasons import Reason

ITEM_ID = "item_id"
"""What the record's own id is called as a cursor."""

FITS: dict[Operation, tuple[frozenset[CursorType], frozenset[NamespaceScope], Direction]] = {
    Operation.HARVEST: (
        frozenset({CursorType.TIME, CursorType.ID}),
        frozenset({NamespaceScope.EXPR, NamespaceScope.GLOBAL}),
        Direction.FORWARD,
    ),
    Operation.BACKFILL: (frozenset({CursorType.TIME}), frozenset({NamespaceScope.CUSTOM}), Direction.BACKFILL),
    Operation.UPDATE: (
        frozenset({CursorType.ID, CursorType.TIME}),
        frozenset({NamespaceScope.CUSTOM}),
        Direction.FORWARD,
    ),
}
"""Cursor types, namespaces and direction that each operation may have (ch. 6.4)."""

DEFAULT_TYPE = {
    Operation.HARVEST: CursorType.TIME,
    Operation.BACKFILL: CursorType.TIME,
    Operation.UPDATE: CursorType.ID,
}


NO_BACKFILL_BY_KEY = (
    "a backfill reads windows of time (8.2.2): say operations.BACKFILL.cursor.type: TIME where the provider filters by "
    "time; otherwise leave BACKFILL out of supports, and raise cursor.revision to read every number again"
)


def by_key(draft: Draft) -> bool:
    """Whether a harvest goes by a key that only grows, an id or another number, instead of by time (4.4.3)."""
    return draft.operation is Operation.HARVEST and draft.at.cursor.type is CursorType.ID


def check_window(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    backfill_by_key = draft.operation is Operation.BACKFILL and draft.at.cursor.type is CursorType.ID
    if not draft.lists or backfill_by_key:  # which is refused as a whole
        return
    if by_key(draft):
        yield from _growing_key(draft, reads)
        return
    window = draft.at.window
    unit = window.unit_us
    if window.max_us < window.min_us:
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("window", "maxWindow"),
            f"maxWindow {window.max_window} is below minWindow {window.min_window}",
        )
    for name, width in (("minWindow", window.min_us), ("maxWindow", window.max_us)):
        if width < unit or width % unit:
            yield draft.error(
                Reason.WINDOW_INVALID,
                ("window", name),
                f"a width must be a multiple of the alignment ({window.align})",
                "use whole days for align: day, whole hours for align: hour",
            )
    yield from _watermark(draft)
    yield from _filter(draft, reads)
    yield from _key_bounds(draft, reads)


def _growing_key(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    """What a harvest by a growing key needs: a key that grows, and a way not to read the whole list each time."""
    ordering, cursor = draft.at.ordering, draft.at.cursor
    if not (ordering.stable and ordering.monotonic):
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("cursor", "type"),
            "a harvest by a key needs one that only grows, in an order that does not change",
            "say ordering.stable and ordering.monotonic if it does; otherwise harvest by time",
        )
    falling = ordering.order_by.split() == [cursor.key or ITEM_ID, "desc"]
    if "key.from" not in reads and not falling:
        yield draft.error(
            Reason.WINDOW_UNSUPPORTED,
            ("cursor", "type"),
            "nothing in the request reads key.from, and the list does not come with the largest key first: every "
            "harvest would read all of it",
            f"put ${{key.from}} into the query, or say ordering.orderBy: {cursor.key or ITEM_ID} desc",
        )
    if draft.at.pagination.type is PaginationType.TIME:
        yield draft.error(
            Reason.WINDOW_INVALID, ("cursor", "type"), "pages by time are walked by a harvest by time", "type: TIME"
        )
    if cursor.key not in {None, "", ITEM_ID, *draft.at.output.fields}:
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("cursor", "key"),
            f"{cursor.key!r} is not an output field: there is no number to go by",
            f"known: {', '.join([ITEM_ID, *draft.at.output.fields])}; without this line it is the record's id",
        )
    if draft.at.two_phase.enabled and cursor.key in draft.at.output.fields:
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("cursor", "key"),
            "the list gives ids only: the key can be nothing but the id",
            "remove this line",
        )


def _key_bounds(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    keys = draft.at.planning.key_bounds
    if keys is None:
        return
    if keys.first >= keys.last:
        yield draft.error(
            Reason.WINDOW_INVALID, ("planning", "keyBounds"), f"keys from {keys.first} to {keys.last} are not a range"
        )
    if not {"key.from", "key.to"} <= reads:
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("planning", "keyBounds"),
            "the request does not read key.from and key.to: every range would read everything",
            "put ${key.from} and ${key.to} into the query where key.from is not null",
        )


def _watermark(draft: Draft) -> Iterator[Problem]:
    window, ordering = draft.at.window, draft.at.ordering
    if not window.watermark_key:
        yield draft.error(Reason.WINDOW_INVALID, ("window", "watermarkKey"), "watermarkKey is missing", "updated_at")
    if window.substitute_key is not None and not ordering.monotonic:
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("window", "substituteKey"),
            "a substitute for the update time must only grow",
            "say ordering.monotonic: true if it does; otherwise only UPDATE can read this source",
        )
    elif window.substitute_key is not None and draft.merged.tree.get("response", {}).get("updatedAtPath"):
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("window", "substituteKey"),
            "there is an update time (response.updatedAtPath): nothing stands for it",
            "remove this line",
        )
    elif window.substitute_key is not None and not draft.at.response.updated_at_path:
        yield draft.error(
            Reason.WINDOW_INVALID,
            ("window", "substituteKey"),
            f"{window.substitute_key!r} is not an output field with a path",
            f"known: {', '.join(draft.at.output.fields) or 'none'}",
        )


def _filter(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    window, ordering = draft.at.window, draft.at.ordering
    pages = draft.at.planning.dimension is Dimension.PAGE
    if window.supports_updated_since:
        driven = {"window.from", "page.from"} if draft.at.pagination.type is PaginationType.TIME else {"window.from"}
        if not pages and not reads & driven:
            yield draft.error(
                Reason.WINDOW_UNSUPPORTED,
                ("window", "supportsUpdatedSince"),
                "nothing in the request reads window.from: every slice would read everything",
                "put ${window.from} and ${window.until} into the query",
            )
        return
    if not (window.client_filter and ordering.stable and ordering.monotonic):
        yield draft.error(
            Reason.WINDOW_UNSUPPORTED,
            ("window", "supportsUpdatedSince"),
            "the provider does not filter by update time: the list needs a stable, monotonic order and a filter here",
            "say window.clientFilter, ordering.stable and ordering.monotonic, or use UPDATE",
        )
        return
    told = bool(draft.at.response.updated_at_path)
    yield draft.warning(
        Reason.CLIENT_FILTER,
        ("window", "clientFilter"),
        "the provider does not filter by update time: records are filtered here"
        if told
        else "neither the provider nor its records tell a time: every record of the list is kept, whatever the window",
    )


def no_list(pack: Pack, name: str, operation: Operation) -> Problem | None:
    """Why a list is not read from an endpoint that gives single records or counts, and which endpoints are lists."""
    role = pack.endpoints[name].role
    if operation is Operation.UPDATE or role is Role.SEARCH or pack.endpoints[name].supports:
        return None
    lists = [other for other, endpoint in pack.endpoints.items() if endpoint.role is Role.SEARCH]
    return Source().problem(  # what a trigger says, and not the pack
        Reason.OPERATION_UNSUPPORTED,
        ("endpoint",),
        f"{pack.source} {name} {role.text}; {operation} reads a list",
        unknown_name(name, lists).replace("known: ", "lists: "),
    )


def check_operation(draft: Draft) -> Iterator[Problem]:
    cursor, operation = draft.at.cursor, draft.operation
    supports = draft.endpoint.supports
    if supports and operation not in supports:  # what a trigger says, and not the pack, which offers what it names
        yield Source().problem(
            Reason.OPERATION_UNSUPPORTED,
            ("operation",),
            f"{draft.pack.source} {draft.name} does not offer {operation}",
            f"it offers: {', '.join(supports)}",
        )
    types, scopes, direction = FITS[operation]
    for name, value, fitting in (
        ("type", cursor.type, types),
        ("scope", cursor.scope, scopes),
        ("direction", cursor.direction, {direction}),
    ):
        if value is not None and value not in fitting:
            yield draft.error(
                Reason.NAMESPACE_MISMATCH,
                ("cursor", name),
                f"{operation} cannot have {name} {value}",
                NO_BACKFILL_BY_KEY
                if (operation, value) == (Operation.BACKFILL, CursorType.ID)
                else f"{name}: {' or '.join(sorted(fitting))}",
            )
    if cursor.overlap and operation is Operation.HARVEST and not by_key(draft):
        yield draft.error(
            Reason.NAMESPACE_MISMATCH,
            ("cursor", "overlap"),
            "a harvest by time does not count in numbers",
            "window.safetyLag keeps it away from what may still appear",
        )
    dimension = draft.at.planning.dimension
    fitting = (
        (Dimension.AUTO, Dimension.ID)
        if operation is Operation.UPDATE or by_key(draft)
        else (Dimension.AUTO, Dimension.TIME, Dimension.PAGE)
    )
    if dimension not in fitting or (dimension is Dimension.PAGE and operation is Operation.BACKFILL):
        yield draft.error(
            Reason.NAMESPACE_MISMATCH, ("planning", "dimension"), f"{operation} cannot be cut by {dimension}"
        )
    if dimension is Dimension.PAGE and draft.at.pagination.type not in {PaginationType.OFFSET, PaginationType.PAGE}:
        yield draft.error(
            Reason.NAMESPACE_MISMATCH, ("planning", "dimension"), f"{draft.at.pagination.type} has no pages to cut by"
        )
