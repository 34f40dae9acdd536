"""A statement of a closed period: its facts with their prices, their totals, and hashes that hold it together.

`factsHash` is the sha256 of the canonical JSON of the facts in order, `hash` that of everything else in the statement,
`previousHash` the hash of the app's statement before. So a reader of the file can count, add and hash again without
the store (`verification`), and a statement that was changed breaks the chain of all that follow it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

import msgspec

from patra.attribution.contract.keys import billable_fact_id
from patra.attribution.contract.versions import VERSIONS, Versions
from patra.attribution.decision.closure_rules import BILLABLE_IMPRESSION
from patra.attribution.settlement.dimensions import SettledFact
from patra.attribution.settlement.rate_card import Rate, rate_for
from patra.kernel.canonical import canonical, fingerprint, key16
from patra.kernel.clock import format_instant, parse_instant
from patra.kernel.errors import count_phrase
from patra.kernel.safety.redact import masked_label

FORMAT = "patra.attribution.statement/1"


class StatementFact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One billable fact as it was settled."""

    fact_id: str
    billing_key: str
    billable_type: str
    fact_at: str
    placement: str
    creative: str
    opportunity: str
    currency: str
    price_micros: int | None
    rate_version: int | None
    adjustment_flag: bool
    """It belongs to an earlier period, whose statement it came too late for."""
    period: str
    """The period that it belongs to."""


class StatementLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Facts of the same period, placement, creative, type and price."""

    period: str
    adjustment_flag: bool
    placement: str
    creative: str
    billable_type: str
    currency: str
    price_micros: int | None
    count: int
    amount_micros: int


class Statement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A closed period of one app, without the list of its facts."""

    format: str = FORMAT
    app_id: str
    period: str
    begin: str
    end: str
    number: int
    closed_at: str
    rule_versions: list[Versions]
    lines: list[StatementLine]
    impressions: int
    clicks: int
    adjustments: int
    unpriced: int
    amounts: dict[str, int]
    """Micro-units by currency."""
    facts_hash: str
    previous_hash: str | None
    hash: str = ""


class StatementFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is exported, and what the other side verifies."""

    statement: Statement
    facts: list[StatementFact]


def statement_fact(fact: SettledFact, rates: Sequence[Rate], period: str, *, adjustment: bool) -> StatementFact:
    """A fact with its price; the period is the one that it belongs to.

    What the app named placement, creative and opportunity is handed on with the statement: a name that holds an e-mail
    address or a key is masked, distinct for each name. Keys stay as they are, or nobody could reconcile.
    """
    rate = rate_for(
        rates,
        app_id=fact.app_id,
        placement=fact.placement,
        creative=fact.creative,
        billable_type=fact.billable_type,
        at=fact.fact_at,
    )
    return StatementFact(
        fact_id=fact.fact_id,
        billing_key=fact.billing_key,
        billable_type=fact.billable_type,
        fact_at=format_instant(fact.fact_at),
        placement=masked_label(fact.placement),
        creative=masked_label(fact.creative),
        opportunity=masked_label(fact.opportunity),
        currency=rate.currency if rate else "",
        price_micros=rate.price_micros if rate else None,
        rate_version=rate.version if rate else None,
        adjustment_flag=adjustment,
        period=period,
    )


def in_order(facts: Iterable[StatementFact]) -> list[StatementFact]:
    """The order of a statement: its own period first, then adjustments; by `factAt`, then by billing key."""
    return sorted(facts, key=_place)


def _place(fact: StatementFact) -> tuple[bool, str, str]:
    return fact.adjustment_flag, fact.fact_at, fact.billing_key


def make_statement(
    facts: Sequence[StatementFact],
    *,
    app_id: str,
    period: str,
    begin: int,
    end: int,
    closed_at: int,
    versions: Iterable[int],
    previous: Statement | None,
) -> StatementFile:
    """The statement of facts that are in order."""
    lines = lines_of(facts)
    unsigned = Statement(
        app_id=app_id,
        period=period,
        begin=format_instant(begin),
        end=format_instant(end),
        number=previous.number + 1 if previous else 1,
        closed_at=format_instant(closed_at),
        rule_versions=[VERSIONS[number] for number in sorted(set(versions))],
        lines=lines,
        impressions=sum(fact.billable_type == BILLABLE_IMPRESSION for fact in facts),
        clicks=sum(fact.billable_type != BILLABLE_IMPRESSION for fact in facts),
        adjustments=sum(fact.adjustment_flag for fact in facts),
        unpriced=sum(fact.price_micros is None for fact in facts),
        amounts=amounts_of(lines),
        facts_hash=facts_hash(facts),
        previous_hash=previous.hash if previous else None,
    )
    return StatementFile(statement=msgspec.structs.replace(unsigned, hash=statement_hash(unsigned)), facts=list(facts))


LineKey = tuple[bool, str, str, str, str, str, int]
"""What the facts of one line have in common; a price of -1 is none."""


def lines_of(facts: Iterable[StatementFact]) -> list[StatementLine]:
    return _lines(Counter(map(_line_key, facts)))


def _line_key(fact: StatementFact) -> LineKey:
    return (
        fact.adjustment_flag,
        fact.period,
        fact.placement,
        fact.creative,
        fact.billable_type,
        fact.currency,
        -1 if fact.price_micros is None else fact.price_micros,
    )


def _lines(found: Mapping[LineKey, int]) -> list[StatementLine]:
    return [
        StatementLine(
            adjustment_flag=adjustment,
            period=period,
            placement=placement,
            creative=creative,
            billable_type=billable_type,
            currency=currency,
            price_micros=None if price < 0 else price,
            count=count,
            amount_micros=max(price, 0) * count,
        )
        for (adjustment, period, placement, creative, billable_type, currency, price), count in sorted(found.items())
    ]


def amounts_of(lines: Iterable[StatementLine]) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in lines:
        if line.price_micros is not None:
            found[line.currency] = found.get(line.currency, 0) + line.amount_micros
    return dict(sorted(found.items()))


def facts_hash(facts: Sequence[StatementFact]) -> str:
    return fingerprint(list(facts))


def statement_hash(statement: Statement) -> str:
    return fingerprint(msgspec.structs.replace(statement, hash=""))


def verification(files: Sequence[StatementFile]) -> list[str]:
    """What is wrong with statements, the oldest first; nothing where every count, amount and hash is right."""
    wrong = [f"{_name(file.statement)}: {problem}" for file in files for problem in _problems(file)]
    for before, after in pairwise(file.statement for file in files):
        if before.app_id != after.app_id:
            wrong.append(f"{_name(after)}: another app than the statement before")
        elif after.previous_hash != before.hash or after.number != before.number + 1:
            wrong.append(f"{_name(after)}: does not follow {_name(before)}")
    return [*wrong, *_billed_before(files)]


def _billed_before(files: Sequence[StatementFile]) -> Iterable[str]:
    """Billing keys of a statement that an earlier one has billed."""
    billed: dict[str, str] = {}
    for file in files:
        own = {fact.billing_key for fact in file.facts}
        if twice := sorted(own & billed.keys()):
            key = twice[0]
            yield f"{_name(file.statement)}: {count_phrase(len(twice), 'fact')} billed before, {key} in {billed[key]}"
        billed |= dict.fromkeys(own, _name(file.statement))


def _problems(file: StatementFile) -> Iterable[str]:
    check = StatementCheck(file.statement)
    check.add(file.facts)
    return check.problems()


class StatementCheck:
    """Counts, adds and hashes the facts of a statement again, which are given some at a time and not kept."""

    def __init__(self, statement: Statement) -> None:
        self._statement = statement
        self._hash = sha256(b"[")
        self._keys: set[bytes] = set()
        self._counts: Counter[LineKey] = Counter()
        self._facts = 0
        self._last: tuple[bool, str, str] | None = None
        self._unordered = self._misplaced = self._foreign = False

    def add(self, facts: Iterable[StatementFact]) -> None:
        """Take the next facts, in their order."""
        for fact in facts:
            place = _place(fact)
            self._hash.update((b"," if self._facts else b"") + canonical(fact))
            self._unordered |= self._last is not None and place < self._last
            self._misplaced |= _is_misplaced(fact, self._statement)
            self._foreign |= not _has_own_keys(fact)
            self._keys.add(key16(fact.billing_key))
            self._counts[_line_key(fact)] += 1
            self._facts += 1
            self._last = place

    def problems(self) -> Iterator[str]:
        """What is wrong, once every fact was given."""
        statement, hashed = self._statement, self._hash.copy()
        hashed.update(b"]")
        lines = _lines(self._counts)
        if statement.format != FORMAT:
            yield f"format is not {FORMAT}"
        if statement_hash(statement) != statement.hash:
            yield "hash does not match the statement"
        if hashed.hexdigest() != statement.facts_hash:
            yield "factsHash does not match the facts"
        if self._unordered:
            yield "the facts are not in order"
        if len(self._keys) != self._facts:
            yield "a billing key stands twice"
        if lines != statement.lines:
            yield "the lines are not what the facts come to"
        if amounts_of(statement.lines) != statement.amounts:
            yield "the amounts are not what the lines come to"
        impressions = sum(line.count for line in lines if line.billable_type == BILLABLE_IMPRESSION)
        if (impressions, self._facts - impressions) != (statement.impressions, statement.clicks):
            yield "the counts are not those of the facts"
        if statement.adjustments != sum(line.count for line in lines if line.adjustment_flag):
            yield "the number of adjustments is not that of the facts"
        if statement.unpriced != sum(line.count for line in lines if line.price_micros is None):
            yield "the number of facts without a price is not that of the facts"
        if self._misplaced:
            yield "a fact lies outside the period, or is an adjustment of the period itself"
        if self._foreign:
            yield "a factId or billableType is not that of its billing key"


def _is_misplaced(fact: StatementFact, statement: Statement) -> bool:
    """Whether a fact does not belong where it stands: its own period, or an earlier one as an adjustment."""
    at, begin, end = (parse_instant(text) for text in (fact.fact_at, statement.begin, statement.end))
    if at is None or begin is None or end is None or (fact.period == statement.period) is fact.adjustment_flag:
        return True
    return not (at < begin if fact.adjustment_flag else begin <= at < end)


def _has_own_keys(fact: StatementFact) -> bool:
    return fact.fact_id == billable_fact_id(fact.billing_key) and fact.billing_key.endswith(f"|{fact.billable_type}")


def _name(statement: Statement) -> str:
    return f"{statement.app_id} {statement.period}"
