"""What attribution still waits for: deadlines of open closures, records that the archive has yet to take."""

from patra.app.story.model import Engine, Pending, Related
from patra.attribution.queries import ClosureView, DecisionView
from patra.kernel.clock import parse_instant


def due(one: ClosureView) -> list[Pending]:
    if one.nextDeadline is None:
        return []
    waits = "an impression or a failure" if one.state == "open" else "the impression of its pending click"
    return [
        Pending(
            engine=Engine.ATTRIBUTION,
            what="closure_deadline",
            text=f"Closure {one.closureKey} waits for {waits}; then its deadline applies.",
            due=parse_instant(one.nextDeadline),
            state=one.state,
            related=[Related(relation="closure", kind="attribution.closureKey", key=one.closureKey)],
        )
    ]


def pending_deliveries(one: DecisionView) -> list[Pending]:
    waiting = [record for record in one.records if record["recordStatus"] == "new"]
    return [
        Pending(
            engine=Engine.ATTRIBUTION,
            what="archive_delivery",
            text=f"The archive has yet to take the {record['recordType']} record; settlement counts it then.",
            due=None,
            state="new",
            related=[Related(relation="record", kind="attribution.recordKey", key=record["recordKey"])],
        )
        for record in waiting
    ]
