"""Placements against the decisions on their opportunities: a rate goes by the placement, so it decides a price.

A placement waits in `att_placement` with the number of its decision until it is carried into `att_opportunity`, where
it stands by the key of its opportunity alone. Of several decisions on an opportunity one says its placement.
"""

from collections.abc import Iterator, Sequence

from patra.attribution.checks.finding import Finding
from patra.attribution.contract import keys
from patra.attribution.contract.event_types import KINDS
from patra.attribution.decision.decisions import Decision
from patra.attribution.retention import FACTS
from patra.attribution.storage.key_search import Only, find
from patra.attribution.storage.read import Archived
from patra.attribution.storage.sql import Q, mark
from patra.kernel.db import Row, Tx

_KIND = KINDS["opportunity_created"]
_PLACEMENT = _KIND.fields.index("placementKey")


def _placement(decision: Decision) -> bytes | None:
    """The placement that a decision says; None where it says none."""
    if decision.attribution != _KIND.attribution or len(decision.values) <= _PLACEMENT:
        return None
    return decision.values[_PLACEMENT].encode() or None


def placement_findings(tx: Tx, page: Sequence[Archived]) -> Iterator[Finding]:
    """Every placement that a decision says is kept as it was said, or another decision on its opportunity says it."""
    said = {one.id: placement for one in page if (placement := _placement(one.decision)) is not None}
    if not said:
        return
    of = {one.id: one.decision.subject for one in page if one.id in said}
    own = {number: keys.opportunity(subject.app, subject.opportunity) for number, subject in of.items()}
    numbers: list[Row] = [(number,) for number in said]
    opportunities: list[Row] = [(key,) for key in sorted(set(own.values()))]
    waiting = {row[0]: (bytes(row[1]), bytes(row[2])) for row in tx.fetch(Q["placements_of_decisions"], rows=numbers)}
    carried = {bytes(key): bytes(kept) for key, kept in tx.fetch(Q["carried_placements"], rows=opportunities)}
    for number, placement in said.items():
        subject, kept = of[number], carried.get(own[number])
        label = f"{subject.app}|{subject.opportunity}"
        if number in waiting:
            if waiting[number] != (own[number], placement):
                yield Finding(check="placement_and_decision_differ", key=label)
        elif kept is None:
            yield Finding(check="placement_missing", key=label)
        elif kept != placement and not _is_said_elsewhere(tx, subject.app, subject.opportunity, kept):
            yield Finding(check="placement_and_decision_differ", key=label)


def _is_said_elsewhere(tx: Tx, app_id: str, opportunity: str, placement: bytes) -> bool:
    """Whether another decision says it; once decisions were purged, that may have been one of them."""
    found = find(tx, opportunity, Only(app=app_id)).found
    return bool(mark(tx, FACTS)) or any(_placement(one.archived.decision) == placement for one in found)
