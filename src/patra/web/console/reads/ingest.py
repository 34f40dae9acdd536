"""How many records have landed, by whatever process, for the rates that the console draws."""

from threading import Lock
from typing import Any

import msgspec

from patra.app.wiring import Patra
from patra.kernel.clock import SECOND
from patra.kernel.db.queries import statement

LANDED = statement(
    "console_landed",
    "SELECT stats FROM ing_task_run_batch WHERE created_at > :since AND created_at <= :until",
)


COMMIT_MARGIN = 3 * SECOND
"""A batch is read this long after its instant: until then its transaction may not have ended."""


class LandedRecords:
    """How many records have landed since this process began, by whatever process: each batch is read once.

    The pages and the thread of the series ask at the same time.
    """

    def __init__(self, patra: Patra) -> None:
        self._patra = patra
        self._lock = Lock()
        self._since = patra.clock.now() - COMMIT_MARGIN
        self._total = 0.0

    def __call__(self) -> float:
        with self._lock:
            until = self._patra.clock.now() - COMMIT_MARGIN
            given = {"since": self._since, "until": until}
            for (text,) in self._patra.db.read(lambda tx: tx.fetch(LANDED, given)):
                stats = msgspec.json.decode(text, type=dict[str, Any])
                self._total += stats.get("inserted", 0) + stats.get("updated", 0)
            self._since = until
            return self._total
