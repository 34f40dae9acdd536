"""A URL is read once and strictly: nothing passes that two parsers would take for two hosts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from patra.kernel.safety.http_url import UrlInvalidError, parse_http_url


@pytest.mark.parametrize(
    ("text", "host", "port", "uri"),
    [
        ("https://api.example.org", "api.example.org", None, "/"),
        ("HTTPS://API.Example.org:8443/a/b?c=d#e", "api.example.org", 8443, "/a/b?c=d"),
        ("http://127.0.0.1:80/x%20y?z=%zz", "127.0.0.1", 80, "/x%20y?z=%25zz"),
        ("http://[::1]:80/", "[::1]", 80, "/"),
        ("https://example.org?q=ä[1]", "example.org", None, "/?q=%C3%A4%5B1%5D"),
        ("https://a_b.example.org./", "a_b.example.org.", None, "/"),
    ],
)
def test_a_url_in_its_parts(text: str, host: str, port: int | None, uri: str) -> None:
    url = parse_http_url(text)
    assert (url.host, url.port, url.request_uri) == (host, port, uri)
    assert parse_http_url(str(url)) == parse_http_url(str(parse_http_url(str(url))))


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1\\.good.test/",
        "http://good.test\\@127.0.0.1/",
        "http://user@good.test/",
        "http://good.test:80@127.0.0.1/",
        "http://good.test\t/",
        " http://good.test/",
        "http://good.test/\r\nX: y",
        "http://good.test /",
        "http:///good.test",
        "http://",
        "http:/good.test",
        "//good.test/",
        "ftp://good.test/",
        "http://good.test:/",
        "http://good.test:0/",
        "http://good.test:65536/",
        "http://good.test:80:80/",
        "http://2130706433/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://[::1/",
        "http://[::1%25lo]/",
        "http://[good.test]/",
        "http://good%2etest/",
        "http://good。test/",
        "http://..good.test/",
        "http://good..test/",
        "http://-good.test/",
        "http://good.test\u00ad/",
        "http://" + "a" * 70_000,
    ],
)
def test_what_parsers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(UrlInvalidError):
        parse_http_url(text)


@given(st.text(alphabet="ab.:@/\\?#[]%1 -\t_", max_size=24))
def test_whatever_passes_means_the_same_host_to_the_library_that_connects(rest: str) -> None:
    try:
        url = parse_http_url("http://" + rest)
    except UrlInvalidError:
        return
    try:
        other = parse_url(str(url))
    except LocationParseError:
        return
    assert (other.scheme, other.host, other.port) == (url.scheme, url.host, url.port)
