"""Every pack of the distribution: it passes the checks, compiles, maps to the common shape, and asks as documented."""

from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.mapping import Mapper
from patra.ingest.http.request import Position, Renderer, Request
from patra.ingest.packs import bundled
from patra.ingest.packs.compiler import Overrides, check_pack, compile_spec, offered_operations
from patra.ingest.packs.problems import errors
from patra.ingest.packs.spec import Leg, Spec
from patra.ingest.packs.work import check_shape
from patra.ingest.vocabulary.codes import Operation, Role
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import DAY, parse_instant

NAMES = (
    "ads",
    "arxiv",
    "biorxiv",
    "clinicaltrials",
    "core",
    "crossref",
    "datacite",
    "dblp",
    "doaj",
    "eric",
    "europepmc",
    "hal",
    "inspire",
    "jstage",
    "oaipmh",
    "openaire",
    "openalex",
    "opencitations",
    "orcid",
    "osf",
    "pmc",
    "pubmed",
    "ror",
    "semanticscholar",
    "unpaywall",
    "zenodo",
)
GIVEN = {
    "oaipmh": {"baseUrl": "https://repository.example.org/oai"},
    "unpaywall": {"email": "someone@example.org"},
    "dblp": {"query": "attention"},
    "eric": {"search": "blockchain"},
}
BY_ID_ONLY = {"opencitations", "unpaywall"}
"""They answer about ids that other sources have found."""
BY_QUERY_ONLY = {"dblp", "eric", "jstage"}
"""Searches without a filter by date: a query is read as a whole."""


def instant(text: str) -> int:
    found = parse_instant(text)
    assert found is not None
    return found


NOW = instant("2026-11-16T12:00:00Z")


def specs(name: str) -> list[Spec]:
    loaded = bundled.pack(name)
    out: list[Spec] = []
    for endpoint in loaded.pack.endpoints:
        for operation in offered_operations(loaded.pack, endpoint):
            compiled = compile_spec(loaded, endpoint, operation, Overrides(params=GIVEN.get(name, {})))
            assert compiled.spec is not None, [str(problem) for problem in errors(compiled.problems)]
            out.append(compiled.spec)
    return out


def rendered(spec: Spec, leg: Leg, **where: object) -> Request:
    renderer = Renderer(leg, spec.hosts, [])
    state = {
        "source": spec.provenance_code,
        "endpoint": leg.endpoint_code,
        "operation": spec.operation,
        "now": NOW,
        "window_from": instant("2026-11-01T00:00:00Z"),
        "window_to": instant("2026-11-03T00:00:00Z"),
        "window_until": spec.window.until_us(instant("2026-11-03T00:00:00Z")),
        "page_no": leg.pagination.first_page,
        "page_size": leg.pagination.page_size,
        "offset": leg.pagination.initial.offset,
        "token": leg.pagination.initial.token,
    }
    request = renderer.render(Position(**{**state, **where}))  # type: ignore[arg-type]
    assert not isinstance(request, Refused), request
    return request


def test_the_distribution_has_these_packs() -> None:
    assert bundled.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_pack_has_no_problem(name: str) -> None:
    assert [str(problem) for problem in errors(check_pack(bundled.pack(name)))] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_record_is_told_from_a_known_one(name: str) -> None:
    """Ruling I14: an update time that does not move has a version or the content beside it."""
    assert [str(one) for one in check_pack(bundled.pack(name)) if one.code is Reason.UPDATE_TIME_STILL] == []


def test_a_date_of_publication_read_as_an_update_time_is_warned_of() -> None:
    def warned(text: str) -> list[str]:
        found = check_pack(bundled.parse_pack(text, "s2.yaml"))
        return [one.severity.value for one in found if one.code is Reason.UPDATE_TIME_STILL]

    text = bundled.text("semanticscholar")
    assert warned(text) == []
    silent = text.replace("onEqual: CONTENT", "onEqual: KEEP")
    assert set(warned(silent)) == {"warning"}
    assert set(warned(silent.replace("updateTime: PUBLISHED", "updateTime: CHANGED"))) == {"warning"}


@pytest.mark.parametrize("name", NAMES)
def test_every_endpoint_and_operation_compiles_and_maps_to_a_work(name: str) -> None:
    found = specs(name)
    operations = (
        {Operation.UPDATE} if name in BY_ID_ONLY else {Operation.BACKFILL} if name in BY_QUERY_ONLY else set(Operation)
    )
    assert {spec.operation for spec in found} == operations
    for spec in found:
        leg = spec.yields
        raw = name == "ror" or leg.endpoint_code == "sets"  # organisations and sets are not works
        assert leg.mapping.output.shape == ("raw" if raw else "work")
        assert list(check_shape(leg.mapping.output)) == []
        Mapper(leg.mapping.output, leg.response, leg.expr, leg.params)


@pytest.mark.parametrize("name", NAMES)
def test_a_pack_is_polite_by_default(name: str) -> None:
    """No faster than ten requests a second without a key, and never faster than what the provider documents."""
    for spec in specs(name):
        assert spec.rate_limit.refill_rate_per_sec <= 10
        assert spec.rate_limit.header_adaptive
        assert spec.http.user_agent.startswith(("patra", "${params."))
        most = spec.limits.max_rate_per_sec
        assert name == "oaipmh" or (most is not None and spec.rate_limit.refill_rate_per_sec <= most)


@pytest.mark.parametrize("name", NAMES)
def test_every_first_request_renders_on_a_declared_host(name: str) -> None:
    for spec in specs(name):
        for leg in [one for one in (spec, spec.detail) if one is not None]:
            if leg.role is Role.DETAIL or leg is spec.detail:
                request = rendered(spec, leg, ids=["1"])
            elif spec.operation is Operation.UPDATE:
                continue
            else:
                request = rendered(spec, leg)
            assert urlsplit(request.url).netloc in spec.hosts


FIRST = {
    ("pubmed", "search"): (
        "https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esearch.fcgi",
        {"term": "all[sb]", "datetype": "crdt", "mindate": "2026/11/01", "maxdate": "2026/11/02", "retstart": "0"},
    ),
    ("crossref", "works"): (
        "https://api.crossref.org/works",
        {
            "filter": "from-index-date:2026-11-01T00:00:00,until-index-date:2026-11-03T00:00:00",
            "cursor": "*",
            "rows": "500",
        },
    ),
    ("openalex", "works"): (
        "https://api.openalex.org/works",
        {"filter": "from_publication_date:2026-11-01,to_publication_date:2026-11-02", "cursor": "*"},
    ),
    ("europepmc", "search"): (
        "https://www.ebi.ac.uk/europepmc/webservices/rest/search",
        {"query": "FIRST_IDATE:[2026-11-01 TO 2026-11-02]", "cursorMark": "*", "resultType": "core"},
    ),
    ("arxiv", "query"): (
        "https://export.arxiv.org/api/query",
        {"search_query": "lastUpdatedDate:[202611010000 TO 202611030000]", "start": "0", "sortOrder": "ascending"},
    ),
    ("arxiv", "oai"): (
        "https://oaipmh.arxiv.org/oai",
        {"verb": "ListRecords", "metadataPrefix": "arXiv", "from": "2026-11-01", "until": "2026-11-02"},
    ),
    ("datacite", "dois"): (
        "https://api.datacite.org/dois",
        {"query": "updated:[2026-11-01T00:00:00Z TO 2026-11-03T00:00:00Z]", "page[cursor]": "1"},
    ),
    ("semanticscholar", "bulk"): (
        "https://api.semanticscholar.org/graph/v1/paper/search/bulk",
        {"publicationDateOrYear": "2026-11-01:2026-11-02"},
    ),
    ("biorxiv", "details"): ("https://api.biorxiv.org/details/biorxiv/2026-11-01/2026-11-02/0/json", {}),
    ("biorxiv", "feed"): ("https://connect.biorxiv.org/biorxiv_xml.php", {"subject": "all"}),
    ("doaj", "articles"): (
        "https://doaj.org/api/search/articles/last_updated%3A%5B2026-11-01T00%3A00%3A00Z%20TO%202026-11-03T00%3A00%3A00Z%5D",
        {"page": "1", "pageSize": "100"},
    ),
    ("clinicaltrials", "studies"): (
        "https://clinicaltrials.gov/api/v2/studies",
        {"filter.advanced": "AREA[LastUpdatePostDate]RANGE[2026-11-01,2026-11-02]", "countTotal": "true"},
    ),
    ("oaipmh", "records"): (
        "https://repository.example.org/oai",
        {"verb": "ListRecords", "metadataPrefix": "oai_dc", "from": "2026-11-01", "until": "2026-11-02"},
    ),
    ("oaipmh", "marc"): ("https://repository.example.org/oai", {"metadataPrefix": "marcxml"}),
    ("zenodo", "records"): (
        "https://zenodo.org/api/records",
        {"q": 'updated:["2026-11-01T00:00:00" TO "2026-11-03T00:00:00"]', "page": "1", "size": "25"},
    ),
    ("orcid", "people"): (
        "https://pub.orcid.org/v3.0/search/",
        {"q": "profile-last-modified-date:[2026-11-01T00:00:00Z TO 2026-11-02T23:59:59.999Z]", "start": "0"},
    ),
    ("hal", "search"): (
        "https://api.archives-ouvertes.fr/search/",
        {"fq": "modifiedDate_tdate:[2026-11-01T00:00:00Z TO 2026-11-03T00:00:00Z]", "cursorMark": "*"},
    ),
    ("core", "works"): (
        "https://api.core.ac.uk/v3/search/works",
        {"q": "updatedDate>=2026-11-01T00:00:00 AND updatedDate<2026-11-03T00:00:00", "scroll": "true"},
    ),
}


@pytest.mark.parametrize(("name", "endpoint"), FIRST)
def test_the_first_request_of_a_window(name: str, endpoint: str) -> None:
    url, query = FIRST[name, endpoint]
    spec = next(s for s in specs(name) if s.endpoint_code == endpoint and s.operation is not Operation.UPDATE)
    request = rendered(spec, spec)
    parts = urlsplit(request.url)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == url
    assert query.items() <= dict(parse_qsl(parts.query, keep_blank_values=True)).items()


def test_a_day_of_pubmed_is_cut_by_pmids() -> None:
    loaded = bundled.pack("pubmed")
    given = Overrides(params={"pmids": "30000000:34999999"})
    spec = compile_spec(loaded, "search", Operation.BACKFILL, given).spec
    assert spec is not None
    query = dict(parse_qsl(urlsplit(rendered(spec, spec).url).query))
    assert query["term"] == "(all[sb]) AND 30000000:34999999[uid]"


def test_details_of_pubmed_are_asked_for_by_post() -> None:
    spec = next(s for s in specs("pubmed") if s.operation is Operation.HARVEST)
    assert spec.detail is not None
    request = rendered(spec, spec.detail, ids=["1", "2"])
    assert (request.method, urlsplit(request.url).query) == ("POST", "")
    assert dict(parse_qsl((request.body or b"").decode())) == {
        "db": "pubmed",
        "retmode": "xml",
        "id": "1,2",
        "tool": "patra",
    }


def test_the_token_of_oai_stands_alone() -> None:
    spec = next(s for s in specs("oaipmh") if s.endpoint_code == "records" and s.operation is Operation.HARVEST)
    request = rendered(spec, spec, page_index=1, token="a/b c")
    assert dict(parse_qsl(urlsplit(request.url).query)) == {"verb": "ListRecords", "resumptionToken": "a/b c"}


def test_every_list_declares_what_its_total_promises() -> None:
    for name in bundled.names():
        tree = yaml.safe_load(bundled.text(name))
        lists = [tree.get("defaults", {}), *tree["endpoints"].values()]
        for one in lists:
            if "type" in one.get("pagination", {}):
                assert "total" in one["pagination"], f"{name}: pagination.total"


def test_a_day_of_pubmed_is_read_in_ranges_of_pmids() -> None:
    def term(params: dict[str, str], **where: object) -> str:
        spec = compile_spec(bundled.pack("pubmed"), "search", Operation.HARVEST, Overrides(params=params)).spec
        assert spec is not None
        return dict(parse_qsl(urlsplit(rendered(spec, spec, **where).url).query))["term"]

    assert term({}) == "all[sb]"
    assert term({}, key_from=1, key_to=50_000_000) == "(all[sb]) AND 1:50000000[uid]"
    both = term({"term": "fog", "pmids": "30:40"}, key_from=1, key_to=5)
    assert both == "(fog) AND 30:40[uid] AND 1:5[uid]"


def test_windows_of_pubmed_are_cut_by_the_date_that_is_asked_for() -> None:
    for date in ("crdt", "edat", "mdat", "pdat"):
        spec = compile_spec(bundled.pack("pubmed"), "search", Operation.HARVEST, Overrides(params={"date": date})).spec
        assert spec is not None
        assert f"datetype={date}&" in rendered(spec, spec).url


def test_a_search_of_arxiv_waits_until_what_was_submitted_before_a_weekend_is_announced() -> None:
    spec = compile_spec(bundled.pack("arxiv"), "query", Operation.HARVEST).spec
    assert spec is not None
    assert spec.window.safety_lag_us >= 4 * DAY
    again = bundled.pack("arxiv").pack.schedules["reread"]
    assert (again.endpoint, again.reread) == ("query", True)


def test_openalex_asks_for_at_most_100_a_page_with_a_key_and_without_an_address() -> None:
    loaded = bundled.pack("openalex")
    assert "openalex" in loaded.pack.credentials
    for spec in [one for one in specs("openalex") if one.operation is not Operation.UPDATE]:
        query = dict(parse_qsl(urlsplit(rendered(spec, spec).url).query, keep_blank_values=True))
        assert "mailto" not in query
        assert int(query["per_page"]) <= 100


@pytest.mark.parametrize(
    ("name", "requests", "seconds"),
    [("datacite", 500, 300), ("ror", 50, 300)],  # without an account, an address or a client id
)
def test_the_declared_rate_is_within_what_the_provider_allows(name: str, requests: int, seconds: int) -> None:
    for spec in specs(name):
        rate = spec.rate_limit
        assert rate.refill_rate_per_sec * seconds + rate.burst_capacity <= requests


def test_datacite_gives_an_account_3000_requests_in_five_minutes_and_no_more() -> None:
    for spec in specs("datacite"):
        given = spec.rate_limit.authenticated
        assert given is not None
        assert given.refill_rate_per_sec is not None
        assert given.burst_capacity is not None
        assert 2_500 < given.refill_rate_per_sec * 300 + given.burst_capacity <= 3_000


def test_datacite_gives_an_address_1000_requests_in_five_minutes_and_ror_a_client_id_2000() -> None:
    known = Overrides(params={"mailto": "someone@example.org"})
    for endpoint, operation in (("dois", Operation.HARVEST), ("dois", Operation.UPDATE)):
        spec = compile_spec(bundled.pack("datacite"), endpoint, operation, known).spec
        assert spec is not None
        for leg in filter(None, (spec, spec.detail)):
            assert 900 < leg.rate_limit.refill_rate_per_sec * 300 + leg.rate_limit.burst_capacity <= 1_000
    for spec in specs("ror"):
        given = spec.rate_limit.authenticated
        assert 1_500 < (given.refill_rate_per_sec or 0) * 300 + (given.burst_capacity or 0) <= 2_000
        assert spec.auth.name == "client-id"


def test_orcid_keeps_to_its_daily_quota() -> None:
    assert {spec.rate_limit.quota_daily for spec in specs("orcid")} == {25_000}
