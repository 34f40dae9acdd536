"""An archive that keeps records in a list and fails on request: the port of F21 as a test needs it."""

from collections.abc import Callable, Sequence

from patra.attribution.contract.reasons import Reason
from patra.attribution.decision.output_records import Record
from patra.attribution.delivery.port import Outcome, Rejected, Written


class ListedArchive:
    def __init__(self) -> None:
        self.written: list[Record] = []
        self.calls = 0
        self.fails: Callable[[Record], Outcome | None] = lambda record: None

    def write(self, records: Sequence[Record]) -> list[Outcome]:
        self.calls += 1
        return [self._one(record) for record in records]

    def _one(self, record: Record) -> Outcome:
        if (failure := self.fails(record)) is not None:
            return failure
        same = [known for known in self.written if known.key == record.key]
        if any(known.digest != record.digest for known in same):
            return Rejected(Reason.RECORDKEY_MISMATCH.value)
        if not any(known.status is record.status for known in same):
            self.written.append(record)
        return Written()

    def close(self) -> None:
        pass

    @property
    def told(self) -> list[tuple[str, str, str]]:
        return [(r.type.value, r.body["decisionReasonCode"], r.status.value) for r in self.written]
