"""The breakers of a process say what a request did to them."""

from patra.ingest.fetching.resilience import CircuitState, Thresholds
from patra.ingest.fetching.runtime import Circuits
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import HOUR

NOW = 1_767_225_600_000_000
KEY = "source/list"


def test_a_circuit_says_when_it_opens_and_when_it_closes_and_nothing_in_between() -> None:
    circuits, thresholds = Circuits(), Thresholds()

    def settle(now: int, *, failed: bool) -> RunReason | None:
        return circuits.settle(KEY, failed=failed, now=now, jitter=0.0, thresholds=thresholds)

    acts = [settle(NOW, failed=True) for _ in range(thresholds.failures)]
    assert acts == [None] * (thresholds.failures - 1) + [RunReason.CIRCUIT_OPEN]
    assert settle(NOW, failed=True) is None  # sent before it opened
    refused = circuits.admit(KEY, NOW)
    assert refused is not None
    assert refused.state is CircuitState.OPEN
    assert circuits.admit(KEY, NOW + HOUR) is None
    assert circuits.turn(KEY)
    assert settle(NOW + HOUR, failed=True) is RunReason.CIRCUIT_OPEN
    assert circuits.admit(KEY, NOW + 2 * HOUR) is None
    assert settle(NOW + 2 * HOUR, failed=False) is RunReason.CIRCUIT_CLOSED
    assert settle(NOW + 2 * HOUR, failed=False) is None
