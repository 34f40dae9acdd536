"""Every pack of the distribution: it passes the checks, compiles, maps to the common shape, and asks as documented."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from patra.ingest import sources
from patra.ingest.codes import Operation, Role
from patra.ingest.compiler import Overrides, check_pack, compile_spec, offered
from patra.ingest.escaping import Refused
from patra.ingest.mapping import Mapper
from patra.ingest.problem import errors
from patra.ingest.request import At, Renderer, Request
from patra.ingest.spec import Leg, Spec
from patra.ingest.works import check_shape
from patra.kernel.clock import parse_instant

NAMES = (
    "arxiv",
    "biorxiv",
    "clinicaltrials",
    "core",
    "crossref",
    "datacite",
    "doaj",
    "europepmc",
    "hal",
    "oaipmh",
    "openalex",
    "orcid",
    "pubmed",
    "semanticscholar",
    "zenodo",
)
GIVEN = {"oaipmh": {"baseUrl": "https://repository.example.org/oai"}}


def instant(text: str) -> int:
    found = parse_instant(text)
    assert found is not None
    return found


NOW = instant("2026-11-16T12:00:00Z")


def specs(name: str) -> list[Spec]:
    loaded = sources.pack(name)
    out: list[Spec] = []
    for endpoint in loaded.pack.endpoints:
        for operation in offered(loaded.pack, endpoint):
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
        "page_no": leg.pagination.first_page,
        "page_size": leg.pagination.page_size,
        "offset": leg.pagination.initial.offset,
        "token": leg.pagination.initial.token,
    }
    request = renderer.render(At(**{**state, **where}))  # type: ignore[arg-type]
    assert not isinstance(request, Refused), request
    return request


def test_the_distribution_has_these_packs() -> None:
    assert sources.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_pack_has_no_problem(name: str) -> None:
    assert [str(problem) for problem in errors(check_pack(sources.pack(name)))] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_endpoint_and_operation_compiles_and_maps_to_a_work(name: str) -> None:
    found = specs(name)
    assert {spec.operation for spec in found} == set(Operation)
    for spec in found:
        leg = spec.yields
        assert leg.mapping.output.shape == "work"
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
        {"term": "all[sb]", "datetype": "edat", "mindate": "2026/11/01", "maxdate": "2026/11/02", "retstart": "0"},
    ),
    ("crossref", "works"): (
        "https://api.crossref.org/works",
        {"filter": "from-index-date:2026-11-01,until-index-date:2026-11-02", "cursor": "*", "rows": "500"},
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
        {"search_query": "lastUpdatedDate:[202611010000 TO 202611022359]", "start": "0", "sortOrder": "ascending"},
    ),
    ("arxiv", "oai"): (
        "https://oaipmh.arxiv.org/oai",
        {"verb": "ListRecords", "metadataPrefix": "arXiv", "from": "2026-11-01", "until": "2026-11-02"},
    ),
    ("datacite", "dois"): (
        "https://api.datacite.org/dois",
        {"query": "updated:[2026-11-01T00:00:00Z TO 2026-11-02T23:59:59Z]", "page[cursor]": "1"},
    ),
    ("semanticscholar", "bulk"): (
        "https://api.semanticscholar.org/graph/v1/paper/search/bulk",
        {"publicationDateOrYear": "2026-11-01:2026-11-02"},
    ),
    ("biorxiv", "details"): ("https://api.biorxiv.org/details/biorxiv/2026-11-01/2026-11-02/0/json", {}),
    ("biorxiv", "feed"): ("https://connect.biorxiv.org/biorxiv_xml.php", {"subject": "all"}),
    ("doaj", "articles"): (
        "https://doaj.org/api/search/articles/last_updated%3A%5B2026-11-01T00%3A00%3A00Z%20TO%202026-11-02T23%3A59%3A59Z%5D",
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
        {"q": 'updated:["2026-11-01T00:00:00" TO "2026-11-02T23:59:59"]', "page": "1", "size": "25"},
    ),
    ("orcid", "people"): (
        "https://pub.orcid.org/v3.0/search/",
        {"q": "profile-last-modified-date:[2026-11-01T00:00:00Z TO 2026-11-02T23:59:59Z]", "start": "0"},
    ),
    ("hal", "search"): (
        "https://api.archives-ouvertes.fr/search/",
        {"fq": "modifiedDate_tdate:[2026-11-01T00:00:00Z TO 2026-11-02T23:59:59Z]", "cursorMark": "*"},
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
