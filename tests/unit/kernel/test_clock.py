import time
from datetime import UTC, datetime

import pytest

from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, SystemClock, format_instant, parse_duration, parse_instant
from patra.kernel.errors import Invalid


def us(text: str) -> int:
    instant = datetime.fromisoformat(text).astimezone(UTC)
    return round(instant.timestamp()) * SECOND + instant.microsecond


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("2026-11-16T02:03:04Z", "2026-11-16T02:03:04+00:00"),
        ("2026-11-16t02:03:04z", "2026-11-16T02:03:04+00:00"),
        ("2026-11-16T02:03:04+05:30", "2026-11-15T20:33:04+00:00"),
        ("2026-11-16T02:03:04-00:00", "2026-11-16T02:03:04+00:00"),
        ("2026-11-16T02:03:04-23:59", "2026-11-17T02:02:04+00:00"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00+00:00"),
        ("1969-12-31T23:59:59Z", "1969-12-31T23:59:59+00:00"),
    ],
)
def test_rfc_3339_is_read(text: str, same_as: str) -> None:
    assert parse_instant(text) == us(same_as)


@pytest.mark.parametrize(
    ("fraction", "microseconds"),
    [(".1", 100_000), (".12", 120_000), (".000001", 1), (".1234567", 123_456), (".9999999999999999999", 999_999)],
)
@pytest.mark.parametrize("zone", ["Z", "z", "+00:00"])
def test_digits_past_the_microsecond_are_dropped_not_rounded(fraction: str, microseconds: int, zone: str) -> None:
    whole = parse_instant("2026-11-16T02:03:04Z")
    assert whole is not None
    assert parse_instant(f"2026-11-16T02:03:04{fraction}{zone}") == whole + microseconds


def test_before_1970_too_the_fraction_counts_forward() -> None:
    assert parse_instant("1969-12-31T23:59:59.25Z") == -750_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-16",
        "2026-11-16T02:03:04",  # no offset
        "2026-11-16 02:03:04Z",  # a blank is not RFC 3339's T
        "2026-11-16T02:03Z",
        "2026-11-16T24:00:00Z",
        "2026-11-16T02:60:00Z",
        "2026-11-16T02:03:61Z",
        "2026-11-16T02:03:04.Z",
        "2026-11-16T02:03:04,5Z",
        "2026-11-16T02:03:04+24:00",
        "2026-11-16T02:03:04+05:60",
        "2026-11-16T02:03:04+0530",
        "2026-11-16T02:03:04+05",
        "2026-11-16T02:03:04 Z",
        " 2026-11-16T02:03:04Z",
        "2026-11-16T02:03:04Z\n",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "0100-02-29T00:00:00Z",
        "20261116T020304Z",
        "2026-W47-1T00:00:00Z",
        "+2026-11-16T02:03:04Z",
        "-2026-11-16T02:03:04Z",
        "12026-11-16T02:03:04Z",
        "٢٠٢٦-11-16T02:03:04Z",  # digits, but not ASCII ones
        "2026-11-16T02:03:04.١Z",
        "2026-11-16T02:03:04\u221205:00",  # a minus sign that is not the hyphen
        "2026-11-16T02:03:04Z\x00",
    ],
)
def test_what_is_not_rfc_3339_with_an_offset_is_none(text: str) -> None:
    assert parse_instant(text) is None


@pytest.mark.parametrize(
    ("text", "next_second"),
    [
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
        ("2017-01-01T00:59:60+01:00", "2017-01-01T00:00:00Z"),
        ("2016-12-31T18:29:60-05:30", "2017-01-01T00:00:00Z"),
        ("2015-06-30T23:59:60Z", "2015-07-01T00:00:00Z"),
        ("2024-02-29T23:59:60Z", "2024-03-01T00:00:00Z"),
        ("9999-12-31T23:59:60Z", "+10000-01-01T00:00:00Z"),
        ("2016-12-31T23:59:60.25Z", "2017-01-01T00:00:00.250000Z"),
    ],
)
def test_a_leap_second_is_the_second_that_follows(text: str, next_second: str) -> None:
    instant = parse_instant(text)
    assert instant is not None
    assert format_instant(instant) == next_second


@pytest.mark.parametrize(
    "text",
    [
        "2016-12-30T23:59:60Z",  # not the last day of a month
        "2016-12-31T23:58:60Z",
        "2016-12-31T12:59:60Z",
        "2016-12-31T23:59:60+01:00",  # 22:59:60 in UTC
        "2024-02-28T23:59:60Z",
    ],
)
def test_a_sixtieth_second_elsewhere_is_refused(text: str) -> None:
    assert parse_instant(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "0000-01-01T00:00:00Z",
        "0000-02-29T12:00:00.000001Z",
        "0001-01-01T00:00:00Z",
        "1582-10-10T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2024-02-29T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999Z",
    ],
)
def test_every_year_of_four_digits_is_read_and_written(text: str) -> None:
    instant = parse_instant(text)
    assert instant is not None
    assert format_instant(instant) == text


def test_an_offset_may_lead_out_of_the_years_of_four_digits_and_is_still_written() -> None:
    early, late = parse_instant("0000-01-01T00:00:00+01:00"), parse_instant("9999-12-31T23:30:00-01:00")
    assert early is not None
    assert late is not None
    assert format_instant(early) == "-00001-12-31T23:00:00Z"
    assert format_instant(late) == "+10000-01-01T00:30:00Z"


def test_a_fraction_of_six_digits_is_written_only_when_it_is_not_zero() -> None:
    assert format_instant(0) == "1970-01-01T00:00:00Z"
    assert format_instant(10) == "1970-01-01T00:00:00.000010Z"
    assert format_instant(-1) == "1969-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT10M", 10 * MINUTE),
        ("PT0S", 0),
        ("P1D", DAY),
        ("P2W", 14 * DAY),
        ("P1W1D", 8 * DAY),
        ("P1DT12H", 36 * HOUR),
        ("PT1H30M15S", HOUR + 30 * MINUTE + 15 * SECOND),
        ("PT0.5S", SECOND // 2),
        ("PT0,25S", SECOND // 4),
        ("PT1.0000019S", SECOND + 1),
        ("PT36H", 36 * HOUR),
        ("PT90S", 90 * SECOND),
    ],
)
def test_durations_of_fixed_length_are_read(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["P1M", "P1Y", "P1Y2M3D", "P3M1D", "P1Y6M", "P1YT1H", "P1MT5M"])
def test_months_and_years_are_refused_because_their_length_is_not_fixed(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_duration(text)
    assert refused.value.code == "duration_not_fixed"
    assert "P30D" in refused.value.advice


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1DT", "T1H", "1H", "PT1", "P1H", "PT1D", "PT1M1H", "P1D1W", "PT1.5H", "-PT1S", "PT-1S", "pt1s", "PT1S ", "PT１S", "PT.5S", "PT1.S"],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_advice(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_duration(text)
    assert refused.value.code == "duration_invalid"
    assert "PT10M" in refused.value.advice


def test_the_system_clock_counts_microseconds() -> None:
    before = time.time_ns() // 1000
    assert before <= SystemClock().now() <= time.time_ns() // 1000
