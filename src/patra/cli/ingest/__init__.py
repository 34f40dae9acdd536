"""`patra ingest …`: `group` has the group and the commands on plans, the others are loaded when they are called."""

from collections.abc import Mapping

SECTIONS: Mapping[str, str] = {
    "Sources": "packs pack try record secret sources",
    "Harvest": "plan run schedule schedules reread signal",
    "Take it out": "works records",
    "See how far it is": "plans tasks queue runs batches show lineage spec windows coverage cursors "
    "cursor-timeline signals rate history",
    "See what went wrong": "alerts errors top-errors quarantine refused blackbox replay",
    "Intervene": "pause resume cancel requeue lift dismiss acknowledge silence end-silence",
}
"""The commands in the order of the help."""
