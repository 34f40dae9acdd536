import hashlib
import json
import struct
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import pytest

from patra.kernel.canonical import MAX_INTEGER, canonical, fingerprint, key16, sha256_hex
from patra.kernel.errors import NotCanonical

# RFC 8785, appendix B: the IEEE 754 bits, and the JSON number.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_in_appendix_b(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number) == text.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinities_are_refused(bits: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    with pytest.raises(NotCanonical) as refused:
        canonical({"a": [1, number]})
    assert (refused.value.code, refused.value.path) == ("number_not_finite", "$.a[1]")


def test_the_sample_of_section_3_2_2() -> None:
    sample = r"""{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }"""
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + "'" + r'B\"\\\\\"/"}'
    )
    assert canonical(json.loads(sample)) == expected.encode()


def test_the_sorting_of_section_3_2_3() -> None:
    sample = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    values = list(json.loads(canonical(sample)).values())
    assert values == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


def test_a_key_beyond_the_surrogates_sorts_by_utf_16_where_code_points_say_otherwise() -> None:
    assert canonical({"\uffff": 1, "\U00010000": 2}) == '{"\U00010000":2,"\uffff":1}'.encode()


def test_control_characters_have_their_shortest_escape() -> None:
    assert canonical("\b\t\n\f\r\x00\x1f\x7f\u2028/") == b'"\\b\\t\\n\\f\\r\\u0000\\u001f\x7f\xe2\x80\xa8/"'


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    ("value", "code", "path"),
    [
        ({"a": [0, 1, 2, MAX_INTEGER + 1]}, "integer_out_of_range", "$.a[3]"),
        (-MAX_INTEGER - 1, "integer_out_of_range", "$"),
        ({"a": "\ud800"}, "lone_surrogate", "$.a"),
        ({"a": {"\udfff": 1}}, "lone_surrogate", "$.a['\\udfff']"),
        ({"a": {1: 2}}, "key_not_text", "$.a"),
        ({"a": {None: 2}}, "key_not_text", "$.a"),
        ({"a-b": [set()]}, "not_json", "$['a-b'][0]"),
        (b"bytes", "not_json", "$"),
        ([datetime(2026, 1, 1, tzinfo=UTC)], "not_json", "$[0]"),
        ((1, (2, object())), "not_json", "$[1][1]"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_path(value: Any, code: str, path: str, fast: bool) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical(value if fast else [value, 0.5])
    assert refused.value.code == code
    assert refused.value.path == (path if fast else path.replace("$", "$[0]", 1))


def test_the_largest_integers_are_kept() -> None:
    assert canonical([MAX_INTEGER, -MAX_INTEGER]) == b"[9007199254740991,-9007199254740991]"


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotCanonical) as refused:
        canonical(loop)
    assert refused.value.code == "too_deep"


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Inner(msgspec.Struct, frozen=True, tag="inner"):
    score: float
    skipped: int = 0


class Outer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    the_inner: Inner
    colour: Colour
    raw: Any = None
    note: str = ""


def test_a_struct_is_written_as_msgspec_declares_it() -> None:
    value = Outer(the_inner=Inner(score=2.0), colour=Colour.RED)
    assert canonical(value) == b'{"colour":"red","theInner":{"score":2,"skipped":0,"type":"inner"}}'
    assert canonical({"x": [value]}) == b'{"x":[' + canonical(value) + b"]}"


@pytest.mark.parametrize("raw", [b"bytes", float("nan"), 2**60, "\ud800"])
def test_a_struct_does_not_hide_what_has_no_canonical_form(raw: Any) -> None:
    with pytest.raises(NotCanonical) as refused:
        canonical({"s": Outer(the_inner=Inner(score=1), colour=Colour.RED, raw=[raw])})
    assert refused.value.path == "$.s.raw[0]"


def test_members_of_text_and_number_enums_are_their_values() -> None:
    assert canonical({"c": Colour.RED, Colour.RED: Size.BIG}) == b'{"c":"red","red":3}'


def test_tuples_and_lists_mean_the_same() -> None:
    assert canonical((1, ("a", None))) == canonical([1, ["a", None]])


def test_true_is_not_one() -> None:
    assert canonical([True, 1]) == b"[true,1]"


def test_an_integral_float_is_its_integer() -> None:
    assert fingerprint({"a": 1.0}) == fingerprint({"a": 1})


def test_the_fingerprint_is_the_sha256_of_the_canonical_form() -> None:
    assert fingerprint({"b": 1, "a": "ä"}) == hashlib.sha256('{"a":"ä","b":1}'.encode()).hexdigest()


def test_sha256_is_of_utf_8() -> None:
    assert sha256_hex("ä") == sha256_hex("ä".encode()) == hashlib.sha256("ä".encode()).hexdigest()
    assert key16("ä") == hashlib.sha256("ä".encode()).digest()[:16]


def test_half_of_a_surrogate_pair_has_no_hash() -> None:
    for function in (sha256_hex, key16):
        with pytest.raises(NotCanonical):
            function("\ud800")
