"""Records a real exchange with a provider, page after page and without secrets, as a test case.

The form is that of the collections that our tests read: one JSON file for each exchange, chained. What identifies the
requester is masked wherever it stands: secrets by their names, e-mail addresses by the parameters that hold them,
credentials and cookies by their headers; also where a provider repeats them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.pagination import Next, Page, PagePosition, first, follow
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.fetch import Fetched, fetch
from patra.ingest.fetching.runtime import Runtime
from patra.ingest.fetching.sender import Deferred
from patra.ingest.http.client import Answer, scrub_text
from patra.ingest.http.request import Position, Request
from patra.ingest.operations.trial.request import Ready, Wanted, at_place, prepare_trial
from patra.ingest.packs.compiler import LoadedPack
from patra.ingest.packs.problems import Problem
from patra.ingest.packs.secret_grants import Grant
from patra.ingest.ratelimit.limiter import Pause
from patra.ingest.vocabulary.codes import Role
from patra.kernel.clock import format_instant
from patra.kernel.errors import Invalid
from patra.kernel.ids import new_id
from patra.kernel.safety.known_secrets import scrub_known

MASK = "REDACTED"
TELLING_HEADERS = frozenset({"authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key"})
TELLING_PARAMS = frozenset({"email", "mailto", "tool_email"})
"""Parameters of packs that say who asks."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded request with its answer; `tree` is the file."""

    name: str
    status: int
    items: int | None
    tree: dict[str, Any]


def record_exchanges(
    loaded: LoadedPack, wanted: Wanted, services: Runtime, pages: int, pause: Pause, grants: Sequence[Grant] = ()
) -> list[Exchange] | tuple[Problem, ...]:
    """Up to so many pages of a list, or what was asked for by id; the problems where the pack does not compile."""
    ready = prepare_trial(loaded, wanted, services.clock.now(), grants)
    if not isinstance(ready, Ready):
        return ready
    found = list(_walk(ready.line, ready.at, services, pages, pause))
    chain = f"{ready.line.source}-{ready.line.endpoint}-{new_id()[-8:]}"
    return [
        replace(one, tree={**one.tree, "chain": {"id": chain, "seq": number, "of": len(found)}})
        for number, one in enumerate(found, 1)
    ]


def _walk(line: EndpointClient, at: Position, services: Runtime, pages: int, pause: Pause) -> Iterator[Exchange]:
    """Page after page; an answer that is an error is the last one, and no answer at all ends it before that."""
    place = first(line.leg.pagination, since=at.window_from)
    for number in range(1, pages + 1):
        found = fetch(services, line, at, pause, task="record", correlation=new_id(), fragile=False)
        detail = found.detail if isinstance(found, Deferred) else found.verdict.detail
        answer = None if isinstance(found, Deferred) else found.answer
        if isinstance(found, Deferred) or answer is None:
            if number == 1:
                raise Invalid("not_recorded", f"there is no answer to record: {detail}")
            return
        items = len(found.listed.items or []) if found.listed is not None else None
        yield Exchange(
            name=f"{number:03}-{line.endpoint}-p{number}.json",
            status=answer.status,
            items=items,
            tree=_tree(line, line.shown_request(at, services.environ), answer, services.clock.now()),
        )
        following = _next(line, place, found)
        if following is None or line.leg.role is Role.DETAIL:
            return
        place = following
        at = at_place(at, line, place)


def _next(line: EndpointClient, place: PagePosition, found: Fetched) -> PagePosition | None:
    listed = found.listed
    if listed is None or listed.items is None:
        return None
    page = Page(
        items=len(listed.items) + listed.null_items,
        null_items=listed.null_items,
        has_more=listed.has_more,
        token=listed.token,
        url=line.without_secret(listed.url),
        total=listed.total,
    )
    move = follow(line.leg.pagination, place, page)
    return move.place if isinstance(move, Next) else None


def _tree(line: EndpointClient, shown: Request | Refused, answer: Answer, now: int) -> dict[str, Any]:
    who = [str(value) for name, value in line.leg.params.items() if name in TELLING_PARAMS and value]
    request: dict[str, Any] = {}
    if isinstance(shown, Request):
        request = {
            "method": shown.method,
            "url": _mask_text(shown.url, who),
            "headers": _headers(dict(shown.headers), who),
        }
        if shown.body is not None:
            request["body"] = _mask_text(shown.body.decode("utf-8", "replace"), who)
    return {
        "provider": line.source,
        "request": request,
        "response": {
            "status": answer.status,
            "headers": _headers(answer.headers, who),
            "body": _mask_text(answer.body.decode("utf-8", "replace"), who),
        },
        "recorded_at": format_instant(now),
        "source_repo": "",
        "source_path": "",
        "source_commit": "",
        "license": "none stated",
        "fidelity": "cassette",
        "note": "written by `patra ingest record`",
    }


def _headers(headers: Mapping[str, str], who: Sequence[str]) -> dict[str, str]:
    return {
        name: MASK if name.lower() in TELLING_HEADERS else _mask_text(value, who) for name, value in headers.items()
    }


def _mask_text(text: str, who: Sequence[str]) -> str:
    """Without secrets, which the shown request has by name, and without the requester's address."""
    text = scrub_text(scrub_known(text), who)
    for name in ("apiKey", "token", "accessToken", "clientId", "clientSecret", "password", "username"):
        text = text.replace(f"%7B{name}%7D", MASK).replace(f"{{{name}}}", MASK)
    return text
