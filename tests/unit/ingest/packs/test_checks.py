"""Each check of 3.3.3 and each of the nine of 4.17 has a pack that fails it, by field and line."""

import pytest

from patra.ingest.packs.checks import BUILT_IN
from patra.ingest.packs.compiler import Overrides, check_pack, compile_spec, offered_operations
from patra.ingest.packs.problems import Severity, errors
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from tests.unit.ingest.sample_packs import KINDS, changed, line_of, loaded, loaded_text, problems_of

PARAMS = {"oai": {"baseUrl": "https://oai.example.org/request"}}


@pytest.mark.parametrize("name", KINDS)
def test_a_pack_of_each_kind_compiles_for_every_operation_it_offers(name):
    pack = loaded(name)
    assert errors(check_pack(pack)) == []
    for endpoint in pack.pack.endpoints:
        for operation in offered_operations(pack.pack, endpoint):
            compiled = compile_spec(pack, endpoint, operation, Overrides(params=PARAMS.get(name, {})))
            assert compiled.spec is not None, [str(p) for p in compiled.problems]


# what is broken: (number, base, replacements, code, path, the text on whose line it must be reported)
BROKEN = [
    # 4.17(1) authentication and endpoint
    (
        "restricted endpoint read anonymously",
        "token",
        [("  works:\n    method: GET", "  works:\n    access: RESTRICTED\n    auth: {type: NONE}\n    method: GET")],
        Reason.AUTH_MISMATCH,
        "endpoints.works.auth.type",
        "auth: {type: NONE}",
    ),
    (
        "restricted endpoint with an optional credential",
        "token",
        [("  works:\n    method: GET", "  works:\n    access: RESTRICTED\n    method: GET")],
        Reason.AUTH_MISMATCH,
        "defaults.auth.optional",
        "auth: {type: API_KEY",
    ),
    (
        "key in the body of a GET",
        "token",
        [("location: HEADER", "location: BODY")],
        Reason.AUTH_MISMATCH,
        "defaults.auth.location",
        "auth: {type: API_KEY",
    ),
    (
        "key without a name",
        "token",
        [("name: Crossref-Plus-API-Token, ", "")],
        Reason.AUTH_MISMATCH,
        "defaults.auth.name",
        "auth: {type: API_KEY",
    ),
    (
        "credential of another type",
        "token",
        [("plus:\n    type: API_KEY", "plus:\n    type: BEARER")],
        Reason.AUTH_MISMATCH,
        "defaults.auth.credentialRef",
        "auth: {type: API_KEY",
    ),
    (
        "secret that the type needs is missing",
        "token",
        [("{apiKey: env:TOKENLIKE_KEY}", "{other: env:TOKENLIKE_KEY}")],
        Reason.AUTH_MISMATCH,
        "credentials.plus.secrets",
        "secrets:",
    ),
    (
        "credential bound to another endpoint",
        "token",
        [("secrets: {apiKey", "endpoints: [work]\n    secrets: {apiKey")],
        Reason.AUTH_MISMATCH,
        "defaults.auth.credentialRef",
        "auth: {type: API_KEY",
    ),
    (
        "oauth without a token url",
        "token",
        [
            ("type: API_KEY\n", "type: OAUTH2\n"),
            ("secrets: {apiKey: env:TOKENLIKE_KEY}", "secrets: {clientId: env:A, clientSecret: env:B}"),
            ("auth: {type: API_KEY", "auth: {type: OAUTH2"),
        ],
        Reason.AUTH_MISMATCH,
        "defaults.auth.oauth2.tokenUrl",
        "auth: {type: OAUTH2",
    ),
    (
        "oauth that is not refreshed",
        "token",
        [
            ("type: API_KEY\n", "type: OAUTH2\n"),
            ("secrets: {apiKey: env:TOKENLIKE_KEY}", "secrets: {clientId: env:A, clientSecret: env:B}"),
            (
                "auth: {type: API_KEY",
                "auth: {oauth2: {tokenUrl: 'https://api.example.org/t', refresh: false}, type: OAUTH2",
            ),
        ],
        Reason.AUTH_MISMATCH,
        "defaults.auth.oauth2.refresh",
        "auth: {oauth2",
    ),
    # 4.17(2) pagination
    (
        "TOKEN without nextTokenPath",
        "token",
        [("      nextTokenPath: $.message['next-cursor']\n", "")],
        Reason.PAGING_PATH_MISSING,
        "endpoints.works.pagination.nextTokenPath",
        "    pagination:",
    ),
    (
        "URL without nextUrlPath",
        "url",
        [("nextUrlPath: $.links.next, ", "")],
        Reason.PAGING_PATH_MISSING,
        "endpoints.records.pagination.nextUrlPath",
        "pagination: {type: URL, pageSize",
    ),
    (
        "PAGE that does not say its base",
        "page",
        [("base1: true, ", "")],
        Reason.PAGING_PATH_MISSING,
        "endpoints.articles.pagination.base1",
        "pagination: {type: PAGE",
    ),
    (
        "PAGE without a page size",
        "page",
        [("pageSize: 100, maxPage", "maxPage")],
        Reason.PAGING_PATH_MISSING,
        "endpoints.articles.pagination.pageSize",
        "pagination: {type: PAGE",
    ),
    (
        "a request that never asks for the next page",
        "page",
        [('page: "${page.no}", ', "")],
        Reason.PAGING_PATH_MISSING,
        "endpoints.articles.pagination.type",
        "pagination: {type: PAGE",
    ),
    (
        "no pagination at all",
        "page",
        [("    pagination: {type: PAGE, base1: true, pageSize: 100, maxPage: 10}\n", "")],
        Reason.REQUIRED_MISSING,
        "endpoints.articles.pagination.type",
        "  articles:",
    ),
    (
        "two kinds of pagination at once (4.3.4)",
        "page",
        [("base1: true, ", "base1: true, nextTokenPath: $.next, ")],
        Reason.PAGING_CONFLICT,
        "endpoints.articles.pagination.nextTokenPath",
        "pagination: {type: PAGE",
    ),
    (
        "a list by time that is to be read twice",
        "time",
        [("pagination: {type: TIME", "pagination: {type: TIME, verify: TWICE")],
        Reason.PAGING_CONFLICT,
        "endpoints.changes.pagination.verify",
        "pagination: {type: TIME",
    ),
    # 4.17(3) window and order
    (
        "no filter by time and no stable order",
        "time",
        [("window: {supportsUpdatedSince: true", "window: {supportsUpdatedSince: false")],
        Reason.WINDOW_UNSUPPORTED,
        "endpoints.changes.window.supportsUpdatedSince",
        "window: {",
    ),
    (
        "TIME without order or filter",
        "time",
        [("window: {supportsUpdatedSince: true", "window: {clientFilter: true"), ("stable: true, ", "")],
        Reason.WINDOW_UNSUPPORTED,
        "endpoints.changes.pagination.type",
        "pagination: {type: TIME",
    ),
    (
        "a filter that the request does not use",
        "url",
        [('q: "updated:[${window.from} TO ${window.to}}", ', "")],
        Reason.WINDOW_UNSUPPORTED,
        "endpoints.records.window.supportsUpdatedSince",
        "window: {supportsUpdatedSince: true, watermarkKey: updated, align: hour",
    ),
    # 3.3.3 windows
    (
        "widest below narrowest",
        "offset",
        [("minWindow: PT1H, maxWindow: P1D", "minWindow: P1D, maxWindow: PT1H")],
        Reason.WINDOW_INVALID,
        "endpoints.query.window.maxWindow",
        "window: {",
    ),
    (
        "hours aligned to days",
        "token",
        [("minWindow: P1D", "minWindow: PT6H")],
        Reason.WINDOW_INVALID,
        "endpoints.works.window.minWindow",
        "window: {",
    ),
    (
        "no watermark key",
        "url",
        [("watermarkKey: updated, align", "align")],
        Reason.WINDOW_INVALID,
        "endpoints.records.window.watermarkKey",
        "window: {supportsUpdatedSince: true, align",
    ),
    (
        "a substitute that is not monotonic",
        "token",
        [("watermarkKey: indexed", "watermarkKey: indexed, substituteKey: created")],
        Reason.WINDOW_INVALID,
        "endpoints.works.window.substituteKey",
        "window: {",
    ),
    (
        "a zone that is none",
        "url",
        [("align: hour, initial: P1D}\n    limits", "align: hour, initial: P1D, sourceTimezone: Mars}\n    limits")],
        Reason.WINDOW_INVALID,
        "endpoints.records.window.sourceTimezone",
        "sourceTimezone",
    ),
    # 4.17(4) two phases
    (
        "two phases without a detail endpoint",
        "twophase",
        [("twoPhase: {enabled: true, linkedEndpoint: fetch}", "twoPhase: {enabled: true}")],
        Reason.TWO_PHASE_INCOMPLETE,
        "endpoints.search.twoPhase.linkedEndpoint",
        "twoPhase:",
    ),
    (
        "a detail endpoint that is not there",
        "twophase",
        [("linkedEndpoint: fetch", "linkedEndpoint: fetsch")],
        Reason.TWO_PHASE_INCOMPLETE,
        "endpoints.search.twoPhase.linkedEndpoint",
        "twoPhase:",
    ),
    (
        "a detail endpoint of another role",
        "twophase",
        [("    role: DETAIL\n", "")],
        Reason.TWO_PHASE_INCOMPLETE,
        "endpoints.search.twoPhase.linkedEndpoint",
        "twoPhase:",
    ),
    (
        "a detail request without ids",
        "twophase",
        [("id: \"${join(ids, ',')}\"", "id: none")],
        Reason.TWO_PHASE_INCOMPLETE,
        "endpoints.fetch.http.queryTemplate",
        "queryTemplate: {db: pubmed, retmode: xml}",
    ),
    (
        "one id at a time in groups of many",
        "token",
        [("batching: {idBatchSize: 1}", "batching: {idBatchSize: 5}")],
        Reason.TWO_PHASE_INCOMPLETE,
        "endpoints.work.batching.idBatchSize",
        "batching:",
    ),
    # 4.17(5) the three paths
    (
        "no itemsPath",
        "page",
        [("      itemsPath: $.results\n", "")],
        Reason.PATHS_INCOMPLETE,
        "endpoints.articles.response.itemsPath",
        "    response:",
    ),
    (
        "no idPath",
        "page",
        [("      idPath: $.id\n", "")],
        Reason.PATHS_INCOMPLETE,
        "endpoints.articles.response.idPath",
        "    response:",
    ),
    (
        "no updatedAtPath",
        "page",
        [("      updatedAtPath: $.last_updated\n", "")],
        Reason.PATHS_INCOMPLETE,
        "endpoints.articles.response.updatedAtPath",
        "    response:",
    ),
    (
        "a path that does not compile",
        "page",
        [("itemsPath: $.results", "itemsPath: results[")],
        Reason.PATH_INVALID,
        "endpoints.articles.response.itemsPath",
        "itemsPath: results[",
    ),
    (
        "an undeclared prefix",
        "offset",
        [("idPath: a:id", "idPath: x:id")],
        Reason.PATH_INVALID,
        "endpoints.query.response.idPath",
        "idPath: x:id",
    ),
    (
        "a rule whose path does not compile",
        "offset",
        [('path: "/a:feed/a:entry/a:title"', "path: '//['")],
        Reason.PATH_INVALID,
        "endpoints.query.errors.error_feed.path",
        "error_feed:",
    ),
    (
        "an output path that does not compile",
        "page",
        [("{path: $.bibjson.title", "{path: bibjson.title")],
        Reason.PATH_INVALID,
        "endpoints.articles.output.fields.title.path",
        "title: {path: bibjson",
    ),
    (
        "an output expression with a typo",
        "token",
        [("coalesce(item.name", "coalesce(itm.name")],
        Reason.EXPR_INVALID,
        "endpoints.works.output.fields.authors.fields.name",
        'name: "${coalesce(itm',
    ),
    # the common shape
    (
        "a field that a work does not have",
        "page",
        [("{path: $.bibjson.title", "{path: $.bibjson.x}\n        titel: {path: $.bibjson.title")],
        Reason.SHAPE_INVALID,
        "endpoints.articles.output.fields.titel",
        "titel: {path",
    ),
    (
        "a field that an author does not have",
        "token",
        [('name: "${coalesce(item.name', 'naem: $.name\n            name: "${coalesce(item.name')],
        Reason.SHAPE_INVALID,
        "endpoints.works.output.fields.authors.fields.naem",
        "naem: $.name",
    ),
    (
        "a shape that there is not",
        "page",
        [("shape: work", "shape: wrok")],
        Reason.SHAPE_INVALID,
        "endpoints.articles.output.shape",
        "shape: wrok",
    ),
    # 4.17(6) limits
    (
        "a page larger than the provider gives",
        "token",
        [("limits: {maxPageSize: 1000}", "limits: {maxPageSize: 500}")],
        Reason.LIMIT_EXCEEDED,
        "endpoints.works.pagination.pageSize",
        "pageSize: 1000",
    ),
    (
        "faster than the provider allows",
        "offset",
        [("maxRatePerSec: 0.34", "maxRatePerSec: 0.3")],
        Reason.LIMIT_EXCEEDED,
        "defaults.rateLimit.refillRatePerSec",
        "rateLimit: {refillRatePerSec: 0.33",
    ),
    (
        "more ids than the provider takes",
        "twophase",
        [("limits: {maxIdBatch: 10000}", "limits: {maxIdBatch: 100}")],
        Reason.LIMIT_EXCEEDED,
        "endpoints.fetch.batching.idBatchSize",
        "batching: {idBatchSize: 200}",
    ),
    (
        "more attempts than the provider tolerates",
        "offset",
        [("maxDepth: 30000}", "maxDepth: 30000, maxAttempts: 2}")],
        Reason.LIMIT_EXCEEDED,
        "endpoints.query.retry.maxAttempts",
        "  query:",
    ),
    (
        "more pages than the depth has",
        "page",
        [("maxPage: 10}", "maxPage: 20, bridgeToTime: false}")],
        Reason.LIMIT_EXCEEDED,
        "endpoints.articles.pagination.maxPage",
        "pagination: {type: PAGE",
    ),
    (
        "a larger quota than the provider gives",
        "twophase",
        [("limits: {maxRatePerSec: 10}", "limits: {maxRatePerSec: 10, quotaDaily: 1000}")],
        Reason.LIMIT_EXCEEDED,
        "defaults.rateLimit.quotaDaily",
        "quotaDaily: 100000",
    ),
    # 4.17(7) codes: an unknown one is found while reading
    (
        "a method that is none",
        "page",
        [("method: GET", "method: FETCH")],
        Reason.CODE_UNKNOWN,
        "endpoints.articles.method",
        "method: FETCH",
    ),
    # 4.17(8) namespace and direction
    (
        "a harvest that goes backward",
        "page",
        [("    limits: {maxDepth: 1000}", "    cursor: {direction: BACKFILL}\n    limits: {maxDepth: 1000}")],
        Reason.NAMESPACE_MISMATCH,
        "endpoints.articles.cursor.direction",
        "cursor:",
    ),
    (
        "a backfill that moves the shared watermark",
        "page",
        [
            (
                "    limits: {maxDepth: 1000}",
                "    operations: {BACKFILL: {cursor: {scope: EXPR}}}\n    limits: {maxDepth: 1000}",
            )
        ],
        Reason.NAMESPACE_MISMATCH,
        "endpoints.articles.operations.BACKFILL.cursor.scope",
        "operations:",
    ),
    (
        "a harvest that counts ids",
        "page",
        [
            (
                "    limits: {maxDepth: 1000}",
                "    operations: {HARVEST: {cursor: {type: TOKEN}}}\n    limits: {maxDepth: 1000}",
            )
        ],
        Reason.NAMESPACE_MISMATCH,
        "endpoints.articles.operations.HARVEST.cursor.type",
        "operations:",
    ),
    # 4.17(9) safety
    (
        "custom signing without a hook",
        "token",
        [("type: API_KEY\n", "type: CUSTOM\n"), ("auth: {type: API_KEY", "auth: {type: CUSTOM")],
        Reason.UNSAFE,
        "defaults.auth.signingHook",
        "auth: {type: CUSTOM",
    ),
    (
        "a signing hook that is not installed",
        "token",
        [
            ("type: API_KEY\n", "type: CUSTOM\n"),
            ("auth: {type: API_KEY", "auth: {signingHook: nobody_has_it, type: CUSTOM"),
        ],
        Reason.EXTENSION_UNKNOWN,
        "defaults.auth.signingHook",
        "auth: {signingHook",
    ),
    (
        "a backfill schedule that does not say where it begins",
        "token",
        [
            (
                "endpoints:\n  works:",
                "schedules:\n  s: {endpoint: works, operation: BACKFILL, cron: '0 3 * * *'}\nendpoints:\n  works:",
            )
        ],
        Reason.SCHEDULE_INVALID,
        "schedules.s.last",
        "  s: {endpoint",
    ),
    (
        "a jitter that outlasts a week",
        "token",
        [
            (
                "endpoints:\n  works:",
                "schedules:\n  s: {endpoint: works, operation: HARVEST, cron: '0 3 * * *', jitter: P7DT1S}\nendpoints:\n  works:",
            )
        ],
        Reason.SCHEDULE_INVALID,
        "schedules.s.jitter",
        "  s: {endpoint",
    ),
    (
        "a window of more than two hundred years",
        "token",
        [
            (
                "endpoints:\n  works:",
                "schedules:\n  s: {endpoint: works, operation: HARVEST, cron: '0 3 * * *', last: P73001D}\nendpoints:\n  works:",
            )
        ],
        Reason.SCHEDULE_INVALID,
        "schedules.s.last",
        "  s: {endpoint",
    ),
    (
        "a refresh schedule with a window",
        "token",
        [
            (
                "endpoints:\n  works:",
                "schedules:\n  s: {endpoint: works, operation: UPDATE, cron: '0 3 * * *', last: P7D}\nendpoints:\n  works:",
            )
        ],
        Reason.SCHEDULE_INVALID,
        "schedules.s.last",
        "  s: {endpoint",
    ),
    (
        "a harvest schedule that reads a window again",
        "token",
        [
            (
                "endpoints:\n  works:",
                "schedules:\n  s: {endpoint: works, operation: HARVEST, cron: '0 3 * * *', last: P7D, reread: true}\nendpoints:\n  works:",
            )
        ],
        Reason.SCHEDULE_INVALID,
        "schedules.s.reread",
        "  s: {endpoint",
    ),
    (
        "an authenticated quota above what the provider allows",
        "token",
        [
            ("maxPageSize: 1000", "maxPageSize: 1000, quotaDaily: 500"),
            ("endpoints:\n  works:", "endpoints:\n  works:\n    rateLimit: {authenticated: {quotaDaily: 501}}"),
        ],
        Reason.LIMIT_EXCEEDED,
        "endpoints.works.rateLimit.authenticated.quotaDaily",
        "rateLimit: {authenticated",
    ),
    (
        "a rate for a parameter that is not there",
        "token",
        [("endpoints:\n  works:", "endpoints:\n  works:\n    rateLimit: {identified: {param: mail}}")],
        Reason.PARAM_INVALID,
        "endpoints.works.rateLimit.identified.param",
        "rateLimit: {identified",
    ),
    (
        "a credential that is not there",
        "token",
        [("credentialRef: plus", "credentialRef: minus")],
        Reason.UNSAFE,
        "defaults.auth.credentialRef",
        "auth: {type: API_KEY",
    ),
    (
        "redaction turned off",
        "page",
        [
            (
                "      baseUrl: https://page.example.org",
                "      baseUrl: https://page.example.org\n      redactLogs: false",
            )
        ],
        Reason.UNSAFE,
        "endpoints.articles.http.redactLogs",
        "redactLogs",
    ),
    (
        "Retry-After ignored",
        "offset",
        [("rateLimit: {refill", "rateLimit: {retryAfterRespect: false, refill")],
        Reason.UNSAFE,
        "defaults.rateLimit.retryAfterRespect",
        "rateLimit:",
    ),
    # 3.3.3 the parts that every request needs
    (
        "no base URL",
        "page",
        [("      baseUrl: https://page.example.org\n", "")],
        Reason.REQUIRED_MISSING,
        "endpoints.articles.http.baseUrl",
        "    http:",
    ),
    (
        "no method",
        "page",
        [("    method: GET\n", "")],
        Reason.REQUIRED_MISSING,
        "endpoints.articles.http.method",
        "    http:",
    ),
    (
        "a body on a GET",
        "page",
        [
            (
                "      baseUrl: https://page.example.org",
                "      baseUrl: https://page.example.org\n      bodyTemplate: {kind: FORM, fields: {a: b}}",
            )
        ],
        Reason.REQUIRED_MISSING,
        "endpoints.articles.http.bodyTemplate.kind",
        "bodyTemplate",
    ),
    (
        "plain http",
        "page",
        [("baseUrl: https://", "baseUrl: http://")],
        Reason.HOST_INVALID,
        "endpoints.articles.http.baseUrl",
        "baseUrl: http",
    ),
    (
        "a password in the base URL",
        "page",
        [("baseUrl: https://page", "baseUrl: https://a:b@page")],
        Reason.HOST_INVALID,
        "endpoints.articles.http.baseUrl",
        "baseUrl: https",
    ),
    # expressions
    (
        "a typo in a template",
        "page",
        [("${page.no}", "${page.number}")],
        Reason.EXPR_INVALID,
        "endpoints.articles.http.queryTemplate.page",
        "queryTemplate:",
    ),
    (
        "a secret in the path",
        "token",
        [("path: /works\n", "path: /works/${credential.apiKey}\n")],
        Reason.EXPR_INVALID,
        "endpoints.works.path",
        "path: /works/${credential.apiKey}",
    ),
    (
        "a function that is not allowed",
        "page",
        [("    expr:\n", "    expr:\n      allowedFunctions: [coalesce]\n")],
        Reason.EXPR_INVALID,
        "endpoints.articles.expr.vars.q",
        'q: "last_updated',
    ),
    (
        "a header that is none",
        "token",
        [("headersTemplate: {Accept:", "headersTemplate: {'Ac cept':")],
        Reason.EXPR_INVALID,
        "defaults.http.headersTemplate.Ac cept",
        "headersTemplate",
    ),
    (
        "a window in the base URL",
        "page",
        [("baseUrl: https://page.example.org", "baseUrl: https://${window.from}.example.org")],
        Reason.EXPR_INVALID,
        "endpoints.articles.http.baseUrl",
        "baseUrl: https://${",
    ),
    # references
    (
        "a schedule for an endpoint that is not there",
        "page",
        [("hourly: {endpoint: articles", "hourly: {endpoint: article")],
        Reason.PACK_BAD_REFERENCE,
        "schedules.hourly.endpoint",
        "hourly:",
    ),
    (
        "a schedule for an operation that is not offered",
        "page",
        [("operation: HARVEST, cron", "operation: UPDATE, cron")],
        Reason.OPERATION_UNSUPPORTED,
        "schedules.hourly.operation",
        "hourly:",
    ),
    (
        "a schedule with an unknown parameter",
        "page",
        [('cron: "5 * * * *"}', 'cron: "5 * * * *", params: {x: 1}}')],
        Reason.PARAM_INVALID,
        "schedules.hourly.params.x",
        "hourly:",
    ),
]


@pytest.mark.parametrize(
    ("name", "replacements", "code", "path", "text"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN]
)
def test_a_broken_pack_is_refused_with_field_and_line(name, replacements, code, path, text):
    pack = changed(name, *replacements)
    found = errors(problems_of(pack))
    here = [problem for problem in found if problem.code is code and problem.path == path]
    assert here, [str(problem) for problem in found]
    assert here[0].line == line_of(pack, text), str(here[0])
    assert here[0].message


def test_every_code_of_the_checks_is_reached():
    reached = {b[3] for b in BROKEN}
    checks = {
        Reason.CODE_UNKNOWN,
        Reason.AUTH_MISMATCH,
        Reason.PAGING_PATH_MISSING,
        Reason.PAGING_CONFLICT,
        Reason.WINDOW_UNSUPPORTED,
        Reason.WINDOW_INVALID,
        Reason.TWO_PHASE_INCOMPLETE,
        Reason.PATHS_INCOMPLETE,
        Reason.PATH_INVALID,
        Reason.SHAPE_INVALID,
        Reason.LIMIT_EXCEEDED,
        Reason.NAMESPACE_MISMATCH,
        Reason.UNSAFE,
        Reason.REQUIRED_MISSING,
        Reason.EXPR_INVALID,
        Reason.HOST_INVALID,
        Reason.PARAM_INVALID,
    }
    assert checks <= reached


@pytest.mark.parametrize(
    ("name", "replacements", "code"),
    [
        ("page", [("      totalPath: $.total\n", "")], Reason.NO_COUNT),
        ("page", [], Reason.HAS_NEXT_BY_PAGE_SIZE),
        ("time", [("window: {supportsUpdatedSince: true", "window: {clientFilter: true")], Reason.CLIENT_FILTER),
        ("twophase", [], Reason.NO_UPDATED_AT),
        ("page", [("stable: true, ", "")], Reason.UNSTABLE_ORDER),
        ("token", [], Reason.ANONYMOUS),
    ],
)
def test_a_lesser_way_is_a_warning_and_is_kept_in_the_snapshot(name, replacements, code):
    pack = loaded_text(changed(name, *replacements))
    warnings = [p for p in check_pack(pack) if p.severity is Severity.WARNING]
    assert code in {warning.code for warning in warnings}
    endpoint = next(iter(pack.pack.endpoints))
    compiled = compile_spec(pack, endpoint, Operation.HARVEST)
    assert code.value in compiled.spec.degradations


def test_a_code_that_was_disabled_in_the_dictionary_stops_compiling():
    pack = loaded("page")
    without = {**BUILT_IN, "reg_pagination_type": BUILT_IN["reg_pagination_type"] - {"PAGE"}}
    compiled = compile_spec(pack, "articles", Operation.HARVEST, None, without)
    assert compiled.spec is None
    assert (compiled.problems[0].code, compiled.problems[0].path) == (
        Reason.CODE_UNKNOWN,
        "endpoints.articles.pagination.type",
    )
    operations = {**BUILT_IN, "ing_operation": frozenset({"UPDATE"})}
    assert Reason.CODE_UNKNOWN in {
        p.code for p in compile_spec(pack, "articles", Operation.HARVEST, None, operations).problems
    }


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({}, "needs a value"),
        ({"baseUrl": "ftp://x"}, "does not match"),
        ({"baseUrl": "https://x.org", "nope": "1"}, "no parameter"),
        ({"baseUrl": "https://" + "x" * 5000}, "longer"),
        ({"baseUrl": "https://x.org", "set": "a\x00b"}, "no text can hold"),
        ({"baseUrl": "https://x.org", "set": "a\ud800b"}, "no text can hold"),
    ],
)
def test_what_a_trigger_says_is_checked(params, what):
    compiled = compile_spec(loaded("oai"), "records", Operation.HARVEST, Overrides(params=params))
    assert compiled.spec is None
    assert any(p.code is Reason.PARAM_INVALID and what in p.message for p in compiled.problems), [
        str(p) for p in compiled.problems
    ]


def test_an_unknown_endpoint_is_refused_with_a_hint():
    problem = compile_spec(loaded("page"), "article", Operation.HARVEST).problems[0]
    assert (problem.code, problem.advice) == (
        Reason.ENDPOINT_UNKNOWN,
        "did you mean articles? known: articles",
    )
    assert (problem.file, problem.path) == ("", "endpoint"), "what a trigger says stands in no file"


def test_an_operation_that_is_not_supported_is_refused():
    pack = loaded_text(changed("page", ("    method: GET", "    supports: [HARVEST]\n    method: GET")))
    assert {p.code for p in compile_spec(pack, "articles", Operation.BACKFILL).problems} >= {
        Reason.OPERATION_UNSUPPORTED
    }
    assert {p.code for p in compile_spec(loaded("page"), "articles", Operation.UPDATE).problems} >= {
        Reason.TWO_PHASE_INCOMPLETE
    }
