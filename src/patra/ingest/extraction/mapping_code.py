"""Writes the mapping of an endpoint as Python functions, one for each group of fields, and compiles them once.

    def group0(node, record, env, plan):
        there = node if type(node) is dict else NOTHING
        found = {}
        value = there.get('DOI')
        if value is not None:
            value = clean1(value)
            if value is not None:
                found['doi'] = value
        return found

Interpreting the fields for each record costs twice as much (decision 0082). Nothing that a pack says becomes code: what
enters the text is written here, or a name that is counted here, or a literal as `repr` writes it. Paths, cleaners and
expressions are compiled as everywhere else; the text calls them by those names and knows no others, built-in ones
included.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any

import msgspec

from patra.ingest.expressions.cleaners import CLEANERS
from patra.ingest.expressions.path_filters import children, json_kind
from patra.ingest.expressions.paths import Path, Steps, compile_path, text_at
from patra.ingest.expressions.scopes import output_names
from patra.ingest.expressions.template import Template, compile_template, has_expression
from patra.ingest.expressions.values import Context, Instant, Span
from patra.ingest.extraction.field_types import (
    DATE_TYPES,
    FieldFlawed,
    conversion,
    enumeration,
    translation,
)
from patra.ingest.packs.sections import Expr, Field, Response
from patra.ingest.vocabulary.codes import FieldType, ResponseFormat
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.clock import format_instant
from patra.kernel.errors import Invalid

Fields = Mapping[str, Field | str]
_SEEN = {"plan": "plan", "params": "params", "fields": "found", "record": "record", "item": "node"}
"""The names that expressions may read, and what they are in a generated function; `value` is set for each."""


class Group(msgspec.Struct, frozen=True):
    """A written function: what it is called with beside the node, and its name."""

    name: str
    more: str

    def called(self, node: str) -> str:
        return f"{self.name}({node}{self.more})"


class _Body:
    """The lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._indent = "    "

    def add(self, line: str) -> None:
        self.lines.append(self._indent + line)

    @contextmanager
    def under(self, head: str) -> Generator[None]:
        self.add(head)
        self._indent += "    "
        yield
        self._indent = self._indent[:-4]


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

    def function(self, fields: Fields) -> Callable[..., dict[str, Any]]:
        """Maps a record: `(node, record, env, plan)`. Raises Invalid for what never passed the checks."""
        group = self._group(fields, "fields", (), item=False, whole=True)
        exec(_compiled(self.text), self._names)  # noqa: S102  our own text: see above
        return self._names[group.name]

    # --- a group of fields

    def _group(self, fields: Fields, at: str, base: Steps | None, *, item: bool, whole: bool = False) -> Group:
        """`base`: the way from the record to where the paths of these fields start; None: all there is needed."""
        computes = whole or any(map(_computes, fields.values()))
        group = Group(f"group{self._groups}", ", record, env, plan" if computes else "")
        self._groups += 1
        head, body = _Body(), _Body()
        head.add("found = {}")
        if not self._xml:
            head.add("there = node if type(node) is dict else NOTHING")
        above: list[str] = []
        read: set[str] = set()
        for name, field in fields.items():
            read |= self._field(body, name, whole_field(field), f"{at}.{name}", above, base, item=item)
            above.append(name)
        if any(whole_field(field).expr is not None for field in fields.values()):
            seen = ", ".join(f"{name!r}: {source}" for name, source in _SEEN.items() if name in read)
            head.add(f"names = {{{seen}}}")
            head.add("context = Context(names, env)")
        for name in fields:
            if name.startswith("_"):
                body.add(f"found.pop({name!r}, None)")
        body.add("return found")
        self._functions.append("\n".join([f"def {group.called('node')}:", *head.lines, *body.lines]))
        return group

    def _field(
        self, body: _Body, name: str, field: Field, place: str, above: Sequence[str], base: Steps | None, *, item: bool
    ) -> set[str]:
        """The names that its expression reads."""
        read: set[str] = set()
        if field.expr is None:
            self._find(body, field, place, base, item=item)
        else:
            template = self._template(field.expr, above, base, item=item)
            read = {name.partition(".")[0] for name in template.names}
            with body.under("try:"):
                self._find(body, field, place, base, item=item)
                if "value" in read:
                    body.add("names['value'] = value")
                body.add(f"value = {self._named('expr', template.alone or template.value)}(context)")
                body.add("if type(value) is not str: value = as_json(value)")
            with body.under("except Invalid as error:"):
                body.add(f"raise FieldFlawed(FIELD_FAILED, {place!r}, error.detail) from error")
        self._finish(body, name, field, place)
        return read

    # --- what was found becomes the field

    def _finish(self, body: _Body, name: str, field: Field, place: str) -> None:
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
                    body.add(f"value = {self._named('default', field.default)}")
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
            found.append(f"value = {self._named('translate', translation(field.map))}(value)")
        if field.type is not FieldType.JSON:
            convert = self._named("convert", conversion(field, place, self._zone, lenient=known))
            found.append(f"value = {convert}(value)")
        if field.enum:
            found.append(f"{self._named('check', enumeration(field, place))}(value)")
        return found

    def _clean(self, name: str) -> str:
        cleaner = CLEANERS[name]
        call = self._named("clean", cleaner.call)
        if cleaner.whole:
            return f"value = {call}(value)"
        return f"value = cleaned({call}, value) if type(value) is list else {call}(value)"

    # --- where the value is found

    def _find(self, body: _Body, field: Field, place: str, base: Steps | None, *, item: bool) -> None:
        """What `path`, `each` and `fields` say; the generated `value` is nothing where they give nothing."""
        if field.fields:
            self._find_group(body, field, place, base, item=item)
        elif field.path is None:
            body.add("value = None")
        else:
            path = self._path(field.path)
            self._need(base, path.lead)
            if field.all:
                self._items(body, path)
                body.add(f"if value is not None: value = {'texts' if self._xml else 'present'}(value)")
            else:
                self._first(body, path)
                if self._xml:
                    body.add("if value is not None: value = text_at(value) or None")

    def _find_group(self, body: _Body, field: Field, place: str, base: Steps | None, *, item: bool) -> None:
        path, group = self._inner(field, place, base, item=item)
        if path is None:
            body.add(f"value = {group.called('node')} or None")
        elif field.each is None:
            self._first(body, path)
            body.add(f"if value is not None: value = {group.called('value')}")
        else:
            self._items(body, path)
            with body.under("if value is not None:"):
                body.add("made = []")
                with body.under("for part in value:"):
                    body.add(f"value = {group.called('part')}")
                    body.add("if value: made.append(value)")
                body.add("value = made or None")

    def _first(self, body: _Body, path: Path) -> None:
        """The first value of a path."""
        if path.steps is not None and None not in path.steps:
            self._look_up(body, path.steps)
        else:
            body.add(f"value = {self._searched(path, self._named('first', path.first))}")

    def _items(self, body: _Body, path: Path) -> None:
        """All values of a path, as a list."""
        if path.steps and None in path.steps:
            spread = path.steps.index(None)
            self._look_up(body, path.steps[:spread])
            with body.under("if value is not None:"):
                body.add("if type(value) is not list: value = children(value)")
                for step in path.steps[spread + 1 :]:
                    body.add("value = spread(value)" if step is None else f"value = along(value, {step!r})")
        else:
            body.add(f"value = {self._searched(path, self._named('find', path.find))}")

    def _searched(self, path: Path, search: str) -> str:
        """Most fields of a pack are not in most records, or are empty lists: these cost one lookup of the first key.

        Below what is empty a wildcard or a filter finds nothing; a plain path may end at it.
        """
        key = path.lead[0] if path.lead else None
        if not isinstance(key, str) or self._xml:
            return f"{search}(node)"
        below = path.steps is None or None in path.steps
        return f"{search}(node) if " + (f"there.get({key!r})" if below else f"{key!r} in there") + " else None"

    def _look_up(self, body: _Body, steps: Steps) -> None:
        """Lookups one after the other; whatever is not there is None."""
        if not steps:
            body.add("value = node")
        for number, step in enumerate(steps):
            whole = "value" if number else "node"
            if isinstance(step, str):
                get = f".get({step!r})"
                body.add(f"value = value{get} if type(value) is dict else None" if number else f"value = there{get}")
            else:
                there = whole if step in {0, -1} else f"-len({whole}) <= {step!r} < len({whole})"
                body.add(f"value = {whole}[{step!r}] if type({whole}) is list and {there} else None")

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

    def _named(self, kind: str, thing: Any) -> str:
        """A name of our own for an object that the text uses."""
        name = f"{kind}{len(self._names)}"
        self._names[name] = thing
        return name


@lru_cache(maxsize=256)
def _compiled(text: str) -> CodeType:
    """Packs are compiled for each plan, and have the same text each time."""
    return compile(text, "<mapping>", "exec")


def whole_field(field: Field | str) -> Field:
    """A plain text in a field's place is a path, or an expression."""
    if not isinstance(field, str):
        return field
    return Field(expr=field) if has_expression(field) else Field(path=field)


def _computes(field: Field | str) -> bool:
    """Whether the record is needed for it, since it has an expression or one of its fields has."""
    whole = whole_field(field)
    return whole.expr is not None or any(map(_computes, whole.fields.values()))


# --- what the text calls ----------------------------------------------------------------------------------------------


def _cleaned(call: Callable[[Any], Any], items: list[Any]) -> list[Any] | None:
    return [found for item in items if (found := call(item)) is not None] or None


def _along(nodes: list[Any], step: str | int) -> list[Any]:
    """What stands under a name or at an index of each node, where there is anything."""
    if isinstance(step, str):
        return [found for node in nodes if json_kind(node) is dict and (found := node.get(step)) is not None]
    lists = [node for node in nodes if json_kind(node) is list and -len(node) <= step < len(node)]
    return [found for node in lists if (found := node[step]) is not None]


def _spread(nodes: list[Any]) -> list[Any]:
    return [child for node in nodes for child in children(node)]


def _present(items: list[Any]) -> list[Any] | None:
    return [item for item in items if item not in (None, "")] or None


def _texts(nodes: list[Any]) -> list[str] | None:
    return [found for node in nodes if (found := text_at(node))] or None


def _as_json(value: Any) -> Any:
    """Times become text where an expression has made them."""
    if isinstance(value, Instant):
        return format_instant(value)
    return int(value) if isinstance(value, Span) else value


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
    "along": _along,
    "as_json": _as_json,
    "children": children,
    "cleaned": _cleaned,
    "present": _present,
    "spread": _spread,
    "text_at": text_at,
    "texts": _texts,
}
