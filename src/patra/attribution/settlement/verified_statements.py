"""Says which statements are what their hashes say, so that the facts they count may leave the store.

Each is read and hashed once, page by page and outside of any transaction, since a month of facts takes a while; the
store keeps the result. A statement with a problem is looked at again after a day.
"""

from collections.abc import Iterator

import msgspec
import zstandard

from patra.attribution.settlement.statement import StatementCheck
from patra.attribution.settlement.statement_store import facts_of_page, statement_of_number
from patra.attribution.storage.sql import Q
from patra.kernel.clock import DAY
from patra.kernel.db import Database, Tx
from patra.kernel.errors import StoreCorrupt
from patra.kernel.telemetry import get_logger

log = get_logger()

CHECKER_VERSION = 1
"""Of the rules by which a statement is checked: with another, all are checked again."""
MAX_CHECKS = 20
"""Statements that are checked in one turn."""


class VerifiedStatements:
    """The statements that were checked and are what they say."""

    def __call__(self, tx: Tx, app_id: str, number: int) -> bool:
        asked = {"app_id": app_id, "number": number, "checker": CHECKER_VERSION}
        return bool(tx.fetch(Q["statement_verified"], asked))

    def check_pending(self, db: Database, now: int) -> int:
        """Check statements that were not checked yet; gives how many."""
        asked = {"checker": CHECKER_VERSION, "before": now - DAY, "limit": MAX_CHECKS}
        pending = db.read(lambda tx: tx.fetch(Q["statements_to_check"], asked))
        for app_id, number in pending:
            problems = list(_problems(db, app_id, number))
            if problems:
                log.error("attribution_statement_unverified", app=app_id, number=number, problems=len(problems))
            row = {
                "app_id": app_id,
                "number": number,
                "checker": CHECKER_VERSION,
                "problems": len(problems),
                "now": now,
            }
            db.run(lambda tx, row=row: tx.execute(Q["add_statement_check"], row))
        return len(pending)


def _problems(db: Database, app_id: str, number: int) -> Iterator[str]:
    try:
        statement = db.read(lambda tx: statement_of_number(tx, app_id, number))
        check, page = StatementCheck(statement), 0
        while facts := db.read(lambda tx, page=page: facts_of_page(tx, app_id, number, page)):
            check.add(facts)
            page += 1
    except (msgspec.MsgspecError, zstandard.ZstdError, StoreCorrupt) as error:
        yield f"it cannot be read: {error}"
    else:
        yield from check.problems()
