"""An orchestrator asks by the pod's address, whatever else the installation is called."""

import pytest

from patra.app.configuration.exposure import exposure
from patra.app.configuration.settings import WebSettings
from patra.web.auth import Gate
from tests.unit.web.served import served, web_settings

TOKEN = ("sha256:" + "0" * 64,)
WEB = WebSettings(host="0.0.0.0", admin_tokens=TOKEN)


@pytest.mark.parametrize("path", ["/health", "/ready"])
@pytest.mark.parametrize("host", ["10.42.0.17:8642", "[fd00::17]:8642", "192.168.7.1"])
def test_a_probe_that_names_an_address_is_answered(path: str, host: str) -> None:
    with served(web_settings(host="0.0.0.0", admin_tokens=TOKEN)) as client:
        client.url = client.url.replace("0.0.0.0", "127.0.0.1")
        assert client.get(path, headers={"Host": host}).status in {200, 503}
        assert client.get(path, headers={"Host": "evil.example"}).status == 421
        assert client.get(path, headers={"Host": host, "Origin": "http://evil.example"}).status == 403
        assert client.post(path, headers={"Host": host}).status == 421
        assert client.get("/audit", headers={"Host": host}).status == 421


@pytest.mark.parametrize("server", ["10.42.0.17", "::ffff:10.42.0.17"])
def test_the_address_that_was_reached_may_be_named_for_everything(server: str) -> None:
    gate = Gate((), exposure(WEB))
    assert gate.refusal("GET", {"host": "10.42.0.17:8642"}, server) is None
    refusal = gate.refusal("GET", {"host": "10.42.0.18:8642"}, server)
    assert refusal is not None
    assert refusal.status == 421


def test_with_nothing_but_publisher_tokens_nothing_is_open() -> None:
    assert not exposure(WebSettings(publisher_tokens=("p=sha256:" + "0" * 64,))).open


def test_without_tokens_an_address_is_refused_also_for_probes() -> None:
    with served() as client:
        assert client.get("/health", headers={"Host": "10.42.0.17"}).status == 421
