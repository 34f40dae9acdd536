"""Http, Body, Auth, OAuth2, Credential, Param."""

from patra.ingest.http.client import Outgoing
from tests.support.hostile_provider import Reply
from tests.unit.ingest.packs.effects.observe import (
    KEY,
    OAUTH2,
    TOKEN,
    TWO_PHASE,
    Case,
    anonymous_request,
    case,
    checked,
    compilation,
    detail_request,
    documentation,
    harvested,
    planned,
    request,
    second_request,
    watermark,
)
from tests.unit.ingest.packs.effects.stand_in import as_json, spread

BODY = "/endpoints.details.http.bodyTemplate"
QUERY = "http.queryTemplate"
POOL = {
    "/credentials": {
        "one": {"type": "API_KEY", "pool": "keys", "priority": 5, "secrets": {"apiKey": "env:KEY"}},
        "two": {"type": "API_KEY", "pool": "keys", "priority": 6, "secrets": {"apiKey": "env:OTHER"}},
    },
    "auth": {"type": "API_KEY", "location": "QUERY", "name": "k", "credentialRef": "keys"},
}


def moved(number: int, sent: Outgoing) -> Reply | None:
    """The first two requests are redirected."""
    if number > 2:
        return None
    return Reply(status=302, body=b"", kind="text/plain", headers={"Location": f"{sent.url}&hop={number}"})


def refused_once(_: int, sent: Outgoing) -> Reply | None:
    return as_json({"error": "key"}, 401) if "key-1234" in sent.url else None


TERM = {"params": {"term": {"default": "a b"}}, f"{QUERY}.q": "${params.term}"}
PLACED = {"params": {"term": {"default": "a b"}}}
SLOW = {"/defaults.rateLimit": {"refillRatePerSec": 0.05, "minRatePerSec": 0.05, "burstCapacity": 1}}

CASES: dict[str, Case] = {
    "Http.method": case(request, "http.method", "POST"),
    "Http.baseUrl": case(request, "http.baseUrl", "https://auth.example.org"),
    "Http.pathTemplate": case(request, "http.pathTemplate", "/other"),
    "Http.headersTemplate": case(request, "http.headersTemplate", {"Accept": "application/json"}),
    "Http.queryTemplate": case(request, QUERY, {"from": "${window.from}", "offset": "${page.offset}"}),
    "Http.nextQueryTemplate": case(second_request, "http.nextQueryTemplate", {"token": "${page.token}"}, given=TOKEN),
    "Http.bodyTemplate": case(request, "http.bodyTemplate", {"kind": "TEXT", "text": "x"}, given={"http.method": "POST"}),
    "Http.userAgent": case(request, "http.userAgent", "library (mailto:a@example.org)"),
    "Http.querySafe": case(request, "http.querySafe", ":", given={f"{QUERY}.q": "${params.term}", "params": {"term": {"default": "a:b"}}}),
    "Http.pathSafe": case(request, "http.pathSafe", "/", given={"path": "/works/${params.term}", "params": {"term": {"default": "a/b"}}}),
    "Http.spaceAsPlus": case(request, "http.spaceAsPlus", True, given=TERM),
    "Http.connectTimeoutMs": case(request, "http.connectTimeoutMs", 500),
    "Http.readTimeoutMs": case(request, "http.readTimeoutMs", 500),
    "Http.compression": case(request, "http.compression", False),
    "Http.proxy": case(request, "http.proxy", "http://proxy.example.org:3128"),
    "Http.followRedirects": case(harvested(script=moved), "http.followRedirects", True),
    "Http.maxRedirects": case(harvested(script=moved), "http.maxRedirects", 1, given={"http.followRedirects": True}),
    "Http.allowHttp": case(checked, "http.allowHttp", True, given={"http.baseUrl": "http://api.example.org"}),
    "Http.maxResponseBytes": case(harvested(), "http.maxResponseBytes", 1024, given={"pagination.pageSize": 20}),
    "Http.redactLogs": case(checked, "http.redactLogs", False),
    "Body.kind": case(detail_request, f"{BODY}.kind", "TEXT", given=TWO_PHASE | {f"{BODY}.text": "${join(ids, ' ')}"}),
    "Body.fields": case(detail_request, f"{BODY}.fields", {"ids": "${join(ids, ';')}"}, given=TWO_PHASE),
    "Body.json": case(detail_request, f"{BODY}.json", {"ids": "${ids}", "more": 1}, given=TWO_PHASE | {BODY: {"kind": "JSON", "json": {"ids": "${ids}"}}}),
    "Body.text": case(detail_request, f"{BODY}.text", "${join(ids, ';')}", given=TWO_PHASE | {BODY: {"kind": "TEXT", "text": "${join(ids, ' ')}"}}),
    "Auth.type": case(request, "auth.type", "BEARER", given=KEY | {"/credentials": {"key": {"type": "BEARER", "secrets": {"token": "env:KEY", "apiKey": "env:KEY"}}}, "auth.type": "NONE"}),
    "Auth.location": case(request, "auth.location", "HEADER", given=KEY),
    "Auth.name": case(request, "auth.name", "other", given=KEY),
    "Auth.prefix": case(request, "auth.prefix", "Token ", given=KEY),
    "Auth.credentialRef": case(request, "auth.credentialRef", "second", given=KEY | {"/credentials.second": {"type": "API_KEY", "secrets": {"apiKey": "env:OTHER"}}}),
    "Auth.optional": case(anonymous_request, "auth.optional", True, given=KEY),
    "OAuth2.tokenUrl": case(harvested(), "auth.oauth2.tokenUrl", "https://auth.example.org/token-endpoint?v=2", given=OAUTH2),
    "OAuth2.scopes": case(harvested(), "auth.oauth2.scopes", ["read"], given=OAUTH2),
    "OAuth2.audience": case(harvested(), "auth.oauth2.audience", "api", given=OAUTH2),
    "OAuth2.refresh": case(checked, "auth.oauth2.refresh", False, given=OAUTH2),
    "OAuth2.expirySkew": case(harvested(items=spread(60)), "auth.oauth2.expirySkew", "PT1S", given=OAUTH2 | SLOW),
    "OAuth2.clientAuth": case(harvested(), "auth.oauth2.clientAuth", "BODY", given=OAUTH2),
    "Credential.endpoints": case(checked, "/credentials.key.endpoints", ["details"], given=KEY),
    "Credential.pool": case(harvested(script=refused_once), "/credentials.two.pool", "others", given=POOL | {"/credentials.one.pool": "keys"}),
    "Credential.priority": case(harvested(), "/credentials.two.priority", 1, given=POOL),
    "Credential.description": case(documentation, "/credentials.key.description", "The library's key", given=KEY),
    "Param.description": case(documentation, "params.term.description", "What to look for", given=TERM),
    "Param.default": case(request, "params.term.default", "c", given=TERM),
    "Param.required": case(compilation, "params.term.required", True, given={"params": {"term": {"maxLength": 10}}}),
    "Param.expr": case(request, "params.term.expr", "(${params.term})", given=PLACED | {"params.term.location": "QUERY"}),
    "Param.location": case(request, "params.term.location", "HEADER", given=PLACED),
    "Param.nameAs": case(request, "params.term.nameAs", "query", given=PLACED | {"params.term.location": "QUERY"}),
    "Param.selects": case(watermark, "params.term.selects", False, given=TERM),
    "Param.pattern": case(request, "params.term.pattern", "[a-z]+", given=PLACED | {"params.term.location": "QUERY"}),
    "Param.values": case(planned(params={"term": "x"}), "params.term.values", ["a"], given=PLACED),
    "Param.maxLength": case(planned(params={"term": "xxx"}), "params.term.maxLength", 2, given=PLACED),
}  # fmt: skip
