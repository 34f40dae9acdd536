"""Questions to a store in plain SQL, for proofs and tests."""

from patra.kernel.db import Database, Row
from patra.kernel.db.queries import statement


def rows(db: Database, text: str) -> list[Row]:
    return db.read(lambda tx: tx.fetch(statement("question", text)))
