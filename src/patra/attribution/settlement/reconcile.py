"""The counterparty's list against ours: every billing key that is not the same on both sides, as a difference.

Their list is CSV with a header: `billingKey`, or `responseReference`, `renderAttemptId` and `billableType`; where there
is a `priceMicros` or a `currency`, it is compared too. Names of columns are taken without regard to case, `_` and `-`;
fields are separated by the comma, semicolon or tab that the header has most of. A row that cannot be read is a
difference of its own, so it hides no other. A list that ends within a quote is refused: the rows behind the quote would
be reported as missing.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain

import msgspec

from patra.attribution.contract.keys import billing_key
from patra.attribution.settlement.export import cell_text
from patra.attribution.settlement.rate_card import BILLABLE_TYPES
from patra.attribution.settlement.statement import StatementFact
from patra.kernel.errors import Invalid

MAX_PRICE_DIGITS = 18
MAX_SHOWN_CHARS = 100
"""The content of a row that cannot be read, cut to this many characters."""
_SEPARATORS = ",;\t"


class DifferenceKind(StrEnum):
    OURS_ONLY = "ours_only"
    THEIRS_ONLY = "theirs_only"
    THEIRS_TWICE = "theirs_twice"
    PRICE = "price_differs"
    CURRENCY = "currency_differs"
    ROW = "row_unreadable"


class TheirFact(msgspec.Struct, frozen=True, kw_only=True):
    """One row of their list; `problem` says why it cannot be read, `billing_key` is then what it holds."""

    billing_key: str
    price_micros: int | None = None
    currency: str = ""
    line: int = 0
    problem: str = ""


class Difference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One billing key that is not the same on both sides, and why."""

    kind: DifferenceKind
    billing_key: str
    ours_micros: int | None = None
    theirs_micros: int | None = None
    times: int = 1
    """How often it stands in their list."""
    explanation: str = ""
    decisions: list[str] = []
    """Our decisions on the key: instant, action and reason code."""
    line: int = 0
    """Where it first stands in their list; 0 where it does not."""
    similar_key: str = ""
    """The key of the other side that differs from it only by case or by spaces."""


def their_facts(lines: Iterable[str]) -> list[TheirFact]:
    """Read their list; one without the columns, or that is not text, is refused as a whole."""
    try:
        return _read(iter(lines))
    except UnicodeDecodeError:
        raise Invalid(
            "reconcile_unreadable", "the list is not UTF-8 text", advice="save it as CSV in UTF-8 (not UTF-16)"
        ) from None


def _read(lines: Iterator[str]) -> list[TheirFact]:
    first = next(lines, "")
    separator = max(_SEPARATORS, key=first.count)
    record = _Record(chain([first], lines))
    rows = csv.reader(record, delimiter=separator)
    try:
        header = [_column(name) for name in next(rows, list[str]())]
        if "billingkey" not in header and not {"responsereference", "renderattemptid", "billabletype"} <= set(header):
            raise Invalid(
                "reconcile_columns_missing",
                "the header names neither billingKey nor responseReference, renderAttemptId and billableType",
                place="line 1",
            )
        text, found = record.take_lines(), list[TheirFact]()
        for row in rows:
            text = record.take_lines()
            if any(cell.strip() for cell in row):
                found.append(_their_fact(header, row, rows.line_num - len(text) + 1, rows.line_num))
        if _ends_in_a_quote(text, separator):
            place = f"line {rows.line_num - len(text) + 1}"
            raise Invalid("reconcile_unreadable", "a quote is opened here and never closed", place=place)
    except csv.Error as error:
        raise Invalid("reconcile_unreadable", f"the list is not CSV: {error}", place=f"line {rows.line_num}") from None
    return found


class _Record:
    """Lines on their way to the reader, with those of the row that is being read."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._source = lines
        self.lines: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._source)
        self.lines.append(line)
        return line

    def take_lines(self) -> list[str]:
        """The lines of the row that was read; the next row starts with none."""
        taken, self.lines = self.lines, []
        return taken


def _ends_in_a_quote(row: Sequence[str], separator: str) -> bool:
    """Whether the last row of a list ends before its quote does."""
    try:
        list(csv.reader(row, delimiter=separator, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return False


def _their_fact(header: Sequence[str], cells: Sequence[str], line: int, end: int) -> TheirFact:
    row = dict(zip(header, (cell.strip() for cell in cells), strict=False))
    price = row.get("pricemicros", "")
    key, reference = cell_text(row.get("billingkey", "")), cell_text(row.get("responsereference", ""))
    if not key and reference and row.get("renderattemptid"):
        kind = row.get("billabletype", "")
        kind = kind if kind in BILLABLE_TYPES else f"billable_{kind}"
        key = billing_key(reference, row["renderattemptid"], kind)
    if key.count("|") < 2 or key.rpartition("|")[2] not in BILLABLE_TYPES:
        shown = ",".join(cells)[:MAX_SHOWN_CHARS]
        problem = f"no billing key of {' or '.join(BILLABLE_TYPES)}"
        if end > line:
            problem += f"; a quote makes one row of it up to line {end}"
        return TheirFact(billing_key=shown, line=line, problem=problem)
    if price and not (price.isascii() and price.isdecimal() and len(price) <= MAX_PRICE_DIGITS):
        return TheirFact(
            billing_key=key,
            line=line,
            problem=f"the price {price[:MAX_SHOWN_CHARS]!r} is not an integer of micro-units",
        )
    return TheirFact(
        billing_key=key, price_micros=int(price) if price else None, currency=row.get("currency", ""), line=line
    )


def _column(name: str) -> str:
    return name.strip().lstrip("\ufeff").lower().replace("_", "").replace("-", "").replace(" ", "")


def differences(ours: Sequence[StatementFact], theirs: Sequence[TheirFact]) -> list[Difference]:
    """Every difference, by billing key; what is the same on both sides is left out."""
    return sorted(_differences(ours, theirs), key=lambda one: (one.billing_key, one.kind, one.line))


def _differences(ours: Sequence[StatementFact], theirs: Sequence[TheirFact]) -> Iterator[Difference]:
    mine = {fact.billing_key: fact for fact in ours}
    listed: dict[str, list[TheirFact]] = {}
    for row in theirs:
        if row.problem:
            yield Difference(
                kind=DifferenceKind.ROW,
                billing_key=row.billing_key,
                line=row.line,
                explanation=f"line {row.line} of their list: {row.problem}",
            )
        if not row.problem or row.billing_key in mine:  # a row of ours whose price is illegible is not a missing one
            listed.setdefault(row.billing_key, []).append(row)
    spelled = {_spelling(key): key for key in mine.keys() - listed.keys()}
    respelled = {spelled[of]: key for key in listed.keys() - mine.keys() if (of := _spelling(key)) in spelled}
    similar = {key: own for own, key in respelled.items()}
    for key, rows in listed.items():
        yield from _listed_differences(key, mine.get(key), rows, similar.get(key, ""))
    for key in mine.keys() - listed.keys():
        yield Difference(
            kind=DifferenceKind.OURS_ONLY,
            billing_key=key,
            ours_micros=mine[key].price_micros,
            similar_key=respelled.get(key, ""),
        )


def _listed_differences(
    key: str, fact: StatementFact | None, rows: Sequence[TheirFact], similar: str
) -> Iterator[Difference]:
    """The differences of one billing key of their list."""
    first = rows[0]
    if len(rows) > 1:
        yield Difference(
            kind=DifferenceKind.THEIRS_TWICE,
            billing_key=key,
            times=len(rows),
            theirs_micros=first.price_micros,
            line=first.line,
        )
    if fact is None:
        yield Difference(
            kind=DifferenceKind.THEIRS_ONLY,
            billing_key=key,
            theirs_micros=first.price_micros,
            line=first.line,
            similar_key=similar,
        )
        return
    prices = {row.price_micros: row for row in reversed(rows) if row.price_micros not in {None, fact.price_micros}}
    for row in sorted(prices.values(), key=lambda one: one.line):
        yield Difference(
            kind=DifferenceKind.PRICE,
            billing_key=key,
            ours_micros=fact.price_micros,
            theirs_micros=row.price_micros,
            line=row.line,
            explanation=_price_explained(fact),
        )
    other = next((row for row in rows if row.currency and row.currency.upper() != fact.currency), None)
    if other is not None:
        yield Difference(
            kind=DifferenceKind.CURRENCY,
            billing_key=key,
            ours_micros=fact.price_micros,
            theirs_micros=other.price_micros,
            line=other.line,
            explanation=f"our price is in {fact.currency or 'no currency'}, theirs in {other.currency}",
        )


def _price_explained(fact: StatementFact) -> str:
    if fact.price_micros is None:
        return f"we have no price for it: no rate was valid at its factAt, {fact.fact_at}"
    return f"our price is that of rate version {fact.rate_version}, valid at its factAt, {fact.fact_at}"


def _spelling(key: str) -> str:
    """A key without case and spaces."""
    return "".join(key.casefold().split())
