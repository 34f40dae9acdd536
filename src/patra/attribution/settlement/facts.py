"""The billable facts of a span that count, with everything that they are settled by, read hour by hour."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from patra.attribution.contract.event_types import KINDS
from patra.attribution.contract.keys import billable_fact_id
from patra.attribution.decision.closure_rules import BILLABLE_CLICK, BILLABLE_IMPRESSION
from patra.attribution.decision.decisions import Decision, billing_key_of
from patra.attribution.settlement.counts import refuse_history, waiting_placements
from patra.attribution.settlement.dimensions import SettledFact
from patra.attribution.settlement.statement import Statement
from patra.attribution.settlement.statement_store import (
    facts_of_statement,
    statement_of_number,
    statements,
    statements_of_facts,
)
from patra.attribution.storage.key_search import decisions_of_billing_keys
from patra.attribution.storage.read import decisions_by_id
from patra.attribution.storage.sql import Q
from patra.attribution.storage.write import statement_of_impression
from patra.kernel.clock import HOUR
from patra.kernel.db import Database, Row, Tx
from patra.kernel.errors import StoreCorrupt

PAGE_FACTS = 2_000
_CREATIVE = KINDS["impression"].fields.index("creativeId")


def settled_facts(
    db: Database,
    begin: int,
    end: int,
    app_id: str = "",
    without: Callable[[Tx, list[int]], set[int]] | None = None,
) -> Iterator[SettledFact]:
    """Facts from `begin` up to, not including, `end`, of one app or of all.

    `without` says which of them are of no interest, by number: their decisions, which may be purged, are not read.
    """
    if without is None:
        db.read(lambda tx: refuse_history(tx, begin, end, app_id))
    hour, last = begin // HOUR, end // HOUR
    waiting = db.read(waiting_placements)
    while (found := _next_hour(db, hour, last)) is not None:
        asked = {"hour": found, "begin": begin, "end": end, "app_id": app_id}
        rows = db.read(lambda tx, asked=asked: tx.fetch(Q["facts_of_hour"], asked))
        for start in range(0, len(rows), PAGE_FACTS):
            page = rows[start : start + PAGE_FACTS]
            if without is not None:
                known = db.read(lambda tx, page=page: without(tx, [row[0] for row in page]))
                page = [row for row in page if row[0] not in known]
            if page:
                yield from db.read(lambda tx, page=page: _facts(tx, page, waiting))
        hour = found + 1


def _next_hour(db: Database, first: int, last: int) -> int | None:
    return db.read(lambda tx: tx.fetch(Q["next_fact_hour"], {"first": first, "last": last}))[0][0]


def _facts(tx: Tx, rows: Sequence[Row], waiting: dict[bytes, bytes]) -> list[SettledFact]:
    clicks: list[Row] = [(bytes(row[5]),) for row in rows if row[2] == BILLABLE_CLICK and row[5] is not None]
    impressions = {bytes(key): number for key, number in tx.fetch(Q["impressions_of_closures"], rows=clicks)}
    wanted = {row[0] for row in rows} | set(impressions.values())
    decisions = {one.id: one.decision for one in decisions_by_id(tx, wanted)}
    unlinked = _impressions_by_key(tx, rows, impressions, decisions)
    found: list[SettledFact] = []
    for number, app_id, billable_type, opportunity, fact_at, closure, placement in rows:
        decision = decisions.get(number)
        if decision is None or (billing := billing_key_of(decision)) is None:
            raise StoreCorrupt("store_corrupt", f"att_billable, decision_id={number}: its decision was purged or lost")
        key = bytes(closure or b"")
        of = number if billable_type != BILLABLE_CLICK else impressions.get(key)
        impression = decisions.get(of) if of is not None else None
        impression = impression or unlinked.get(_impression_key(billing))
        carried = placement if placement is not None else waiting.get(bytes(opportunity), b"")
        found.append(
            SettledFact(
                decision_id=number,
                app_id=app_id,
                billable_type=billable_type,
                fact_at=fact_at,
                fact_id=billable_fact_id(billing),
                billing_key=billing,
                placement=bytes(carried).decode(),
                creative=_creative(impression)
                if impression is not None or not key
                else _stated_creative(tx, _statements_of_impression(tx, of, key, app_id), billing),
                opportunity=decision.subject.opportunity,
                versions=decision.versions,
                reason=decision.reason,
                decided_at=decision.at,
            )
        )
    return found


def _impressions_by_key(
    tx: Tx, rows: Sequence[Row], impressions: Mapping[bytes, int], decisions: Mapping[int, Decision]
) -> dict[str, Decision]:
    """The impressions of clicks that no closure leads to, as facts of the first release have none, by billing key."""
    unlinked = [
        _impression_key(billing)
        for number, _, billable_type, _, _, closure, _ in rows
        if billable_type == BILLABLE_CLICK
        and impressions.get(bytes(closure or b"")) not in decisions
        and number in decisions
        and (billing := billing_key_of(decisions[number])) is not None
    ]
    found = decisions_of_billing_keys(tx, unlinked) if unlinked else {}
    return {key: one.decision for key, every in found.items() for one in every if billing_key_of(one.decision) == key}


def _impression_key(click: str) -> str:
    return f"{click.removesuffix(BILLABLE_CLICK)}{BILLABLE_IMPRESSION}"


def _creative(impression: Decision | None) -> str:
    return impression.values[_CREATIVE] if impression is not None and len(impression.values) > _CREATIVE else ""


def _statements_of_impression(tx: Tx, impression: int | None, closure: bytes, app_id: str) -> Iterable[Statement]:
    """The statements that may count the impression of a click, whose decision left the store, and maybe its fact.

    A closure that an earlier release reduced, or wrote since, does not name it: then they are all of the app.
    """
    if impression is not None:
        return statements_of_facts(tx, [impression])
    bodies = tx.fetch(Q["bodies_of_closures"], rows=[(closure,)])
    stated_in = statement_of_impression(bytes(bodies[0][1])) if bodies else None
    return statements(tx, app_id) if stated_in is None else [statement_of_number(tx, *stated_in)]


def _stated_creative(tx: Tx, of: Iterable[Statement], click: str) -> str:
    """The creative of the impression of a click, by the statement that counts it.

    Raises StoreCorrupt where no statement says it: a click must not be priced as if it had none.
    """
    key = _impression_key(click)
    for statement in of:
        for fact in facts_of_statement(tx, statement):
            if fact.billing_key == key:
                return fact.creative  # maybe as a mask, by which a rate is found all the same
    raise StoreCorrupt(
        "store_corrupt",
        f"{click} is priced by the creative of its impression, whose decision was purged or lost, and no statement "
        "names the creative: check the statements of the app (`patra attribution statement export`, then `verify`) "
        "and restore the store from a backup that has them whole",
    )
