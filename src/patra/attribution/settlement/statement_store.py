"""Rows of rates and statements. Both are only ever added."""

from collections.abc import Iterator

import msgspec

from patra.attribution.intake.zstd import compress_body, decompress_body
from patra.attribution.settlement.rate_card import Rate, check_rate
from patra.attribution.settlement.statement import Statement, StatementFact, StatementFile
from patra.attribution.storage.sql import Q
from patra.kernel.clock import parse_instant
from patra.kernel.db import Row, Tx
from patra.kernel.errors import Invalid

PAGE_FACTS = 5_000
_decode_statement = msgspec.json.Decoder(Statement).decode
_decode_facts = msgspec.json.Decoder(list[StatementFact]).decode


def add_rate(tx: Tx, rate: Rate, now: int) -> int:
    """Add a rate; gives its version."""
    check_rate(rate)
    params = {name: value for name, value in msgspec.structs.asdict(rate).items() if name != "version"}
    return tx.fetch(Q["add_rate"], {**params, "now": now})[0][0]


def all_rates(tx: Tx) -> list[Rate]:
    return [
        Rate(
            version=version,
            app_id=app_id,
            placement=placement,
            creative=creative,
            billable_type=billable_type,
            currency=currency,
            price_micros=price,
            valid_from=valid_from,
            valid_to=valid_to,
        )
        for version, app_id, placement, creative, billable_type, currency, price, valid_from, valid_to in tx.fetch(
            Q["rates"]
        )
    ]


def add_statement(tx: Tx, file: StatementFile, decision_ids: list[int]) -> None:
    """Write a statement; refused where the period, or the number, has one already."""
    statement = file.statement
    key = {"app_id": statement.app_id, "number": statement.number}
    added = tx.execute(
        Q["add_statement"],
        {
            **key,
            "period": statement.period,
            "begin": parse_instant(statement.begin),
            "end": parse_instant(statement.end),
            "closed_at": parse_instant(statement.closed_at),
            "hash": statement.hash,
            "body": msgspec.json.encode(statement),
        },
    )
    if not added:
        raise Invalid("period_closed", f"{statement.app_id} {statement.period} was closed meanwhile")
    for page, start in enumerate(range(0, len(file.facts), PAGE_FACTS)):
        body = compress_body(msgspec.json.encode(file.facts[start : start + PAGE_FACTS]))
        tx.execute(Q["add_statement_page"], {**key, "page": page, "body": body})
    rows: list[Row] = [(number,) for number in sorted(decision_ids)]
    tx.execute(Q["add_statement_facts"], key, rows=rows)


def statements(tx: Tx, app_id: str = "") -> list[Statement]:
    """Statements in their order, without their facts."""
    return [_decode_statement(body) for (body,) in tx.fetch(Q["statements"], {"app_id": app_id})]


def statement_file(tx: Tx, app_id: str, period: str) -> StatementFile | None:
    """A statement with its facts; None where the period is not closed."""
    found = tx.fetch(Q["statement"], {"app_id": app_id, "period": period})
    if not found:
        return None
    statement = _decode_statement(found[0][0])
    return StatementFile(statement=statement, facts=list(facts_of_statement(tx, statement)))


def facts_of_statement(tx: Tx, statement: Statement) -> Iterator[StatementFact]:
    """The facts of a statement, in their order."""
    for (body,) in tx.fetch(Q["statement_pages"], {"app_id": statement.app_id, "number": statement.number}):
        yield from _decode_facts(decompress_body(bytes(body)))


def statement_of_number(tx: Tx, app_id: str, number: int) -> Statement:
    """A statement that is there, without its facts."""
    return _decode_statement(tx.fetch(Q["statement_of_number"], {"app_id": app_id, "number": number})[0][0])


def facts_of_page(tx: Tx, app_id: str, number: int, page: int) -> list[StatementFact]:
    """The facts of one page of a statement; none behind the last."""
    found = tx.fetch(Q["statement_page"], {"app_id": app_id, "number": number, "page": page})
    return _decode_facts(decompress_body(bytes(found[0][0]))) if found else []


def closed_periods(tx: Tx, app_id: str) -> list[tuple[str, int, int]]:
    """Name, begin and end of the app's closed periods, the oldest first."""
    return [(period, begin, end) for period, begin, end in tx.fetch(Q["closed_periods"], {"app_id": app_id})]


def facts_in_statements(tx: Tx, decision_ids: list[int]) -> set[int]:
    """Which facts are in a statement already."""
    rows: list[Row] = [(number,) for number in decision_ids]
    return {number for (number,) in tx.fetch(Q["stated_facts"], rows=rows)}


def statement_of_key(tx: Tx, key: str) -> Statement | None:
    """The statement with a hash, or of `app/period`."""
    app_id, _, period = key.rpartition("/")
    found = tx.fetch(Q["statement_of_key"], {"hash": key, "app_id": app_id, "period": period})
    return _decode_statement(found[0][0]) if found else None


def statements_of_facts(tx: Tx, decision_ids: list[int]) -> list[Statement]:
    """The statements that the facts of some decisions stand in."""
    rows = [(number,) for number in decision_ids]
    return [_decode_statement(body) for (body,) in tx.fetch(Q["statements_of_facts"], rows=rows)] if rows else []
