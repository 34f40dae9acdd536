"""Tries a pack's endpoint: some pages of its list and its first details, what was asked, answered and mapped.

The tool that a pack's author works with: it goes through the same renderer, rate gate, transport, classifier, reader,
paging and mapper as the executor, and writes nothing anywhere.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.completeness import advice
from patra.ingest.extraction.page_moves import PagePosition, Stop
from patra.ingest.extraction.pagination import too_deep
from patra.ingest.extraction.response import Identity
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.operations.trial.bounds import BoundsProbe, Dated, can_probe, probe_bounds
from patra.ingest.operations.trial.notes import notes_of, tried_record
from patra.ingest.operations.trial.pages import ListWalk, TriedPage, fetch_details, is_accepted, walk_list
from patra.ingest.operations.trial.request import Ready, Wanted, prepare_trial
from patra.ingest.packs.compiler import LoadedPack
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.secret_grants import Grant
from patra.ingest.ratelimit.limiter import Pause
from patra.kernel.clock import format_instant


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """The first request with its secrets hidden, the verdict, every page, the first records, what is wrong with them.

    `total`, `items`, `following` and `verdict` are those of the first page.
    """

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
    window_from: str = ""
    window_to: str = ""
    pages: list[TriedPage] = []
    details: list[TriedPage] = []
    notes: list[str] = []
    """What would be lost or empty in a harvest."""
    incomplete: str = ""
    """The list ended, or stopped, before what it promises: a harvest would leave the window INCOMPLETE or FAILED."""
    bounds: BoundsProbe | None = None

    @property
    def is_good(self) -> bool:
        """Every answer was accepted, and no list ended before its total."""
        answered = all(is_accepted(page) for page in (*self.pages, *self.details))
        return bool(self.pages) and answered and not self.incomplete and not (self.bounds and self.bounds.loses)


def try_endpoint(
    loaded: LoadedPack, wanted: Wanted, services: Runtime, grants: Sequence[Grant] = (), *, pause: Pause | None = None
) -> Tried | tuple[Problem, ...]:
    """Send the requests; the problems where the pack does not compile. Secrets are those that `grants` allow.

    `pause` waits as the rate of the pack asks; without it a second request that may not go out at once is not sent.
    """
    now = services.clock.now()
    ready = prepare_trial(loaded, wanted, now, grants)
    if not isinstance(ready, Ready):
        return ready
    line, at = ready.line, ready.at
    shown = line.shown_request(at, services.environ)
    if isinstance(shown, Refused):
        return Tried(verdict=str(shown.code), detail=f"{shown.place}: {shown.detail}")
    asked = Tried(
        method=shown.method,
        url=shown.url,
        headers=dict(shown.headers),
        body=None if shown.body is None else shown.body.decode("utf-8", "replace"),
        window_from="" if at.window_from is None else format_instant(at.window_from),
        window_to="" if at.window_to is None else format_instant(at.window_to),
    )
    wait: Pause = pause or _never
    walk = walk_list(ready, services, wanted.pages, wait)
    details, came = fetch_details(ready, services, walk.ids, wanted.records, wait)
    giver, items = (line, walk.items) if ready.details is None else (ready.details, came)
    read = [giver.item(item) for item in items]
    found = _with_first_page(asked, walk)
    probe = None
    undeclared = ready.spec.window.bounds is None and wanted.pages > 1
    if can_probe(ready) and (wanted.probe_bounds or undeclared):
        identities = [giver.reader.identity(item, dated=False) for item in read]
        seen = [Dated(one.id, one.updated_at) for one in identities if isinstance(one, Identity) and one.updated_at]
        probe = probe_bounds(ready, services, seen, wait)
    return replace(
        found,
        details=details,
        records=[tried_record(giver, item, now) for item in read[: wanted.records]],
        notes=[*_depth(ready, walk), *notes_of(line, walk, details, giver, items)],
        incomplete=_incomplete(ready, walk),
        bounds=probe,
    )


def _never(_microseconds: int) -> bool:
    return False


def _with_first_page(asked: Tried, walk: ListWalk) -> Tried:
    page = walk.pages[0]
    answer = walk.first.answer if walk.first is not None else None
    return replace(
        asked,
        status=page.status,
        verdict=page.verdict,
        detail=page.detail,
        advice=page.advice,
        total=page.total,
        items=page.items,
        following=page.following or None,
        pages=walk.pages,
        begins=answer.body[:600].decode("utf-8", "replace") if answer is not None else "",
    )


def _depth(ready: Ready, walk: ListWalk) -> list[str]:
    depth, total = ready.spec.limits.max_depth, walk.pages[0].total
    if not too_deep(total, depth, PagePosition()):
        return []
    return [f"{total} records pass `limits.maxDepth` ({depth}): a harvest cuts the window into smaller ones first"]


def _incomplete(ready: Ready, walk: ListWalk) -> str:
    if isinstance(walk.end, Stop):
        return walk.end.detail
    if not walk.missing:
        return ""
    return f"{walk.missing} missing: {walk.why}; {advice(ready.line.leg.pagination)}"
