"""A record as it came goes in; the fields of the output, or the one at fault and why, come out (ch. 3.3.4, 4.8).

Compiled once for an endpoint. A field is found (`path`, `each`, `fields`), computed (`expr`), cleaned (`apply`),
translated (`map`), made what it must be (`type`) and, where nothing was found, filled in (`default`). What is nothing
is left out; a field whose name begins with `_` is only there for those below it. A flaw is data pollution (L3): the
record goes to the quarantine, the others go on.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import msgspec
from lxml import etree

from patra.ingest.bits import Expr, Field, Output, Response
from patra.ingest.cleaners import cleaning, single
from patra.ingest.codes import FieldType, ResponseFormat
from patra.ingest.names import output_names
from patra.ingest.paths import Path, Steps, compile_path, text_at
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
Find = Callable[[Any], Any]
Fields: TypeAlias = list[tuple[str, Find | None, Get]]
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
        self._needs: list[Steps] = []
        self._fields = self._compiled(output.fields, "fields", (), item=False)
        self._private = any(name.startswith("_") for name in output.fields)
        self._plain = _all_plain(self._fields)
        self._env = Env(now=0, time_format=expr.time_format, zone=expr.timezone, max_text=expr.max_output)

    def __call__(self, record: Any, now: int, plan: Mapping[str, Any] | None = None) -> dict[str, Any] | Flaw:
        """The fields of a record, JSON values all of them."""
        env = self._env
        if env.now != now:
            env = self._env = msgspec.structs.replace(env, now=now)  # the records of a page have one instant
        try:
            if self._plain is not None:
                found = _taken(self._plain, record)
            else:
                found = _object(self._fields, Row(record, record, None, {}, env, plan or {}))
        except _Flawed as flawed:
            return flawed.flaw
        return _public(found) if self._private else found

    @property
    def needs(self) -> tuple[Steps, ...]:
        """How far the fields look into the record; no steps: all of it."""
        return tuple(self._needs)

    def _compiled(self, fields: Mapping[str, Field | str], at: str, base: Steps | None, *, item: bool) -> Fields:
        """`base`: the way from the record to where the paths of these fields start; None: all there is needed."""
        out: Fields = []
        for name, field in fields.items():
            known = [done for done, _, _ in out]
            whole = _whole(field)
            place = f"{at}.{name}"
            if _computes(whole):
                out.append((name, None, self._field(whole, place, known, base, item=item)))
            else:
                out.append((name, self._plainly(whole, place, base), _nothing))
        return out

    def _plainly(self, field: Field, place: str, base: Steps | None) -> Find:
        """A field for which nothing but the node is needed: so it is with most."""
        find = self._finder(field, place, base)
        if self._only_cleaned(field) and (call := single(tuple(field.apply))) is not None:
            return _cleaned(find, call)
        finish = self._finish(field, place)
        return find if finish is None else lambda node: finish(find(node))

    def _only_cleaned(self, field: Field) -> bool:
        after = field.map or field.required or field.default is not None
        return bool(field.apply) and not after and field.type is FieldType.JSON

    def _field(self, field: Field, place: str, above: list[str], base: Steps | None, *, item: bool) -> Get:
        """A field that an expression has a part in, its own or one further down."""
        find: Get
        if any(_computes(_whole(inner)) for inner in field.fields.values()):
            find = self._row_finder(field, place, base, item=item)
        else:
            plain = self._finder(field, place, base)
            find = lambda row: plain(row.node)  # noqa: E731  the other branch gives one, too
        finish = self._finish(field, place)
        if field.expr is None:
            return find if finish is None else lambda row: finish(find(row))
        compute = self._computed(field.expr, above, base, item=item)

        def get(row: Row) -> Any:
            try:
                value = _as_json(compute(row, find(row)))
            except Invalid as error:
                raise _Flawed(place, error.detail) from error
            return value if finish is None else finish(value)

        return get

    def _finish(self, field: Field, place: str) -> Find | None:
        """What `apply`, `map`, `type`, `default` and `required` say; None where they say nothing."""
        apply, translate, default, required = tuple(field.apply), field.map, field.default, field.required
        convert = None if field.type is FieldType.JSON else _CONVERT[field.type]
        formats, zone = field.format, self._zone
        # what `known_date` lets pass is what the conversion can read: it need not be read twice
        known = apply[-1:] == ("known_date",) and field.type in _DATES and not translate
        known = known and tuple(formats) == ("AUTO",) and zone == "UTC"
        apply = apply[:-1] if known else apply
        tidy = cleaning(apply) if apply else None
        if not translate and convert is None and default is None and not required:
            return tidy

        def finish(value: Any) -> Any:
            if tidy is not None:
                value = tidy(value)
            if translate:
                value = _translated(value, translate)
            if convert is not None and value is not None:
                try:
                    value = convert(value, formats, zone)
                except (ValueError, Invalid) as error:
                    if not known:
                        raise _Flawed(place, f"{_shown(value)} is not {field.type.text}") from error
                    value = None
            if value is None:
                value = default
                if value is None and required:
                    raise _Flawed(place, "the record does not have it, and it is required")
            return value

        return finish

    def _finder(self, field: Field, place: str, base: Steps | None) -> Find:
        """What `path`, `each` and `fields` say, where no expression is among them."""
        if field.fields:
            path, inner = self._inner(field, place, base, item=False)
            plain = _all_plain(inner) or []
            made = _shown_taken if any(name.startswith("_") for name in field.fields) else _taken
            if field.each is not None and path is not None:
                each = path.find
                return lambda node: [found for part in each(node) if (found := made(plain, part))] or None
            if path is None:
                return lambda node: made(plain, node) or None
            below = path.first
            return lambda node: None if (part := below(node)) is None else made(plain, part)
        if field.path is None:
            return _none
        path = self._path(field.path)
        self._need(base, path.lead)
        xml = self._format is ResponseFormat.XML
        if field.all:
            every, value = path.find, _text if xml else _same
            return lambda node: [found for part in every(node) if (found := value(part)) not in (None, "")] or None
        first = path.first
        return (lambda node: _text(first(node))) if xml else first

    def _row_finder(self, field: Field, place: str, base: Steps | None, *, item: bool) -> Get:
        """What `path`, `each` and `fields` say, where fields below compute something of the row."""
        path, inner = self._inner(field, place, base, item=item)
        made = _shown_object if any(name.startswith("_") for name in field.fields) else _object
        if field.each is not None and path is not None:
            each = path.find
            return lambda row: [found for node in each(row.node) if (found := made(inner, _below(row, node)))] or None
        if path is None:
            return lambda row: made(inner, _below(row, row.node)) or None
        first = path.first
        return lambda row: None if (node := first(row.node)) is None else made(inner, _below(row, node))

    def _inner(self, field: Field, place: str, base: Steps | None, *, item: bool) -> tuple[Path | None, Fields]:
        """The fields of a field, and the path to where theirs start."""
        source = field.path if field.each is None else field.each
        path = None if source is None else self._path(source)
        below = base if path is None or base is None else (*base, *path.lead)
        if path is not None and path.steps is None:  # no plain way
            self._need(base, path.lead)
            below = None
        known = len(self._needs)
        inner = self._compiled(field.fields, place, below, item=item or field.each is not None)
        if path is not None and below is not None and len(self._needs) == known:
            self._needs.append(below)  # whether it is there is asked all the same
        return path, inner

    def _need(self, base: Steps | None, steps: Steps) -> None:
        if base is not None:
            self._needs.append((*base, *steps))

    def _path(self, text: str) -> Path:
        return compile_path(text, self._format, self._namespaces)

    def _computed(self, text: str, above: list[str], base: Steps | None, *, item: bool) -> Callable[[Row, Any], Any]:
        names = output_names(self._params, above, item=item)
        template = compile_template(text, names, self._expr.allowed_functions)
        for root, steps in template.ways:
            if root == "record":
                self._needs.append(steps)
            elif root == "item":
                self._need(base, steps)
        evaluate = template.alone or template.value
        params = self._params

        def compute(row: Row, value: Any) -> Any:
            values = {
                "plan": row.plan,
                "params": params,
                "fields": row.found,
                "value": value,
                "record": row.record,
                "item": row.item,
            }
            return evaluate(Context(values, row.env))

        return compute


def raw_of(record: Any) -> Any:
    """The record as it came, for keeping: JSON stays JSON, an element becomes the text of its XML."""
    if type(record) is msgspec.Raw:
        return record
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


def _computes(field: Field) -> bool:
    """Whether the row is needed for it, since an expression is among its fields or its own."""
    return field.expr is not None or any(_computes(_whole(inner)) for inner in field.fields.values())


def _all_plain(fields: Fields) -> list[tuple[str, Find]] | None:
    """The fields without what takes a row; None where one of them does."""
    plain = [(name, find) for name, find, _ in fields if find is not None]
    return plain if len(plain) == len(fields) else None


def _object(fields: Fields, row: Row) -> dict[str, Any]:
    found, node = row.found, row.node
    for name, plain, get in fields:
        value = get(row) if plain is None else plain(node)
        if value is not None:
            found[name] = value
    return found


def _taken(fields: list[tuple[str, Find]], node: Any) -> dict[str, Any]:
    return {name: value for name, get in fields if (value := get(node)) is not None}


def _cleaned(find: Find, call: Find) -> Find:
    """What is found, cleaned; each item of a list by itself."""

    def get(node: Any) -> Any:
        value = find(node)
        if value is None:
            return None
        if type(value) is list:
            return [found for item in cast("list[Any]", value) if (found := call(item)) is not None] or None
        return call(value)

    return get


def _shown_taken(fields: list[tuple[str, Find]], node: Any) -> dict[str, Any]:
    return _public(_taken(fields, node))


def _nothing(_: Row) -> None:
    return None


def _none(_: Any) -> None:
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


def _as_json(value: Any) -> Any:
    """Times become text where an expression has made them."""
    if type(value) is str:
        return value
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


_DATES = frozenset({FieldType.DATE, FieldType.INSTANT})
_CONVERT: dict[FieldType, Convert] = {
    FieldType.TEXT: _as_text,
    FieldType.INT: _as_int,
    FieldType.NUMBER: _as_number,
    FieldType.BOOL: _as_bool,
    FieldType.INSTANT: _as_instant,
    FieldType.DATE: _as_date,
}
