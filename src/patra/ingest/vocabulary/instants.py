"""Turns instants as providers write them into microseconds UTC with a precision, and the other way (ch. 4.7, I7).

A partial date (`2019`, `2019-03`, `[[2019]]`, `2013 Mar-Apr`, `Winter 2013`) is the earliest instant it can mean; what
means nothing (`[[null]]`, `n.d.`) is None, and its record is data pollution.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from patra.kernel.clock import DAY, SECOND, format_instant, parse_instant
from patra.kernel.errors import Invalid

NAMED_FORMATS = ("AUTO", "ISO", "EPOCH_S", "EPOCH_MS", "DATE_PARTS")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DATE_CHARS = 64  # characters of a text that may be a date


class Precision(StrEnum):
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    INSTANT = "instant"


class Moment(msgspec.Struct, frozen=True):
    """An instant and how exactly it is known."""

    at: int
    precision: Precision


def read_instant(value: Any, formats: Sequence[str] = ("AUTO",), zone: str = "UTC") -> Moment | None:
    """The first format that fits decides; texts without an offset are in `zone`."""
    for name in formats:
        match name:
            case "AUTO":
                found = _auto(value, zone)
            case "ISO":
                found = _iso(value, zone) if isinstance(value, str) else None
            case "EPOCH_S":
                found = _epoch(value, SECOND)
            case "EPOCH_MS":
                found = _epoch(value, 1000)
            case "DATE_PARTS":
                found = _structure(value, zone)
            case _:
                found = _parse_pattern(value, name, zone) if isinstance(value, str) else None
        if found is not None:
            return found
    return None


def date_numbers(value: Any) -> tuple[int, ...] | None:
    """Year, month and day, as many as are there, of `{"date-parts": [[2019, 3]]}`, as Crossref writes its dates.

    None for anything else, which `read_instant` reads.
    """
    if type(value) is not dict or "date-time" in value:
        return None
    lists = cast("dict[str, Any]", value).get("date-parts")
    if type(lists) is not list or len(parts := cast("list[Any]", lists)) != 1 or type(parts[0]) is not list:
        return None
    found = cast("list[Any]", parts[0])
    for part in found:
        if type(part) is not int:
            return None
    return tuple(found[:3])


def write_instant(at: int, fmt: str = "ISO", zone: str = "UTC") -> str:
    """An instant as text: ISO, EPOCH_S, EPOCH_MS, or a pattern of yyyy MM dd HH mm ss SSS and 'quoted text'."""
    if fmt in {"ISO", "AUTO"}:
        return format_instant(at)
    if fmt == "EPOCH_S":
        return str(at // SECOND)
    if fmt == "EPOCH_MS":
        return str(at // 1000)
    local = _at(at).astimezone(time_zone(zone))
    return "".join(text if kind is None else _WRITERS[kind](local) for kind, text in _tokens(fmt))


def check_format(fmt: str) -> None:
    """Raise Invalid where a format means nothing."""
    if fmt not in NAMED_FORMATS:
        _tokens(fmt)


@lru_cache(maxsize=64)
def time_zone(name: str) -> ZoneInfo:
    """The zone of that name. Raises Invalid."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Invalid(
            "zone_unknown", f"{name!r} is not a time zone", advice="write it as in the IANA list: UTC, Europe/Paris"
        ) from error


_WRITERS: dict[str, Callable[[datetime], str]] = {
    "yyyy": lambda t: f"{t.year:04}",
    "MM": lambda t: f"{t.month:02}",
    "dd": lambda t: f"{t.day:02}",
    "HH": lambda t: f"{t.hour:02}",
    "mm": lambda t: f"{t.minute:02}",
    "ss": lambda t: f"{t.second:02}",
    "SSS": lambda t: f"{t.microsecond // 1000:03}",
    "M": lambda t: str(t.month),
    "d": lambda t: str(t.day),
}
_TOKEN = re.compile(r"yyyy|MM|dd|HH|mm|ss|SSS|M|d|'([^']*)'|[^A-Za-z']")


@lru_cache(maxsize=256)
def _tokens(fmt: str) -> tuple[tuple[str | None, str], ...]:
    found: list[tuple[str | None, str]] = []
    at = 0
    while at < len(fmt):
        match = _TOKEN.match(fmt, at)
        if match is None:
            raise Invalid(
                "format_invalid",
                f"{fmt!r} means nothing from character {at + 1} on",
                advice="use ISO, EPOCH_S, EPOCH_MS, or yyyy MM dd HH mm ss SSS with 'quoted text' between them",
            )
        text = match[0]
        found.append((text, text) if text in _WRITERS else (None, match[1] if match[1] is not None else text))
        at = match.end()
    return tuple(found)


@lru_cache(maxsize=256)
def _reader(fmt: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    kinds: list[str] = []
    out = ""
    for kind, text in _tokens(fmt):
        if kind is None:
            out += re.escape(text)
        else:
            kinds.append(kind)
            out += {"yyyy": r"(\d{4})", "SSS": r"(\d{3})", "M": r"(\d{1,2})", "d": r"(\d{1,2})"}.get(kind, r"(\d{2})")
    return re.compile(out), tuple(kinds)


def _parse_pattern(value: str, fmt: str, zone: str) -> Moment | None:
    pattern, kinds = _reader(fmt)
    match = pattern.fullmatch(value.strip()[:_MAX_DATE_CHARS])
    if match is None:
        return None
    parts = {kind: int(text) for kind, text in zip(kinds, match.groups(), strict=True)}
    return _moment(
        [
            parts.get("yyyy"),
            parts.get("MM", parts.get("M")),
            parts.get("dd", parts.get("d")),
            parts.get("HH"),
            parts.get("mm"),
            parts.get("ss"),
            parts.get("SSS", 0) * 1000,
        ],
        zone,
    )


def _auto(value: Any, zone: str) -> Moment | None:
    if type(value) is list:
        return _parts(cast("list[Any]", value), zone)
    if type(value) is dict:
        return _structure(value, zone)
    if isinstance(value, str):
        return _iso(value, zone) or _parse_words(value, zone)
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        if isinstance(value, int) and 1000 <= value <= 9999:
            return _moment([value], zone)
        return _epoch(value, 1000 if abs(value) >= 100_000_000_000 else SECOND)
    return _structure(value, zone)


_ISO = re.compile(
    r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2})(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?"
    r"(?:\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2}))?)?)?)?",
    re.IGNORECASE,
)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:(\d{2})(\d{2})(\d{2})?)?")


def _iso(value: str, zone: str) -> Moment | None:
    text = value.strip()
    if (at := parse_instant(text)) is not None:
        return Moment(at, Precision.INSTANT)
    if len(text) > _MAX_DATE_CHARS:
        return None
    if match := _ISO.fullmatch(text):
        *parts, fraction, offset = match.groups()
        numbers = [_int(part) for part in parts]
        return _moment([*numbers, int(fraction[:6].ljust(6, "0")) if fraction else 0], zone, offset)
    if match := _COMPACT.fullmatch(text):
        return _moment([_int(part) for part in match.groups()], zone)
    return None


_MONTHS = {
    name: number
    for number, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)  # noqa: SIM905  a list of twelve
}
_SEASONS = {"winter": 1, "spring": 3, "summer": 6, "autumn": 9, "fall": 9}
_WORD = re.compile(r"[A-Za-z]+|\d+")


def _parse_words(value: str, zone: str) -> Moment | None:
    """`2013 Mar-Apr`, `5 March 2013`, `Winter-Spring 2013`, `2013 Mar 5-12`: the earliest day of what is named."""
    if len(value) > _MAX_DATE_CHARS or not any(char.isalpha() for char in value):
        return None
    words = _WORD.findall(value)
    years = [int(word) for word in words if len(word) == 4 and word.isdigit()]
    if not years:
        return None
    month = day = None
    for index, word in enumerate(words):
        named = _MONTHS.get(word[:3].lower()) or _SEASONS.get(word.lower())
        if named is not None and month is None:
            month = named
            beside = [w for w in words[max(index - 1, 0) : index + 2] if w.isdigit() and len(w) <= 2]
            day = int(beside[0]) if beside and word.lower() not in _SEASONS else None
    return _moment([min(years), month, day], zone)


def _structure(value: Any, zone: str) -> Moment | None:
    """Crossref's `{"date-parts": [[2019, 3]]}`, ORCID's `{"year": {"value": "2012"}, "month": null}`, plain lists."""
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  the first is ten times as fast
        fields = cast("Mapping[str, Any]", value)
        for key in ("date-time", "date-parts", "value"):
            if (inner := fields.get(key)) is not None and (found := _auto(inner, zone)) is not None:
                return found
        if "year" in fields:
            return _moment([_number(fields.get(part)) for part in ("year", "month", "day")], zone)
        return None
    return _parts(cast("Sequence[Any]", value), zone) if isinstance(value, (list, tuple)) else None


def _parts(parts: Sequence[Any], zone: str) -> Moment | None:
    while parts and isinstance(parts[0], (list, tuple)):
        parts = cast("Sequence[Any]", parts[0])
    return _moment([part if type(part) is int else _number(part) for part in parts[:3]], zone)


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value
    if isinstance(value, Mapping):
        return _number(cast("Mapping[str, Any]", value).get("value"))
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) <= 6 else None


def _epoch(value: Any, unit: int) -> Moment | None:
    if isinstance(value, str):
        text = value.strip()
        if not re.fullmatch(r"-?\d{1,17}(\.\d{1,9})?", text):
            return None
        value = float(text) if "." in text else int(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    at = (
        value * unit
    )  # whatever is not a number of our calendar fails the comparison: infinite, none, too large for either
    return Moment(int(at), Precision.INSTANT) if -62_000_000_000 * SECOND < at < 253_402_300_800 * SECOND else None


def _moment(parts: Sequence[int | None], zone: str, offset: str | None = None) -> Moment | None:
    """From year, month, day, hour, minute, second, microsecond, as many as are known."""
    if len(parts) <= 3 and zone == "UTC":
        return _day(*parts)
    year, month, day, hour, minute, second, micro = [*parts, *[None] * (7 - len(parts))]
    if year is None or not 1 <= year <= 9999:
        return None
    known = next((index for index, part in enumerate((month, day, hour)) if part is None), 3)
    precision = _PRECISIONS[known]
    try:
        local = datetime(year, month or 1, day or 1, hour or 0, minute or 0, second or 0, micro or 0, tzinfo=UTC)
        if month == 0 or day == 0:
            return None
        if offset is not None and offset[0] in "+-":
            digits = offset[1:].replace(":", "")
            shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
            local = local - shift if offset[0] == "+" else local + shift
        elif offset is None and zone != "UTC":
            local = local.replace(tzinfo=time_zone(zone))
        return Moment((local - _EPOCH) // timedelta(microseconds=1), precision)
    except (ValueError, OverflowError):
        return None


_PRECISIONS = tuple(Precision)
_DAY_ONE = date(1970, 1, 1).toordinal()


@lru_cache(maxsize=4096)
def _day(year: int | None = None, month: int | None = None, day: int | None = None) -> Moment | None:
    """The same for a date in UTC, as most of them are."""
    if year is None or not 1 <= year <= 9999 or month == 0 or day == 0:
        return None
    precision = Precision.YEAR if month is None else Precision.MONTH if day is None else Precision.DAY
    try:
        return Moment((date(year, month or 1, day or 1).toordinal() - _DAY_ONE) * DAY, precision)
    except (ValueError, OverflowError):
        return None


def _int(text: str | None) -> int | None:
    return int(text) if text else None


def _at(us: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=us)
    except OverflowError:
        raise Invalid("instant_out_of_range", f"{us} µs lies outside the years 1 to 9999") from None
