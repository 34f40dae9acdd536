"""Pack, Endpoint, Schedule, and sections as a whole."""

from patra.ingest.vocabulary.codes import Operation
from tests.unit.ingest.packs.effects.observe import KEY, Case, case, checked, documentation, planned, request, scheduled

DAILY = {"/schedules": {"daily": {"endpoint": "search", "operation": "HARVEST", "cron": "0 3 * * *"}}}
AGAIN = {"/schedules": {"daily": {"endpoint": "search", "operation": "BACKFILL", "cron": "0 3 * * *", "last": "P1D"}}}
AT = "/schedules.daily"

CASES: dict[str, Case] = {
    "Endpoint.title": case(documentation, "title", "Search works"),
    "Endpoint.role": case(checked, "/endpoints.details.role", "SEARCH"),
    "Endpoint.access": case(checked, "access", "RESTRICTED"),
    "Endpoint.method": case(request, "method", "POST"),
    "Endpoint.path": case(request, "path", "/other"),
    "Endpoint.supports": case(checked, "supports", ["UPDATE"]),
    "Endpoint.defaults": case(request, "defaults", {"http": {"userAgent": "library"}}),
    "Endpoint.operations": case(planned(Operation.BACKFILL, activity="a"), "operations", {"BACKFILL": {"planning": {"priority": 7}}}),
    "Pack.description": case(documentation, "/description", "What it holds"),
    "Pack.homepage": case(documentation, "/homepage", "https://www.example.org"),
    "Pack.documentation": case(documentation, "/documentation", "https://docs.example.org"),
    "Pack.enabled": case(planned(), "/enabled", False),
    "Pack.hosts": case(checked, "/hosts", ["api.example.org"], given={"auth": {"type": "OAUTH2", "credentialRef": "key", "oauth2": {"tokenUrl": "https://auth.example.org/t"}}, "/credentials": {"key": {"type": "OAUTH2", "secrets": {"clientId": "env:A", "clientSecret": "env:B"}}}}),
    "Pack.credentials": case(checked, "/credentials", {}, given=KEY),
    "Pack.defaults": case(request, "/defaults.http.baseUrl", "https://auth.example.org"),
    "Pack.schedules": case(scheduled(), "/schedules", DAILY["/schedules"]),
    "Schedule.timezone": case(scheduled(hours=1), f"{AT}.timezone", "Asia/Tokyo", given=DAILY),
    "Schedule.jitter": case(scheduled(hours=1), f"{AT}.jitter", "PT5H", given=DAILY),
    "Schedule.missed": case(scheduled(days=8, hours=84), f"{AT}.missed", "ALL", given=AGAIN | {f"{AT}.reread": True}),
    "Schedule.last": case(scheduled(), f"{AT}.last", "P3D", given=AGAIN),
    "Schedule.reread": case(scheduled(), f"{AT}.reread", True, given=AGAIN | {f"{AT}.last": "P5D"}),
    "Schedule.params": case(scheduled(), f"{AT}.params", {"term": "x"}, given=DAILY | {"params": {"term": {"maxLength": 9, "values": ["y"]}}}),
    "Schedule.priority": case(scheduled(), f"{AT}.priority", 5, given=DAILY),
    "Schedule.enabled": case(scheduled(), f"{AT}.enabled", False, given=DAILY),
}  # fmt: skip
