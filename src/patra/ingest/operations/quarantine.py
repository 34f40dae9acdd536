"""Records that were set aside, and what an operator decides about them (ch. 12.5)."""

from collections.abc import Sequence

from patra.ingest.landing.store import Q
from patra.ingest.planning.operations import Act
from patra.kernel.db import Tx


def dismiss(tx: Tx, source: str, endpoint: str, keys: Sequence[str], *, why: str, now: int) -> Act:
    """Close open rows permanently: the same record again stays dismissed, one with other content is opened again."""
    params = {"source": source, "endpoint": endpoint, "now": now}
    changed = tx.execute(Q["quarantine_dismiss"], params, rows=[(key,) for key in dict.fromkeys(keys)])
    return Act(
        act="ingest.dismiss", subject=f"{source}/{endpoint}", changed=changed, detail={"keys": list(keys), "why": why}
    )
