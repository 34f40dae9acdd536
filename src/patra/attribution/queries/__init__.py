"""Questions of people and other systems about what the store holds.

| module | for |
|---|---|
| `rejects` | rejected events, refused batches |
| `decisions` | timelines of keys and batches, the newest decisions, lists of facts, audits and records |
| `closures` | closures, and how far the records of one have come |
"""

from patra.attribution.queries.closures import (
    Aggregate,
    ClosureView,
    aggregate,
    closure_by_key,
    closures,
    closures_by_key,
)
from patra.attribution.queries.decisions import (
    DecisionView,
    LatestDecisions,
    MoveView,
    Timeline,
    What,
    events_of_batch,
    latest_decisions,
    listing,
    newest_decisions,
    page_of_decisions,
    timeline,
)
from patra.attribution.queries.rejects import (
    LAST_PLACE,
    RefusedView,
    RejectsPage,
    RejectView,
    refused,
    reject_place,
    rejects,
)

__all__ = [
    "LAST_PLACE",
    "Aggregate",
    "ClosureView",
    "DecisionView",
    "LatestDecisions",
    "MoveView",
    "RefusedView",
    "RejectView",
    "RejectsPage",
    "Timeline",
    "What",
    "aggregate",
    "closure_by_key",
    "closures",
    "closures_by_key",
    "events_of_batch",
    "latest_decisions",
    "listing",
    "newest_decisions",
    "page_of_decisions",
    "refused",
    "reject_place",
    "rejects",
    "timeline",
]
