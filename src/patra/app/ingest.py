"""Settings and common ground go in; the ingestion platform, its loops and checks come out."""

import msgspec

from patra.app.loops import Loop
from patra.app.parts import Check, Ground, Health, Joined
from patra.ingest import shelf
from patra.ingest.planner import Planner
from patra.kernel.clock import SECOND


class Ingest(msgspec.Struct, frozen=True, kw_only=True):
    """The planner, and what stands around it in one process."""

    planner: Planner


def join(ground: Ground) -> Joined:
    """Build the platform on the common ground."""
    built = Ingest(planner=Planner(ground.db, ground.clock))

    def sources() -> Check:
        loaded = ground.db.read(shelf.sources)
        if not loaded:
            advice = "load one with `patra ingest pack load FILE`"
            return Check(name="ingest.sources", health=Health.OFF, found="no source is loaded", advice=advice)
        names = ", ".join(row["provenance_code"] for row in loaded)
        return Check(name="ingest.sources", health=Health.OK, found=f"{len(loaded)} loaded: {names}")

    return Joined(
        engine=built,
        loops=[Loop(name="ingest.planner", run_once=built.planner.run_once, every=5 * SECOND)],
        checks=[sources],
    )
