"""A log under other rules: the facts and the money that it would have led to, beside the actual ones.

Both runs decide the same log from its beginning on stores of their own; nothing live is touched, and the live rules
stay as they are. Money is the total of the facts at the given prices (`settlement.rate_card`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat

import msgspec

from patra.attribution.contract.rules import Rules
from patra.attribution.replay import Line, ReplayOutput, replay
from patra.attribution.settlement.facts import settled_facts
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.statement import StatementFact, statement_fact
from patra.kernel.db import Database

GROUP_BATCHES = 32
_ALWAYS = 2**62


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One figure under the live rules and under the others."""

    what: str
    live: int
    other: int

    @property
    def difference(self) -> int:
        return self.other - self.live


class FactDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A billable fact that only one of the two has."""

    billing_key: str
    billable_type: str
    fact_at: str
    placement: str
    creative: str
    price_micros: int | None
    currency: str
    only: str
    """The name of the rules that bill it."""
    decisions: list[str]
    """Under the rules that do not: what was decided about its closure instead."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Everything in which two runs of one log differ; `figures` also has what is equal."""

    live: str
    other: str
    figures: list[Compared]
    facts: list[FactDifference]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its output, and its billable facts as settlement prices them."""

    rules: str
    output: ReplayOutput
    facts: list[StatementFact]


def outcome(lines: Iterable[Line], db: Database, rules: Rules, rates: Sequence[Rate]) -> Outcome:
    """Decide a log on an empty, migrated store under some rules."""
    output = replay(lines, db, group=repeat(GROUP_BATCHES), rules=rules)
    facts = [statement_fact(fact, rates, "", adjustment=False) for fact in settled_facts(db, 0, _ALWAYS)]
    return Outcome(rules=rules.name, output=output, facts=facts)


def difference(live: Outcome, other: Outcome) -> Difference:
    """What the other rules would have changed."""
    ours, theirs = _figures(live), _figures(other)
    names = [*ours, *(name for name in theirs if name not in ours)]
    figures = [Compared(what=name, live=ours.get(name, 0), other=theirs.get(name, 0)) for name in names]
    mine = {fact.billing_key: fact for fact in live.facts}
    his = {fact.billing_key: fact for fact in other.facts}
    facts = [_only(mine[key], live, other) for key in sorted(mine.keys() - his.keys())]
    facts += [_only(his[key], other, live) for key in sorted(his.keys() - mine.keys())]
    return Difference(live=live.rules, other=other.rules, figures=figures, facts=facts)


def _figures(run: Outcome) -> dict[str, int]:
    """Counts and money by name, in the order in which they are shown."""
    billed = Counter(fact.billable_type for fact in run.facts)
    money: Counter[str] = Counter()
    for fact in run.facts:
        money[f"micros {fact.currency}" if fact.currency else "facts without a price"] += (
            1 if fact.price_micros is None else fact.price_micros
        )
    acks = Counter(
        f"answers {item['ackStatus']} {item['ackReasonCode']}"
        for ack in run.output.acks
        for item in ack.get("ackItems", [])
    )
    facts = Counter(f"facts {fact['attributionType']} {fact['recordStatus']}" for fact in run.output.attribution)
    closures = Counter(f"closures {one['state']} {one['terminalSource'] or ''}".rstrip() for one in run.output.closures)
    found = {name: billed[name] for name in ("billable_impression", "billable_click")}
    for counted in (money, facts, closures, acks):
        found |= dict(sorted(counted.items()))
    return found


def _only(fact: StatementFact, by: Outcome, not_by: Outcome) -> FactDifference:
    closure = fact.billing_key.rpartition("|")[0]
    sources = {
        record["sourceKeys"]["sourceEventId"]
        for record in not_by.output.records
        if record["relationKeys"]["closureKeyOrNA"] == closure
    }
    decided = [
        f"{audit['decidedAt']} {audit['decisionAction']} {audit['decisionReasonCode']}"
        for audit in not_by.output.audits
        if audit["sourceEventId"] in sources
    ]
    return FactDifference(
        billing_key=fact.billing_key,
        billable_type=fact.billable_type,
        fact_at=fact.fact_at,
        placement=fact.placement,
        creative=fact.creative,
        price_micros=fact.price_micros,
        currency=fact.currency,
        only=by.rules,
        decisions=decided,
    )
