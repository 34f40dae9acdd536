"""The intake takes nothing from nobody as soon as anyone but this machine may reach it, registered apps or not."""

from typing import Any

import pytest

from tests.unit.web.served import problem, served, web_settings

TOKEN = ("sha256:" + "0" * 64,)
BATCH = b'{"batchId": "b-1"}'
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "web",
    [
        {"viewer_tokens": TOKEN},
        {"admin_tokens": TOKEN},
        {"admin_tokens": TOKEN, "public_url": "https://patra.example"},
        {"admin_tokens": TOKEN, "trusted_proxies": ("127.0.0.1",)},
        {"admin_tokens": TOKEN, "host": "0.0.0.0"},
    ],
)
def test_a_batch_of_nobody_is_refused_where_patra_is_exposed_and_no_app_is_registered(web: dict[str, Any]) -> None:
    with served(web_settings(**web)) as client:
        refusal = client.post("/events", body=BATCH, headers=JSON)
    assert (refusal.status, problem(refusal)["code"]) == (401, "f_app_key_missing")


def test_on_loopback_without_tokens_the_first_minute_needs_no_app() -> None:
    with served() as client:
        assert client.post("/events", body=BATCH, headers=JSON).status == 400  # it was read, and is not a whole batch


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "evil.example"}, 421, "host_not_allowed"),
        ({"Origin": "http://evil.example"}, 403, "cross_origin_refused"),
        ({"Origin": "http://["}, 403, "cross_origin_refused"),
        ({"X-Forwarded-For": "203.0.113.9"}, 403, "proxy_not_configured"),
        ({"Content-Type": "text/plain"}, 415, "media_type_unsupported"),
    ],
)
def test_a_batch_from_elsewhere_is_refused(headers: dict[str, str], status: int, code: str) -> None:
    with served() as client:
        refusal = client.post("/events", body=BATCH, headers=JSON | headers)
    assert (refusal.status, problem(refusal)["code"]) == (status, code)


def test_names_and_origins_are_checked_on_every_path_and_method_also_with_tokens() -> None:
    with served(web_settings(admin_tokens=TOKEN)) as client:
        for method, path in [("GET", "/health"), ("POST", "/health"), ("OPTIONS", "/events"), ("GET", "/nowhere")]:
            assert client(method, path, headers={"Host": "evil.example"}).status == 421
            assert client(method, path, headers={"Origin": "http://evil.example"}).status == 403
