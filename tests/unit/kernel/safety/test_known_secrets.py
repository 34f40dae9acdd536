"""A secret that this process holds is in no text that it stores, logs or shows, in whatever form a server repeats it."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.safety.excerpt import redacted_excerpt
from patra.kernel.safety.known_secrets import MAX_SECRETS, KnownSecrets, holds_secret, know_secret, scrub_known
from patra.kernel.safety.redact import masked_label, redact, redact_text, redact_url

SECRET = "zQ8/vd+Rt7=w yx&1Ä"


@pytest.fixture(autouse=True)
def known() -> None:
    know_secret(SECRET)


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET, safe="").lower().replace("zq8", "zQ8").replace("rt7", "Rt7"),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        html.escape(SECRET),
        SECRET.encode().hex(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_every_form_of_a_known_secret_is_masked(form: str) -> None:
    text = f"the provider says that {form} is not good"
    assert form not in redact_text(text)
    assert form not in redact_url(f"https://x.org/a/{form}/b")
    assert form not in str(redact({"event": "x", "detail": [text], "body": text.encode()}))
    assert holds_secret(text.encode())


@given(st.binary(max_size=8), st.binary(max_size=8))
def test_base64_hides_no_secret_wherever_in_it_the_secret_stands(before: bytes, behind: bytes) -> None:
    encoded = base64.b64encode(before + SECRET.encode() + behind).decode()
    middle = base64.b64encode(SECRET.encode()).decode()[6:18]
    shown = scrub_known(encoded)
    assert "***" in shown
    assert len(shown) <= len(encoded) - len(middle)


def test_a_secret_at_the_end_of_an_excerpt_does_not_stay_by_half() -> None:
    body = b"a" * 95 + SECRET.encode() + b"b" * 1000
    shown = redacted_excerpt(body, 100)
    assert shown == "a" * 95 + "***" + "bb"
    assert SECRET[:5] not in shown


def test_of_a_url_the_password_is_the_secret() -> None:
    know_secret("postgresql://patra:p%40ss-w0rd-9@db/patra")
    assert scrub_known("p@ss-w0rd-9 p%40ss-w0rd-9 patra db") == "*** *** patra db"


def test_a_secret_that_could_be_any_word_is_left_alone() -> None:
    found = KnownSecrets()
    found.add("abc")
    assert found.scrub("abcdef") == "abcdef"


def test_renewed_tokens_do_not_pile_up_for_ever() -> None:
    found = KnownSecrets()
    for number in range(MAX_SECRETS + 1):
        found.add(f"token-number-{number:06}")
    assert found.scrub("token-number-000000") == "token-number-000000"
    assert found.scrub("token-number-000001") == "***"


def test_a_secret_that_is_a_word_does_not_hide_the_name_that_tells_of_another() -> None:
    know_secret("secret")
    assert "S3cr3t2222" not in redact_url("https://host.example/?client_secret=S3cr3t2222&b=1")
    assert "S3cr3t2222" not in redact_text("client_secret=S3cr3t2222")
    assert "secret" not in redact_text("the word secret, repeated")


def test_a_shape_that_begins_in_an_excerpt_and_ends_behind_it_is_masked() -> None:
    token = f"eyJ{'a' * 200}.{'b' * 3000}.c"
    password = "p" * 2000
    assert "aaaa" not in redacted_excerpt(f"{'x ' * 40}{token}".encode(), 120)
    assert "pppp" not in redacted_excerpt(f"{'x ' * 40}https://me:{password}@host/".encode(), 120)


def test_masks_do_not_draw_the_end_of_what_was_read_into_an_excerpt() -> None:
    token = f"eyJ{'a' * 1200}.{'b' * 1262}.c"
    body = f"{token} {'x ' * 30}write to john.doe@example.org or so {'y ' * 2000}".encode()
    for shift in range(-60, 60, 3):
        shown = redacted_excerpt(b"z" * (60 + shift) + b" " + body, 200)
        assert "@" not in shown
        assert "john.doe" not in shown


def test_a_label_is_masked_as_soon_as_its_secret_is_known() -> None:
    label = "placement-a-late-secret-of-ours-1"
    assert masked_label(label) == label
    know_secret("a-late-secret-of-ours-1")
    assert "late-secret" not in masked_label(label)
