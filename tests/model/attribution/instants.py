"""RFC 3339 text to microseconds since 1970 in UTC and back, by plain arithmetic on the calendar (A1)."""

import re

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_RFC_3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def _is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_in_month(year, month):
    if month == 2:
        return 29 if _is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_before_year(year):
    """Days from 1 January of year 0 to 1 January of `year` (year 0 is a leap year)."""
    if year == 0:
        return 0
    past = year - 1
    return 365 * year + past // 4 - past // 100 + past // 400 + 1


_EPOCH = _days_before_year(1970)


def _days(year, month, day):
    before = sum(_days_in_month(year, m) for m in range(1, month))
    return _days_before_year(year) - _EPOCH + before + day - 1


def parse(text):
    """Microseconds, or None where the text is not an RFC 3339 instant with an offset.

    CHOICE: `t` and `z` may be lower case (RFC 3339, 5.6); `-00:00` is an offset of nothing; year 0000 exists; a leap
    second (`:60`) has no place among the microseconds since 1970 and is not an instant.
    """
    match = _RFC_3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    if not (1 <= month <= 12 and 1 <= day <= _days_in_month(year, month)):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    # A1: digits beyond microseconds are dropped on reading.
    fraction = int(((match[7] or "") + "000000")[:6])
    offset = 0
    if match[8]:
        if int(match[9]) > 23 or int(match[10]) > 59:
            return None
        offset = int(match[9]) * HOUR + int(match[10]) * MINUTE
        if match[8] == "-":
            offset = -offset
    return _days(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second * SECOND + fraction - offset


def format(instant):  # noqa: A001  the opposite of parse
    """A1: `Z`, microseconds when present."""
    days, rest = divmod(instant, DAY)
    year = 1970 + days // 366  # never too late a year for days ≥ 0; corrected below
    while _days_before_year(year) - _EPOCH > days:
        year -= 1
    while _days_before_year(year + 1) - _EPOCH <= days:
        year += 1
    left = days - (_days_before_year(year) - _EPOCH)
    month = 1
    while left >= _days_in_month(year, month):
        left -= _days_in_month(year, month)
        month += 1
    clock = f"{rest // HOUR:02}:{rest % HOUR // MINUTE:02}:{rest % MINUTE // SECOND:02}"
    fraction = f".{rest % SECOND:06}" if rest % SECOND else ""
    return f"{year:04}-{month:02}-{left + 1:02}T{clock}{fraction}Z"
