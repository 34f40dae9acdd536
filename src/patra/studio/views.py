"""Rows go in; runs as lists show them come out."""

import msgspec

from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.studio.store import Q


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a list."""

    run_id: str | None
    task_id: str
    title: str
    language: str
    quality: str
    stage: str
    reason_code: str
    submitted_at: str
    film_uri: str | None


def recent(tx: Tx, limit: int) -> list[RunLine]:
    """The newest runs first."""
    rows = tx.fetch_dicts(Q["tasks_recent"], {"limit": limit})
    return [
        RunLine(
            run_id=row["run_id"],
            task_id=row["task_id"],
            title=row["title"],
            language=row["language"],
            quality=row["quality"],
            stage=row["stage"] or "submitted",
            reason_code=row["reason_code"] or "",
            submitted_at=format_instant(row["submitted_at"]),
            film_uri=row["film_uri"],
        )
        for row in rows
    ]
