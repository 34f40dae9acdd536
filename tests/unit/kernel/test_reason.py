import msgspec
import pytest

from patra.kernel.reason import ReasonCode


class R(ReasonCode):
    ACCEPTED = "x_accepted", "the event is new"
    REFUSED = "x_refused", "the event breaks a rule"


class Ack(msgspec.Struct):
    code: R


def test_a_reason_is_the_text_of_its_code() -> None:
    assert R.ACCEPTED == "x_accepted"
    assert str(R.ACCEPTED) == f"{R.ACCEPTED}" == R.ACCEPTED.value == "x_accepted"
    assert {R.ACCEPTED: 1}["x_accepted"] == 1


def test_a_reason_says_when_it_is_given() -> None:
    assert R.REFUSED.text == "the event breaks a rule"


def test_a_code_finds_its_reason() -> None:
    assert R("x_refused") is R.REFUSED
    with pytest.raises(ValueError):
        R("x_unknown")


def test_a_reason_travels_as_its_code() -> None:
    encoded = msgspec.json.encode(Ack(code=R.REFUSED))
    assert encoded == b'{"code":"x_refused"}'
    assert msgspec.json.decode(encoded, type=Ack).code is R.REFUSED


def test_a_code_cannot_be_given_twice() -> None:
    with pytest.raises(TypeError, match="TWICE"):

        class Wrong(ReasonCode):
            ONCE = "x_same", "first"
            TWICE = "x_same", "second"


def test_a_reason_without_its_line_is_refused() -> None:
    with pytest.raises((ValueError, RuntimeError)):

        class Wrong(ReasonCode):
            SILENT = "x_silent", ""
