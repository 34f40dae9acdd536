"""Instants survive their text, and agree with other people's calendars."""

from datetime import UTC, datetime, timedelta

import whenever
from hypothesis import assume, given
from hypothesis import strategies as st

from patra.kernel import clock
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, format_instant, parse_duration, parse_instant

FIRST = -62_167_219_200 * SECOND  # 0000-01-01T00:00:00Z
LAST = 253_402_300_800 * SECOND - 1  # 9999-12-31T23:59:59.999999Z
INSTANTS = st.integers(FIRST, LAST)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(INSTANTS)
def test_what_is_written_is_read_as_the_same_instant(us: int) -> None:
    assert parse_instant(format_instant(us)) == us


@given(INSTANTS, INSTANTS)
def test_texts_of_whole_seconds_sort_as_their_instants(one: int, other: int) -> None:
    one, other = one // SECOND * SECOND, other // SECOND * SECOND
    assert (format_instant(one) < format_instant(other)) == (one < other)


@given(st.datetimes(timezones=st.just(UTC)))
def test_the_text_is_that_of_the_standard_library(moment: datetime) -> None:
    us = (moment - EPOCH) // timedelta(microseconds=1)
    assert format_instant(us) == moment.isoformat().replace("+00:00", "Z")


@given(INSTANTS)
def test_the_short_way_and_the_long_way_of_writing_agree(us: int) -> None:
    assert format_instant(us) == clock._format_any(us)


FIELDS = st.tuples(
    st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32), st.integers(0, 25), st.integers(0, 61), st.integers(0, 61)
)  # fmt: skip
FRACTION = st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=12).map(lambda digits: f".{digits}"))
OFFSET = st.one_of(
    st.sampled_from("Zz"),
    st.tuples(st.sampled_from("+-"), st.integers(0, 25), st.integers(0, 61)).map(
        lambda o: f"{o[0]}{o[1]:02d}:{o[2]:02d}"
    ),
)


@given(FIELDS, st.sampled_from("Tt"), FRACTION, OFFSET)
def test_the_short_way_and_the_long_way_agree(
    fields: tuple[int, int, int, int, int, int], t: str, fraction: str, offset: str
) -> None:
    year, month, day, hour, minute, second = fields
    text = f"{year:04d}-{month:02d}-{day:02d}{t}{hour:02d}:{minute:02d}:{second:02d}{fraction}{offset}"
    assert parse_instant(text) == clock._parse_any(text)


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), FRACTION, st.integers(-1439, 1439))  # noqa: DTZ001
def test_every_valid_instant_is_read_as_another_library_reads_it(moment: datetime, fraction: str, minutes: int) -> None:
    offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    whole = moment.replace(microsecond=0).isoformat()
    expected = whenever.OffsetDateTime.parse_iso(f"{whole}+00:00").to_instant().timestamp() - minutes * 60
    microseconds = int(fraction[1:7].ljust(6, "0")) if fraction else 0
    assert parse_instant(f"{whole}{fraction}{offset}") == expected * SECOND + microseconds


@given(st.text(max_size=40))
def test_no_text_is_a_failure(text: str) -> None:
    parse_instant(text)


@given(INSTANTS, st.integers(0, 30), st.characters())
def test_one_wrong_character_never_moves_an_instant_silently(us: int, place: int, char: str) -> None:
    text = format_instant(us)
    assume(place < len(text) and text[place] != char)
    changed = text[:place] + char + text[place + 1 :]
    found = parse_instant(changed)
    if found is not None:
        assert char in "0123456789tz"
        assert char in "tz" or format_instant(found) == changed or found != us


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 99), st.integers(0, 999_999))
def test_a_duration_is_the_sum_of_its_parts(days: int, hours: int, minutes: int, seconds: int, micro: int) -> None:
    text = f"P{days}DT{hours}H{minutes}M{seconds}.{micro:06d}S"
    assert parse_duration(text) == days * DAY + hours * HOUR + minutes * MINUTE + seconds * SECOND + micro
