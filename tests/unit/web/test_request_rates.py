"""Requests that come too fast are refused with 429, by address and by token."""

from starlette.requests import Request

from patra.app.configuration.exposure import exposure
from patra.app.configuration.settings import WebSettings
from patra.web.dispatch import client_address
from patra.web.request_rates import MAX_BUCKETS, Buckets, RequestRates
from tests.unit.web.served import problem, served, web_settings


class Hands:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    hands = Hands()
    buckets = Buckets(2.0, 3, hands)
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0  # another key has its own
    hands.now = 0.25
    assert buckets.take("a") == 0.25  # what was refused cost nothing
    hands.now = 0.5
    assert buckets.take("a") == 0
    hands.now = 100.0
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_no_more_than_so_many_buckets_are_kept() -> None:
    buckets = Buckets(1.0, 1, Hands())
    for n in range(MAX_BUCKETS + 1):
        buckets.take(str(n))
    assert buckets.take("0") == 0  # forgotten
    assert buckets.take(str(MAX_BUCKETS)) == 1


def test_a_rate_of_nothing_bounds_nothing() -> None:
    buckets = Buckets(0.0, 1, Hands())
    assert [buckets.take("a") for _ in range(5)] == [0] * 5


def test_an_address_that_asks_too_often_is_told_when_to_come_again() -> None:
    with served(web_settings(requests_per_second_per_address=0.001, request_burst=2)) as client:
        assert [client.get("/openapi.json").status for _ in range(2)] == [200, 200]
        refused = client.get("/openapi.json")
        assert (refused.status, problem(refused)["code"]) == (429, "rate_exceeded")
        assert 900 <= int(refused.headers["Retry-After"]) <= 1000
        assert client.get("/health").status == 200  # probes are not counted
        assert client.get("/console/").status == 429


def test_a_token_is_counted_wherever_it_comes_from_and_an_address_for_itself() -> None:
    web = WebSettings(
        requests_per_second_per_address=1.0, requests_per_second_per_token=1.0, request_burst=1,
        admin_tokens=("sha256:" + "0" * 64,),
    )  # fmt: skip
    rates = RequestRates(web, Hands())
    token = {"authorization": "Bearer one"}
    assert rates.refusal("192.0.2.1", token) is None
    again = rates.refusal("192.0.2.2", token)
    assert again is not None
    assert "per_token" in again.detail
    assert rates.refusal("192.0.2.7", {}) is None
    assert rates.refusal("192.0.2.8", {}) is None
    other = rates.refusal("192.0.2.8", {})
    assert other is not None
    assert "per_address" in other.detail


def test_behind_a_trusted_proxy_the_client_is_counted_whatever_headers_it_sends_itself() -> None:
    web = WebSettings(trusted_proxies=("10.0.0.1",), admin_tokens=("sha256:" + "0" * 64,))
    headers = [(b"x-forwarded-for", b"198.51.100.1"), (b"x-forwarded-for", b"192.0.2.7")]  # the proxy appends its own
    request = Request({"type": "http", "client": ("10.0.0.1", 1), "headers": headers})
    assert client_address(request, exposure(web)) == "192.0.2.7"


def test_either_rate_bounds_requests_and_without_both_nothing_is_looked_at() -> None:
    assert RequestRates(WebSettings(requests_per_second_per_address=1.0)).are_bounded
    assert RequestRates(WebSettings(requests_per_second_per_token=1.0)).are_bounded
    assert not RequestRates(WebSettings()).are_bounded
