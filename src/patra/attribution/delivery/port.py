"""The archive (G) as a port: says of each record whether it is written, to be tried again, or refused.

§3.8.29, F21. Three archives: the store itself (`att_decision`, append-only, written with the decision in one
transaction, so nothing is ever on its way), Parquet files (`parquet`), and an HTTP endpoint (`http`). Writing a record
again under the same `recordKey` changes nothing; another payload under the same key is refused as a mismatch.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.decide import Superseded
from patra.attribution.decision.decisions import Decision
from patra.attribution.decision.output_records import Record
from patra.kernel.db import Tx
from patra.kernel.errors import ConfigInvalid

EnqueueForArchive = Callable[[Tx, Sequence[tuple[int, Decision]], Sequence[Superseded]], None]
"""What hands new decisions to an archive outside the store, in the same transaction."""


class Written(msgspec.Struct, frozen=True):
    """The archive has it, durably; it may have had it before."""


class Retry(msgspec.Struct, frozen=True):
    """The archive could not take it now: the same record is written again under the same key."""

    code: Reason


class Rejected(msgspec.Struct, frozen=True):
    """The archive will not take it; the code says why."""

    code: str


Outcome = Written | Retry | Rejected


class ArchiveForbiddenError(ConfigInvalid):
    """The archive may not be called as it is configured: nothing was tried, so nothing may be given up for it.

    `check` raises it again for as long as that is so.
    """

    check: Callable[[], None]


class Archive(Protocol):
    """Where output records go."""

    def write(self, records: Sequence[Record]) -> Sequence[Outcome]:
        """Write records in their order, one outcome for each; never raises for what the archive answers.

        Raises ArchiveForbiddenError where it may not be asked at all.
        """
        ...

    def close(self) -> None:
        """Give back what is open."""
        ...


def as_sent(record: Record) -> dict[str, Any]:
    """A record as an archive gets it: the contract's object, what it refers to, and the digest of that."""
    return {"record": record.body, "payload": record.payload, "payloadDigest": record.digest}
