"""Secrets are found when they are needed and nowhere else (ch. 3.6, 3.8, 4.2)."""

from pathlib import Path

import pytest

from patra.ingest.http.client import Answer, Failure, Fault
from patra.ingest.http.credentials import (
    NoSecret,
    Token,
    Tokens,
    grant_token,
    resolve,
    secret_names,
    secrets_of,
    token_request,
)
from patra.ingest.http.request import Request
from patra.ingest.packs.extensions import ExtensionPoint, load_extension
from patra.ingest.packs.sections import Auth, Credential, OAuth2
from patra.ingest.vocabulary.codes import AuthType, ClientAuth
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import SECOND
from tests.unit.ingest.sample_legs import leg

KEY = Credential(type=AuthType.API_KEY, secrets={"apiKey": "env:KEY"})
KEYED = leg(auth=Auth(type=AuthType.API_KEY, name="api_key", credential_ref="ncbi"))


def test_references_lead_to_the_environment_and_to_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" from file \n")
    assert resolve("env:A", {"A": "x "}) == "x"
    assert resolve("env:A", {"A": " "}) is None
    assert resolve(f"file:{tmp_path / 'key'}") == "from file"
    assert resolve("file:/no/such/file") is None
    assert resolve("plain") is None


def test_a_missing_secret_stops_the_line_unless_the_pack_can_do_without() -> None:
    assert secrets_of(KEYED, KEY, {"KEY": "s"}) == {"apiKey": "s"}
    missing = secrets_of(KEYED, KEY, {})
    assert isinstance(missing, NoSecret)
    assert missing.code is RunReason.CREDENTIAL_MISSING
    assert "env:KEY" in missing.detail
    optional = leg(auth=Auth(type=AuthType.API_KEY, name="k", credential_ref="ncbi", optional=True))
    assert secrets_of(optional, KEY, {}) == {}
    assert isinstance(secrets_of(KEYED, None, {"KEY": "s"}), NoSecret)
    assert secrets_of(leg(), None) == {}


def test_names_for_templates() -> None:
    assert secret_names(KEYED, KEY) == ("apiKey",)
    assert secret_names(KEYED, None) == ("apiKey",)
    assert secret_names(leg(), None) == ()


OAUTH = OAuth2(token_url="https://auth.example.org/token", scopes=["a", "b"], audience="api")
SECRETS = {"clientId": "me", "clientSecret": "s3cret/+"}


@pytest.mark.parametrize("where", ClientAuth)
def test_client_credentials_go_where_the_provider_wants_them(where: ClientAuth) -> None:
    from msgspec.structs import replace

    one = leg(auth=Auth(type=AuthType.OAUTH2, oauth2=replace(OAUTH, client_auth=where), credential_ref="c"))
    request = token_request(one, SECRETS, ("auth.example.org",))
    body = (request.body or b"").decode()
    assert body.startswith("grant_type=client_credentials&scope=a+b&audience=api")
    assert ("client_secret=s3cret%2F%2B" in body) is (where is ClientAuth.BODY)
    assert any(name == "Authorization" for name, _ in request.headers) is (where is ClientAuth.BASIC)
    assert "s3cret" not in repr(request)


def answer(status: int, body: bytes) -> Answer:
    return Answer(status=status, headers={}, body=body, url="", elapsed=0, wire_bytes=0)


def test_a_grant_is_kept_until_shortly_before_its_end() -> None:
    token = grant_token(answer(200, b'{"access_token": "t", "expires_in": "600"}'), "PT60S", 0)
    assert token == Token("t", 540 * SECOND)
    tokens = Tokens()
    tokens.keep("k", token)
    assert tokens.get("k", 539 * SECOND) == "t"
    assert tokens.get("k", 540 * SECOND) is None
    tokens.forget("k")
    assert tokens.get("k", 0) is None


def test_a_short_token_is_still_used_for_half_of_its_life() -> None:
    assert grant_token(answer(200, b'{"access_token": "t", "expires_in": 30}'), "PT60S", 0) == Token("t", 15 * SECOND)


def test_a_refused_client_is_fatal_and_an_outage_is_not() -> None:
    refused = grant_token(answer(401, b'{"error": "invalid_client"}'), "PT60S", 0)
    assert isinstance(refused, NoSecret)
    assert refused.code is RunReason.TOKEN_REFUSED
    for exchange in (answer(503, b""), answer(429, b""), answer(200, b"<html>"), Failure(fault=Fault.DNS, detail="")):
        assert grant_token(exchange, "PT60S", 0) is None


def test_the_signing_hook_signs_time_method_url_and_body() -> None:
    request = Request(method="POST", url="https://x/?a=1", headers=(), body=b"{}")
    sign = load_extension(ExtensionPoint.SIGNING, "hmac_sha256")
    one = dict(sign(request, {"secret": "s", "keyId": "me"}, 5 * SECOND).headers)
    assert (one["X-Timestamp"], one["X-Key-Id"], len(one["X-Signature"])) == ("5", "me", 64)
    other = dict(sign(request, {"secret": "t"}, 5 * SECOND).headers)
    assert other["X-Signature"] != one["X-Signature"]
