"""Questions of people and other systems about what the store holds.

| module | for |
|---|---|
| `rejects` | rejected events, refused batches |
| `decision_steps` | the way of one event through its checks, its closure, its facts and the archive |
| `decisions` | timelines of keys and batches, the newest decisions, lists of facts, audits and records |
| `archive_delivery` | what waits for an archive outside the store, and when the first of it is lost |
| `closures` | closures, and how far the records of one have come |
"""

from patra.attribution.queries.archive_delivery import ArchiveDelivery, archive_delivery
from patra.attribution.queries.closures import (
    Aggregate,
    ClosurePage,
    ClosureView,
    Deadlines,
    aggregate,
    closure_by_key,
    closures,
    closures_by_deadline,
    closures_by_key,
    deadlines,
)
from patra.attribution.queries.decision_steps import Answer, answer_of
from patra.attribution.queries.decisions import (
    DecisionView,
    LatestDecisions,
    MoveView,
    Span,
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
    RejectsOverTime,
    RejectsPage,
    RejectView,
    list_refused,
    reject_place,
    rejects,
    rejects_over_time,
)

__all__ = [
    "LAST_PLACE",
    "Aggregate",
    "Answer",
    "ArchiveDelivery",
    "ClosurePage",
    "ClosureView",
    "Deadlines",
    "DecisionView",
    "LatestDecisions",
    "MoveView",
    "RefusedView",
    "RejectView",
    "RejectsOverTime",
    "RejectsPage",
    "Span",
    "Timeline",
    "What",
    "aggregate",
    "answer_of",
    "archive_delivery",
    "closure_by_key",
    "closures",
    "closures_by_deadline",
    "closures_by_key",
    "deadlines",
    "events_of_batch",
    "latest_decisions",
    "list_refused",
    "listing",
    "newest_decisions",
    "page_of_decisions",
    "reject_place",
    "rejects",
    "rejects_over_time",
    "timeline",
]
