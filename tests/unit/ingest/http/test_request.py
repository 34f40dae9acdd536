"""Requests rendered from a snapshot: right for every kind, and nothing can be smuggled into them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.ingest.expressions.escaping import Refused
from patra.ingest.http.request import Position, Renderer, Request
from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.clock import parse_instant
from tests.unit.ingest.sample_packs import changed, loaded, loaded_text

START, END = parse_instant("2024-01-01T00:00:00Z"), parse_instant("2024-01-03T00:00:00Z")


def renderer(pack, endpoint, *, detail=False, params=None, secrets=(), operation=Operation.HARVEST):
    compiled = compile_spec(pack, endpoint, operation, Overrides(params=params or {}))
    assert compiled.spec is not None, [str(p) for p in compiled.problems]
    return Renderer(compiled.spec.detail if detail else compiled.spec, compiled.spec.hosts, secrets)


def at(**said):
    return Position(
        source="s", endpoint="e", operation=Operation.HARVEST, now=START, window_from=START, window_to=END, **said
    )


def url(found):
    assert isinstance(found, Request), found
    return found.url


def test_offset_paging_renders_offset_and_size():
    found = renderer(loaded("offset"), "query").render(at(offset=200, page_size=100, page_index=2))
    assert url(found) == (
        "https://export.example.org/api/query?search_query=all%3Aelectron%20AND%20lastUpdatedDate%3A%5B202401010000%20TO%20202401022359%5D"
        "&start=200&max_results=100&sortBy=lastUpdatedDate&sortOrder=ascending"
    )
    assert dict(found.headers)["User-Agent"] == "patra (mailto:someone@example.org)"


def test_page_paging_puts_the_query_into_the_path():
    found = renderer(loaded("page"), "articles").render(at(page_no=3, page_size=100, page_index=2))
    assert url(found) == (
        "https://page.example.org/api/v4/search/articles/last_updated%3A%5B2024-01-01T00%3A00%3A00Z%20TO%202024-01-02T23%3A59%3A59.999999Z%5D"
        "?page=3&pageSize=100&sort=last_updated%3Aasc"
    )


def test_a_parameter_without_a_value_is_left_out():
    found = renderer(loaded("token"), "works").render(at(token="*", page_size=1000))
    assert url(found).endswith("until-index-date%3A2024-01-02&cursor=%2A&rows=1000")


def test_a_token_that_stands_alone_replaces_the_query():
    oai = renderer(loaded("oai"), "records", params={"baseUrl": "http://oai.example.org/r"})
    assert (
        url(oai.render(at()))
        == "http://oai.example.org/r?verb=ListRecords&metadataPrefix=oai_dc&from=2024-01-01T00%3A00%3A00Z&until=2024-01-02T23%3A59%3A59Z"
    )
    assert (
        url(oai.render(at(page_index=1, token="a/b c")))
        == "http://oai.example.org/r?verb=ListRecords&resumptionToken=a%2Fb%20c"
    )


def test_detail_requests_carry_their_ids():
    posted = renderer(loaded("twophase"), "search", detail=True).render(at(ids=["1", "2"]))
    assert (posted.method, posted.body) == ("POST", b"id=1%2C2")
    assert dict(posted.headers)["Content-Type"] == "application/x-www-form-urlencoded"
    single = renderer(loaded("token"), "works", detail=True, operation=Operation.UPDATE).render(at(ids=["10.1000/a b"]))
    assert url(single) == "https://api.example.org/works/10.1000%2Fa%20b"


class TestSecrets:
    def test_a_key_goes_where_the_pack_says_and_is_hidden_in_what_is_kept(self):
        search = renderer(loaded("twophase"), "search", secrets=["apiKey"])
        assert url(search.render(at(offset=0, page_size=10), {"apiKey": "s3cret"})).endswith("&api_key=s3cret")
        assert "s3cret" not in repr(search.masked_request(at(offset=0, page_size=10)))
        works = renderer(loaded("token"), "works", secrets=["apiKey"])
        assert (
            dict(works.render(at(token="*"), {"apiKey": "s3cret"}).headers)["Crossref-Plus-API-Token"]
            == "Bearer s3cret"
        )

    def test_an_optional_key_may_be_missing_a_needed_one_may_not(self):
        assert isinstance(renderer(loaded("twophase"), "search").render(at(offset=0)), Request)
        pack = loaded_text(changed("twophase", (", optional: true", "")))
        refused = renderer(pack, "search").render(at(offset=0))
        assert (refused.code, refused.place) == (Reason.RENDER_FAILED, "auth.credentialRef")

    def test_bearer_and_oauth_tokens_are_headers(self):
        for kind, secret, name in (
            ("BEARER", "{token: env:T}", "token"),
            ("OAUTH2", "{clientId: env:A, clientSecret: env:B}", "accessToken"),
        ):
            pack = loaded_text(
                changed(
                    "twophase",
                    ("    type: API_KEY", f"    type: {kind}"),
                    ("{apiKey: env:PMLIKE_API_KEY}", secret),
                    (
                        "auth: {type: API_KEY, location: QUERY, name: api_key,",
                        f"auth: {{type: {kind}, oauth2: {{tokenUrl: 'https://eutils.example.gov/t'}},",
                    ),
                )
            )
            found = renderer(pack, "search", secrets=["token", "clientId", "clientSecret"]).render(
                at(offset=0), {name: "t0k"}
            )
            assert dict(found.headers)["Authorization"] == "Bearer t0k"


class TestUrlPaging:
    def renderer(self, **more):
        return renderer(loaded("url"), "records", **more)

    def test_the_next_url_is_followed_on_its_host_with_what_it_dropped(self):
        found = self.renderer().render(at(page_index=1, page_size=25, url="https://api.example.net/other?page=2&q=x"))
        assert url(found) == "https://api.example.net/api/records?page=2&q=x&size=25&sort=updated"

    def test_a_relative_next_url_is_ours(self):
        found = renderer(loaded("url"), "header").render(at(page_index=1, url="/api/list?page=2"))
        assert url(found) == "https://api.example.net/api/list?page=2"

    @pytest.mark.parametrize(
        "next_url",
        [
            "https://evil.example.org/api/records",
            "http://api.example.net/api/records",
            "https://user@api.example.net/api/records",
            "https://api.example.net.evil.org/",
            "https://api.example.net@evil.org/",
            "//evil.org/x",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://[bad",
            "",
            "api/records",
        ],
    )
    def test_a_url_that_leaves_the_declared_hosts_is_refused(self, next_url):
        found = self.renderer().render(at(page_index=1, url=next_url))
        assert isinstance(found, Refused)
        assert found.code is Reason.RENDER_OFF_HOST

    def test_line_breaks_in_a_next_url_are_refused(self):
        found = self.renderer().render(at(page_index=1, url="https://api.example.net/a\r\nX: y"))
        assert isinstance(found, Refused)


def searching(term, **more):
    pack = loaded_text(
        changed(
            "offset",
            ('search: {default: "all:electron", description: Query in the provider\'s syntax}', "search: {default: a}"),
        )
    )
    return renderer(pack, "query", params={"search": term}).render(at(offset=0, page_size=10))


INJECTIONS = [
    "a&start=9999",
    "a#fragment",
    "a?b=c",
    "a b",
    "a%0d%0aX: y",
    "../../etc",
    "a=b&api_key=x",
    "${credential.apiKey}",
    "{{7*7}}",
    "ünïcode",
    "日本",
    "a\"b'c",
    "a;b",
]


@pytest.mark.parametrize("term", INJECTIONS)
def test_a_value_cannot_leave_its_place_in_the_query(term):
    from urllib.parse import parse_qsl, urlsplit

    parts = urlsplit(url(searching(term)))
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    assert [name for name, _ in pairs] == ["search_query", "start", "max_results", "sortBy", "sortOrder"]
    assert pairs[0][1].startswith(f"{term} AND ")
    assert parts.path == "/api/query"
    assert not parts.fragment


@pytest.mark.parametrize("term", ["a\r\nX-Evil: 1", "a\nb", "a\x1bb", "a\x7fb", "a\u2028b", "a\x85b"])
def test_control_characters_refuse_the_request(term):
    found = searching(term)
    assert isinstance(found, Refused)
    assert (found.code, found.place) == (Reason.RENDER_UNSAFE, "http.queryTemplate.search_query")


@pytest.mark.parametrize("mail", ["a@b\r\nX: y", "a@b\nc", "ü@b"])
def test_headers_hold_visible_ascii_only(mail):
    pack = loaded_text(changed("offset", (', pattern: "[^@ ]+@[^@ ]+"', "")))
    found = renderer(pack, "query", params={"mailto": mail}).render(at(offset=0))
    assert isinstance(found, Refused)
    assert found.code is Reason.RENDER_UNSAFE


@pytest.mark.parametrize("one", ["..", ".", "../x", "a/../b"])
def test_a_path_value_cannot_climb(one):
    found = renderer(loaded("token"), "works", detail=True, operation=Operation.UPDATE).render(at(ids=[one]))
    assert isinstance(found, Refused)
    assert found.code is Reason.RENDER_UNSAFE


def test_rules_of_parameters_hold_for_what_is_rendered():
    pack = loaded_text(
        changed(
            "offset",
            (
                'search: {default: "all:electron", description: Query in the provider\'s syntax}',
                'search: {default: a, expr: "${params.search}!", pattern: "[a-z]+", location: QUERY, nameAs: q}',
            ),
        )
    )
    found = renderer(pack, "query").render(at(offset=0))
    assert (found.code, found.place) == (Reason.RENDER_REFUSED, "params.search")


def test_placed_parameters_have_their_place_and_name():
    pack = loaded_text(
        changed(
            "offset",
            (
                'search: {default: "all:electron", description: Query in the provider\'s syntax}',
                "search: {default: a}\n      tag: {default: [x, y], location: QUERY, nameAs: t}\n      h: {default: v, location: HEADER, nameAs: X-H}",
            ),
        )
    )
    found = renderer(pack, "query").render(at(offset=0, page_size=1))
    assert url(found).endswith("&t=x&t=y")
    assert dict(found.headers)["X-H"] == "v"


def test_a_url_that_is_too_long_is_refused_before_it_is_sent():
    pack = loaded_text(changed("offset", ("maxDepth: 30000}", "maxDepth: 30000, maxUrlLength: 200}")))
    found = renderer(pack, "query", params={"search": "x" * 300}).render(at(offset=0))
    assert found.code is Reason.RENDER_TOO_LONG


def body(kind, text, **said):
    pack = loaded_text(
        changed(
            "twophase",
            (
                "bodyTemplate: {kind: FORM, fields: {id: \"${join(ids, ',')}\"}}",
                f"bodyTemplate: {{kind: {kind}, {text}}}",
            ),
        )
    )
    return renderer(pack, "search", detail=True).render(at(**said))


def test_json_bodies_keep_types_and_escape_texts():
    found = body(
        "JSON", "json: {ids: '${ids}', n: '${length(ids)}', t: 'x${id}', since: '${window.from}'}", ids=['a"b', "c"]
    )
    assert found.body == b'{"ids":["a\\"b","c"],"n":2,"t":"xa\\"b","since":"2024-01-01T00:00:00Z"}'


def test_xml_bodies_escape_what_is_rendered():
    found = body("XML", "text: '<id>${join(ids, \",\")}</id>'", ids=["</id><evil/>&\"'"])
    assert found.body == b"<id>&lt;/id&gt;&lt;evil/&gt;&amp;&quot;&apos;</id>"


def test_an_expression_that_fails_refuses_the_request_and_names_its_place():
    pack = loaded_text(changed("page", ('page: "${page.no}"', 'page: "${page.no / 0}"')))
    found = renderer(pack, "articles").render(at(page_no=1))
    assert (found.code, found.place) == (Reason.RENDER_FAILED, "http.queryTemplate.page")


def test_a_path_without_its_value_refuses_the_request():
    found = renderer(loaded("token"), "works", detail=True, operation=Operation.UPDATE).render(at())
    assert (found.code, found.place) == (Reason.RENDER_FAILED, "http.pathTemplate")


@pytest.mark.parametrize(("policy", "expected"), [("omit", "&rows=10"), ("empty", "&cursor=&rows=10&query=")])
def test_the_null_policy_decides_on_parameters_without_a_value(policy, expected):
    pack = loaded_text(
        changed(
            "token", ("    params:\n      query:", f"    expr: {{nullPolicy: {policy}}}\n    params:\n      query:")
        )
    )
    assert url(renderer(pack, "works").render(at(page_size=10))).endswith(expected)


def test_the_null_policy_fail_refuses():
    pack = loaded_text(
        changed("token", ("    params:\n      query:", "    expr: {nullPolicy: fail}\n    params:\n      query:"))
    )
    assert renderer(pack, "works").render(at(page_size=10)).place == "http.queryTemplate.cursor"


@given(st.text(max_size=40))
def test_any_term_is_encoded_or_refused(term):
    from urllib.parse import parse_qsl, urlsplit

    if not term or any(c == "\0" or "\ud800" <= c <= "\udfff" for c in term):
        return
    found = searching(term)
    if isinstance(found, Request):
        assert found.url.isascii()
        assert found.url.isprintable()
        assert len(parse_qsl(urlsplit(found.url).query)) == 5


def test_rendering_twice_gives_the_same_bytes():
    one = renderer(loaded("twophase"), "search")
    state = at(offset=0, page_size=10)
    assert one.render(state) == one.render(state)
    assert one.masked_request(state) == one.masked_request(state)
