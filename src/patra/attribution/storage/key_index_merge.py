"""Joins the values of many runs of the index by key, bucket after bucket, so that a search reads few rows.

`MERGE_RUNS` runs become one: in every bucket their values are joined end to end and stand in the row of the first. A
search finds the same at any moment, since a bucket is joined in one transaction. Several processes may try: each step
moves a mark from where it was, and who comes second does nothing.

The release before does not know joined values, and a search of it fails on them: nothing is joined until so long after
the migration that came with it (`MERGING_MIGRATION`), when the processes of the release before are gone.
"""

from collections.abc import Callable

from patra.attribution.storage.key_index import merge_bodies
from patra.attribution.storage.sql import Q, mark
from patra.kernel.db import Database, Row, Tx

MERGE_RUNS = 64
"""Runs that become one."""
BUCKETS = 256
STEP_BUCKETS = 16
"""Buckets of one step."""
MERGED_RUNS, MERGE_BUCKET = "merged_runs", "merge_bucket"
"""The marks: the last run that was joined in every bucket, and the bucket to go on with."""
MERGING_MIGRATION = 21


class RunMerger:
    """Joins runs once there are enough, a few buckets at a time."""

    def __init__(self, db: Database, busy: Callable[[], bool] = lambda: False, *, wait: int = 0) -> None:
        self._db = db
        self._busy = busy
        self._wait = wait

    def run_once(self) -> int:
        """One step; gives how many values it joined."""
        if self._busy() or not self._db.read(self._has_waited):
            return 0
        last, bucket, newest = self._db.read(
            lambda tx: (mark(tx, MERGED_RUNS), mark(tx, MERGE_BUCKET), mark(tx, "runs"))
        )
        if newest < last + MERGE_RUNS:
            return 0
        span = {"first": last + 1, "last": last + MERGE_RUNS}
        until = bucket + STEP_BUCKETS

        def work(tx: Tx) -> int:
            done = until >= BUCKETS
            if not tx.execute(Q["move_merge"], {"runs": last, "was": bucket, "value": 0 if done else until}):
                return 0
            if done:
                tx.execute(Q["move_mark"], {"name": MERGED_RUNS, "was": last, "value": span["last"]})
            return max(sum(_merge(tx, {**span, "bucket": number}) for number in range(bucket, until)), 1)

        return self._db.run(work)

    def _has_waited(self, tx: Tx) -> bool:
        """Whether the store was upgraded long enough ago."""
        applied = tx.fetch(Q["migration_applied_at"], {"number": MERGING_MIGRATION})
        return not applied or tx.server_now() - applied[0][0] >= self._wait


def _merge(tx: Tx, asked: dict[str, int]) -> int:
    found = tx.fetch(Q["runs_to_merge"], asked)
    if len(found) < 2:
        return 0
    tx.execute(Q["delete_merged"], asked)
    rows: list[Row] = [(asked["bucket"], merge_bodies([bytes(body) for _, _, body in found]))]
    tx.execute(Q["add_run"], {"run": found[0][0], "last": max(last for _, last, _ in found)}, rows=rows)
    return len(found)
