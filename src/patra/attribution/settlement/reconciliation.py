"""The shell of `reconcile`: reads our side of a period and explains each difference by the decision that made it."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from patra.attribution.decision.decisions import billable_fact, billing_key_of
from patra.attribution.decision.output_records import RecordType
from patra.attribution.retention import AUDITS, FACTS
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.period import Period
from patra.attribution.settlement.reconcile import Difference, DifferenceKind, TheirFact, differences
from patra.attribution.settlement.statement import statement_fact
from patra.attribution.settlement.statement_store import all_rates, facts_of_statement, statement_file, statements
from patra.attribution.storage.key_search import decisions_of_billing_keys
from patra.attribution.storage.read import Archived
from patra.attribution.storage.sql import Q, mark
from patra.kernel.clock import format_instant
from patra.kernel.db import Database, Row, Tx

EXPLAIN_BATCH_KEYS = 2_000
"""Differences whose decisions are looked for together."""
_NEVER_RECEIVED = "no event of this key was ever received from this app"


def reconcile(
    db: Database, app_id: str, period: Period, theirs: Sequence[TheirFact], *, other_apps: bool = True
) -> list[Difference]:
    """Their list against our statement of the period, or against what counts in it while it is not closed.

    `other_apps`: whether the reader may know of facts of other apps; if not, their keys are as unknown as any.
    """
    file = db.read(lambda tx: statement_file(tx, app_id, period.name))
    if file is None:
        rates = db.read(all_rates)
        ours = [
            statement_fact(fact, rates, period.name, adjustment=False)
            for fact in settled_facts(db, period.begin, period.end, app_id)
        ]
    else:
        ours = file.facts
    found = differences(ours, theirs)
    for start in range(0, len(found), EXPLAIN_BATCH_KEYS):
        page = found[start : start + EXPLAIN_BATCH_KEYS]
        found[start : start + EXPLAIN_BATCH_KEYS] = db.read(
            lambda tx, page=page: _explained_page(tx, page, app_id, other_apps=other_apps)
        )
    if unknown := {one.billing_key for one in found if one.explanation == _NEVER_RECEIVED}:
        purged = db.read(lambda tx: _explained_without_decisions(tx, unknown, app_id, other_apps=other_apps))
        found = [
            msgspec.structs.replace(one, explanation=purged.get(one.billing_key, one.explanation))
            if one.explanation == _NEVER_RECEIVED
            else one
            for one in found
        ]
    return found


def _explained_page(tx: Tx, page: Sequence[Difference], app_id: str, *, other_apps: bool) -> list[Difference]:
    every = decisions_of_billing_keys(tx, {one.billing_key for one in page if one.kind is not DifferenceKind.ROW})
    found = {
        key: [one for one in decisions if other_apps or one.decision.subject.app == app_id]
        for key, decisions in every.items()
    }
    theirs_only = [one.billing_key for one in page if one.kind is DifferenceKind.THEIRS_ONLY]
    rows: list[Row] = [(one.id,) for key in theirs_only for one in found.get(key, ())]
    periods: dict[int, str] = dict(tx.fetch(Q["periods_of_facts"], rows=rows))
    return [_explain_difference(one, found.get(one.billing_key, ()), app_id, periods) for one in page]


def _explained_without_decisions(tx: Tx, unknown: Collection[str], app_id: str, *, other_apps: bool) -> dict[str, str]:
    """Why keys without a decision in the store are not in ours, where retention may have taken their decisions."""
    if not any(mark(tx, name) for name in (AUDITS, FACTS)):
        return {}
    texts = dict.fromkeys(unknown, "no decision on this key is left in the store: `patra attribution history ask`")
    for statement in statements(tx, "" if other_apps else app_id):
        for fact in facts_of_statement(tx, statement):
            if fact.billing_key in unknown:
                text = f"billed at factAt {fact.fact_at}, in the statement of {statement.period}"
                texts[fact.billing_key] = _whose(statement.app_id, app_id) + text
    return texts


def _explain_difference(
    difference: Difference, found: Sequence[Archived], app_id: str, periods: Mapping[int, str]
) -> Difference:
    own = [one for one in found if one.decision.subject.app == app_id]
    decisions = [_decision_text(one) for one in own]
    match difference.kind:
        case DifferenceKind.ROW | DifferenceKind.CURRENCY | DifferenceKind.PRICE:
            text = difference.explanation
        case DifferenceKind.THEIRS_TWICE:
            text = f"their list has it {difference.times} times; a billing key is billed once"
        case DifferenceKind.OURS_ONLY if difference.similar_key:
            text = f"their list has {difference.similar_key!r}: keys are compared exactly, with case and spaces"
        case DifferenceKind.OURS_ONLY:
            text = f"billed by us: {decisions[0]}" if decisions else "billed by us"
        case DifferenceKind.THEIRS_ONLY if difference.similar_key:
            text = f"ours is {difference.similar_key!r}: keys are compared exactly, with case and spaces"
        case DifferenceKind.THEIRS_ONLY:
            text = _theirs_only(difference.billing_key, own or found, app_id, periods)
    return msgspec.structs.replace(difference, explanation=text, decisions=decisions)


def _theirs_only(key: str, found: Sequence[Archived], app_id: str, periods: Mapping[int, str]) -> str:
    """Why a key of their list is not in ours: billed elsewhere, not billed, of another app, or unknown."""
    if not found:
        return _NEVER_RECEIVED
    whose = _whose(found[0].decision.subject.app, app_id)
    billed = next((one for one in found if billing_key_of(one.decision) == key), None)
    if billed is None:
        return f"{whose}not billable: {found[-1].decision.reason}"
    fact_at = (billable_fact(billed.decision) or {})["factAt"]
    if billed.id in periods:
        return f"{whose}billed at factAt {fact_at}, in the statement of {periods[billed.id]}"
    status = billed.last_status(RecordType.BILLABLE)
    return f"{whose}billed by us at factAt {fact_at}, outside this statement (record {status})"


def _whose(app: str, asked: str) -> str:
    return "" if app == asked else f"the events came from another app, {app!r}: "


def _decision_text(one: Archived) -> str:
    return f"{format_instant(one.decision.at)} {one.decision.action} {one.decision.reason}"
