"""When dead letters failed: counts on an axis of time, for a drawing from which a span is taken."""

from typing import Annotated

import msgspec
from msgspec import Meta

from patra.bus.store import dead_letters
from patra.kernel.clock import MINUTE, format_instant
from patra.kernel.db import Tx
from patra.web.api.bus.reading import bad_query, letter_filter
from patra.web.api.bus.shapes import LetterFilter
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

MIN_SPAN = 10 * MINUTE


class OverTimeQuery(LetterFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    parts: Annotated[int, Meta(ge=1, le=400, description="Into how many parts the time is cut.")] = 60


class LettersOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of equal parts of a span, by the last failure; `more`: earlier ones are not counted."""

    since: str
    until: str
    counts: list[int]
    more: bool


def routes(tag: str) -> list[Endpoint]:
    return [
        EndpointGroup(tag).get(
            "/bus/dead-letters/over-time",
            _over_time,
            "When dead letters failed, as counts on an axis of time",
            LettersOverTime,
            query=OverTimeQuery,
            tenant_query="tenant_id",
            description="Without `since` from the first of them on, without `until` to now.",
        )
    ]


def _over_time(request: Request) -> LettersOverTime | Problem:
    query: OverTimeQuery = request.query
    if problem := bad_query(query):
        return problem
    wanted, now = letter_filter(query), request.patra.clock.now()

    def read(tx: Tx) -> LettersOverTime:
        first, count = dead_letters.reach(tx, wanted)
        until = now + 1 if wanted.failed_to is None else wanted.failed_to
        since = wanted.failed_from
        if since is None:
            since = min(until - MIN_SPAN, until if first is None else first)
        counts = dead_letters.over_time(tx, wanted, since, until, query.parts)
        more = count >= dead_letters.MAX_COUNTED_LETTERS
        return LettersOverTime(since=format_instant(since), until=format_instant(until), counts=counts, more=more)

    return request.patra.db.read(read)
