"""Follows a list over some pages and into its details, as an executor would, and keeps what it saw; nothing lands."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.execution.on_failure import behind_the_end
from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.classify import Action, Verdict
from patra.ingest.extraction.completeness import Shortfall
from patra.ingest.extraction.page_moves import End, Move, Next, PagePosition, Probe, Range, Stop
from patra.ingest.extraction.pagination import doubt_end, first, follow, short_of
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.fetch import Fetched, fetch
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.fetching.sender import Deferred
from patra.ingest.http.request import Position
from patra.ingest.landing.page_records import Landing, ids_of, nothing, page_of, records_of
from patra.ingest.operations.trial.request import Ready, at_place
from patra.ingest.packs.sections import Pagination
from patra.ingest.ratelimit.limiter import Pause
from patra.ingest.vocabulary.codes import PaginationType, Role
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant
from patra.kernel.ids import new_id

MAX_DETAIL_REQUESTS = 3
OWN_ENDS = frozenset({RunReason.END_RANGE, RunReason.END_WINDOW})
"""Ends that the window sets and not the list: no total is held against them."""


class TriedPage(msgspec.Struct, frozen=True, kw_only=True):
    """One request of the list or of its details: what was asked, answered, counted, and where it leads."""

    method: str = ""
    url: str = ""
    status: int | None = None
    verdict: str = ""
    detail: str = ""
    advice: str = ""
    total: int | None = None
    items: int | None = None
    null_items: int = 0
    without_id: int = 0
    following: str = ""
    """Where a harvest would go on, in words; why nowhere, at the end."""
    asked_ids: int = 0
    """Details: how many were asked for."""
    missing_ids: list[str] = []
    """Details: those for which no record came."""


class ListWalk(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk over some pages saw; `end` is None where it stopped because it had seen enough."""

    pages: list[TriedPage]
    items: list[Any]
    landings: list[Landing]
    first: Fetched | None = None
    end: End | Stop | None = None
    accepted: bool = True
    """No answer was refused."""
    missing: int = 0
    """At the end of the list: what its total promises beyond what came."""
    why: str = ""

    @property
    def ids(self) -> list[str]:
        return list(dict.fromkeys(one for landing in self.landings for one in landing.ids))


def walk_list(ready: Ready, services: Runtime, pages: int, pause: Pause) -> ListWalk:
    """The first pages of a list. A page whose end is not believed is asked for again, and counts once."""
    line, pagination = ready.line, ready.line.leg.pagination
    place = first(pagination, since=ready.at.window_from)
    found = ListWalk(pages=[], items=[], landings=[])
    keys: set[int] = set()
    refused: Fetched | None = None
    while True:
        at = ready.at if place.index == 0 else at_place(ready.at, line, place)
        answer = _fetch(services, line, at, pause)
        shown = _display_page(services, line, at)
        if isinstance(answer, Deferred):
            page = replace(shown, verdict=str(answer.code), detail=answer.detail)
            return replace(found, pages=[*found.pages, page], accepted=False)
        judged = behind_the_end(pagination, place, answer, refused)
        if judged is None:
            refused = answer
            continue
        answer, refused = judged, None
        shown = _judge_page(shown, answer)
        if answer.verdict.action not in {Action.ACCEPT, Action.EMPTY, Action.END}:
            page = replace(shown, following="not known: the answer was not accepted")
            return replace(found, pages=[*found.pages, page], first=found.first or answer, accepted=False)
        items = list((answer.listed.items or []) if answer.listed is not None else [])
        landing = _landing(ready, items, at.now)
        move = _move(ready, place, answer, landing, len(items))
        page = replace(shown, without_id=landing.without_id, following=_words(pagination, move))
        if isinstance(move, Probe):
            found = replace(found, first=found.first or answer)
            place = move.place
            continue
        keys |= landing.keys
        found = replace(
            found,
            pages=[*found.pages, page],
            items=[*found.items, *items],
            landings=[*found.landings, landing],
            first=found.first or answer,
        )
        if isinstance(move, (End, Stop)):
            short = _short(pagination, move, len(items) + page.null_items, len(keys))
            return replace(found, end=move, missing=short.missing if short else 0, why=short.why if short else "")
        if len(found.pages) >= pages or line.leg.role is Role.DETAIL:
            return found
        place = move.place


def fetch_details(
    ready: Ready, services: Runtime, ids: Sequence[str], records: int, pause: Pause
) -> tuple[list[TriedPage], list[Any]]:
    """The records of the first ids, in the groups in which a harvest asks for them; their items as they came."""
    line = ready.details
    pages: list[TriedPage] = []
    items: list[Any] = []
    if line is None:
        return pages, items
    size = line.leg.batching.id_batch_size
    for start in range(0, min(len(ids), size * MAX_DETAIL_REQUESTS), size):
        if pages and len(items) >= records:
            break
        group = tuple(ids[start : start + size])
        at = replace(ready.at, endpoint=line.leg.endpoint_code, ids=group, url=None, token=None)
        answer = _fetch(services, line, at, pause)
        shown = replace(_display_page(services, line, at), asked_ids=len(group))
        if isinstance(answer, Deferred):
            return [*pages, replace(shown, verdict=str(answer.code), detail=answer.detail)], items
        came = list((answer.listed.items or []) if answer.listed is not None else [])
        landing = records_of(line, came, at.now, _plan(line))
        missing = [one for one in group if one not in set(landing.ids)]
        pages.append(replace(_judge_page(shown, answer), without_id=landing.without_id, missing_ids=missing))
        items += came
    return pages, items


def is_accepted(page: TriedPage) -> bool:
    return page.verdict.startswith(("accept", "empty", "end"))


def _fetch(services: Runtime, line: EndpointClient, at: Position, pause: Pause) -> Fetched | Deferred:
    return fetch(services, line, at, pause, task="try", correlation=new_id(), fragile=False)


def _display_page(services: Runtime, line: EndpointClient, at: Position) -> TriedPage:
    shown = line.shown_request(at, services.environ)
    return TriedPage() if isinstance(shown, Refused) else TriedPage(method=shown.method, url=shown.url)


def _judge_page(page: TriedPage, answer: Fetched) -> TriedPage:
    listed = answer.listed
    return replace(
        page,
        status=answer.answer.status if answer.answer is not None else None,
        verdict=verdict_words(answer.verdict),
        detail=answer.verdict.detail,
        advice=answer.verdict.advice,
        total=listed.total if listed is not None else None,
        items=len(listed.items or []) if listed is not None else None,
        null_items=listed.null_items if listed is not None else 0,
    )


def _landing(ready: Ready, items: list[Any], now: int) -> Landing:
    if not items:
        return nothing()
    if ready.details is not None:
        return ids_of(ready.line, items)
    return records_of(ready.line, items, now, _plan(ready.line))


def _plan(line: EndpointClient) -> dict[str, Any]:
    return {"source": line.source, "endpoint": line.endpoint, "operation": line.operation.value}


def _move(ready: Ready, place: PagePosition, answer: Fetched, landing: Landing, items: int) -> Move:
    """Where the list goes on, by the rules of a harvest."""
    pagination = ready.line.leg.pagination
    if answer.listed is None:  # the provider says that there is nothing more
        end = End(answer.verdict.code, replace(place, index=place.index + 1))
        return doubt_end(pagination, place, end, 0) or end
    if pagination.type is None:
        return End(RunReason.END_RANGE, replace(place, index=place.index + 1))
    bounds = Range(until=ready.at.window_to, max_depth=ready.spec.limits.max_depth, grows=ready.spec.by_key)
    return follow(pagination, place, page_of(ready.line, answer.listed, landing, items), bounds)


def _short(pagination: Pagination, move: End | Stop, items: int, distinct_ids: int) -> Shortfall | None:
    if isinstance(move, Stop) or move.code in OWN_ENDS:
        return None
    return short_of(pagination, move.place, items, distinct_ids)


def _words(pagination: Pagination, move: Move) -> str:
    match move:
        case Next(place):
            return _place_words(pagination, place)
        case Probe(_, code):
            return f"the same page once more ({code.text})"
        case End(code, _):
            return f"none ({code.text})"
        case Stop(code, detail, _):
            return f"none, and the list cannot be followed: {detail} ({code.text})"


def _place_words(pagination: Pagination, place: PagePosition) -> str:
    match pagination.type:
        case PaginationType.OFFSET:
            return f"offset {place.offset}"
        case PaginationType.PAGE:
            return f"page {place.page}"
        case PaginationType.TOKEN:
            return f"token {place.token}"
        case PaginationType.URL:
            return f"URL {place.url}"
        case PaginationType.TIME | None:
            return f"from {'' if place.since is None else format_instant(place.since)}"


def verdict_words(verdict: Verdict) -> str:
    level = f" ({verdict.level})" if verdict.level else ""
    rule = f", rule {verdict.rule}" if verdict.rule else ""
    return f"{verdict.action.value}{level}: {verdict.code.text}{rule}"
