"""Answers as metrics: events by status and code, refused batches, deadlines."""

from patra.attribution.decision.decide import Answer, Ticked
from patra.attribution.intake.envelope import Refused
from patra.kernel.telemetry import counter

EVENTS = counter("patra_attribution_events_total", "Events answered, by status and reason code.", "status", "code")
REFUSED = counter("patra_attribution_batches_refused_total", "Batches refused as a whole, by code.", "code")
DEADLINES = counter("patra_attribution_deadlines_total", "Deadlines that the timer applied: timeouts, lapsed clicks.")


def count_answer(answer: Answer) -> None:
    """Count the events of an answer, a refused batch, or the deadlines of a tick."""
    if isinstance(answer, Ticked):
        DEADLINES.inc(answer.applied)
        return
    if isinstance(answer, Refused):
        REFUSED.labels(answer.code.value).inc()
        return
    found: dict[tuple[str, str], int] = {}
    for item in answer.ackItems:
        key = (item.ackStatus, item.ackReasonCode)
        found[key] = found.get(key, 0) + 1
    for (status, code), count in found.items():
        EVENTS.labels(status, code).inc(count)
