"""Back-pressure from executors to the planner: while a partition is throttled or slow, its safety lag grows (ch. 5.7).

Each note within ten minutes of the last one adds a safety lag to what windows keep from now, four at most; without a
note for ten minutes the pack's own lag holds again. Windows with an explicit end are not moved.
"""

from patra.ingest.packs.spec import Spec
from patra.ingest.planning.store import Q
from patra.ingest.planning.trigger import partition_of
from patra.kernel.clock import MINUTE
from patra.kernel.db import Tx

HOLD = 10 * MINUTE
MAX_LEVEL = 4


def add(tx: Tx, partition: str, reason: str, now: int) -> None:
    """Note that a partition is under pressure, and why."""
    tx.execute(Q["pressure_add"], {"since": now - HOLD, "most": MAX_LEVEL}, rows=[(partition, reason, now)])


def added_lag(tx: Tx, spec: Spec, now: int) -> int:
    """What is added to the safety lag of a snapshot's partition now, in microseconds."""
    partition = partition_of(spec.provenance_code, spec.endpoint_code, spec.operation)
    row = tx.fetch_one(Q["pressure_of"], {"partition": partition, "since": now - HOLD})
    return spec.window.safety_lag_us * int(row[0]) if row else 0
