"""Writes the mapping of an endpoint as Python functions, one for some fields or a group of them, and compiles them.

    for at, record, there, found in rows:
        value = (there['DOI'] if 'DOI' in there else None)
        if value is not None:
            value = clean1(value)
            if value is not None: found['doi'] = value

Interpreting the fields for each record costs twice as much (decision 0082). Nothing that a pack says becomes code: what
enters the text is written here, or a name that is counted here, or a literal as `repr` writes it. Paths and cleaners
are compiled as everywhere else, and so are expressions that `expression_code` does not write out; the text calls them
by those names and knows no others, built-in ones included.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import msgspec

from patra.ingest.expressions.cleaners import CLEANERS, KNOWN_CHARS, WORD_CHARS, Cleaner
from patra.ingest.expressions.expression_code import ExpressionCode, FunctionBody, record_loop
from patra.ingest.expressions.path_filters import along, children, spread
from patra.ingest.expressions.paths import Path, Steps, compile_path, text_at
from patra.ingest.expressions.scopes import output_names
from patra.ingest.expressions.template import Template, compile_template
from patra.ingest.expressions.values import Context
from patra.ingest.extraction.field_types import (
    DATE_TYPES,
    FieldFlawed,
    as_json,
    cleaned_items,
    computes,
    conversion,
    enumeration,
    first_item,
    present_items,
    translation,
    whole_field,
)
from patra.ingest.packs.sections import Expr, Field, Response
from patra.ingest.vocabulary.codes import FieldType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.errors import Invalid

Fields = Mapping[str, Field | str]
PART_FIELDS = 4
"""Fields of a record that one function looks for."""
_HELD = {"fields": "found", "record": "record", "item": "node", "value": "value"}
"""The names that expressions may read, and what holds them in a generated function."""
_SEEN = {name: held for name, held in _HELD.items() if name != "value"} | {"plan": "plan", "params": "params"}
"""The same for those that are left to closures; `value` is set for each."""


class Group(msgspec.Struct, frozen=True):
    """A written function: what it is called with beside the node, and its name."""

    name: str
    more: str

    def call_code(self, node: str) -> str:
        return f"{self.name}({node}{self.more})"


class MappingCode:
    """Functions for the fields of one endpoint, as text and as objects that its names stand for."""

    def __init__(self, response: Response, expr: Expr, params: Mapping[str, Any], zone: str) -> None:
        self._xml = response.format is ResponseFormat.XML
        self._format = response.format
        self._namespaces = response.namespaces
        self._expr = expr
        self._params = params
        self._zone = zone
        self._groups = 0
        self._functions: list[str] = []
        self._names: dict[str, Any] = {**_NAMES, "params": params}
        self.needs: list[Steps] = []
        """How far the fields look into the record; no steps: all of it."""

    @property
    def text(self) -> str:
        return "\n\n".join(self._functions)

    def functions(self, fields: Fields) -> list[Callable[..., None]]:
        """Add the fields of records to those found, some with each (`record_loop`).

        One after the other they take a quarter less time than one long function. Raises Invalid for unchecked packs.
        """
        names = list(fields)
        called: list[str] = []
        for begin in range(0, len(names), PART_FIELDS):
            called.append(f"part{len(called)}")
            lines = self._lines(fields, names[begin : begin + PART_FIELDS], "fields", (), item=False, whole=True)
            lines += _without_hidden(names) if begin + PART_FIELDS >= len(names) else []
            self._functions.append(record_loop(called[-1], lines))
        exec(_compile_code(self.text), self._names)  # noqa: S102  our own text: see above
        return [self._names[name] for name in called]

    # --- a group of fields

    def _group(self, fields: Fields, at: str, base: Steps | None, *, item: bool) -> Group:
        """`base`: the way from the record to where the paths of these fields start; None: all there is needed."""
        group = Group(f"group{self._groups}", ", record, env, plan" if any(map(computes, fields.values())) else "")
        self._groups += 1
        lines = [*self._lines(fields, list(fields), at, base, item=item), *_without_hidden(fields), "    return found"]
        self._functions.append("\n".join([f"def {group.call_code('node')}:", "    found = {}", *lines]))
        return group

    def _lines(
        self, fields: Fields, names: Sequence[str], at: str, base: Steps | None, *, item: bool, whole: bool = False
    ) -> list[str]:
        """What adds some of these fields to those found."""
        head, body = FunctionBody(), FunctionBody()
        objects = {"fields": "found"}
        if not self._xml:
            if not whole:
                head.add("there = node if type(node) is dict else NOTHING")
            objects |= {"item": "there", "record": "there"} if whole else {"item": "there"}
        code = ExpressionCode(self._name, _HELD, objects)
        above = list(fields)[: list(fields).index(names[0])] if names else []
        read: set[str] | None = None
        for name in names:
            named = self._field(body, code, name, whole_field(fields[name]), f"{at}.{name}", above, base, item=item)
            read = named if read is None else read | (named or set())
            above.append(name)
        if read is not None:
            seen = ", ".join(f"{name!r}: {source}" for name, source in _SEEN.items() if name in read)
            head.add(f"names = {{{seen}}}")
            head.add("context = Context(names, env)")
        return head.lines + body.lines

    def _field(
        self, body: FunctionBody, code: ExpressionCode, name: str, field: Field, place: str, above: Sequence[str],
        base: Steps | None, *, item: bool,
    ) -> set[str] | None:  # fmt: skip
        """The names that its expression reads, if it is left to a closure."""
        read: set[str] | None = None
        if field.expr is None and field.all and field.path is not None and not field.fields and not self._xml:
            field = self._collect_values(body, code, field, field.path, base)
        elif field.expr is None:
            self._find(body, code, field, place, base, item=item)
        else:
            template = self._template(field.expr, above, base, item=item)
            text = code.text(template.alone, template.nodes)
            with body.under("try:"):
                self._find(body, code, field, place, base, item=item)
                if text is None:
                    read = {name.partition(".")[0] for name in template.names}
                    if "value" in read:
                        body.add("names['value'] = value")
                    text = f"{self._name('expr', template.alone or template.value)}(context)"
                body.add(f"value = {text}")
                body.add("if value is not None and type(value) is not str: value = as_json(value)")
            with body.under("except Invalid as error:"):
                body.add(f"raise FieldFlawed(FIELD_FAILED, {place!r}, error.detail) from error")
        self._finish(body, name, field, place)
        return read

    # --- what was found becomes the field

    def _finish(self, body: FunctionBody, name: str, field: Field, place: str) -> None:
        """What `apply`, `map`, `type`, `enum`, `default` and `required` say."""
        store = f"found[{name!r}] = value"
        steps = self._steps(field, place)
        always = field.default is not None or field.required
        if steps or not always:
            with body.under("if value is not None:"):
                for number, step in enumerate(steps):
                    body.add(f"if value is not None: {step}" if number else step)
                if not always:
                    body.add(f"if value is not None: {store}" if steps else store)
        if always:
            with body.under("if value is None:"):
                if field.default is not None:
                    body.add(f"value = {self._name('default', field.default)}")
                else:
                    body.add(f"raise FieldFlawed(FIELD_MISSING, {place!r}, MISSING)")
            body.add(store)

    def _steps(self, field: Field, place: str) -> list[str]:
        """Statements, each for a value that is not nothing."""
        apply = tuple(field.apply)
        # what `known_date` lets pass is what the conversion can read: it need not be read twice
        known = apply[-1:] == ("known_date",) and field.type in DATE_TYPES and not field.map
        known = known and field.format == ("AUTO",) and self._zone == "UTC"
        found = [self._clean(name) for name in (apply[:-1] if known else apply)]
        if field.map:
            found.append(f"value = {self._name('translate', translation(field.map))}(value)")
        if field.type is not FieldType.JSON:
            convert = self._name("convert", conversion(field, place, self._zone, lenient=known))
            found.append(f"value = {convert}(value)")
        if field.enum:
            found.append(f"{self._name('check', enumeration(field, place))}(value)")
        return found

    def _clean(self, name: str) -> str:
        if (cleaner := CLEANERS[name]).whole:
            return f"value = {self._name('clean', cleaner.call)}(value)"
        return self._clean_one(cleaner, "value", f"cleaned({self._name('clean', cleaner.call)}, value)")

    def _clean_one(self, cleaner: Cleaner, name: str, cleaned_list: str = "") -> str:
        """Clean what a variable holds; `cleaned_list`: what it is if it is a list."""
        call = f"{self._name('clean', cleaner.call)}({name})"
        if cleaned_list:
            call = f"{cleaned_list} if type({name}) is list else {call}"
        if (k := cleaner.known) is not None:
            call = f"{self._name('k', k)}({name}) if type({name}) is str and len({name}) <= {KNOWN_CHARS} else {call}"
        if cleaner.keeps_words:
            call = f"{name} if type({name}) is str and {name}.isalnum() and len({name}) < {WORD_CHARS} else {call}"
        return f"{name} = {call}"

    # --- where the value is found

    def _find(
        self, body: FunctionBody, code: ExpressionCode, field: Field, place: str, base: Steps | None, *, item: bool
    ) -> None:
        """What `path`, `each` and `fields` say; the generated `value` is nothing where they give nothing."""
        if field.fields:
            self._find_group(body, code, field, place, base, item=item)
        elif field.path is None:
            body.add("value = None")
        else:
            path = self._path(field.path)
            self._need(base, path.lead)
            if field.all:
                self._items(body, code, path)
                body.add(f"if value is not None: value = {'texts' if self._xml else 'present'}(value)")
            else:
                self._first(body, code, path)
                if self._xml:
                    body.add("if value is not None: value = text_at(value) or None")

    def _find_group(
        self, body: FunctionBody, code: ExpressionCode, field: Field, place: str, base: Steps | None, *, item: bool
    ) -> None:
        path, group = self._inner(field, place, base, item=item)
        if path is None:
            body.add(f"value = {group.call_code('node')} or None")
        elif field.each is None:
            self._first(body, code, path)
            body.add(f"if value is not None: value = {group.call_code('value')}")
        else:
            self._items(body, code, path)
            with body.under("if value is not None:"):
                body.add("made = []")
                with body.under("for part in value:"):
                    body.add(f"value = {group.call_code('part')}")
                    body.add("if value: made.append(value)")
                body.add("value = made or None")

    def _first(self, body: FunctionBody, code: ExpressionCode, path: Path) -> None:
        """The first value of a path."""
        if path.steps is not None and None not in path.steps:
            body.add(f"value = {self._looked_up(code, path.steps)}")
        elif path.tail is not None:
            self._items(body, code, path)
            body.add("value = first(value) if value else None")
        else:
            body.add(f"value = {self._search_path(path, self._name('first', path.first))}")

    def _collect_values(
        self, body: FunctionBody, code: ExpressionCode, field: Field, source: str, base: Steps | None
    ) -> Field:
        """All values of a path that are something, in one loop with the first cleaner; gives the field without that."""
        path = self._path(source)
        self._need(base, path.lead)
        *ways, last = path.steps or (None,)
        alone = isinstance(last, str) and None in ways  # a name below a wildcard is looked up in the loop
        cleaner = CLEANERS[field.apply[0]] if field.apply else None
        self._items(body, code, path, len(ways) if alone else None)
        with body.under("if value is not None:"):
            body.add("made = []")
            with body.under("for part in value:"):
                if alone:
                    body.add(f"part = part[{last!r}] if type(part) is dict and {last!r} in part else None")
                with body.under("if part is not None and part != '':"):
                    if cleaner is None or cleaner.whole:
                        body.add("made.append(part)")
                    else:
                        body.add(self._clean_one(cleaner, "part"))
                        body.add("if part is not None: made.append(part)")
            body.add("value = made or None")
        folded = cleaner is not None and not cleaner.whole
        return msgspec.structs.replace(field, apply=field.apply[1:]) if folded else field

    def _items(self, body: FunctionBody, code: ExpressionCode, path: Path, end: int | None = None) -> None:
        """All values of a path, or of its first steps, as a list."""
        if path.tail is None and (path.steps is None or None not in path.steps):
            body.add(f"value = {self._search_path(path, self._name('find', path.find))}")
            return
        spread = path.lead.index(None) if None in path.lead else len(path.lead)
        body.add(f"value = {self._looked_up(code, path.lead[:spread])}")
        with body.under("if value is not None:"):
            if None in path.lead:
                body.add("if type(value) is not list: value = children(value)")
            else:
                body.add("value = [value]")
            for step in path.lead[spread + 1 : end]:
                if isinstance(step, str):
                    body.under_name(step)
                else:
                    body.add("value = spread(value)" if step is None else f"value = along(value, {step!r})")
            if path.tail is not None:  # most have nothing there
                body.add(f"value = {self._name('walk', path.tail)}(value) if value else None")

    def _search_path(self, path: Path, search: str) -> str:
        """Most fields of a pack are not in most records, or are empty lists: these cost one lookup of the first key.

        Below what is empty a wildcard or a filter finds nothing; a plain path may end at it.
        """
        key = path.lead[0] if path.lead else None
        if not isinstance(key, str) or self._xml:
            return f"{search}(node)"
        below = path.steps is None or None in path.steps
        return f"{search}(node) if " + (f"there.get({key!r})" if below else f"{key!r} in there") + " else None"

    def _looked_up(self, code: ExpressionCode, steps: Steps) -> str:
        is_object = bool(steps) and isinstance(steps[0], str)
        return code.looked_up("there" if is_object else "node", steps, is_object=is_object)

    # --- compiled parts, and how far they look into the record

    def _inner(self, field: Field, place: str, base: Steps | None, *, item: bool) -> tuple[Path | None, Group]:
        """The fields of a field, and the path to where theirs start."""
        source = field.path if field.each is None else field.each
        path = None if source is None else self._path(source)
        below = base if path is None or base is None else (*base, *path.lead)
        if path is not None and path.steps is None:  # no plain way
            self._need(base, path.lead)
            below = None
        known = len(self.needs)
        group = self._group(field.fields, place, below, item=item or field.each is not None)
        if path is not None and below is not None and len(self.needs) == known:
            self.needs.append(below)  # whether it is there is asked all the same
        return path, group

    def _need(self, base: Steps | None, steps: Steps) -> None:
        if base is not None:
            self.needs.append((*base, *steps))

    def _template(self, text: str, above: Sequence[str], base: Steps | None, *, item: bool) -> Template:
        names = output_names(self._params, above, item=item)
        template = compile_template(text, names, self._expr.allowed_functions)
        for root, steps in template.ways:
            if root == "record":
                self.needs.append(steps)
            elif root == "item":
                self._need(base, steps)
        return template

    def _path(self, text: str) -> Path:
        return compile_path(text, self._format, self._namespaces)

    def _name(self, kind: str, thing: Any) -> str:
        """A name of our own for an object that the text uses."""
        name = f"{kind}{len(self._names)}"
        self._names[name] = thing
        return name


def _without_hidden(names: Iterable[str]) -> list[str]:
    return [f"    found.pop({name!r}, None)" for name in names if name.startswith("_")]


@lru_cache(maxsize=256)
def _compile_code(text: str) -> CodeType:
    """Packs are compiled for each plan, and have the same text each time."""
    return compile(text, "<mapping>", "exec")


def _texts(nodes: list[Any]) -> list[str] | None:
    return [found for node in nodes if (found := text_at(node))] or None


_NAMES: dict[str, Any] = {
    "__builtins__": {},
    "type": type,
    "dict": dict,
    "list": list,
    "len": len,
    "str": str,
    "NOTHING": {},
    "MISSING": "the record does not have it, and it is required",
    "FIELD_FAILED": RunReason.FIELD_FAILED,
    "FIELD_MISSING": RunReason.FIELD_MISSING,
    "FieldFlawed": FieldFlawed,
    "Invalid": Invalid,
    "Context": Context,
    "along": along,
    "as_json": as_json,
    "children": children,
    "cleaned": cleaned_items,
    "first": first_item,
    "present": present_items,
    "spread": spread,
    "text_at": text_at,
    "texts": _texts,
}
