"""The pages, one module for each engine: each has `ROUTES`, addresses below `/console` with their functions."""

from patra.web.console.pages import alerts, attribution, bus, ingest, operations, overview, story, studio
from patra.web.console.view import Route

ROUTES: tuple[Route, ...] = (
    *overview.ROUTES,
    *alerts.ROUTES,
    *story.ROUTES,
    *attribution.ROUTES,
    *ingest.ROUTES,
    *bus.ROUTES,
    *studio.ROUTES,
    *operations.ROUTES,
)
