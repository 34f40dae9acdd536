"""The archive (G) as a port: records go in, for each comes out whether it is written, to be tried again, or refused.

§3.8.29, F21. Three archives: the store itself (`att_decision`, append-only, written with the decision in one
transaction, so nothing is ever on its way), Parquet files (`parquet`), and an HTTP endpoint (`http`). Writing a record
again under the same `recordKey` changes nothing; another payload under the same key is refused as a mismatch.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from patra.attribution.reasons import R
from patra.attribution.records import Record


class Written(msgspec.Struct, frozen=True):
    """The archive has it, durably; it may have had it before."""


class Again(msgspec.Struct, frozen=True):
    """The archive could not take it now: the same record is written again under the same key."""

    code: R


class Never(msgspec.Struct, frozen=True):
    """The archive will not take it; the code says why."""

    code: str


Outcome = Written | Again | Never


class Archive(Protocol):
    """Where output records go."""

    def write(self, records: Sequence[Record]) -> Sequence[Outcome]:
        """Write records in their order, one outcome for each; never raises for what the archive answers."""
        ...

    def close(self) -> None:
        """Give back what is open."""
        ...


def as_sent(record: Record) -> dict[str, Any]:
    """A record as an archive gets it: the contract's object, what it refers to, and the digest of that."""
    return {"record": record.body, "payload": record.payload, "payloadDigest": record.digest}
