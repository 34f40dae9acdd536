"""Window, watermark, cursor and operation (ch. 3.3.3, 4.4.3, 4.15, 4.17 no. 3 and 8, 6)."""

from collections.abc import Iterator

from patra.ingest.checks.draft import Draft
from patra.ingest.codes import CursorType, Dimension, Direction, NamespaceScope, Operation, PaginationType
from patra.ingest.problem import Problem
from patra.ingest.reasons import R

FITS: dict[Operation, tuple[frozenset[CursorType], frozenset[NamespaceScope], Direction]] = {
    Operation.HARVEST: (
        frozenset({CursorType.TIME}),
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
"""Cursor type, namespace and direction that each operation may have (ch. 6.4); the first of each is its default."""


def check_window(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    if not draft.lists:
        return
    window = draft.at.window
    unit = window.unit_us
    if window.max_us < window.min_us:
        yield draft.error(
            R.WINDOW_INVALID,
            ("window", "maxWindow"),
            f"maxWindow {window.max_window} is below minWindow {window.min_window}",
        )
    for name, width in (("minWindow", window.min_us), ("maxWindow", window.max_us)):
        if width < unit or width % unit:
            yield draft.error(
                R.WINDOW_INVALID,
                ("window", name),
                f"a width must be a multiple of the alignment ({window.align})",
                "use whole days for align: day, whole hours for align: hour",
            )
    yield from _watermark(draft)
    yield from _filter(draft, reads)


def _watermark(draft: Draft) -> Iterator[Problem]:
    window, ordering = draft.at.window, draft.at.ordering
    if not window.watermark_key:
        yield draft.error(R.WINDOW_INVALID, ("window", "watermarkKey"), "watermarkKey is missing", "updated_at")
    if window.substitute_key is not None and not ordering.monotonic:
        yield draft.error(
            R.WINDOW_INVALID,
            ("window", "substituteKey"),
            "a substitute for the update time must only grow",
            "say ordering.monotonic: true if it does; otherwise only UPDATE can read this source",
        )


def _filter(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    window, ordering = draft.at.window, draft.at.ordering
    pages = draft.at.planning.dimension is Dimension.PAGE
    if window.supports_updated_since:
        driven = {"window.from", "page.from"} if draft.at.pagination.type is PaginationType.TIME else {"window.from"}
        if not pages and not reads & driven:
            yield draft.error(
                R.WINDOW_UNSUPPORTED,
                ("window", "supportsUpdatedSince"),
                "nothing in the request reads window.from: every slice would read everything",
                "put ${window.from} and ${window.to} into the query",
            )
        return
    if not (window.client_filter and ordering.stable and ordering.monotonic):
        yield draft.error(
            R.WINDOW_UNSUPPORTED,
            ("window", "supportsUpdatedSince"),
            "the provider does not filter by update time: the list needs a stable, monotonic order and a filter here",
            "say window.clientFilter, ordering.stable and ordering.monotonic, or use UPDATE",
        )
        return
    yield draft.warning(
        R.CLIENT_FILTER,
        ("window", "clientFilter"),
        "the provider does not filter by update time: records are filtered here",
    )


def check_operation(draft: Draft) -> Iterator[Problem]:
    cursor, operation = draft.at.cursor, draft.operation
    supports = draft.endpoint.supports
    if supports and operation not in supports:
        yield draft.source.problem(
            R.OPERATION_UNSUPPORTED,
            ("endpoints", draft.name, "supports"),
            f"the endpoint does not support {operation}",
            f"it supports {', '.join(supports)}",
        )
    types, scopes, direction = FITS[operation]
    for name, value, fitting in (
        ("type", cursor.type, types),
        ("scope", cursor.scope, scopes),
        ("direction", cursor.direction, {direction}),
    ):
        if value is not None and value not in fitting:
            yield draft.error(
                R.NAMESPACE_MISMATCH,
                ("cursor", name),
                f"{operation} cannot have {name} {value}",
                f"{name}: {' or '.join(sorted(fitting))}",
            )
    dimension = draft.at.planning.dimension
    fitting = (
        (Dimension.AUTO, Dimension.ID)
        if operation is Operation.UPDATE
        else (Dimension.AUTO, Dimension.TIME, Dimension.PAGE)
    )
    if dimension not in fitting or (dimension is Dimension.PAGE and operation is Operation.BACKFILL):
        yield draft.error(R.NAMESPACE_MISMATCH, ("planning", "dimension"), f"{operation} cannot be cut by {dimension}")
    if dimension is Dimension.PAGE and draft.at.pagination.type not in {PaginationType.OFFSET, PaginationType.PAGE}:
        yield draft.error(
            R.NAMESPACE_MISMATCH, ("planning", "dimension"), f"{draft.at.pagination.type} has no pages to cut by"
        )
