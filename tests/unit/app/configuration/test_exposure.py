"""What is open to whom is decided from the settings alone."""

import pytest

from patra.app.configuration.exposure import check_exposure, exposure
from patra.app.configuration.settings import WebSettings
from patra.kernel.errors import ConfigInvalid

TOKEN = ("sha256:" + "0" * 64,)


@pytest.mark.parametrize(
    ("settings", "is_open"),
    [
        (WebSettings(), True),
        (WebSettings(host="::1"), True),
        (WebSettings(viewer_tokens=TOKEN), False),
        (WebSettings(operator_tokens=TOKEN), False),
        (WebSettings(admin_tokens=TOKEN), False),
        (WebSettings(public_url="https://patra.example"), False),
        (WebSettings(trusted_proxies=("10.0.0.0/8",)), False),
        (WebSettings(host="0.0.0.0"), False),
    ],
)
def test_only_loopback_without_tokens_and_without_a_proxy_is_open(settings: WebSettings, is_open: bool) -> None:
    found = exposure(settings)
    assert found.open is is_open
    assert ("every program" in found.api) is is_open
    assert ("every program" in found.intake) is is_open


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (WebSettings(public_url="https://patra.example"), "web.public_url"),
        (WebSettings(trusted_proxies=("10.0.0.7",)), "web.trusted_proxies"),
        (WebSettings(host="0.0.0.0", viewer_tokens=TOKEN), "web.host"),
    ],
)
def test_whoever_lets_others_in_needs_an_admin_token(settings: WebSettings, place: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        check_exposure(settings)
    assert (caught.value.code, caught.value.place) == ("config_bind_needs_token", place)


@pytest.mark.parametrize(
    "url",
    [
        "patra.example",
        "ftp://patra.example",
        "https://a@patra.example",
        "https://patra.example/patra",
        "https://",
        "\\",
    ],
)
def test_a_public_url_is_a_scheme_and_a_host(url: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        exposure(WebSettings(public_url=url))
    assert (caught.value.code, caught.value.place) == ("config_public_url", "web.public_url")


def test_a_proxy_that_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        exposure(WebSettings(trusted_proxies=("10.0.0.7", "proxy.example")))
    assert (caught.value.code, caught.value.place) == ("config_trusted_proxy", "web.trusted_proxies[1]")


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "1.2.3.4", "203.0.113.9"),  # anyone may write the header
        ("10.0.0.7", "1.2.3.4", "1.2.3.4"),
        ("10.0.0.7", "6.6.6.6, 1.2.3.4", "1.2.3.4"),  # what the client wrote itself stands in front
        ("10.0.0.7", "1.2.3.4, 10.0.0.8", "1.2.3.4"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("::ffff:10.0.0.7", "1.2.3.4", "1.2.3.4"),  # where Patra listens on ::
        ("2001:db8::1", "1.2.3.4", "2001:db8::1"),
    ],
)
def test_only_a_trusted_proxy_says_who_the_client_is(peer: str, forwarded: str, client: str) -> None:
    assert exposure(WebSettings(trusted_proxies=("10.0.0.0/24",))).client(peer, forwarded) == client
