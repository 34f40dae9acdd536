"""Turns a place in the log into events from there on as they are committed, none left out.

On PostgreSQL a transaction that began earlier may commit later, behind events that were seen already. So the last
stretch of the log is looked at again each time, and what was seen is remembered.
"""

from collections import deque
from collections.abc import Iterator

from patra.bus.publishing.envelope import decode_trusted
from patra.bus.store import events
from patra.bus.store.events import Stored
from patra.bus.transports.notifier import source
from patra.kernel.db import Database

SCAN_ROWS = 2000
PAGE_EVENTS = 500


class Tail:
    """Follows the log, filtered."""

    def __init__(self, db: Database, *, event_type: str = "", tenant_id: str = "", trace_id: str = "") -> None:
        self._db = db
        self._event_type = event_type
        self._tenant_id = tenant_id
        self._trace_id = trace_id
        self._waker = source(db)
        self._seen: deque[int] = deque(maxlen=SCAN_ROWS * 2)
        self._known: set[int] = set()
        self._last = 0

    def begin(self, count: int) -> list[Stored]:
        """The last events that the filter lets through, at most `count`; from here on `more` continues."""
        top = self._last = self._db.read(events.last_seq)
        low = max(top - SCAN_ROWS, 0)
        there = [one for one in self._from(low) if one.seq <= top]
        for one in there:  # and only those: one before them may be on its way
            self._remember(one.seq)
        found = [one for one in there if self._passes(one)]
        while count and low > 0 and len(found) < count:
            high, low = low, max(low - PAGE_EVENTS, 0)
            page = self._db.read(
                lambda tx, at=low: events.after(tx, at, limit=PAGE_EVENTS, event_type=self._event_type)
            )
            found = [one for one in page if one.seq <= high and self._passes(one)] + found
        return found[-count:] if count else []

    def more(self, seconds: float) -> list[Stored]:
        """What was committed since; waits so long for something."""
        self._waker.wait(seconds)
        found = [one for one in self._from(max(self._last - SCAN_ROWS, 0)) if one.seq not in self._known]
        for one in found:
            self._remember(one.seq)
            self._last = max(self._last, one.seq)
        return [one for one in found if self._passes(one)]

    def _from(self, at: int) -> Iterator[Stored]:
        """The log after a place, page by page."""
        while True:
            page = self._db.read(lambda tx, a=at: events.after(tx, a, limit=PAGE_EVENTS))
            yield from page
            if len(page) < PAGE_EVENTS:
                return
            at = page[-1].seq

    def close(self) -> None:
        self._waker.close()

    def _passes(self, one: Stored) -> bool:
        if one.body is None or (self._event_type and one.event_type != self._event_type):
            return False
        if not self._tenant_id and not self._trace_id:
            return True
        envelope = decode_trusted(one.body)
        return (not self._tenant_id or envelope.tenant_id == self._tenant_id) and (
            not self._trace_id or envelope.trace_id == self._trace_id
        )

    def _remember(self, seq: int) -> None:
        if len(self._seen) == self._seen.maxlen:
            self._known.discard(self._seen[0])
        self._seen.append(seq)
        self._known.add(seq)
