"""`GET /story`: everything that happened to a key, across all engines."""

from typing import Annotated

import msgspec
from msgspec import Meta

from patra.app.access.actor import Role
from patra.app.story.keys import NAMES
from patra.app.story.model import Story
from patra.app.story.search import MAX_PAGE_LIMIT, PAGE_LIMIT, story
from patra.app.wiring import Patra
from patra.web.endpoint import Endpoint, Request

KIND = f"^({'|'.join(name.replace('.', '[.]') for name in NAMES)})?$"


class StoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key: Annotated[str, Meta(min_length=1, max_length=1000, description="Any key that the system knows.")]
    kind: Annotated[
        str, Meta(pattern=KIND, description="What the key is, such as `batchId`, `ingest.run` or `event_id`.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_LIMIT, description="How many entries to give.")] = PAGE_LIMIT
    after: Annotated[str, Meta(max_length=2000, description="Go on after this place: `next` of the page before.")] = ""


def routes(patra: Patra) -> list[Endpoint]:
    del patra  # handlers find it in their request
    return [
        Endpoint(
            method="GET",
            path="/story",
            handler=_story,
            role=Role.VIEWER,
            unbound=True,
            summary="What happened to a key of any kind, across all engines",
            description="`outcome` is `found`, `ambiguous` (ask again with the kind and key of one candidate) or"
            " `unknown` (`searched` says where was looked). Secrets and addresses are masked.",
            query=StoryQuery,
            response=Story,
        )
    ]


def _story(request: Request) -> Story:
    query: StoryQuery = request.query
    return story(request.patra.db, query.key, kind=query.kind, limit=query.limit, after=query.after)
