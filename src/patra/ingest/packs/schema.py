"""The pack format: one YAML file for one source (ruling I5). These structs are its schema and its reference.

A value comes from one of five levels, each overriding the one before it (ch. 3.3.2): the platform's defaults, the
source's `defaults`, an endpoint's `method`, `path` and `defaults`, its sections (then `operations` for one operation),
and what a trigger says.
"""
# ruff: noqa: RUF012  msgspec gives each struct an empty default of its own

from typing import Annotated, Any, Literal

from patra.ingest.packs.sections import (
    Auth,
    Batching,
    Bit,
    Credential,
    Cursor,
    ErrorRule,
    Expr,
    Http,
    Limits,
    Ordering,
    Output,
    Pagination,
    Param,
    Planning,
    RateLimit,
    Response,
    Retry,
    TwoPhase,
    Update,
    Window,
)
from patra.ingest.packs.sections.base import IDENTIFIER, NAME, Duration, Priority, Template, doc
from patra.ingest.vocabulary.codes import Access, HttpMethod, MissedTicks, Operation, Role
from patra.kernel.clock import DAY


class Sections(Bit, frozen=True, kw_only=True):
    """The strategy bits, as they stand under `defaults`, under an endpoint and under `operations`."""

    http: Annotated[
        Http, doc("Where the request goes and what it carries.", {"baseUrl": "https://api.crossref.org"})
    ] = Http()
    auth: Annotated[Auth, doc("Which credential, and where it is put.", {"type": "NONE"})] = Auth()
    params: Annotated[
        dict[Annotated[str, doc("Its name.", "term", pattern=IDENTIFIER)], Param],
        doc("Parameters that a trigger may set.", {"term": {"default": "all[sb]"}}),
    ] = {}
    pagination: Annotated[Pagination, doc("How the pages are walked.", {"type": "PAGE", "base1": True})] = Pagination()
    ordering: Annotated[Ordering, doc("The order of the list.", {"orderBy": "updated asc"})] = Ordering()
    window: Annotated[Window, doc("The window of time.", {"watermarkKey": "updated_at"})] = Window()
    cursor: Annotated[Cursor, doc("The watermark that is moved.", {"scope": "EXPR"})] = Cursor()
    response: Annotated[Response, doc("Where things stand in an answer.", {"itemsPath": "$.items"})] = Response()
    errors: Annotated[
        dict[Annotated[str, doc("Its name.", "expired", pattern=IDENTIFIER)], ErrorRule],
        doc(
            "Answers that mean something other than their status, by name. Rules of a higher level are asked first.",
            {"expired": {"status": [404], "pattern": "cursor", "outcome": "RESTART"}},
        ),
    ] = {}
    expr: Annotated[Expr, doc("What expressions may do.", {"nullPolicy": "omit"})] = Expr()
    output: Annotated[Output, doc("What becomes of a record.", {"shape": "work"})] = Output()
    retry: Annotated[Retry, doc("Second attempts.", {"maxAttempts": 5})] = Retry()
    rate_limit: Annotated[RateLimit, doc("How fast, and how much a day.", {"refillRatePerSec": 3})] = RateLimit()
    limits: Annotated[Limits, doc("What the provider allows.", {"maxPageSize": 1000})] = Limits()
    batching: Annotated[Batching, doc("Ids in groups.", {"idBatchSize": 200})] = Batching()
    two_phase: Annotated[TwoPhase, doc("First ids, then records.", {"enabled": True, "linkedEndpoint": "fetch"})] = (
        TwoPhase()
    )
    planning: Annotated[Planning, doc("How a plan is cut.", {"maxPagesPerSlice": 100})] = Planning()
    update: Annotated[Update, doc("Which known records are fetched again.", {"staleAfter": "P30D"})] = Update()


class Endpoint(Sections, frozen=True, kw_only=True):
    """One thing that the provider answers."""

    title: Annotated[str, doc("For people.", "Search works")] = ""
    role: Annotated[Role, doc("What it gives.", "SEARCH")] = Role.SEARCH
    access: Annotated[Access, doc("Whether a credential is needed.", "PUBLIC")] = Access.PUBLIC
    method: Annotated[HttpMethod | None, doc("Short for `http.method`.", "GET")] = None
    path: Annotated[Template | None, doc("Short for `http.pathTemplate`.", "/works")] = None
    supports: Annotated[
        list[Operation],
        doc("Operations that make sense here; none named means all that compile.", ["HARVEST", "BACKFILL"]),
    ] = []
    defaults: Annotated[
        Sections, doc("Overrides of the source's `defaults` that this endpoint's sections may override again.", {})
    ] = Sections()
    operations: Annotated[
        dict[Operation, Sections],
        doc("Sections for one operation only.", {"BACKFILL": {"rateLimit": {"refillRatePerSec": 1}}}),
    ] = {}


MAX_JITTER = 7 * DAY
"""A planner goes back tick by tick to the last one whose jitter is over: this bounds how far."""

MAX_LOOK_BACK = 73_000 * DAY
"""Two hundred years, of which every instant is an exact number of microseconds."""


class Schedule(Bit, frozen=True, kw_only=True):
    """When plans are made by themselves (ch. 5.2.1)."""

    endpoint: Annotated[str, doc("The endpoint.", "search", pattern=NAME)]
    operation: Annotated[Operation, doc("The operation.", "HARVEST")]
    cron: Annotated[str, doc("When: minute hour day month weekday.", "*/15 * * * *", kind="cron")]
    timezone: Annotated[
        str, doc("Zone of `cron`; a tick in the hour that summer time skips fires right after it.", "Europe/Berlin")
    ] = "UTC"
    jitter: Annotated[
        Duration, doc("Each tick fires later by up to this (at most P7D), so that not everybody asks at once.", "PT5M")
    ] = "PT0S"
    missed: Annotated[MissedTicks, doc("What becomes of ticks while nothing ran or the source was paused.", "ALL")] = (
        MissedTicks.ONCE
    )
    last: Annotated[
        Duration | None, doc("The window is the last so much of time instead of what the watermark says.", "P7D")
    ] = None
    reread: Annotated[
        bool,
        doc("Read the whole of `last` again each time: for records that appear late or keep their date.", True),
    ] = False
    params: Annotated[dict[str, Any], doc("Values of parameters.", {"term": "cancer"})] = {}
    priority: Annotated[Priority | None, doc("Priority of its tasks.", 100)] = None
    enabled: Annotated[bool, doc("Off without being taken away.", True)] = True


class Semantics(Bit, frozen=True, kw_only=True):
    """What a librarian asks of a source before trusting a harvest, each in a sentence for people."""

    total: Annotated[str, doc("What the provider's total means.", "`numFound` is exact.", min_length=10)]
    bounds: Annotated[str, doc("Whether the bounds of a window are included.", "Both days are.", min_length=10)]
    precision: Annotated[str, doc("How finely instants are compared.", "Whole days.", min_length=5)]
    update_time: Annotated[str, doc("What moves the update time.", "Every change of the record.", min_length=10)]
    deletions: Annotated[str, doc("How a deleted record shows.", "`status` is withdrawn.", min_length=8)]
    source: Annotated[str, doc("Where the provider says so.", "https://ror.readme.io", pattern="^https://.+")]
    date_filter: Annotated[
        Literal["recorded", "documented", "unproven", "none"],
        doc(
            "What the filter by date rests on: recorded requests, the provider's documentation or its own source, "
            "neither, or there is no such filter.",
            "documented",
        ),
    ]


class Pack(Bit, frozen=True, kw_only=True):
    """A source pack."""

    pack: Annotated[Literal[1], doc("Version of the format.", 1)]
    source: Annotated[str, doc("The source's code (`provenance_code`); never changes.", "crossref", pattern=NAME)]
    version: Annotated[
        str, doc("Version of this pack; raise it when you change it.", "1.2.0", min_length=1, max_length=40)
    ]
    title: Annotated[str, doc("The source's name.", "Crossref")]
    description: Annotated[str, doc("What it holds, and what a user should know.", "Metadata of DOIs …")] = ""
    homepage: Annotated[str, doc("The provider's page.", "https://www.crossref.org")] = ""
    documentation: Annotated[
        str, doc("The provider's reference of its API.", "https://api.crossref.org/swagger-ui/")
    ] = ""
    semantics: Annotated[
        Semantics | None, doc("What its totals, bounds, times and deletions mean, for people.", {})
    ] = None
    enabled: Annotated[bool, doc("With `false` nothing is planned for it.", True)] = True
    hosts: Annotated[
        list[Annotated[str, doc("A host.", "api.crossref.org", kind="host")]],
        doc(
            "Hosts that requests, redirects and next-page URLs may go to (ruling I8). The host of a base URL that is a "
            "parameter is added by itself.",
            ["api.crossref.org"],
        ),
    ] = []
    credentials: Annotated[
        dict[Annotated[str, doc("Its name.", "ncbi", pattern=NAME)], Credential],
        doc("Credentials by name.", {"ncbi": {"type": "API_KEY", "secrets": {"apiKey": "env:NCBI_API_KEY"}}}),
    ] = {}
    defaults: Annotated[Sections, doc("Sections for every endpoint.", {"retry": {"maxAttempts": 4}})] = Sections()
    endpoints: Annotated[
        dict[Annotated[str, doc("Its name.", "works", pattern=NAME)], Endpoint],
        doc("Endpoints by name.", {"works": {"method": "GET", "path": "/works"}}, min_length=1),
    ]
    schedules: Annotated[
        dict[Annotated[str, doc("Its name.", "daily", pattern=NAME)], Schedule],
        doc(
            "When plans are made by themselves.",
            {"daily": {"endpoint": "works", "operation": "HARVEST", "cron": "0 3 * * *"}},
        ),
    ] = {}
