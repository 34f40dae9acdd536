"""The text of a generated mapping: literals, names that we count, and nothing of the pack as code."""

import ast
from typing import Any

import msgspec
import pytest

from patra.ingest.extraction.mapping_code import MappingCode
from patra.ingest.packs.sections import Expr, Output, Response
from patra.kernel.errors import Invalid

HOSTILE = ["'", "'); import os  # ", "x\n    raise", "\\", "{value}", "x.__class__", "\ud800", '"""']


def generated(fields: dict[str, Any]) -> MappingCode:
    code = MappingCode(Response(), Expr(), {}, "UTC")
    code.functions(msgspec.convert({"fields": fields}, Output).fields)
    return code


def shape(text: str) -> str:
    """The code without its literals: two texts of one shape differ in strings and numbers only."""

    class Blank(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return node if node.value is None else ast.Constant(0)

    return ast.dump(Blank().visit(ast.parse(text)))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_values_of_a_pack_are_literals(name: str) -> None:
    def fields(text: str) -> dict[str, Any]:
        inner = {text: {"path": "$.x", "map": {text: text}, "enum": [text], "required": True}, "d": {"default": text}}
        return {"outer": {"each": "$.list[*]", "fields": inner}, "e": {"expr": "${value}", "required": True}}

    assert shape(generated(fields(name)).text) == shape(generated(fields("plain")).text)


def test_a_key_of_a_path_is_a_literal() -> None:
    path = "$['it\\'s \\n (x)']['b']"
    assert shape(generated({"a": path}).text) == shape(generated({"a": "$['x']['b']"}).text)


def test_the_text_knows_no_builtins() -> None:
    [function] = MappingCode(Response(), Expr(), {}, "UTC").functions({"a": "$.a"})
    assert function.__globals__["__builtins__"] == {}


def test_many_cleaners_and_deep_fields_compile() -> None:
    field: Any = {"path": "$.a", "apply": ["strip"] * 150}
    for _ in range(40):
        field = {"path": "$.a", "fields": {"a": field}}
    assert generated({"a": field}).text.count("def ") == 41


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(Invalid, match="not a JSONPath"):
        generated({"a": "$["})
