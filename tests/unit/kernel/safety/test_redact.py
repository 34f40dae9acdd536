import json
from typing import Any

import msgspec
import pytest

from patra.kernel.pattern import pattern
from patra.kernel.safety.redact import (
    MASK,
    PUBLISHED_MARKS,
    is_telling,
    masked_label,
    redact,
    redact_published,
    redact_text,
    redact_url,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("api_key=abc123 next", "api_key=*** next"),
        ("GET /x?page=2&apiKey=abc", "GET /x?page=2&apiKey=***"),
        ("Authorization: Bearer abc.def.ghi", "Authorization: ***"),
        ("authorization: AWS4-HMAC-SHA256 Credential=AK/1, Signature=ff\nHost: x", "authorization: ***\nHost: x"),
        ("Cookie: a=1; session=xyz\r\nHost: x", "Cookie: ***\r\nHost: x"),
        ("sent with bearer abc.def", "sent with bearer ***"),
        ("auth: Basic dXNlcjpwYXNz", "auth: ***"),
        ("it says Basic dXNlcjpwYXNz here", "it says Basic *** here"),
        ("Basic authentication is off", "Basic authentication is off"),
        ('{"password": "a\\"b", "n": 1}', '{"password": "***", "n": 1}'),
        ("{'client_secret': 'x y', 'n': 1}", "{'client_secret': '***', 'n': 1}"),
        ('{\\"token\\": \\"abc def\\", \\"n\\": 1}', '{\\"token\\": \\"***\\", \\"n\\": 1}'),
        ('{"tokens": ["a", "b]"], "n": 1}', '{"tokens": "***", "n": 1}'),
        ('"secret": "cut off in the mid', '"secret": "***'),
        ("token: Bearer abc", "token: ***"),
        ("write to ann@example.org, please", "write to ***, please"),
        ("jörg.müller+x@bücher.example", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_", "***"),
        ("key AKIAABCDEFGHIJKLMNOP leaked", "key *** leaked"),
        ("ghp_0123456789abcdefghij", "***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nmore", "***\nmore"),
        ("call +49 171 234-5678 now", "call *** now"),
        ("call +8613812345678 now", "call *** now"),
        ("call 0049 171 2345678 now", "call *** now"),
        ("call (555) 123-4567 now", "call *** now"),
        ("call 555-123-4567 now", "call *** now"),
        ("电话 13812345678。", "电话 ***。"),
        ("电话 138-1234-5678。", "电话 ***。"),
        ("call 010-12345678 now", "call *** now"),
        ("身份证 11010519491231002X。", "身份证 ***。"),
    ],
)
def test_secrets_and_persons_are_hidden_in_text(text: str, expected: str) -> None:
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "store unavailable: connection refused after 3 attempts",
        "2026-11-16T02:03:04.123456+05:30",
        "1704067200123456",
        "01a1e21b-7318-75f8-8d4f-afe88a37c258",
        "doi 10.1000/182, issn 0028-0836, orcid 0000-0002-1825-0097, isbn 978-3-16-148410-0",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "http://localhost:8080/works?rows=100&cursor=*",
        "postgresql://localhost:5432/patra",
        "sqlite:///patra.db",
        "nextToken=abc page_token=def before_token=1 after_token=2 slice_signature_hash=77 credential_id=4",
        "f_dedup_committed_duplicate key=app|abc idempotencyKey: k-1 billingKey: b",
        "took 12.5 ms (45 of 1000), 3 + 12345678 = 12345681",
        "range 100-200, version 1.2.3, ratio 1e+22",
    ],
)
def test_what_an_engineer_needs_stays_readable(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://patra:pw@db:5432/patra", "postgresql://***@db:5432/patra"),
        ("postgresql://u:p@ss/w?rd@db/x", "postgresql://***@db/x"),
        ("redis://:pw@h:6379/0", "redis://***@h:6379/0"),
        ("https://TOKEN@host.example/x", "https://***@host.example/x"),
        ("https://h/x?api_key=a&page=2", "https://h/x?api_key=***&page=2"),
        ("https://h/x?key=AbC", "https://h/x?key=***"),
        ("https://h/x?api%5Fkey=a&b=1", "https://h/x?api%5Fkey=***&b=1"),
        ("https://h/cb#access_token=a&state=b", "https://h/cb#access_token=***&state=b"),
        ("https://h/x?mailto=ann%40example.org&rows=5", "https://h/x?mailto=***&rows=5"),
        ("https://h/x?contact=ann%40example.org", "https://h/x?contact=***"),
        ("https://h/x?next=https%3A%2F%2Fi%2F%3Ftoken%3Dabc&n=1", "https://h/x?next=***&n=1"),
        ("https://h/x?next=https%253A%252F%252Fi%252F%253Ftoken%253Dabc", "https://h/x?next=***"),
        ("https://h/x;token=a?b=1", "https://h/x;token=***"),
        ("not a url", "not a url"),
        ("https://h:8080/p?mail=a@b.example", "https://h:8080/p?mail=***"),
    ],
)
def test_urls_lose_their_credentials(url: str, expected: str) -> None:
    assert redact_url(url) == expected
    assert redact_text(f"see {url} there") == f"see {expected} there"


def test_an_empty_parameter_stays_empty() -> None:
    assert redact_url("https://h/x?token=&n=1") == "https://h/x?token=&n=1"


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apikey", "X-API-Key", "authorization", "Proxy-Authorization", "token", "access_token", "refreshToken",
        "client_secret", "password", "passwd", "db_pass", "dbPwd", "signature", "X-Amz-Signature", "sig", "Set-Cookie",
        "credentials", "private_key", "AWS_SECRET_ACCESS_KEY", "sessionId", "jwt", "email", "phone", "mobile_number", "otp",
    ],
)  # fmt: skip
def test_telling_names(name: str) -> None:
    assert is_telling(name)


@pytest.mark.parametrize(
    "name",
    [
        "", "key", "record_key", "closureKey", "idempotencyKey", "author", "passed", "bypass", "compass", "design", "spinner",
        "nextPageToken", "resumptionToken", "after_token", "fencing_token", "max_tokens", "credential_id", "monkey", "hotel",
    ],
)  # fmt: skip
def test_harmless_names(name: str) -> None:
    assert not is_telling(name)


def test_data_keeps_its_shape() -> None:
    value = {
        "apiKey": "x",
        "nested": [{"password": "y", "note": "mail ann@example.org"}, ("plain", 1, None, True, 2.5)],
        "headers": [("Authorization", "Bearer z"), ("Accept", "text/html")],
        "count": 3,
    }
    assert redact(value) == {
        "apiKey": MASK,
        "nested": [{"password": MASK, "note": f"mail {MASK}"}, ("plain", 1, None, True, 2.5)],
        "headers": [("Authorization", MASK), ("Accept", "text/html")],
        "count": 3,
    }


def test_all_that_stands_behind_a_telling_name_is_hidden_but_whether_it_is_there() -> None:
    value = {"credentials": {"user": "u", "codes": [1, "two"], "none": None, "on": True, "empty": ""}}
    assert redact(value) == {
        "credentials": {"user": MASK, "codes": [MASK, MASK], "none": None, "on": True, "empty": ""}
    }


def test_a_pair_of_secrets_is_not_taken_for_a_header() -> None:
    assert redact({"token": ["endsInPsk", "x"]}) == {"token": [MASK, MASK]}
    assert redact(["api_key=abc", "x"]) == [f"api_key={MASK}", "x"]


def test_a_mask_does_not_uncover_its_neighbour() -> None:
    assert redact_text("+49 171 2345678+49 171 2345678") == redact_text(redact_text("+49 171 2345678+49 171 2345678"))


def test_a_person_in_a_key_is_hidden_and_no_entry_lost() -> None:
    assert sorted(redact({"ann@example.org": 1, "bob@example.org": 2}).values()) == [1, 2]
    assert "ann@example.org" not in redact({"ann@example.org": 1})


def test_the_original_is_left_alone() -> None:
    value = {"token": "x", "list": ["a@b.example"]}
    redact(value)
    assert value == {"token": "x", "list": ["a@b.example"]}


class Login(msgspec.Struct):
    user: str
    password: str


class Rude:
    def __str__(self) -> str:
        raise RuntimeError


class Polite:
    def __str__(self) -> str:
        return "I am ann@example.org"


def test_structs_and_objects_are_redacted_by_what_they_would_show() -> None:
    assert redact(Login(user="ann", password="x")) == {"user": "ann", "password": MASK}
    assert redact([Polite(), Rude()]) == [f"I am {MASK}", MASK]


def test_bytes_stay_bytes() -> None:
    assert redact(b"token=abc \xff") == b"token=*** \xff"
    assert redact({b"token": b"abc"}) == {b"token": b"***"}


@pytest.mark.parametrize(
    "value", [b"\xff\xfe", "\ud800 token=\udfff", {1: {None: b""}}, [[]], float("nan"), object, 1j]
)
def test_rubbish_is_no_failure(value: Any) -> None:
    redact(value)
    redact_text(str(value))
    redact_url(str(value))


def test_what_contains_itself_ends_in_a_mask() -> None:
    loop: dict[str, Any] = {"password": "x"}
    loop["self"] = loop
    assert "'x'" not in str(redact(loop))


def test_json_stays_json() -> None:
    text = json.dumps({"token": 'a"b\\', "list": ["ann@example.org"], "password": ""})
    assert json.loads(redact_text(text)) == {"token": MASK, "list": [MASK], "password": MASK}


ORDINARY_NAMES = [
    *("home", "13812345678", "138-1234-5678", "100%", "a:b", "banner-320x50", "横幅", ""),
    *("feed@v1.2", "banner@2.x", "banner@2x.png", "pkg@1.2.beta1", "auth: left", "signature: left"),
    *("pin=top-of-page-left", "mail: 202611180712", "token: a b c d 1 2 3 4"),
]


@pytest.mark.parametrize("name", ORDINARY_NAMES)
def test_a_name_that_holds_nothing_is_handed_on_as_it_is(name: str) -> None:
    assert masked_label(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "ann@example.org",
        "to ann@mail.example.org-2",
        "x sk-live-0123456789abcdef",
        "https://u:pw@h/x",
        "token=abcdef123456",
        '"token": "123456abcdef"',
        "auth: left Bearer abc",
        "Bearer abc",
    ],
)
def test_a_name_with_an_address_or_a_key_is_masked_and_still_told_apart(name: str) -> None:
    masked = masked_label(name)
    assert masked.startswith(MASK)
    assert len(masked) == len(MASK) + 16
    assert masked_label(f"{name}2") != masked
    assert masked_label(masked) == masked


PUBLISHED = [
    ("Oslo. Electronic address: ann@example.org.", "Oslo. Electronic address: ***."),
    ("a%40b.example", "***"),
    ("sk-live-0123456789abcdef", "***"),
    ("dop_v1_0123456789abcdef0", "***"),
    ("AKIAABCDEFGHIJKLMNOP", "***"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "***"),
]


@pytest.mark.parametrize(("text", "expected"), PUBLISHED)
def test_what_was_published_loses_addresses_and_keys(text: str, expected: str) -> None:
    assert redact_published(text) == expected
    assert pattern(PUBLISHED_MARKS).found_in(msgspec.json.encode({"title": text}))


@pytest.mark.parametrize(
    "text", ["A gene signature: BRCA1", "PMID 13812345678", "risk-based", "https://x.example/@ann"]
)
def test_what_was_published_keeps_what_it_is_about(text: str) -> None:
    assert redact_published(text) == text
