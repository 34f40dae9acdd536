"""A planted secret never survives, what is redacted stays so, and nothing makes redaction fail."""

import json
from typing import Any
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from patra.kernel.safety.excerpt import redacted_excerpt
from patra.kernel.safety.redact import redact, redact_text, redact_url

ALPHABET = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
SECRET = st.text(ALPHABET, min_size=12, max_size=40).map(lambda s: f"S3cr3t{s}")
NAME = st.sampled_from(
    ["api_key", "apikey", "X-Api-Key", "authorization", "token", "access_token", "client_secret", "password", "signature",
     "Set-Cookie", "dbPassword", "private_key", "AWS_SECRET_ACCESS_KEY", "sig", "auth"]
)  # fmt: skip
NOISE = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WORDS = st.text("abc xyz,.\n(){}[]<>&;|\"'=:/?#%@+-_*0123456789\\", max_size=25)
ANYTHING = st.one_of(NOISE, WORDS, st.text(max_size=20))
PAIR = st.sampled_from(
    ["{n}={s}", "{n}: {s}", '"{n}": "{s}"', "'{n}': '{s}'", "{n} = {s}", "{n}=>{s}", '\\"{n}\\": \\"{s}\\"', "{n}: Bearer {s}",
     "{n}=[{s}]", '"{n}":["{s}"]']
)  # fmt: skip


@given(SECRET, NAME, PAIR, WORDS, WORDS)
def test_what_stands_behind_a_telling_name_never_survives_in_text(
    secret: str, name: str, pair: str, before: str, after: str
) -> None:
    text = f"{before} {pair.format(n=name, s=secret)} {after}"
    assert secret not in redact_text(text)


@given(SECRET, NAME, st.sampled_from("?&#;"), WORDS.map(quote), WORDS.map(quote))
def test_a_telling_parameter_never_survives_in_a_url(secret: str, name: str, mark: str, one: str, two: str) -> None:
    url = f"https://host.example/{one}?a={one}{mark}{name}={secret}&b={two}"
    assert secret not in redact_url(url)
    assert secret not in redact_text(f"GET {url} failed")
    assert secret not in redact_url(f"https://host.example/?next={quote(url, safe='')}")


@given(SECRET, st.text(ALPHABET, max_size=8), st.text(ALPHABET + "!$&'*+,;=:@/?#%", max_size=8))
def test_user_and_password_never_survive_in_a_url(secret: str, user: str, rest: str) -> None:
    assert secret not in redact_url(f"postgresql://{user}:{secret}{rest}@host.example:5432/db?sslmode=require")
    assert secret not in redact_text(f"cannot reach postgresql://{secret}:x@host.example/db.")
    assert secret not in redact_text(f"cannot reach https://{secret}@host.example/db.")


@given(SECRET, WORDS)
def test_a_bearer_token_never_survives(secret: str, before: str) -> None:
    assert secret not in redact_text(f"{before} Bearer {secret}")


@given(
    st.emails(),
    st.sampled_from([" ", "<", "(", '"', ": ", "=", "/", ","]),
    st.sampled_from([" ", ">", ")", '"', ", ", "\n"]),
)
def test_an_e_mail_address_never_survives(address: str, before: str, after: str) -> None:
    assert address not in redact_text(f"from{before}{address}{after}to")


PHONE = st.one_of(
    st.tuples(st.integers(1, 998), st.integers(100_000_0, 999_999_999_9)).map(lambda p: f"+{p[0]} {p[1]}"),
    st.tuples(st.integers(3, 9), st.integers(0, 999_999_999)).map(lambda p: f"1{p[0]}{p[1]:09d}"),
    st.tuples(st.integers(200, 999), st.integers(200, 999), st.integers(0, 9999)).map(lambda p: f"({p[0]}) {p[1]}-{p[2]:04d}"),
    st.tuples(st.integers(200, 999), st.integers(200, 999), st.integers(0, 9999)).map(lambda p: f"{p[0]}-{p[1]}-{p[2]:04d}"),
)  # fmt: skip


@given(PHONE, st.sampled_from(["", "call ", "phone: ", "tel=", "(", "\n", "，"]), st.sampled_from(["", " now", ".", ",", ")", "\n", "。"]))  # fmt: skip
def test_a_phone_number_never_survives(number: str, before: str, after: str) -> None:
    assert number not in redact_text(f"{before}{number}{after}")


def planted(secret: str, name: str) -> st.SearchStrategy[Any]:
    inner = st.one_of(
        st.just({name: secret}), st.just({name: [secret, {"x": secret}]}), st.just([name, secret]), st.just(f"{name}={secret}"),
        st.just(f"{name}={secret}".encode()),
    )  # fmt: skip
    return st.recursive(
        inner,
        lambda deeper: st.one_of(
            st.tuples(ANYTHING, deeper), st.lists(deeper, max_size=3), st.dictionaries(ANYTHING, deeper, max_size=3)
        ),
        max_leaves=6,
    )


@given(st.data(), SECRET, NAME)
def test_a_secret_never_survives_in_data(data: st.DataObject, secret: str, name: str) -> None:
    assert secret not in repr(redact(data.draw(planted(secret, name))))


TRICKY = st.lists(
    st.one_of(
        st.sampled_from(
            ["token", "=", ":", " ", "***", "@", "a.b", "://", "?", "&", "Bearer ", "Basic ", "+49 171 2345678", '"', "'", "\\", "x",
             "%40", "%3D", "key", "http", "[", "}", "138", "12345678", "-", "eyJhbGciOi", ".", "password", "\n", "1", "0049", "sk-", "(555)"]
        ),
        st.text(max_size=3),
    ),
    max_size=14,
).map("".join)  # fmt: skip


@given(st.one_of(ANYTHING, TRICKY))
def test_what_was_redacted_is_not_changed_again(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.one_of(ANYTHING, TRICKY))
def test_a_url_that_was_redacted_is_not_changed_again(text: str) -> None:
    once = redact_url(text)
    assert redact_url(once) == once


RUBBISH = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), TRICKY, st.binary(max_size=10), st.complex_numbers()
    ),
    lambda deeper: st.one_of(
        st.lists(deeper, max_size=3),
        st.dictionaries(st.one_of(st.none(), st.integers(), TRICKY, st.binary(max_size=5)), deeper, max_size=3),
        st.tuples(deeper, deeper),
    ),
    max_leaves=10,
)


@given(RUBBISH)
def test_redaction_of_data_never_fails_and_is_not_changed_again(value: Any) -> None:
    once = redact(value)
    assert repr(redact(once)) == repr(once)


@given(
    st.dictionaries(NAME, st.text(max_size=10), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=2),
)
def test_json_text_stays_json(telling: dict[str, str], plain: dict[str, int]) -> None:
    text = json.dumps(telling | plain)
    assert json.loads(redact_text(text)).keys() == json.loads(text).keys()


SHAPED = st.sampled_from(
    ["eyJhbGciOi.eyJzdWIi.c2ln", "ghp_0123456789abcdefgh", "a.b@mail.example", "+49 171 2345678", "(555) 123-4567", "%40host.org",
     "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "https://u:p@h.example/a,b", "://x:", "Basic dTpwYXNz",
     "bearer abc.def", "440308199901011234", '","', '",', ">", "><", "=>", '\\"', "[", "{", "]", "}", "\n", '"', ", "]
)  # fmt: skip
PIECES = st.lists(
    st.one_of(SHAPED, WORDS, st.tuples(NAME, PAIR).map(lambda p: p[1].format(n=p[0], s="Zx9"))), max_size=12
)


@given(PIECES, st.integers(0, 60))
def test_an_excerpt_is_the_beginning_of_the_text_redacted_as_a_whole(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    assert redacted_excerpt(text.encode(), size) == redact_text(text)[:size]
