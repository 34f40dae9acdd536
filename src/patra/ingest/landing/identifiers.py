"""Notes the identifiers that a record is found by beside its provider's id: its DOI, and that id in its short form.

Several sources have the same work, each under an id of its own; the DOI is what they share. What landed before these
notes were kept is found by the id of its provider alone, until its provider changes it.
"""

from patra.ingest.landing.records import Sorted
from patra.ingest.landing.store import Q, RecordOrigin
from patra.kernel.db import Tx


def note_identifiers(tx: Tx, place: RecordOrigin, out: Sorted) -> None:
    """Note the identifiers of the records that were stored."""
    stored = [*out.new, *(record for record, _ in out.newer)]
    rows = sorted((identifier, record.id) for record in stored for identifier in record.identifiers)
    if rows:
        tx.execute(Q["note_identifiers"], {"source": place.source, "endpoint": place.endpoint}, rows=rows)
