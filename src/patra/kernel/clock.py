"""Instants are integer microseconds UTC inside and RFC 3339 at the edge (ruling A1); durations come from ISO 8601.

The only code that reads a clock is `SystemClock`, and only the outermost shell holds one.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from patra.kernel.errors import Invalid

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class Clock(Protocol):
    """Where the outermost shell gets its "now" from."""

    def now(self) -> int:
        """Microseconds since 1970-01-01T00:00:00Z."""
        ...

    def monotonic(self) -> int:
        """Microseconds since some moment: how much time has passed, whatever is done to the clock's hands."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000


_HHMM = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_COMMON = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_HHMM}:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-]{_HHMM})").fullmatch
_ANY = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
).fullmatch
_from_iso = datetime.fromisoformat
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  written as it is, with a Z
_MICROSECOND = timedelta(microseconds=1)


def parse_instant(text: str) -> int | None:
    """The instant of an RFC 3339 date-time with its offset, or None if the text is not one.

    Digits past the microsecond are dropped. A leap second (23:59:60 UTC on the last day of a month) is the second
    that follows it. The common form goes through the datetime of the standard library (it is asked for 35,000 times a
    second); what that does not know (year 0000, leap seconds, small letters) goes through the calendar below.
    """
    if _COMMON(text):
        try:
            return (_from_iso(text) - _EPOCH) // _MICROSECOND
        except ValueError:  # no such day, or the year 0000
            return _parse_any(text)
    return _parse_any(text)


def _parse_any(text: str) -> int | None:
    match = _ANY(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, offset_hour, offset_minute = match.groups()
    if not 1 <= int(month) <= 12 or not 1 <= int(day) <= _month_length(int(year), int(month)):
        return None
    seconds = _days(int(year), int(month), int(day)) * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign:
        offset = int(offset_hour) * 3600 + int(offset_minute) * 60
        seconds += -offset if sign == "+" else offset
    if second == "60" and (seconds % 86_400 or _date(seconds // 86_400)[2] != 1):
        return None
    return seconds * SECOND + (int(fraction[:6].ljust(6, "0")) if fraction else 0)


def format_instant(us: int) -> str:
    """The RFC 3339 text of an instant, `2026-11-16T02:03:04Z`, with six fraction digits only when they are not zero.

    It never fails: an instant outside the years 0000 to 9999 is written with a signed year as in ISO 8601.
    """
    try:
        return (_LOCAL_EPOCH + timedelta(microseconds=us)).isoformat() + "Z"
    except OverflowError:  # not in the years 0001 to 9999
        return _format_any(us)


def _format_any(us: int) -> str:
    seconds, fraction = divmod(us, SECOND)
    days, second = divmod(seconds, 86_400)
    year, month, day = _date(days)
    text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+06d}"
    tail = f".{fraction:06d}Z" if fraction else "Z"
    return f"{text}-{month:02d}-{day:02d}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{tail}"


_DURATION = re.compile(
    r"P(?=[0-9T])(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.,]([0-9]+))?S)?)?"
).fullmatch
_CALENDAR_DURATION = re.compile(r"P[0-9.,WD]*[0-9]+[YM].*").fullmatch


def parse_duration(text: str) -> int:
    """The microseconds of an ISO 8601 duration of fixed length: weeks, days, hours, minutes, seconds, `P1DT12H`."""
    match = _DURATION(text)
    if match is None:
        if _CALENDAR_DURATION(text):
            raise Invalid(
                "duration_not_fixed",
                f"{text!r} counts years or months, whose length depends on the calendar",
                advice="write it in weeks, days, hours, minutes or seconds, such as P30D; minutes stand after a T",
            )
        raise Invalid(
            "duration_invalid",
            f"{text!r} is not an ISO 8601 duration",
            advice="write it as P30D (days), P2W, PT90S, PT10M or PT1H30M",
        )
    weeks, days, hours, minutes, seconds, fraction = match.groups(default="0")
    total = int(weeks) * 7 * DAY + int(days) * DAY + int(hours) * HOUR + int(minutes) * MINUTE + int(seconds) * SECOND
    return total + int(fraction[:6].ljust(6, "0"))


# The proleptic Gregorian calendar on whole days, for any year, by the shifted year that starts in March: there the
# leap day comes last and every month's offset is one formula.


def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01."""
    if month <= 2:
        year -= 1
        month += 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719_469


def _date(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31
