"""Turns the structs of the pack format into its JSON Schema and its reference pages, so that both are current."""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as t

from patra.ingest.expressions.cleaners import CLEANERS
from patra.ingest.expressions.functions import FUNCTIONS
from patra.ingest.expressions.scopes import MEANING
from patra.ingest.packs.schema import Pack
from patra.ingest.packs.spec import Spec
from patra.ingest.packs.struct_types import description, examples, plain, shape_of
from patra.ingest.planning.slicing.slice_spec import SliceSpec
from patra.ingest.vocabulary.codes import DICTIONARY
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.citations import without_citations

SCHEMA_ID = "urn:patra:pack:1"


def pack_schema() -> dict[str, Any]:
    """The JSON Schema of the pack format (draft 2020-12)."""
    schema = msgspec.json.schema(Pack)
    for definition in schema["$defs"].values():
        definition.get("properties", {}).pop("specVersion", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Patra source pack",
        **schema,
    }


class FieldDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the reference."""

    struct: str
    name: str
    type: str
    required: bool
    default: str
    text: str
    example: str


def struct_docs(root: type[msgspec.Struct]) -> list[tuple[str, str, list[FieldDoc]]]:
    """Every struct below a root, with its text and its fields, each struct once, the root first."""
    out: list[tuple[str, str, list[FieldDoc]]] = []
    seen: set[str] = set()
    todo: list[t.Type] = [shape_of(root)]
    while todo:
        shape = plain(todo.pop(0))
        if isinstance(shape, t.StructType):
            name = shape.cls.__name__
            if name in seen:
                continue
            seen.add(name)
            fields = [_field(name, field) for field in shape.fields]
            out.append((name, (shape.cls.__doc__ or "").strip(), fields))
            todo += [field.type for field in shape.fields]
        else:
            todo += _inside(shape)
    return out


def _inside(shape: t.Type) -> list[t.Type]:
    match shape:
        case t.UnionType():
            return list(shape.types)
        case t.DictType():
            return [shape.value_type]
        case t.ListType() | t.VarTupleType():
            return [shape.item_type]
        case _:
            return []


def _field(struct: str, field: t.Field) -> FieldDoc:
    given = examples(field.type)
    default = _default(field)
    return FieldDoc(
        struct=struct,
        name=field.encode_name,
        type=_type(field.type),
        required=field.required,
        default=default,
        text=description(field.type),
        example=_code(given[0]) if given else default,
    )


def _default(field: t.Field) -> str:
    if field.default is not NODEFAULT:
        return "" if field.default is None else _code(field.default)
    if field.default_factory is not NODEFAULT:
        value = field.default_factory()
        return "" if not value else _code(value)
    return ""


def _code(value: Any) -> str:
    if isinstance(value, msgspec.Struct):
        return ""
    plain_value = value.value if isinstance(value, StrEnum) else value
    text = plain_value if isinstance(plain_value, str) else msgspec.json.encode(plain_value).decode()
    return f"`{text}`" if text else ""


def _type(shape: t.Type) -> str:
    inner = plain(shape)
    match inner:
        case t.StructType():
            return f"[{inner.cls.__name__}](#{inner.cls.__name__.lower()})"
        case t.EnumType():
            return " \\| ".join(f"`{code.value}`" for code in inner.cls)
        case t.LiteralType():
            return " \\| ".join(f"`{value}`" for value in inner.values)
        case t.DictType():
            return f"mapping of {_type(inner.value_type)}"
        case t.ListType() | t.VarTupleType():
            return f"list of {_type(inner.item_type)}"
        case t.UnionType():
            return " or ".join(_type(one) for one in inner.types if not isinstance(plain(one), t.NoneType))
        case _:
            return _NAMES.get(type(inner).__name__, "any")


_NAMES = {"StrType": "text", "IntType": "integer", "FloatType": "number", "BoolType": "true or false", "AnyType": "any"}


def pack_page() -> str:
    """The reference of the pack format."""
    lines = [
        "# The pack format",
        "",
        "A pack is one YAML file that describes one source. This page is made from the structs that read it",
        "(`patra.ingest.packs.schema`); `patra ingest pack schema` prints the same as JSON Schema for editors.",
        "",
        "Put this line at the top of a pack and a YAML language server checks it as you type:",
        "",
        "```yaml",
        "# yaml-language-server: $schema=pack.schema.json",
        "```",
        "",
        "Values come from five levels, the later wins: the platform's defaults (given below), `defaults` of the",
        "source, `method`, `path` and `defaults` of the endpoint, its sections (then `operations` for one operation),",
        "and the trigger (`--set`, `--param`). Mappings are merged key by key, everything else is replaced; `null`",
        "for a key of a free mapping, such as a query parameter, takes it away.",
        "",
    ]
    lines += ["## The fields", "", *_structs(Pack)]
    return "\n".join(lines).rstrip() + "\n"


def _structs(root: type[msgspec.Struct], only: frozenset[str] | None = None) -> Iterator[str]:
    for name, text, fields in struct_docs(root):
        if only is not None and name not in only:
            continue
        yield f"### {name}"
        yield ""
        yield without_citations(text)
        yield ""
        yield "| field | type | default | what it is | example |"
        yield "|---|---|---|---|---|"
        for field in fields:
            default = "**required**" if field.required else field.default
            yield f"| `{field.name}` | {field.type} | {_cell(default)} | {_cell(field.text)} | {_cell(field.example)} |"
        yield ""


def _cell(text: str) -> str:
    return without_citations(text).replace("|", "\\|").replace("\\\\|", "\\|").replace("\n", " ")


def expression_page() -> str:
    """The reference of expressions, patterns and cleaners."""
    lines = [
        "# Expressions in packs",
        "",
        "A text in a request template may hold `${…}`. What stands inside is an expression: literals (`'text'`, `12`,",
        "`true`, `null`, `[1, 2]`), names, calls, `? :`, `||`, `&&`, `!`, `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `+`,",
        "`-`, `*`, `/`, `%` and `[index]`. There is nothing else: no attributes, no loops, no definitions. Write `$${`",
        "for a literal `${`.",
        "",
        "A template that is one `${…}` and nothing more keeps the type of its value, so lists and numbers reach a JSON",
        "body as they are. One part without a value leaves a text of several parts without one; `expr.nullPolicy` says",
        "what becomes of a parameter without a value.",
        "",
        "Bounds: 4,096 characters, 256 parts, 32 levels; texts up to `expr.maxOutput`, lists up to 10,000 items.",
        "",
        "## Names",
        "",
        "| name | what it is |",
        "|---|---|",
        *(f"| `{name}` | {_cell(text)} |" for name, text in MEANING.items()),
        "",
        "## Functions",
        "",
        "| call | what it gives |",
        "|---|---|",
        *(f"| `{_cell(f.usage)}` | {_cell(f.text)} |" for f in FUNCTIONS.values()),
        "",
        "## Cleaners",
        "",
        "Named in `apply` of an output field, applied in order.",
        "",
        "| cleaner | what it does |",
        "|---|---|",
        *(f"| `{c.name}` | {_cell(c.text)} |" for c in CLEANERS.values()),
        "",
        "## Patterns",
        "",
        "`pattern` of parameters and error rules, `matches()`, and `match()` and `search()` of JSONPath are",
        "[RE2's](https://github.com/google/re2/wiki/Syntax): their time grows only with the length of the text.",
        "`\\d`, `\\w` and `\\s` are those of ASCII, `\\p{L}`, `\\p{Nd}` and `\\p{Z}` letters, digits and spaces of",
        "every script; `$` is the end of the text; `(?i)` in front ignores case. There is no look-around and no",
        "back-reference. A pattern has at most 500 characters, and looks at the first 16,384 of a text.",
        "",
    ]
    return "\n".join(lines) + "\n"


def planning_page() -> str:
    """The reference of the planning side: snapshot, slices, codes, reasons."""
    lines = [
        "# Ingest: what the planner writes",
        "",
        "## The snapshot",
        "",
        "`ing_plan.expr_proto_snapshot` holds the snapshot that a plan was compiled to, as JSON. Sections that it",
        "shares with packs are described in [the pack format](pack.md).",
        "",
        *_structs(Spec, frozenset({"Spec", "Leg", "RequestParam", "Mapping", "NamedRule", "CursorSpec"})),
        "## The slice",
        "",
        "`ing_plan_slice.slice_spec`:",
        "",
        *_structs(SliceSpec),
        "## The dictionary",
        "",
        "Codes of `sys_dict_item`, seeded when a pack is loaded.",
        "",
    ]
    for entry in DICTIONARY:
        lines += [f"### `{entry.code}`", "", "| code | meaning |", "|---|---|"]
        lines += [f"| `{code.value}` | {_cell(code.text)} |" for code in entry.items]
        lines += [f"| `{alias}` | another spelling of `{code.value}` |" for alias, code in entry.aliases.items()]
        lines.append("")
    lines += ["## Reasons", "", "| code | given when |", "|---|---|"]
    lines += [f"| `{reason.value}` | {_cell(reason.text)} |" for reason in Reason]
    here = {line[4:].lower() for line in lines if line.startswith("### ")}
    text = "\n".join(lines) + "\n"
    return re.sub(r"\(#(\w+)\)", lambda m: m[0] if m[1] in here else f"(pack.md#{m[1]})", text)
