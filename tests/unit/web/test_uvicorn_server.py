"""An address is bound or refused with a reason; a server that is asked to stop finishes running requests."""

import socket
import threading

import pytest
import urllib3

from patra.app.configuration.settings import WebSettings
from patra.app.wiring import build
from patra.kernel.errors import ConfigInvalid
from patra.web.asgi import app
from patra.web.endpoint import Endpoint, Request
from patra.web.uvicorn_server import Serving, listen, serving, url_of
from tests.unit.web.served import problem, web_settings


def test_a_taken_port_is_refused_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(ConfigInvalid) as caught:
        listen(WebSettings(port=taken.getsockname()[1]))
    assert caught.value.code == "config_address_unusable"
    assert "--port" in caught.value.advice


def test_a_name_that_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        listen(WebSettings(host="no.such.host.invalid", admin_tokens=("sha256:" + "0" * 64,)))
    assert caught.value.code == "config_address_unusable"


def test_port_0_takes_a_free_one_and_the_url_says_which() -> None:
    with listen(WebSettings(port=0)) as listener:
        port = listener.getsockname()[1]
        assert port > 0
        assert url_of(listener) == f"http://127.0.0.1:{port}"


def test_a_request_in_hand_is_answered_after_the_server_was_asked_to_stop() -> None:
    entered, go = threading.Event(), threading.Event()
    answers: list[int] = []

    def slow(request: Request) -> bytes:
        entered.set()
        assert go.wait(30)
        return b"done"

    settings = web_settings()
    patra = build(settings)
    endpoint = Endpoint(method="GET", path="/slow", handler=slow, role=None, summary="Slow.", media="text/plain")
    with serving(app(patra, [endpoint]), settings.web) as served:
        ask = threading.Thread(target=lambda: answers.append(urllib3.request("GET", served.url + "/slow").status))
        ask.start()
        assert entered.wait(30)
        served.stop()
        go.set()
        ask.join(30)
    assert answers == [200]
    with pytest.raises(urllib3.exceptions.HTTPError):
        urllib3.request("GET", served.url + "/slow", retries=False)
    patra.close(5)


def test_a_request_that_does_not_end_does_not_keep_the_server_beyond_the_bound() -> None:
    entered, go = threading.Event(), threading.Event()

    def stuck(request: Request) -> bytes:
        entered.set()
        go.wait(60)
        return b""

    settings = web_settings()
    patra = build(settings)
    endpoint = Endpoint(method="GET", path="/stuck", handler=stuck, role=None, summary="Stuck.", media="text/plain")
    served = Serving(app(patra, [endpoint]), listen(settings.web), finish_seconds=0)
    server = threading.Thread(target=served.run)
    server.start()

    answers: list[urllib3.BaseHTTPResponse] = []
    asking = threading.Thread(target=lambda: answers.append(urllib3.request("GET", served.url + "/stuck")))
    asking.start()
    assert entered.wait(30)
    served.stop()
    server.join(30)
    assert not server.is_alive()
    go.set()
    asking.join(30)
    assert [(answer.status, problem(answer)["code"]) for answer in answers] == [(503, "shutting_down")]
    patra.close(5)
