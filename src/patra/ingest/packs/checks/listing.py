"""Pagination, order and the parts that every request needs (ch. 3.3.3, 4.3, 4.5, 4.17 no. 2)."""

from collections.abc import Iterator

from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.sections import Pagination
from patra.ingest.vocabulary.codes import BodyKind, CursorType, HttpMethod, PaginationType, RepeatedToken, Verify
from patra.ingest.vocabulary.reasons import Reason

DRIVERS: dict[PaginationType, tuple[str, ...]] = {
    PaginationType.OFFSET: ("page.offset",),
    PaginationType.PAGE: ("page.no",),
    PaginationType.TOKEN: ("page.token",),
    PaginationType.TIME: ("page.from", "window.from"),
}
"""What a request must read so that the next page differs from the last one."""


def check_required(draft: Draft) -> Iterator[Problem]:
    http = draft.at.http
    if not http.base_url:
        yield draft.error(Reason.REQUIRED_MISSING, ("http", "baseUrl"), "baseUrl is missing", "https://api.example.org")
    if http.method is None:
        yield draft.error(Reason.REQUIRED_MISSING, ("http", "method"), "the method is missing", "method: GET")
    if http.method in {HttpMethod.GET, HttpMethod.HEAD} and http.body_template.kind is not BodyKind.NONE:
        yield draft.error(
            Reason.REQUIRED_MISSING,
            ("http", "bodyTemplate", "kind"),
            f"{http.method} has no body",
            "use POST, or remove it",
        )
    if http.body_template.kind is BodyKind.JSON and http.body_template.json is None:
        yield draft.error(Reason.REQUIRED_MISSING, ("http", "bodyTemplate", "json"), "a JSON body needs `json`")


def check_listing(draft: Draft, reads: frozenset[str]) -> Iterator[Problem]:
    """`reads` are the names that the request's templates read."""
    if not draft.lists:
        return
    pagination = draft.at.pagination
    if pagination.type is None:
        yield draft.error(
            Reason.REQUIRED_MISSING,
            ("pagination", "type"),
            "how pages are walked is missing",
            "OFFSET, PAGE, TOKEN, URL or TIME",
        )
        return
    yield from _needs(draft, pagination)
    goes_on = pagination.type is PaginationType.TIME or draft.at.cursor.type is CursorType.ID
    if pagination.verify is Verify.TWICE and goes_on:
        yield draft.error(
            Reason.PAGING_CONFLICT,
            ("pagination", "verify"),
            "TWICE reads a whole list again, and a list by time or by key goes on from what it has read",
            "leave it out, or page by OFFSET, PAGE, TOKEN or URL",
        )
    yield from _conflicts(draft, pagination)
    drivers = DRIVERS.get(pagination.type, ())
    if drivers and not reads & set(drivers):
        yield draft.error(
            Reason.PAGING_PATH_MISSING,
            ("pagination", "type"),
            f"nothing in the request reads {drivers[0]}: every page would be the first",
            f"put ${{{drivers[0]}}} into queryTemplate, pathTemplate or bodyTemplate",
        )
    yield from _lesser_ways(draft, pagination)


def _needs(draft: Draft, pagination: Pagination) -> Iterator[Problem]:
    match pagination.type:
        case PaginationType.TOKEN if not (pagination.next_token_path or pagination.next_token_hook):
            yield draft.error(
                Reason.PAGING_PATH_MISSING,
                ("pagination", "nextTokenPath"),
                "TOKEN needs nextTokenPath",
                "$.next_cursor",
            )
        case PaginationType.URL if not (pagination.next_url_path or pagination.next_url_link):
            yield draft.error(
                Reason.PAGING_PATH_MISSING,
                ("pagination", "nextUrlPath"),
                "URL needs nextUrlPath, or nextUrlLink for the Link header",
                "$.links.next",
            )
        case PaginationType.PAGE if pagination.base1 is None:
            yield draft.error(
                Reason.PAGING_PATH_MISSING,
                ("pagination", "base1"),
                "PAGE must say whether the first page is 1 or 0",
                "base1: true",
            )
        case PaginationType.TIME if not (
            draft.at.window.supports_updated_since or (draft.at.ordering.stable and draft.at.ordering.monotonic)
        ):
            yield draft.error(
                Reason.WINDOW_UNSUPPORTED,
                ("pagination", "type"),
                "TIME needs a provider that filters by update time, or a stable, monotonic order",
                "say window.supportsUpdatedSince, or ordering.stable and ordering.monotonic",
            )
        case _:
            pass
    if pagination.type in {PaginationType.OFFSET, PaginationType.PAGE} and pagination.page_size is None:
        yield draft.error(
            Reason.PAGING_PATH_MISSING,
            ("pagination", "pageSize"),
            f"{pagination.type} needs a pageSize",
            "pageSize: 100",
        )


def _conflicts(draft: Draft, pagination: Pagination) -> Iterator[Problem]:
    given: dict[str, object] = {
        "nextTokenPath": pagination.next_token_path,
        "nextTokenParam": pagination.next_token_param,
        "nextTokenHook": pagination.next_token_hook,
        "nextUrlPath": pagination.next_url_path,
        "nextUrlLink": pagination.next_url_link,
    }
    fits: dict[PaginationType | None, tuple[str, ...]] = {
        PaginationType.TOKEN: ("nextTokenPath", "nextTokenParam", "nextTokenHook"),
        PaginationType.URL: ("nextUrlPath", "nextUrlLink"),
    }
    for name, value in given.items():
        if value is not None and name not in fits.get(pagination.type, ()):
            yield draft.error(
                Reason.PAGING_CONFLICT,
                ("pagination", name),
                f"{name} belongs to another kind of pagination than {pagination.type}",
                "remove it, or change pagination.type",
            )
    if pagination.type is not PaginationType.PAGE and pagination.base1 is not None:
        yield draft.error(Reason.PAGING_CONFLICT, ("pagination", "base1"), f"base1 means nothing for {pagination.type}")


def _lesser_ways(draft: Draft, pagination: Pagination) -> Iterator[Problem]:
    response, ordering = draft.at.response, draft.at.ordering
    if response.total_path is None:
        yield draft.warning(
            Reason.NO_COUNT, ("response", "totalPath"), "no totalPath: sizes are estimated from what was seen before"
        )
    if response.has_more_path is None and pagination.type in {PaginationType.OFFSET, PaginationType.PAGE}:
        yield draft.warning(
            Reason.HAS_NEXT_BY_PAGE_SIZE,
            ("response", "hasMorePath"),
            "no hasMorePath: a page that is not full is the last one",
        )
    if not (ordering.stable or ordering.as_of or pagination.repeated_token is RepeatedToken.CONTINUE) and (
        pagination.type in {PaginationType.OFFSET, PaginationType.PAGE}
    ):
        yield draft.warning(
            Reason.UNSTABLE_ORDER,
            ("ordering", "stable"),
            "records may move between pages while they are read: the last page is read once more",
            "say ordering.stable: true where the provider sorts by a field that does not change",
        )
