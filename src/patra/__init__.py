"""Patra: at-least-once input becomes exactly-once facts, and every decision can be explained and replayed.

The public names are here (docs/reference/python.md); everything else may move.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from patra.app.configuration.settings import Settings
    from patra.app.configuration.settings_loader import load as load_settings
    from patra.app.wiring import Patra, build, ingest_run, open_store
    from patra.attribution.replay import replay
    from patra.attribution.writer import Engine as AttributionEngine
    from patra.bus.consuming.consumer import Event, Poison, RetryLater
    from patra.bus.embedded import Bus, EventRefused, HandlersFailed
    from patra.client import Client
    from patra.durable_client import DurableClient
    from patra.ingest.execution.run_to_completion import Drain as IngestRun
    from patra.ingest.planning.trigger import Trigger as IngestTrigger
    from patra.ingest.vocabulary.codes import Operation as IngestOperation
    from patra.ingest.works.read import works as read_works
    from patra.kernel.db.queries import statement
    from patra.kernel.testing import ManualClock

__version__ = "0.2.0"
__all__ = [
    "AttributionEngine",
    "Bus",
    "Client",
    "DurableClient",
    "Event",
    "EventRefused",
    "HandlersFailed",
    "IngestOperation",
    "IngestRun",
    "IngestTrigger",
    "ManualClock",
    "Patra",
    "Poison",
    "RetryLater",
    "Settings",
    "build",
    "ingest_run",
    "load_settings",
    "open_store",
    "read_works",
    "replay",
    "statement",
]

_PUBLIC = {
    "AttributionEngine": "patra.attribution.writer:Engine",
    "Bus": "patra.bus.embedded:Bus",
    "Client": "patra.client:Client",
    "DurableClient": "patra.durable_client:DurableClient",
    "Event": "patra.bus.consuming.consumer:Event",
    "EventRefused": "patra.bus.embedded:EventRefused",
    "HandlersFailed": "patra.bus.embedded:HandlersFailed",
    "IngestOperation": "patra.ingest.vocabulary.codes:Operation",
    "IngestRun": "patra.ingest.execution.run_to_completion:Drain",
    "IngestTrigger": "patra.ingest.planning.trigger:Trigger",
    "ManualClock": "patra.kernel.testing:ManualClock",
    "Patra": "patra.app.wiring:Patra",
    "Poison": "patra.bus.consuming.consumer:Poison",
    "RetryLater": "patra.bus.consuming.consumer:RetryLater",
    "Settings": "patra.app.configuration.settings:Settings",
    "build": "patra.app.wiring:build",
    "ingest_run": "patra.app.wiring:ingest_run",
    "load_settings": "patra.app.configuration.settings_loader:load",
    "open_store": "patra.app.wiring:open_store",
    "read_works": "patra.ingest.works.read:works",
    "replay": "patra.attribution.replay:replay",
    "statement": "patra.kernel.db.queries:statement",
}


def __getattr__(name: str) -> Any:
    """Imported when first asked for, so that the command line starts fast."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'patra' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    module, _, attribute = _PUBLIC[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
