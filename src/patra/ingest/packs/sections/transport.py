"""How a request is made: HTTP and authentication (ch. 4.2)."""
# ruff: noqa: RUF012  msgspec gives each struct an empty default of its own

from typing import Annotated, Any

from patra.ingest.packs.sections.base import Bit, Duration, Identifier, Name, Pattern, Template, doc
from patra.ingest.vocabulary.codes import AuthLocation, AuthType, BodyKind, ClientAuth, HttpMethod, ParamLocation


class Body(Bit, frozen=True, kw_only=True):
    """The body of a request."""

    kind: Annotated[BodyKind, doc("What is sent: nothing, a form, JSON, XML or plain text.", "FORM")] = BodyKind.NONE
    fields: Annotated[
        dict[str, Template | list[Template]],
        doc(
            "FORM: the fields; a list sends the field once for each item.", {"db": "pubmed", "id": "${join(ids, ',')}"}
        ),
    ] = {}
    json: Annotated[
        Any,
        doc(
            "JSON: any structure. Texts in it are templates; one that is a single `${…}` keeps the type of its value.",
            {"ids": "${ids}"},
        ),
    ] = None
    text: Annotated[Template, doc("XML and TEXT: the template.", "<ids>${join(ids, ' ')}</ids>")] = ""


class Http(Bit, frozen=True, kw_only=True):
    """Where the request goes and what it carries."""

    method: Annotated[HttpMethod | None, doc("The method; an endpoint needs one.", "GET")] = None
    base_url: Annotated[
        Template,
        doc(
            "Scheme, host and fixed part of the path. May use `${params.…}` only, and is rendered when a plan is made.",
            "https://api.crossref.org",
        ),
    ] = ""
    path_template: Annotated[
        Template,
        doc("Appended to the base URL. What expressions give is percent-encoded, slashes too.", "/works/${id}"),
    ] = ""
    headers_template: Annotated[
        dict[str, Template],
        doc("Headers. Values are visible ASCII; line breaks refuse the request.", {"Accept": "application/json"}),
    ] = {}
    query_template: Annotated[
        dict[str, Template | list[Template]],
        doc("Query parameters; a list sends the parameter once for each item.", {"rows": "${page.size}"}),
    ] = {}
    next_query_template: Annotated[
        dict[str, Template | list[Template]] | None,
        doc(
            "Replaces `queryTemplate` from the second page on, for APIs whose token stands alone (OAI-PMH).",
            {"verb": "ListRecords", "resumptionToken": "${page.token}"},
        ),
    ] = None
    body_template: Annotated[Body, doc("The body; not with GET.", {"kind": "FORM", "fields": {"id": "${id}"}})] = Body()
    user_agent: Annotated[
        Template,
        doc("How the program names itself to the provider.", "patra/0.1 (mailto:${params.mailto})"),
    ] = "patra"
    query_safe: Annotated[
        str, doc("Characters of query values that stay as they are because the provider wants them so.", ":,*")
    ] = ""
    path_safe: Annotated[
        str, doc("Characters of path values that stay as they are; `.` and `..` as a segment are refused.", "/:")
    ] = ""
    space_as_plus: Annotated[bool, doc("Write a space in the query as `+` instead of `%20`.", True)] = False
    connect_timeout_ms: Annotated[int, doc("Longest time to connect.", 10_000, ge=1, le=120_000)] = 10_000
    read_timeout_ms: Annotated[int, doc("Longest time between two reads.", 30_000, ge=1, le=120_000)] = 30_000
    compression: Annotated[bool, doc("Ask for compressed answers.", True)] = True
    proxy: Annotated[str | None, doc("URL of a proxy.", "http://proxy.example.org:3128")] = None
    follow_redirects: Annotated[
        bool, doc("Follow redirects of GET and HEAD, within the declared hosts only.", True)
    ] = False
    max_redirects: Annotated[int, doc("Most redirects of one request.", 3, ge=0, le=3)] = 3
    allow_http: Annotated[bool, doc("Allow `http://` where the provider has no TLS.", True)] = False
    max_response_bytes: Annotated[
        int, doc("A larger body is cut off and counts as a failure of the request.", 67_108_864, ge=1024, le=2**30)
    ] = 64 * 1024 * 1024
    redact_logs: Annotated[
        bool,
        doc("Keep secrets out of logs and stored requests. Must stay on; a pack that turns it off is refused.", True),
    ] = True


class OAuth2(Bit, frozen=True, kw_only=True):
    """The client credentials grant."""

    token_url: Annotated[
        str, doc("Where a token is asked for; on a declared host.", "https://auth.example.org/token")
    ] = ""
    scopes: Annotated[list[str], doc("Scopes to ask for.", ["read-public"])] = []
    audience: Annotated[str | None, doc("The `audience` parameter, where the provider wants one.", "api")] = None
    refresh: Annotated[
        bool, doc("Ask for a new token before the old one ends. Must stay on: without it a long harvest dies.", True)
    ] = True
    expiry_skew: Annotated[Duration, doc("How long before its end a token is renewed.", "PT60S")] = "PT60S"
    client_auth: Annotated[ClientAuth, doc("Where the client's id and secret are put.", "BASIC")] = ClientAuth.BASIC


class Auth(Bit, frozen=True, kw_only=True):
    """Which credential is used and where it is put."""

    type: Annotated[AuthType, doc("How the provider wants to be authenticated to.", "API_KEY")] = AuthType.NONE
    location: Annotated[AuthLocation, doc("Where the secret is put.", "QUERY")] = AuthLocation.HEADER
    name: Annotated[str, doc("Name of the header, parameter or field that holds the secret.", "api_key")] = ""
    prefix: Annotated[str, doc("Written before the secret.", "Token ")] = ""
    credential_ref: Annotated[Name | None, doc("Name of an entry of `credentials`, or of a pool of them.", "ncbi")] = (
        None
    )
    optional: Annotated[
        bool,
        doc("Go on without the credential where its secret is not there (polite anonymous use).", True),
    ] = False
    signing_hook: Annotated[Identifier | None, doc("CUSTOM: name of the signing hook.", "hmac_v1")] = None
    token_hook: Annotated[
        Identifier | None,
        doc("CUSTOM: name of the extension that logs in; its token is put where `location` and `name` say.", "login"),
    ] = None
    oauth2: Annotated[OAuth2, doc("OAUTH2: where and how a token is asked for.", {"tokenUrl": "https://…"})] = OAuth2()


SECRET_REFERENCE = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+|keyring:[^/]+/.+)$"  # noqa: S105  a pattern


class Credential(Bit, frozen=True, kw_only=True):
    """A credential by reference; the secret itself is never in a pack, a table or a snapshot."""

    type: Annotated[AuthType, doc("What it is good for.", "API_KEY")]
    secrets: Annotated[
        dict[str, Annotated[str, doc("A reference.", "env:NCBI_API_KEY", kind="secret", pattern=SECRET_REFERENCE)]],
        doc(
            "References by name: `env:NAME`, `file:PATH`, `keyring:SERVICE/USER`. API_KEY has `apiKey`, BEARER has "
            "`token`, OAUTH2 `clientId` and `clientSecret`; others are free for CUSTOM.",
            {"apiKey": "env:NCBI_API_KEY"},
        ),
    ]
    endpoints: Annotated[list[str], doc("Endpoints it may be used for; none named means all.", ["search"])] = []
    pool: Annotated[
        Name | None,
        doc("Credentials of one pool stand in for each other; `auth.credentialRef` names the pool.", "keys"),
    ] = None
    priority: Annotated[int, doc("In a pool, the smaller number is used first while it works.", 100, ge=0)] = 100
    description: Annotated[str, doc("For people.", "Key of the library's NCBI account")] = ""


class Param(Bit, frozen=True, kw_only=True):
    """A parameter that a trigger may set; expressions read it as `${params.name}`."""

    description: Annotated[str, doc("For people: what it does, where to find values.", "Query in PubMed's syntax")] = ""
    default: Annotated[
        str | int | float | bool | list[str] | None, doc("Its value unless the trigger gives one.", "all[sb]")
    ] = None
    required: Annotated[bool, doc("A plan without a value is refused.", True)] = False
    expr: Annotated[
        Template | None,
        doc("Computes the value that is placed; `params.name` inside it is the given one.", "(${params.term})"),
    ] = None
    location: Annotated[ParamLocation, doc("Placed by itself in the query, a header or the body.", "QUERY")] = (
        ParamLocation.NONE
    )
    name_as: Annotated[str | None, doc("Its name there, if another.", "query.bibliographic")] = None
    selects: Annotated[
        bool,
        doc("Whether its value changes which records are asked for; another value then has another watermark.", False),
    ] = True
    pattern: Annotated[
        Pattern | None,
        doc("Rendered values must match the whole of it; others refuse the request.", "[A-Za-z0-9 .:-]+"),
    ] = None
    values: Annotated[list[str], doc("Allow-list of values.", ["biorxiv", "medrxiv"])] = []
    max_length: Annotated[int, doc("Longest value in characters.", 4000, ge=1, le=65_536)] = 4000
