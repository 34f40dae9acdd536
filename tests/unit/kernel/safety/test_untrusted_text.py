"""Texts of strangers: what steers a terminal is written out, what is not a number of ours is none."""

import pytest

from patra.kernel.safety.untrusted_text import MAX_INTEGER, integer_of, without_controls


def test_controls_and_marks_of_direction_are_written_out() -> None:
    assert without_controls("a\x1b[2Jb\x9b\u202e\n") == "a\\x1b[2Jb\\x9b\\u202e\\x0a"
    assert without_controls("a\nb\x07", keep="\n") == "a\nb\\x07"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-5", -5),
        (str(MAX_INTEGER), MAX_INTEGER),
        (str(MAX_INTEGER + 1), None),
        ("²", None),
        ("٣", None),
        ("--5", None),
        ("+5", None),
        (" 5", None),
        ("5\n", None),
        ("", None),
        ("9" * 5000, None),
        ("1e3", None),
    ],
)
def test_an_integer_is_of_ascii_digits_and_fits_a_column(text: str, number: int | None) -> None:
    assert integer_of(text) == number
