"""Who may: roles by bearer token, compared in constant time; open only on loopback, and only to itself."""

import hmac
from hashlib import sha256
from pathlib import Path

import pytest

from patra.app.access.actor import Role
from patra.app.configuration.settings import WebSettings
from patra.kernel.errors import ConfigInvalid
from patra.web.auth import Gate, TokenFiles, check_address, gate, is_loopback, token_files
from patra.web.problem import Problem

VIEWER, OPERATOR, ADMIN = "viewer-token-of-some-length", "operator-token-of-some-length", "admin-token-of-some-length"


def hashed(token: str, name: str = "") -> str:
    return f"{name}=" * bool(name) + f"sha256:{sha256(token.encode()).hexdigest()}"


@pytest.fixture
def guarded() -> Gate:
    return gate(
        WebSettings(
            viewer_tokens=(hashed(VIEWER, "vera"),),
            operator_tokens=(hashed(OPERATOR),),
            admin_tokens=(hashed(ADMIN, "alice"),),
        )
    )


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("token", "needed", "allowed"),
    [
        (VIEWER, Role.VIEWER, True),
        (VIEWER, Role.OPERATOR, False),
        (VIEWER, Role.ADMIN, False),
        (OPERATOR, Role.VIEWER, True),
        (OPERATOR, Role.OPERATOR, True),
        (OPERATOR, Role.ADMIN, False),
        (ADMIN, Role.VIEWER, True),
        (ADMIN, Role.OPERATOR, True),
        (ADMIN, Role.ADMIN, True),
    ],
)
def test_a_role_may_do_what_smaller_roles_may_and_no_more(
    guarded: Gate, token: str, needed: Role, allowed: bool
) -> None:
    answer = guarded.admit(needed, bearer(token))
    if allowed:
        assert not isinstance(answer, Problem)
    else:
        assert isinstance(answer, Problem)
        assert (answer.status, answer.code) == (403, "role_insufficient")


def test_the_audit_names_a_token_by_its_name_or_the_start_of_its_hash(guarded: Gate) -> None:
    names = [actor.name for token in (VIEWER, OPERATOR) if (actor := guarded.actor(bearer(token)))]
    assert names == ["vera", f"operator-{sha256(OPERATOR.encode()).hexdigest()[:8]}"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "token_missing"),
        ({"authorization": "Bearer wrong"}, "token_unknown"),
        ({"authorization": f"Basic {ADMIN}"}, "token_unknown"),
        ({"authorization": "Bearer"}, "token_unknown"),
        ({"authorization": f"Bearer {ADMIN}x"}, "token_unknown"),
    ],
)
def test_without_a_known_token_the_answer_is_401(guarded: Gate, headers: dict[str, str], code: str) -> None:
    answer = guarded.admit(Role.VIEWER, headers)
    assert isinstance(answer, Problem)
    assert (answer.status, answer.code) == (401, code)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_where_no_role_is_needed_anyone_may_and_a_token_still_says_who(guarded: Gate) -> None:
    assert guarded.admit(None, {}) is None
    known = guarded.admit(None, bearer(VIEWER))
    assert not isinstance(known, Problem)
    assert known is not None
    assert known.name == "vera"


@pytest.mark.parametrize("token", [VIEWER, OPERATOR, ADMIN, "unknown"])
def test_every_token_is_compared_in_constant_time_whichever_matches(
    guarded: Gate, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def recording(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", recording)
    guarded.actor(bearer(token))

    assert len(compared) == 3
    assert {len(side) for pair in compared for side in pair} == {32}  # hashes, so that lengths say nothing either


def test_a_token_may_come_from_the_environment_or_a_file_in_clear_or_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "admin").write_text(ADMIN + "\n")
    monkeypatch.setenv("THE_TOKEN", OPERATOR)
    monkeypatch.setenv("THE_HASH", hashed(VIEWER))
    found = gate(
        WebSettings(
            admin_tokens=(f"alice=file:{tmp_path / 'admin'}",),
            operator_tokens=("env:THE_TOKEN",),
            viewer_tokens=("env:THE_HASH",),
        )
    )
    roles = [actor.role for token in (ADMIN, OPERATOR, VIEWER) if (actor := found.actor(bearer(token)))]
    assert roles == [Role.ADMIN, Role.OPERATOR, Role.VIEWER]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("a-token-in-clear-text", "config_token_in_clear"),
        ("alice=a-token-in-clear-text", "config_token_in_clear"),
        ("sha256:abc", "config_token_hash"),
        ("alice=sha256:zz", "config_token_hash"),
        ("env:SHORT", "config_token_too_short"),
        ("env:NOT_SET_ANYWHERE", "config_secret_missing"),
    ],
)
def test_a_malformed_token_stops_the_start_without_being_printed(
    entry: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "hunter2")
    with pytest.raises(ConfigInvalid) as caught:
        gate(WebSettings(operator_tokens=(hashed(OPERATOR), entry)))
    assert (caught.value.code, caught.value.place) == (code, "web.operator_tokens[1]")
    assert "clear-text" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_an_address_beyond_loopback_needs_an_admin_token(host: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        check_address(WebSettings(host=host, operator_tokens=(hashed(OPERATOR),)))
    assert caught.value.code == "config_bind_needs_token"
    assert "patra token new admin" in caught.value.advice

    check_address(WebSettings(host=host, admin_tokens=(hashed(ADMIN),)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"])
def test_loopback_is_loopback(host: str) -> None:
    assert is_loopback(host)
    check_address(WebSettings(host=host))


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:8642", True),
        ("localhost:8642", True),
        ("localhost", True),
        ("[::1]:8642", True),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:8642", False),
        ("evil.example", False),
        ("192.168.1.5:8642", False),
        ("", False),
    ],
)
def test_the_open_mode_answers_only_to_loopback_names(host: str, allowed: bool) -> None:
    refusal = gate(WebSettings()).refusal("GET", {"host": host})
    assert (refusal is None) is allowed
    assert refusal is None or (refusal.status, refusal.code) == (421, "host_not_allowed")


HOST = {"host": "127.0.0.1:8642"}


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1:8642"}, True),
        ({"origin": "http://127.0.0.1:9999"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://["}, False),
        ({"origin": ""}, False),
    ],
)
def test_no_request_is_taken_from_a_page_of_another_origin(
    guarded: Gate, headers: dict[str, str], allowed: bool
) -> None:
    for found in (gate(WebSettings()), guarded):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            refusal = found.refusal(method, HOST | headers)
            assert (refusal is None) is allowed
            assert refusal is None or (refusal.status, refusal.code) == (403, "cross_origin_refused")


@pytest.mark.parametrize(
    ("site", "allowed"), [("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True)]
)
def test_what_a_browser_sends_for_another_site_writes_nothing(guarded: Gate, site: str, allowed: bool) -> None:
    for found in (gate(WebSettings()), guarded):
        refusal = found.refusal("POST", HOST | {"sec-fetch-site": site})
        assert (refusal is None) is allowed
        assert found.refusal("GET", HOST | {"sec-fetch-site": site}) is None  # a link leads here


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("patra.example", True),
        ("PATRA.example.:443", True),
        ("patra.internal:8642", True),
        ("10.0.0.5:8642", True),
        ("10.0.0.6:8642", False),
        ("localhost", True),
        ("evil.example", False),
        ("patra.example.evil.example", False),
        ("", False),
    ],
)
def test_with_tokens_too_patra_answers_to_its_own_names_only(host: str, allowed: bool) -> None:
    found = gate(
        WebSettings(
            host="0.0.0.0",
            public_url="https://patra.example",
            allowed_hosts=("patra.internal",),
            admin_tokens=(hashed(ADMIN),),
        )
    )
    refusal = found.refusal("GET", {"host": host}, "10.0.0.5")
    assert (refusal is None) is allowed
    assert refusal is None or (refusal.status, refusal.code) == (421, "host_not_allowed")


def test_pages_of_the_public_url_may_act_also_where_the_proxy_rewrites_the_host() -> None:
    found = gate(WebSettings(public_url="https://patra.example/", admin_tokens=(hashed(ADMIN),)))
    assert found.refusal("POST", HOST | {"origin": "https://patra.example"}) is None
    assert found.refusal("POST", HOST | {"origin": "http://patra.example"}) is not None
    assert found.refusal("POST", HOST | {"origin": "https://patra.example:8443"}) is not None


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "via", "x-real-ip", "x-forwarded-host"])
def test_the_open_mode_takes_nothing_from_a_proxy(guarded: Gate, header: str) -> None:
    refusal = gate(WebSettings()).refusal("GET", HOST | {header: "203.0.113.9"})
    assert refusal is not None
    assert (refusal.status, refusal.code) == (403, "proxy_not_configured")
    assert guarded.refusal("GET", HOST | {header: "203.0.113.9"}) is None


def test_a_changed_token_file_is_gone_by_within_two_seconds_and_a_malformed_one_changes_nothing(tmp_path: Path) -> None:
    file, now = tmp_path / "admin", [0.0]
    file.write_text(ADMIN)
    settings = WebSettings(admin_tokens=(f"alice=file:{file}",))
    found = gate(settings)
    watched = TokenFiles(found, token_files(settings), lambda: now[0])

    def known() -> list[str]:
        now[0] += 2.0
        watched.look()
        return [token for token in (ADMIN, OPERATOR) if found.actor(bearer(token))]

    assert known() == [ADMIN]
    file.write_text(OPERATOR)
    watched.look()  # too soon
    assert found.actor(bearer(ADMIN)) is not None
    assert known() == [OPERATOR]
    file.write_text("short")
    assert known() == [OPERATOR]
    file.unlink()
    assert known() == [OPERATOR]
    file.write_text(ADMIN)
    assert known() == [ADMIN]
