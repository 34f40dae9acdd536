"""A record as it came goes in; the fields of the output, or the one at fault and why, come out (ch. 3.3.4, 4.8).

Compiled once for an endpoint. A field is found (`path`, `each`, `fields`), computed (`expr`), cleaned (`apply`),
translated (`map`), made what it must be (`type`) and, where nothing was found, filled in (`default`). What is nothing
is left out; a field whose name begins with `_` is only there for those below it. A flaw is data pollution (L3): the
record goes to the quarantine, the others go on.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

import msgspec
from lxml import etree

from patra.ingest.bits import Expr, Field, Output, Response
from patra.ingest.cleaners import clean
from patra.ingest.codes import FieldType, ResponseFormat
from patra.ingest.names import output_names
from patra.ingest.paths import Path, compile_path, text_at
from patra.ingest.reading import first_names
from patra.ingest.template import compile_template, has_expression
from patra.ingest.times import read_instant
from patra.ingest.values import Context, Env, Instant, Span, number_of
from patra.kernel.clock import format_instant
from patra.kernel.errors import Invalid


class Flaw(msgspec.Struct, frozen=True):
    """The field at fault, as it is named in the pack, and what is wrong with it, for people."""

    place: str
    detail: str


class Row(msgspec.Struct):
    """One record on its way: the part that paths start from, the whole, and the fields found so far."""

    node: Any
    record: Any
    item: Any
    found: dict[str, Any]
    env: Env
    plan: Mapping[str, Any]


Get = Callable[[Row], Any]
Fields: TypeAlias = list[tuple[str, Callable[[Any], Any] | None, Get]]
"""Name, and how it is got: from the node alone, or else from the row."""


class _Flawed(Exception):  # noqa: N818  carries a flaw out of nested fields; never leaves this module
    def __init__(self, place: str, detail: str) -> None:
        self.flaw = Flaw(place, detail)


class Mapper:
    """The output of one endpoint, compiled. Raises Invalid when it is built from what never passed the checks."""

    def __init__(
        self, output: Output, response: Response, expr: Expr, params: Mapping[str, Any], zone: str = "UTC"
    ) -> None:
        self.output = output
        self._expr = expr
        self._params = params
        self._format = response.format
        self._namespaces = response.namespaces
        self._zone = zone
        self._reads_record = False
        self._fields = self._compiled(output.fields, "fields", item=False)
        self._private = any(name.startswith("_") for name in output.fields)
        self._env = Env(now=0, time_format=expr.time_format, zone=expr.timezone, max_text=expr.max_output)

    def __call__(self, record: Any, now: int, plan: Mapping[str, Any] | None = None) -> dict[str, Any] | Flaw:
        """The fields of a record, JSON values all of them."""
        env = self._env
        if env.now != now:
            env = self._env = msgspec.structs.replace(env, now=now)  # the records of a page have one instant
        row = Row(record, record, None, {}, env, plan or {})
        try:
            found = _object(self._fields, row)
        except _Flawed as flawed:
            return flawed.flaw
        return _public(found) if self._private else found

    @property
    def needs(self) -> frozenset[str] | None:
        """The names of the record's parts that the fields are made of; None: it is not known which."""
        if self._reads_record:
            return None
        return first_names([self._path(path) for path in _paths_from_the_record(self.output.fields)])

    def _compiled(self, fields: Mapping[str, Field | str], at: str, *, item: bool) -> Fields:
        out: Fields = []
        for name, field in fields.items():
            known = [done for done, _, _ in out]
            whole = _whole(field)
            plain = None if whole.fields or not self._as_it_stands(whole) else self._plain(whole)
            get = _nothing if plain is not None else self._field(whole, f"{at}.{name}", known, item=item)
            out.append((name, plain, get))
        return out

    def _as_it_stands(self, field: Field) -> bool:
        """Nothing happens to what is found; so it is with most fields."""
        done = field.expr is not None or field.apply or field.map or field.required or field.default is not None
        return not done and field.type is FieldType.JSON

    def _plain(self, field: Field) -> Callable[[Any], Any] | None:
        """A field of which nothing but the node is needed."""
        if field.path is None or field.all or self._format is ResponseFormat.XML:
            return None
        return self._path(field.path).first

    def _field(self, field: Field, place: str, above: list[str], *, item: bool) -> Get:
        find = self._finder(field, place, item=item)
        if self._as_it_stands(field):
            return find
        compute = self._computed(field.expr, above, item=item) if field.expr is not None else None
        names, translate = tuple(field.apply), field.map
        convert = None if field.type is FieldType.JSON else _CONVERT[field.type]
        formats, zone = field.format, self._zone

        def get(row: Row) -> Any:
            value = find(row)
            if compute is not None:
                try:
                    value = _plain(compute(row, value))
                except Invalid as error:
                    raise _Flawed(place, error.detail) from error
            if names:
                value = clean(names, value)
            if translate:
                value = _translated(value, translate)
            if convert is not None and value is not None:
                try:
                    value = convert(value, formats, zone)
                except (ValueError, Invalid) as error:
                    raise _Flawed(place, f"{_shown(value)} is not {field.type.text}") from error
            if value is None:
                value = field.default
            if value is None and field.required:
                raise _Flawed(place, "the record does not have it, and it is required")
            return value

        return get

    def _finder(self, field: Field, place: str, *, item: bool) -> Get:
        """What `path`, `each` and `fields` say."""
        path = self._path(field.path) if field.path is not None else None
        if field.fields:
            inner = self._compiled(field.fields, place, item=item or field.each is not None)
            made = _shown_object if any(name.startswith("_") for name in field.fields) else _object
            if field.each is not None:
                each = self._path(field.each)
                if made is _object and all(plain is not None for _, plain, _ in inner):
                    plain = [(name, get) for name, get, _ in inner if get is not None]
                    return lambda row: [found for node in each.find(row.node) if (found := _taken(plain, node))] or None
                return lambda row: (
                    [found for node in each.find(row.node) if (found := made(inner, _below(row, node)))] or None
                )
            if path is None:
                return lambda row: made(inner, _below(row, row.node)) or None
            return lambda row: None if (node := path.first(row.node)) is None else made(inner, _below(row, node))
        if path is None:
            return lambda _: None
        value = _text if self._format is ResponseFormat.XML else _same
        if field.all:
            return lambda row: (
                [found for node in path.find(row.node) if (found := value(node)) not in (None, "")] or None
            )
        first = path.first
        return lambda row: value(first(row.node))

    def _path(self, text: str) -> Path:
        return compile_path(text, self._format, self._namespaces)

    def _computed(self, text: str, above: list[str], *, item: bool) -> Callable[[Row, Any], Any]:
        names = output_names(self._params, above, item=item)
        template = compile_template(text, names, self._expr.allowed_functions)
        self._reads_record = self._reads_record or "record" in template.names

        def compute(row: Row, value: Any) -> Any:
            values = {
                "plan": row.plan,
                "params": self._params,
                "fields": row.found,
                "value": value,
                "record": row.record,
                "item": row.item,
            }
            return template.value(Context(values, row.env))

        return compute


def raw_of(record: Any) -> Any:
    """The record as it came, for keeping: JSON stays JSON, an element becomes the text of its XML."""
    if isinstance(record, bytes):  # XML that was set apart
        return record.decode()
    if isinstance(record, etree._Element):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  lxml exports no public name
        return etree.tostring(record, encoding="unicode", with_tail=False)
    return record


def _whole(field: Field | str) -> Field:
    """A plain text in a field's place is a path, or an expression."""
    if not isinstance(field, str):
        return field
    return Field(expr=field) if has_expression(field) else Field(path=field)


def _paths_from_the_record(fields: Mapping[str, Field | str]) -> Iterator[str]:
    """The paths that start at the record itself; others start at what these have found."""
    for field in map(_whole, fields.values()):
        found = [path for path in (field.path, field.each) if path is not None]
        yield from found or _paths_from_the_record(field.fields)


def _object(fields: Fields, row: Row) -> dict[str, Any]:
    found, node = row.found, row.node
    for name, plain, get in fields:
        value = get(row) if plain is None else plain(node)
        if value is not None:
            found[name] = value
    return found


def _taken(fields: list[tuple[str, Callable[[Any], Any]]], node: Any) -> dict[str, Any]:
    return {name: value for name, get in fields if (value := get(node)) is not None}


def _nothing(_: Row) -> None:
    return None


def _shown_object(fields: Fields, row: Row) -> dict[str, Any]:
    return _public(_object(fields, row))


def _public(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if not name.startswith("_")}


def _below(row: Row, node: Any) -> Row:
    return Row(node, row.record, node, {}, row.env, row.plan)


def _text(node: Any) -> str | None:
    return text_at(node) or None


def _same(node: Any) -> Any:
    return node


def _plain(value: Any) -> Any:
    """Times become text where an expression has made them."""
    if isinstance(value, Instant):
        return format_instant(value)
    return int(value) if isinstance(value, Span) else value


def _translated(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_translated(item, names) for item in cast("list[Any]", value)]
    key = text_at(value)
    return names.get(key, value) if key is not None else value


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode(errors="replace")
    return text if len(text) <= 80 else f"{text[:80]}…"


Convert = Callable[[Any, tuple[str, ...], str], Any]


def _as_text(value: Any, _: tuple[str, ...], __: str) -> str | None:
    text = text_at(value)
    if text is None:
        raise ValueError
    return text or None


def _as_int(value: Any, _: tuple[str, ...], __: str) -> int:
    number = number_of(value)
    if isinstance(number, float) and not number.is_integer():
        raise ValueError
    return int(number)


def _as_number(value: Any, _: tuple[str, ...], __: str) -> int | float:
    return number_of(value)


_TRUE, _FALSE = frozenset({"true", "y", "yes", "1"}), frozenset({"false", "n", "no", "0"})


def _as_bool(value: Any, _: tuple[str, ...], __: str) -> bool:
    text = (text_at(value) or "").lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError


def _as_instant(value: Any, formats: tuple[str, ...], zone: str) -> str:
    moment = read_instant(value, formats, zone)
    if moment is None:
        raise ValueError
    return format_instant(moment.at)


def _as_date(value: Any, formats: tuple[str, ...], zone: str) -> dict[str, str]:
    moment = read_instant(value, formats, zone)
    if moment is None:
        raise ValueError
    return {"at": format_instant(moment.at), "precision": moment.precision.value}


_CONVERT: dict[FieldType, Convert] = {
    FieldType.TEXT: _as_text,
    FieldType.INT: _as_int,
    FieldType.NUMBER: _as_number,
    FieldType.BOOL: _as_bool,
    FieldType.INSTANT: _as_instant,
    FieldType.DATE: _as_date,
}
