"""A provider that repeats our key in its answer puts it nowhere: not into the verdict, and so neither run nor batch."""

import base64

import pytest

from patra.app.configuration.secrets import resolve
from patra.ingest.extraction.classify import excerpt
from patra.ingest.http.client import Answer
from patra.ingest.http.credentials import Token, Tokens, grant_token

KEY = "kJ38sPq0-vvZ1+/x"


def answer(body: str, status: int = 400) -> Answer:
    return Answer(status=status, headers={}, body=body.encode(), url="https://x.org", elapsed=0, wire_bytes=0)


@pytest.mark.parametrize("form", [KEY, base64.b64encode(f"user:{KEY}".encode()).decode()])
def test_a_key_that_was_read_is_in_no_excerpt_of_an_answer(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOED", KEY)
    assert resolve("env:ECHOED", "here") == KEY
    said = excerpt(f"Sorry, we do not know {form} here".encode())
    assert said.startswith("Sorry, we do not know ")
    assert KEY not in said
    assert form[10:] not in said


def test_an_access_token_is_known_from_when_it_is_kept() -> None:
    token = grant_token(answer('{"access_token": "Ab3dEf6hIj9kLm", "expires_in": 60}', 200), "PT1S", 0)
    assert isinstance(token, Token)
    Tokens().keep("x", token)
    assert "Ab3dEf6hIj9kLm" not in excerpt(b"expired: Ab3dEf6hIj9kLm")
