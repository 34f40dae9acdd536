"""Keeps compiled snapshots, so that a trigger that says the same of the same registry does not compile again (ch. 3.7).

The key holds everything that a snapshot is made from: what the trigger says, the version of the pack that is loaded,
and the codes of the dictionary. Rows of the registry that are changed by hand, without loading a pack, are not noticed:
that is why it is off unless `ingest.cache_snapshots` turns it on.
"""

import threading
from collections import OrderedDict

from patra.ingest.packs import registry
from patra.ingest.packs.compiler import Compiled
from patra.ingest.planning.trigger import Trigger
from patra.kernel.canonical import fingerprint
from patra.kernel.db import Tx

MAX_CACHED_SNAPSHOTS = 256


class SnapshotCache:
    """The snapshots of one process that were used last."""

    def __init__(self, size: int = MAX_CACHED_SNAPSHOTS) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Compiled] = OrderedDict()
        self.hits = 0
        """Snapshots that were not compiled again."""

    def find(self, key: str) -> Compiled | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                self.hits += 1
            return found

    def keep(self, key: str, compiled: Compiled) -> None:
        with self._lock:
            self._kept[key] = compiled
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


def snapshot_key(tx: Tx, trigger: Trigger) -> str | None:
    """What a snapshot is made from, as a fingerprint; None where the source is not loaded or a version is on trial."""
    stamp = registry.stamp(tx, trigger.source)
    if stamp is None:
        return None
    said = [trigger.source, trigger.endpoint, trigger.operation.value, trigger.params, trigger.sections]
    return fingerprint([*said, trigger.priority, *stamp])
