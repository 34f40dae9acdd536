"""Closing a period: check that it may be closed, read its facts, write an immutable statement.

Facts are read before the transaction that writes, so that the writer of events does not wait: a fact that counts once
counts for ever, and one that arrives meanwhile is an adjustment of the next statement.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from patra.attribution.settlement.dimensions import SettledFact
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.statement import (
    StatementFact,
    StatementFile,
    amounts_of,
    in_order,
    lines_of,
    make_statement,
    statement_fact,
)
from patra.attribution.settlement.statement_store import (
    add_statement,
    all_rates,
    closed_periods,
    facts_in_statements,
    statements,
)
from patra.attribution.storage.billing_tree import BillingTree, billed_twice
from patra.attribution.storage.sql import Q
from patra.attribution.verify import DERIVED_CHECKS, REBUILD_ADVICE, Finding, verify
from patra.kernel.canonical import MAX_INTEGER
from patra.kernel.clock import HOUR, SECOND, Clock, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Invalid, count_phrase
from patra.kernel.telemetry import get_logger

log = get_logger()

_period = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?").fullmatch


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A month (`2026-10`) or a day (`2026-10-05`) in UTC."""

    name: str
    begin: int
    end: int


def parse_period(name: str) -> Period:
    match = _period(name)
    refusal = Invalid("period_invalid", f"{name!r} is neither a month (2026-10) nor a day (2026-10-05)")
    if match is None:
        raise refusal
    year, month, day = int(match[1]), int(match[2]), int(match[3] or 1)
    try:
        begin = datetime(year, month, day, tzinfo=UTC)
        end = begin + timedelta(days=1) if match[3] else datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise refusal from None
    return Period(name=name, begin=int(begin.timestamp()) * SECOND, end=int(end.timestamp()) * SECOND)


def _log_findings(findings: Sequence[Finding]) -> None:
    log.warning("attribution_derived_data_wrong", findings=len(findings), advice=REBUILD_ADVICE)


def close_period(
    db: Database,
    clock: Clock,
    app_id: str,
    period: Period,
    *,
    allow_unpriced: bool = False,
    tell: Callable[[Sequence[Finding]], object] = _log_findings,
) -> StatementFile:
    """Write the statement of an app for a period; refuses by an error that says what has to happen first.

    `tell` gets what verification found wrong with running sums and indexes, which no statement is made from.
    """
    now = clock.now()
    BillingTree(db, clock).catch_up()
    closed = db.read(lambda tx: closed_periods(tx, app_id))
    db.read(lambda tx: _check_closable(tx, app_id, period, closed, now))
    findings = verify(db, clock).findings
    if found := [one for one in findings if one.check not in DERIVED_CHECKS]:
        raise Invalid(
            "period_unverified",
            f"verification found {len(found)} problem{'s' * (len(found) > 1)} in the facts or what proves them",
            advice="see `patra attribution verify`; no period is closed before these are gone",
        )
    if findings:
        tell(findings)
    own = list(settled_facts(db, period.begin, period.end, app_id))
    late = [
        (name or _period_of(fact.fact_at, like=period), fact)
        for name, begin, end in [*closed, *_gaps(closed)]
        for fact in _unstated_facts(db, begin, end, app_id)
    ]
    rates = db.read(all_rates)
    facts = in_order(
        [statement_fact(fact, rates, period.name, adjustment=False) for fact in own]
        + [statement_fact(fact, rates, name, adjustment=True) for name, fact in late]
    )
    every = [*own, *(fact for _, fact in late)]
    named = {fact.billing_key: fact for fact in every}  # by the app's names: a rate is found by these, not by masks
    unpriced = [named[fact.billing_key] for fact in facts if fact.price_micros is None]
    if unpriced and not allow_unpriced:
        raise Invalid(
            "period_unpriced",
            f"{count_phrase(len(unpriced), 'fact')} without a price: {_name_unpriced(unpriced)}",
            advice="add rates with `patra attribution rate add`, or close with --allow-unpriced",
        )
    _check_amounts(facts)
    file = make_statement(
        facts,
        app_id=app_id,
        period=period.name,
        begin=period.begin,
        end=period.end,
        closed_at=now,
        versions=[fact.versions for fact in every],
        previous=next(iter(db.read(lambda tx: statements(tx, app_id))[-1:]), None),
    )
    db.run(lambda tx: add_statement(tx, file, [fact.decision_id for fact in every]))
    return file


def _check_amounts(facts: Sequence[StatementFact]) -> None:
    """Refuse amounts that a reader of JSON may round: a hash over them would not hold elsewhere."""
    amounts = amounts_of(lines_of(facts))
    if large := [f"{amount} micro-{currency}" for currency, amount in amounts.items() if amount > MAX_INTEGER]:
        raise Invalid(
            "period_amount_too_large",
            f"{', '.join(large)}: a statement holds at most {MAX_INTEGER} of a currency",
            advice="close the days of the month one by one: each has a statement of its own",
        )


MAX_NAMED = 5
"""Kinds of facts without a price that a refusal names."""


def _name_unpriced(unpriced: Sequence[SettledFact]) -> str:
    """Facts without a price by what a rate would have to name, with the number of each and one billing key."""
    kinds: dict[tuple[str, str, str], list[SettledFact]] = {}
    for fact in unpriced:
        kinds.setdefault((fact.billable_type, fact.placement, fact.creative), []).append(fact)
    most = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    texts = [
        f"{len(facts)} {billable_type} of placement {placement or 'none'}, creative {creative or 'none'}"
        f" (the first is {facts[0].billing_key} at {format_instant(facts[0].fact_at)})"
        for (billable_type, placement, creative), facts in most[:MAX_NAMED]
    ]
    return "; ".join(texts) + (f"; and {len(most) - MAX_NAMED} other kinds" if len(most) > MAX_NAMED else "")


def _check_closable(tx: Tx, app_id: str, period: Period, closed: Sequence[tuple[str, int, int]], now: int) -> None:
    if now < period.end:
        raise Invalid("period_not_over", f"{period.name} ends at {format_instant(period.end)}")
    if any(begin < period.end and period.begin < end for _, begin, end in closed):
        detail = f"{app_id} has a statement of {period.name}, or of a part of it"
        raise Invalid("period_closed", detail, advice="`patra attribution statement list` shows it")
    if closed and period.end <= closed[-1][1]:
        raise Invalid("period_out_of_order", f"{app_id} has a statement of a later period, {closed[-1][0]}")
    span = {"first": 0, "last": period.end // HOUR, "begin": 0, "end": period.end, "app_id": app_id}
    if waiting := tx.fetch(Q["undelivered_between"], span)[0][0]:
        raise Invalid(
            "period_undelivered",
            f"the records of {waiting} facts are still on their way to the archive",
            advice="they are taken or given up within 15 minutes; `patra doctor` shows the archive",
        )
    if not closed and _first_between(tx, app_id, 0, now) is None:
        raise Invalid(
            "period_app_unknown",
            f"no billable fact of an app {app_id!r} was ever decided and taken by the archive",
            advice="`patra attribution settle --by app` lists those that have some",
        )
    if (left_out := _first_left_out(tx, app_id, period, closed)) is not None:
        raise Invalid(
            "period_left_out",
            f"{app_id} has billable facts from {format_instant(left_out)} on in no closed period",
            advice="close the earlier period first: a later statement would leave them out for good",
        )
    if twice := billed_twice(tx):
        raise Invalid("period_billed_twice", f"{twice} facts have a billing key that was billed before")


def _first_left_out(tx: Tx, app_id: str, period: Period, closed: Sequence[tuple[str, int, int]]) -> int | None:
    """When the first fact lies that a period between the last closed one and this one would hold."""
    since = max((end for _, _, end in closed), default=0)
    return _first_between(tx, app_id, since, period.begin) if since < period.begin else None


def _gaps(closed: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Spans before the last closed period that none holds: none can be closed for them any more, so they have no name.

    A fact may turn up there late: by its event, or because its record was issued again.
    """
    since, found = 0, list[tuple[str, int, int]]()
    for _, begin, end in sorted(closed, key=lambda one: one[1]):
        if since < begin:
            found.append(("", since, begin))
        since = max(since, end)
    return found


def _period_of(at: int, *, like: Period) -> str:
    """The month or day of an instant, as another period is one."""
    return format_instant(at)[: len(like.name)]


def _first_between(tx: Tx, app_id: str, begin: int, end: int) -> int | None:
    span = {"first": begin // HOUR, "last": end // HOUR, "begin": begin, "end": end, "app_id": app_id}
    return tx.fetch(Q["first_fact_between"], span)[0][0]


def _unstated_facts(db: Database, begin: int, end: int, app_id: str) -> list[SettledFact]:
    """Facts of a closed period that are in no statement."""
    return list(settled_facts(db, begin, end, app_id, without=facts_in_statements))
