"""Every act of the console, by name: which endpoint it asks, which inputs it needs, what it reports when done."""

from patra.web.console.act import Act
from patra.web.console.acts.attribution import ATTRIBUTION
from patra.web.console.acts.bus import BUS
from patra.web.console.acts.ingest import INGEST
from patra.web.console.acts.ingest_packs import INGEST_PACKS
from patra.web.console.acts.studio import STUDIO
from patra.web.console.acts.system import SYSTEM

ACTS: dict[str, Act] = {**INGEST, **INGEST_PACKS, **ATTRIBUTION, **BUS, **STUDIO, **SYSTEM}
