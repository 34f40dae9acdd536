"""What attribution knows about a statement: the period that was closed, and the facts that stand in it."""

from patra.app.story.model import Candidate, Engine, Entry, Lookup, Related, Shape
from patra.attribution.settlement.statement import Statement
from patra.attribution.settlement.statement_store import statement_file, statement_of_key
from patra.kernel.clock import parse_instant
from patra.kernel.db import Tx
from patra.kernel.errors import count_phrase

KIND = "attribution.statement"
MAX_FACTS = 50
"""Facts of a statement that are named; its file has all of them."""


def look_up(tx: Tx, key: str) -> Lookup:
    """The statement with a hash, or of `app/period`."""
    found = statement_of_key(tx, key)
    if found is None:
        return Lookup(kinds=[KIND])
    file = statement_file(tx, found.app_id, found.period)
    facts = file.facts if file else []
    named = [
        Related(relation="states", kind="attribution.billingKey", key=fact.billing_key) for fact in facts[:MAX_FACTS]
    ]
    label = f"statement of {found.app_id}, {found.period}"
    return Lookup(
        kinds=[KIND],
        candidates=[Candidate(engine=Engine.ATTRIBUTION, kind=KIND, key=key, label=label, subject=found.hash)],
        entries=[closing_entry(found, named)],
        complete=len(facts) <= MAX_FACTS,
    )


def closing_entry(found: Statement, named: "list[Related] | None" = None) -> Entry:
    """The entry of a statement: which period was closed, with what in it."""
    related = [
        Related(relation="counted in", kind=KIND, key=found.hash),
        Related(relation="app", kind="attribution.appId", key=found.app_id),
        *(named or []),
    ]
    if found.previous_hash:
        related.append(Related(relation="follows", kind=KIND, key=found.previous_hash))
    counts = f"{count_phrase(found.impressions, 'impression')} and {count_phrase(found.clicks, 'click')}"
    return Entry(
        id=f"statement:{found.hash}",
        at=parse_instant(found.closed_at) or 0,
        engine=Engine.ATTRIBUTION,
        shape=Shape.WRITTEN,
        what="period_closed",
        text=f"{found.period} of {found.app_id} was closed: statement {found.number} with {counts}.",
        detail={"period": found.period, "number": found.number, "adjustments": found.adjustments},
        related=related,
    )
