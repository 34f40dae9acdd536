"""Fields that the pack format had and nothing read: a pack that says one is refused with what to do instead (I13).

Snapshots of plans made before, and packs loaded before, may still hold them; they are left out when such a one is read.
"""

from typing import Any, cast

from patra.ingest.packs.problems import TreePath

REMOVED_FIELDS: dict[tuple[str, str], str] = {
    ("window", "timezone"): "windows are always in UTC: remove this line",
    ("window", "boundaryPolicy"): "a window always holds `from` and not `to`: remove this line",
    ("twoPhase", "threshold"): "batching.combineThreshold says how many ids wait for a detail request",
}
"""Section and field, and what to say instead."""


RULE_NAME = "errors", "name"
"""A rule under `errors` had a field for its own key."""


def removal_advice(path: TreePath) -> str | None:
    """What to do about a field that was removed; None for one that never was."""
    above, section, field = ("", "", "", *map(str, path))[-3:]
    if (above, field) == RULE_NAME:
        return "the key of a rule is its name: remove this line"
    return REMOVED_FIELDS.get((section, field))


def without_removed_fields(tree: Any, section: str = "", above: str = "") -> Any:
    """A snapshot or a pack of an older version without the fields that are gone."""
    if not isinstance(tree, dict):
        return tree
    parts = cast("dict[str, Any]", tree)
    return {
        name: without_removed_fields(part, name, section)
        for name, part in parts.items()
        if (section, name) not in REMOVED_FIELDS and (above, name) != RULE_NAME
    }
