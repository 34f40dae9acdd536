"""Turns YAML text into a tree of what it says, with the place of every part, and every problem (ruling I5).

The tree is checked against the struct that describes it, node by node, so that all problems of a file are found at once
and each knows its line. Values are read by what the field wants: `version: 1.0` is the text `1.0`, not a number.
"""

import difflib
import operator
import re
from typing import Any, cast

import msgspec
import yaml
from msgspec import inspect as t

from patra.ingest.packs.problems import Mark, Problem, Source, TreePath, dotted_path
from patra.ingest.packs.sections.transport import SECRET_REFERENCE
from patra.ingest.packs.struct_types import description, kind, plain, shape_of, type_at
from patra.ingest.packs.text_kinds import KINDS
from patra.ingest.packs.yaml.removed_fields import removal_advice
from patra.ingest.packs.yaml.yaml_scalars import is_null, scalar_value, spelling
from patra.ingest.vocabulary.codes import Code, dict_type
from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.errors import Invalid

MAX_BYTES = 1_048_576
MAX_NODES = 50_000
MAX_DEPTH = 40
MAX_PROBLEMS = 200  # of a file that are reported: each costs a search for the name that was meant


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says: the tree as given (nothing filled in), where each part stands, and what is wrong."""

    tree: dict[str, Any]
    source: Source
    problems: tuple[Problem, ...]


def read_document(text: str, file: str, shape: type[msgspec.Struct]) -> Document:
    """Read YAML against a struct."""
    walk = _Walk(file)
    if len(text) > MAX_BYTES:
        walk.report(Reason.PACK_UNREADABLE, (), f"the file is larger than {MAX_BYTES} characters")
        return walk.document({})
    try:
        node = _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        walk.marks[()] = Mark(mark.line + 1, mark.column + 1) if mark else Mark()
        walk.report(Reason.PACK_UNREADABLE, (), f"not YAML: {error.problem or error.context}")
        return walk.document({})
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        walk.report(Reason.PACK_UNREADABLE, (), f"not YAML: {error}")
        return walk.document({})
    tree = walk.value(node, shape_of(shape), ()) if node is not None else None
    if not isinstance(tree, dict):
        if not walk.problems:
            walk.report(Reason.PACK_UNREADABLE, (), "the file is empty")
        return walk.document({})
    return walk.document(cast("dict[str, Any]", tree))


def read_value(text: str, shape: type[msgspec.Struct], path: TreePath, source: Source) -> tuple[Any, list[Problem]]:
    """Read one value, written as YAML, for a place in a tree: what a trigger sets with `--set a.b=value`."""
    walk = _Walk(source.file)
    found = type_at(shape_of(shape), path)
    if found is None:
        walk.report(Reason.PACK_UNKNOWN_FIELD, path, f"there is no field {dotted_path(path)}")
        return None, walk.problems
    try:
        node = _compose(text)
    except yaml.YAMLError:
        node = yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"')
    value = walk.value(node or yaml.ScalarNode("tag:yaml.org,2002:null", ""), found, path)
    return (None if value is _NOTHING else value), walk.problems


def _compose(text: str) -> Any:
    loader: Any = yaml  # the stubs know nothing of nodes
    return loader.compose(text, Loader=yaml.SafeLoader)


_NOTHING: Any = object()
"""Stands for a value that could not be read; its problem has been reported."""


class _Walk:
    """One reading of a file."""

    def __init__(self, file: str) -> None:
        self.marks: dict[TreePath, Mark] = {}
        self.problems: list[Problem] = []
        self._file = file
        self._nodes = 0

    def document(self, tree: dict[str, Any]) -> Document:
        return Document(tree=tree, source=Source(self._file, self.marks), problems=tuple(self.problems))

    def report(self, code: Reason, path: TreePath, message: str, advice: str = "") -> Any:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Source(self._file, self.marks).problem(code, path, message, advice))
        return _NOTHING

    def value(self, node: Any, shape: t.Type, path: TreePath) -> Any:
        self.marks[path] = _mark(node)
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            if self._nodes == MAX_NODES + 1 or len(path) == MAX_DEPTH + 1:
                self.report(
                    Reason.PACK_UNREADABLE, path, "the file is too large or too deep once its anchors are expanded"
                )
                self._nodes = MAX_NODES + 1
            return _NOTHING
        stands_for, inner = kind(shape), plain(shape)
        match inner:
            case t.StructType():
                return self._struct(node, inner, path)
            case t.DictType():
                return self._dict(node, inner, path)
            case t.ListType() | t.VarTupleType():
                return self._list(node, inner.item_type, path)
            case t.UnionType():
                return self._union(node, inner, path)
            case t.AnyType():
                return self._anything(node, path)
            case _ if not isinstance(node, yaml.ScalarNode):
                return self.report(Reason.PACK_WRONG_TYPE, path, f"a single value belongs here, not {_kind_of(node)}")
            case t.EnumType():
                return self._code(node, cast("type[Code]", inner.cls), path)
            case t.LiteralType():
                return self._literal(node, inner.values, path)
            case t.NoneType():
                return None if is_null(node) else self.report(Reason.PACK_WRONG_TYPE, path, "nothing belongs here")
            case _:
                return self._check_value(self._single(node, inner, path), stands_for, path)

    # --- mappings and lists

    def _struct(self, node: Any, shape: t.StructType, path: TreePath) -> Any:
        if is_null(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            return self.report(Reason.PACK_WRONG_TYPE, path, f"a mapping belongs here, not {_kind_of(node)}")
        fields = {field.encode_name: field for field in shape.fields}
        out: dict[str, Any] = {}
        for key, (mark, value) in self._entries(node, path).items():
            place = (*path, key)
            field = fields.get(key)
            if field is None:
                self.marks[place] = mark
                near = difflib.get_close_matches(key, fields, 1) if len(self.problems) < MAX_PROBLEMS else []
                removed = removal_advice(place)
                self.report(
                    Reason.PACK_UNKNOWN_FIELD,
                    place,
                    f"there is no field {key!r} here" if removed is None else f"the field {key!r} was removed",
                    removed or (f"did you mean {near[0]}?" if near else f"known: {', '.join(fields)}"),
                )
                continue
            found = self.value(value, field.type, place)
            self._stands(place, mark, value)
            if found is not _NOTHING:
                out[key] = found
        for name, field in fields.items():
            if field.required and name not in out and (*path, name) not in self.marks:
                self.report(
                    Reason.PACK_MISSING_FIELD,
                    path,
                    f"the field {name!r} is missing",
                    f"{name}: {description(field.type)}",
                )
        return out

    def _stands(self, place: TreePath, mark: Mark, value: Any) -> None:
        """A mapping that begins on the line after its key stands where the key does."""
        if isinstance(value, yaml.CollectionNode) and not value.flow_style:
            self.marks[place] = mark

    def _dict(self, node: Any, shape: t.DictType, path: TreePath) -> Any:
        if is_null(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            return self.report(Reason.PACK_WRONG_TYPE, path, f"a mapping belongs here, not {_kind_of(node)}")
        out: dict[str, Any] = {}
        for key, (mark, value) in self._entries(node, path).items():
            place = (*path, key)
            self.marks[place] = mark
            name = self._key(key, shape.key_type, place)
            if name is _NOTHING:
                continue
            if is_null(value) and not isinstance(plain(shape.value_type), t.StructType):
                out[name] = None  # takes away what a lower level has set
                continue
            found = self.value(value, shape.value_type, place)
            self._stands(place, mark, value)
            if found is not _NOTHING:
                out[name] = found
        least = shape.min_length or 0
        if len(out) < least:
            self.report(Reason.PACK_OUT_OF_BOUNDS, path, f"at least {least} belong here")
        return out

    def _key(self, key: str, shape: t.Type, path: TreePath) -> Any:
        inner = plain(shape)
        if isinstance(inner, t.EnumType):
            return self._code_value(key, cast("type[Code]", inner.cls), path)
        if isinstance(inner, t.StrType) and inner.pattern and not re.search(inner.pattern, key):
            return self.report(Reason.PACK_BAD_NAME, path, f"{key!r} is not a name", spelling(inner.pattern))
        return key

    def _pairs(self, node: yaml.MappingNode, path: TreePath) -> list[tuple[str, Any]]:
        """Keys as text, with the values; `<<` merged in below the mapping's own keys."""
        return [(key, value) for key, (_, value) in self._entries(node, path).items()]

    def _entries(self, node: yaml.MappingNode, path: TreePath) -> dict[str, tuple[Mark, Any]]:
        own: dict[str, tuple[Mark, Any]] = {}
        merged: dict[str, tuple[Mark, Any]] = {}
        self._nodes += 1
        if self._nodes > MAX_NODES:  # anchors that merge anchors grow without bound
            return {}
        for key_node, value in cast("list[tuple[Any, Any]]", node.value):
            if not isinstance(key_node, yaml.ScalarNode):
                self.report(Reason.PACK_WRONG_TYPE, path, "a key is a single word")
                continue
            key = cast("str", key_node.value)
            if key == "<<" and key_node.style is None:
                for base in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(base, yaml.MappingNode) and base is not node:
                        merged |= {k: v for k, v in self._entries(base, path).items() if k not in merged}
            elif key in own:
                self.marks[*path, key] = _mark(key_node)
                self.report(Reason.PACK_DUPLICATE_KEY, (*path, key), f"{key!r} stands twice", "remove one of them")
            else:
                own[key] = (_mark(key_node), value)
        return own | {k: v for k, v in merged.items() if k not in own}

    def _list(self, node: Any, item: t.Type, path: TreePath) -> Any:
        if is_null(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            return self.report(
                Reason.PACK_WRONG_TYPE, path, f"a list belongs here, not {_kind_of(node)}", "write it as [a, b]"
            )
        found = [self.value(value, item, (*path, index)) for index, value in enumerate(node.value)]
        return [value for value in found if value is not _NOTHING]

    def _anything(self, node: Any, path: TreePath) -> Any:
        match node:
            case yaml.MappingNode():
                return {
                    key: found
                    for key, value in self._pairs(node, path)
                    if (found := self.value(value, t.AnyType(), (*path, key))) is not _NOTHING
                }
            case yaml.SequenceNode():
                found = [self.value(value, t.AnyType(), (*path, i)) for i, value in enumerate(node.value)]
                return [value for value in found if value is not _NOTHING]
            case _:
                return scalar_value(node)

    def _union(self, node: Any, shape: t.UnionType, path: TreePath) -> Any:
        """The member that has the form of the node."""
        members = [(one, plain(one)) for one in shape.types]  # as declared, and without what it says
        if is_null(node) and any(isinstance(bare, t.NoneType) for _, bare in members):
            return None
        wanted: tuple[type[t.Type], ...]
        match node:
            case yaml.MappingNode():
                wanted = (t.StructType, t.DictType)
            case yaml.SequenceNode():
                wanted = (t.ListType, t.VarTupleType)
            case _:
                wanted = (_first_form(scalar_value(node)), t.EnumType, t.FloatType, t.StrType, t.IntType, t.BoolType)
        for form in wanted:
            for one, bare in members:
                if isinstance(bare, form):
                    return self.value(node, one, path)
        return self.report(Reason.PACK_WRONG_TYPE, path, f"{_kind_of(node)} does not belong here")

    # --- single values

    def _code(self, node: yaml.ScalarNode, codes: type[Code], path: TreePath) -> Any:
        return self._code_value(cast("str", node.value), codes, path)

    def _code_value(self, text: str, codes: type[Code], path: TreePath) -> Any:
        entry = dict_type(codes)
        aliases = entry.aliases if entry else {}
        by_case = {code.value.casefold(): code.value for code in codes} | {
            a.casefold(): c.value for a, c in aliases.items()
        }
        if (code := by_case.get(text.casefold())) is not None:
            return code
        known = ", ".join(code.value for code in codes)
        near = difflib.get_close_matches(text, [code.value for code in codes], 1)
        return self.report(
            Reason.CODE_UNKNOWN,
            path,
            f"the dictionary {entry.code if entry else codes.__name__} has no code {text!r}",
            f"did you mean {near[0]}? known: {known}" if near else f"known: {known}",
        )

    def _literal(self, node: yaml.ScalarNode, values: tuple[Any, ...], path: TreePath) -> Any:
        for value in values:
            if str(value) == node.value:
                return value
        return self.report(
            Reason.PACK_WRONG_TYPE, path, f"only {' or '.join(map(str, values))} belongs here, not {node.value!r}"
        )

    def _single(self, node: yaml.ScalarNode, shape: t.Type, path: TreePath) -> Any:
        value = scalar_value(node)
        match shape:
            case t.StrType():
                if value is None:
                    return self.report(
                        Reason.PACK_WRONG_TYPE, path, "text belongs here, not nothing", "write '' for empty text"
                    )
                return self._in_text_bounds(cast("str", node.value), shape, path)
            case t.BoolType():
                if isinstance(value, bool):
                    return value
                return self.report(Reason.PACK_WRONG_TYPE, path, f"true or false belongs here, not {node.value!r}")
            case t.IntType():
                if isinstance(value, int) and not isinstance(value, bool):
                    return self._in_bounds(value, shape, path)
                return self.report(Reason.PACK_WRONG_TYPE, path, f"a whole number belongs here, not {node.value!r}")
            case t.FloatType():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return self._in_bounds(float(value), shape, path)
                return self.report(Reason.PACK_WRONG_TYPE, path, f"a number belongs here, not {node.value!r}")
            case _:
                return value

    def _in_bounds(self, value: float, shape: t.IntType | t.FloatType, path: TreePath) -> Any:
        for bound, holds, sign in (
            (shape.ge, operator.ge, "at least"),
            (shape.gt, operator.gt, "more than"),
            (shape.le, operator.le, "at most"),
            (shape.lt, operator.lt, "less than"),
        ):
            if bound is not None and not holds(value, bound):
                return self.report(Reason.PACK_OUT_OF_BOUNDS, path, f"{value:g} is not {sign} {bound:g}")
        return value

    def _in_text_bounds(self, value: str, shape: t.StrType, path: TreePath) -> Any:
        if shape.min_length is not None and len(value) < shape.min_length:
            return self.report(Reason.PACK_OUT_OF_BOUNDS, path, "text is missing here")
        if shape.max_length is not None and len(value) > shape.max_length:
            return self.report(
                Reason.PACK_OUT_OF_BOUNDS, path, f"the text is longer than {shape.max_length} characters"
            )
        if shape.pattern and not re.search(shape.pattern, value):
            if shape.pattern == SECRET_REFERENCE:
                return self.report(
                    Reason.PACK_BAD_SECRET,
                    path,
                    "a secret is given by reference, never written out",
                    "write env:NAME, file:PATH or keyring:SERVICE/USER",
                )
            return self.report(Reason.PACK_BAD_NAME, path, f"{value!r} is not a name", spelling(shape.pattern))
        return value

    def _check_value(self, value: Any, stands_for: str | None, path: TreePath) -> Any:
        """What a text stands for is tried at once."""
        found = KINDS.get(stands_for or "")
        if found is None or not isinstance(value, str):
            return value
        try:
            found.check(value)
        except Invalid as error:
            return self.report(found.code, path, error.detail, error.advice)
        return value


def _mark(node: Any) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1) if node.start_mark else Mark()


def _first_form(value: Any) -> type[t.Type]:
    match value:
        case bool():
            return t.BoolType
        case int():
            return t.IntType
        case float():
            return t.FloatType
        case _:
            return t.StrType


def _kind_of(node: Any) -> str:
    match node:
        case yaml.MappingNode():
            return "a mapping"
        case yaml.SequenceNode():
            return "a list"
        case _:
            return "nothing" if is_null(node) else f"the value {node.value!r}"
