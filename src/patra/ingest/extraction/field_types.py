"""What `all`, `apply`, `type`, `map` and `enum` make of what a field found, or the flaw they see in it (ch. 4.13)."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import msgspec

from patra.ingest.expressions.paths import text_at
from patra.ingest.expressions.template import has_expression
from patra.ingest.expressions.values import Instant, Span, number_of
from patra.ingest.packs.sections import Field
from patra.ingest.vocabulary.codes import FieldType
from patra.ingest.vocabulary.instants import date_numbers, read_instant
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant
from patra.kernel.errors import Invalid

Convert = Callable[[Any, tuple[str, ...], str], Any]
Step = Callable[[Any], Any]


class Flaw(msgspec.Struct, frozen=True):
    """The field at fault, as it is named in the pack, why, and what is wrong with it, for people."""

    code: RunReason
    place: str
    detail: str


class FieldFlawed(Exception):  # noqa: N818  carries a flaw out of nested fields; the mapping returns it as a value
    def __init__(self, code: RunReason, place: str, detail: str) -> None:
        self.flaw = Flaw(code, place, detail)


def as_text(value: Any, _: tuple[str, ...], __: str) -> str | None:
    text = text_at(value)
    if text is None:
        raise ValueError
    return text or None


def as_int(value: Any, _: tuple[str, ...], __: str) -> int:
    if type(value) is int:
        return value
    number = number_of(value)
    if isinstance(number, float) and not number.is_integer():
        raise ValueError
    return int(number)


def as_number(value: Any, _: tuple[str, ...], __: str) -> int | float:
    return number_of(value)


_TRUE = frozenset({"true", "y", "yes", "1"})


_FALSE = frozenset({"false", "n", "no", "0"})


def as_bool(value: Any, _: tuple[str, ...], __: str) -> bool:
    text = (text_at(value) or "").lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError


def as_instant(value: Any, formats: tuple[str, ...], zone: str) -> str:
    moment = read_instant(value, formats, zone)
    if moment is None:
        raise ValueError
    return format_instant(moment.at)


def as_date(value: Any, formats: tuple[str, ...], zone: str) -> dict[str, str]:
    if zone == "UTC" and formats[:1] == ("AUTO",) and (numbers := date_numbers(value)) is not None:
        known = _known_date(numbers)
        if known is not None:
            return known.copy()
    moment = read_instant(value, formats, zone)
    if moment is None:
        raise ValueError
    return {"at": _day_text(moment.at), "precision": moment.precision.value}


@lru_cache(maxsize=4096)
def _known_date(numbers: tuple[int, ...]) -> dict[str, str] | None:
    """The date of year, month and day; None where there is none."""
    moment = read_instant([*numbers])
    return None if moment is None else {"at": format_instant(moment.at), "precision": moment.precision.value}


_day_text = lru_cache(maxsize=4096)(format_instant)
"""The records of a page were published on few days."""


DATE_TYPES = frozenset({FieldType.DATE, FieldType.INSTANT})


CONVERSIONS: dict[FieldType, Convert] = {
    FieldType.TEXT: as_text,
    FieldType.INT: as_int,
    FieldType.NUMBER: as_number,
    FieldType.BOOL: as_bool,
    FieldType.INSTANT: as_instant,
    FieldType.DATE: as_date,
}


def conversion(field: Field, place: str, zone: str, *, lenient: bool) -> Step:
    """Makes a value what the field's type says. `lenient`: what cannot be read is nothing instead of a flaw."""
    convert, formats = CONVERSIONS[field.type], field.format

    def convert_value(value: Any) -> Any:
        try:
            return convert(value, formats, zone)
        except (ValueError, Invalid) as error:
            if lenient:
                return None
            detail = f"{_display_value(value)} is not {field.type.text}"
            raise FieldFlawed(RunReason.FIELD_INVALID, place, detail) from error

    return convert_value


def cleaned_items(call: Callable[[Any], Any], items: list[Any]) -> list[Any] | None:
    if len(items) == 1:  # so it is with most
        return None if (found := call(items[0])) is None else [found]
    return [found for item in items if (found := call(item)) is not None] or None


def first_item(items: list[Any]) -> Any:
    """The first that is not nothing."""
    for item in items:
        if item is not None:
            return item
    return None


def present_items(items: list[Any]) -> list[Any] | None:
    return [item for item in items if item not in (None, "")] or None


def as_json(value: Any) -> Any:
    """Times become text where an expression has made them."""
    if isinstance(value, Instant):
        return format_instant(value)
    return int(value) if isinstance(value, Span) else value


def translation(names: Mapping[str, str]) -> Step:
    """Gives the other name of a value, or of each of a list; what is not listed stays."""

    def translate_value(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(translate_value, cast("list[Any]", value)))
        key = text_at(value)
        return value if key is None else names.get(key, value)

    return translate_value


def enumeration(field: Field, place: str) -> Callable[[Any], None]:
    """Refuses a value, or one of a list, that the field does not declare."""
    allowed = frozenset(field.enum)

    def check(value: Any) -> None:
        for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if text_at(one) not in allowed:
                detail = f"{_display_value(one)} is not one of {', '.join(sorted(allowed))}"
                raise FieldFlawed(RunReason.FIELD_INVALID, place, detail)

    return check


def _display_value(value: Any) -> str:
    try:
        text = msgspec.json.encode(value).decode(errors="replace")
    except UnicodeEncodeError:  # half a character, in a name of the pack
        text = ascii(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def whole_field(field: Field | str) -> Field:
    """A plain text in a field's place is a path, or an expression."""
    if not isinstance(field, str):
        return field
    return Field(expr=field) if has_expression(field) else Field(path=field)


def computes(field: Field | str) -> bool:
    """Whether the record is needed for it, since it has an expression or one of its fields has."""
    whole = whole_field(field)
    return whole.expr is not None or any(map(computes, whole.fields.values()))
