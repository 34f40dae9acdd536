"""Decides where a harvest begins whose pack names another watermark than the version before it (ch. 10).

A new version of a pack may cut windows by another date, or have parameters that it had not: then what it selects has no
watermark of its own. The same trigger harvested under the version before it, and where that one stood is known. The
first window of the new one begins there, less the length of `window.initial`: it reads too much rather than too little.
"""

import msgspec

from patra.ingest.packs.problems import Problem, Severity
from patra.ingest.packs.spec import Spec
from patra.ingest.planning import store
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx

MAX_CURSORS = 50
"""Cursors of an endpoint that are looked through, the latest first."""


class EarlierWatermark(msgspec.Struct, frozen=True, kw_only=True):
    """Where a harvest under another watermark stood, and where the new one begins for it."""

    key: str
    stood: int
    begins: int

    def warning(self, spec: Spec) -> Problem:
        """The warning for the operator who harvests."""
        return Problem(
            code=Reason.WATERMARK_REPLACED,
            message=(
                f"{spec.provenance_code} {spec.endpoint_code} was harvested by {self.key!r} up to "
                f"{format_instant(self.stood)} and is harvested by {spec.cursor.key!r} now: it begins at "
                f"{format_instant(self.begins)} and reads again what lies between"
            ),
            severity=Severity.WARNING,
        )


def watermark_of(tx: Tx, spec: Spec, trigger: Trigger, now: int) -> tuple[int | None, EarlierWatermark | None]:
    """Where a trigger goes on: its own watermark, or what the same trigger has reached under another one."""
    mark = store.watermark(tx, spec)
    if mark is not None or (earlier := earlier_watermark(tx, spec, trigger, now)) is None:
        return mark, None
    return earlier.begins, earlier


def earlier_watermark(tx: Tx, spec: Spec, trigger: Trigger, now: int) -> EarlierWatermark | None:
    """For a first HARVEST that does not say where it begins: what the same trigger has reached under another cursor."""
    if spec.operation is not Operation.HARVEST or trigger.since is not None:
        return None
    cursor = spec.cursor
    place = {
        "source": spec.provenance_code,
        "endpoint": spec.endpoint_code,
        "key": cursor.key,
        "scope": cursor.scope.value,
        "namespace": cursor.namespace_key,
        "limit": MAX_CURSORS,
    }
    for key, stood, said in tx.fetch(store.Q["earlier_watermarks"], place):
        if (msgspec.json.decode(said).get("params") or {}) == trigger.params:
            first = [spec.window.initial_us(now), spec.window.initial_us(stood)]
            known = [one for one in first if one is not None]
            # without an initial window nobody says how far the two dates may lie apart
            return EarlierWatermark(key=key, stood=stood, begins=min(*known, stood)) if known else None
    return None
