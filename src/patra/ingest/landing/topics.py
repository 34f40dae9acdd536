"""Notes the records that a search found under the topics that it is followed for, for exports that hold one topic.

A record has one row, and the searches of several topics may find it: which did, only these notes say. What a search
listed and the quarantine holds is noted too: an UPDATE that lands it later no longer knows which search found it.
"""

from collections.abc import Sequence

from patra.ingest.landing.records import Bad, Sorted
from patra.ingest.landing.store import Q, RecordOrigin
from patra.kernel.db import Tx


def note_topics(tx: Tx, place: RecordOrigin, selection: str, out: Sorted, quarantined: Sequence[Bad]) -> None:
    """Note the records that a search found under its topics, also those that were stored before or are set aside."""
    found = {r.id for r in out.new} | {r.id for r, _ in out.newer} | {*out.equal} | {*out.older}
    found |= {one.id for one in quarantined if one.id is not None}
    key = {"source": place.source, "endpoint": place.endpoint, "selection": selection}
    tx.execute(Q["topic_records"], key, rows=[(one,) for one in sorted(found)])
