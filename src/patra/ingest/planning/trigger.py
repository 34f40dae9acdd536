"""What sets the planner going, and the keys that make a second time add nothing (ch. 5.2.1, 7.1, ruling A3)."""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.ingest.packs.merge import Tree
from patra.ingest.planning.slicing.windows import Span
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.canonical import fingerprint
from patra.kernel.clock import format_instant

MANUAL = "MANUAL"
CRON = "CRON"


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """One wish for a plan. What is not said is decided by the pack and the watermark."""

    source: str
    endpoint: str
    operation: Operation
    since: int | None = None
    until: int | None = None
    params: dict[str, Any] = {}
    sections: Tree = {}
    ids: tuple[str, ...] = ()
    """UPDATE: these records and no others."""
    activity: str | None = None
    """BACKFILL, UPDATE: name of the campaign; plans of one campaign share a namespace and do not repeat each other."""
    said: tuple[str | None, str | None] | None = None
    """The bounds as they were said, where they go by the clock (`P7D`): the same words again mean the same."""
    last: int | None = None
    """The window is the last so much of time: it ends where one may read now, and is never shorter than this."""
    topic: str = ""
    """HARVEST, BACKFILL: the records that are found are noted under this name, for exports that hold only them."""
    priority: int | None = None
    kind: str = MANUAL
    scheduler: str = "manual"
    job: str = ""
    log: str = ""

    @property
    def describe_trigger(self) -> dict[str, Any]:
        """As it is kept with the schedule instance; without what was not said."""
        said: dict[str, Any] = {
            "from": None if self.since is None else format_instant(self.since),
            "to": None if self.until is None else format_instant(self.until),
            "params": self.params or None,
            "overrides": self.sections or None,
            "ids": list(self.ids) or None,
            "activity": self.activity,
            "topic": self.topic or None,
            "priority": self.priority,
        }
        return {name: value for name, value in said.items() if value is not None}


_USED: dict[str, frozenset[Operation]] = {
    "from": frozenset({Operation.HARVEST, Operation.BACKFILL}),
    "to": frozenset({Operation.HARVEST, Operation.BACKFILL}),
    "ids": frozenset({Operation.UPDATE}),
    "activity": frozenset({Operation.BACKFILL, Operation.UPDATE}),
    "topic": frozenset({Operation.HARVEST, Operation.BACKFILL}),
}
"""What a trigger may say, and the operations that make use of it; what is not listed is used by all."""


def unused_options(trigger: Trigger) -> str | None:
    """What is wrong with a trigger that says something its operation would ignore; None where all of it is used."""
    said = [name for name in trigger.describe_trigger if name in _USED and trigger.operation not in _USED[name]]
    if not said:
        return None
    uses = sorted(name for name, operations in _USED.items() if trigger.operation in operations)
    return f"{trigger.operation} does not use {', '.join(said)}; it uses {', '.join(uses)}"


def trigger_key(trigger: Trigger, namespace: str, generation: int, todo: Sequence[Span]) -> str:
    """The identity of a trigger: what it wants, what of it is still to do, and how often it was planned before.

    Two planners that see the same wish at the same moment build the same key, and one of them finds it taken.
    """
    return fingerprint(
        [
            trigger.scheduler,
            trigger.job,
            trigger.log,
            trigger.source,
            trigger.endpoint,
            trigger.operation.value,
            namespace,
            generation,
            [[span.start, span.end] for span in todo],
            trigger.describe_trigger,
        ]
    )


def plan_id_of(key: str) -> str:
    return f"p{key[:16]}"


def schedule_instance_id_of(key: str) -> str:
    return f"i{key[:16]}"


def slice_id_of(plan_id: str, number: int) -> str:
    return f"{plan_id}.s{number:06}"


def task_id_of(plan_id: str, number: int) -> str:
    return f"{plan_id}.t{number:06}"


def activity_key(trigger: Trigger, selection: str) -> str:
    """The namespace of a BACKFILL or UPDATE: its campaign's name, or what was asked for, as it was said.

    A backfill that names no end goes on with the same campaign when the watermark has moved, and so does one whose
    bounds go by the clock when that has moved. A backfill for a topic reads what the topic has not seen, also where
    another one, or the same campaign without the topic, has read it.
    """
    if trigger.activity is not None:
        of_topic = f"@{trigger.topic}" if trigger.topic else ""
        return f"{trigger.operation.value.lower()}:{trigger.source}/{trigger.endpoint}{of_topic}:{trigger.activity}"
    what: list[Any] = [selection, list(trigger.ids), *(trigger.said or (trigger.since, trigger.until))]
    what += [trigger.topic] if trigger.topic else []
    return f"{trigger.operation.value.lower()}:{fingerprint(what)[:24]}"


def partition_of(source: str, endpoint: str, operation: Operation) -> str:
    """Tasks of one source, endpoint and operation take turns with those of others (ch. 5.6)."""
    return f"{source}/{endpoint}/{operation.value}"
