"""Expressions become the text of Python expressions where they can, and nothing of a pack is code in it."""

from collections.abc import Callable

import pytest

from patra.ingest.expressions.expression_code import ExpressionCode
from patra.ingest.expressions.template import compile_template
from patra.ingest.expressions.values import Context, Env
from patra.kernel.errors import Invalid

NAMES = {"record": None, "value": None, "fields": frozenset({"above"}), "params": frozenset({"p"})}
HELD = {"record": "record", "value": "value", "fields": "found"}
RECORD = {"a": {"b": ["x", "y"]}, "it's": "q", "list": [{"kind": "k", "at": 1}], "n": 7}


def written(source: str) -> tuple[str | None, dict[str, object]]:
    named: dict[str, object] = {}

    def name(kind: str, thing: object) -> str:
        named[f"{kind}{len(named)}"] = thing
        return f"{kind}{len(named) - 1}"

    template = compile_template(source, NAMES)
    code = ExpressionCode(name, HELD, {"fields": "found"})
    return code.text(template.alone, template.nodes), named


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("${value}", "v"),
        ("${record.a.b}", ["x", "y"]),
        ("${record.n.deeper}", None),
        ("${fields.above}", "up"),
        ("${value == 'v' ? 'yes' : 'no'}", "yes"),
        ("${value != null && !(value == 'w')}", True),
        ("${false || null == value}", False),
        ("${record.n >= 7}", True),
        ("${coalesce(record.none, jsonPath(record, '$.a.b[-1]'), 'z')}", "y"),
        ("${jsonPath(record, '$.list[?@.kind == \\'k\\'].at')}", 1),
        ("${jsonPaths(record, '$.a.b[*]')}", ["x", "y"]),
        ("${trim(concat(' ', value, null, ' '))}", "v"),
        ("${upper(null)}", None),
        ("${matches(lower(value), '[a-z]')}", True),
        ("${lists(fields.above, record.none)}", ["up"]),
        ("${lists(record.none, record.nor)}", None),
        ("${number('7')}", 7),
    ],
)
def test_what_is_written_computes_what_the_expression_says(source: str, expected: object) -> None:
    text, named = written(source)
    assert text is not None
    scope = {"__builtins__": {}, "type": type, "dict": dict, "list": list, "len": len, "str": str, **named}
    found = eval(text, scope, {"record": RECORD, "value": "v", "found": {"above": "up"}, "env": Env()})
    assert found == expected


@pytest.mark.parametrize("bound", [0, 3, 4, 5, 6])
@pytest.mark.parametrize("above", ["up", "", None, 7, True, ["x"]])
@pytest.mark.parametrize(
    "source", ["${concat(fields.above, ' ', value)}", "${concat(value, 'abc')}", "${concat('abc')}"]
)
def test_texts_that_are_joined_are_what_the_function_gives_within_its_bound(
    source: str, above: object, bound: int
) -> None:
    text, named = written(source)
    assert text is not None
    env, names = Env(max_text=bound), {"record": RECORD, "value": "v", "fields": {"above": above}}
    scope = {"__builtins__": {}, "type": type, "dict": dict, "list": list, "len": len, "str": str, **named}

    def outcome(compute: Callable[[], object]) -> object:
        try:
            return compute()
        except Invalid as error:
            return str(error)

    held = {"record": RECORD, "value": "v", "found": {"above": above}, "env": env}
    template = compile_template(source, NAMES)
    assert template.alone is not None
    alone = template.alone
    assert outcome(lambda: eval(text, scope, held)) == outcome(lambda: alone(Context(names, env)))


@pytest.mark.parametrize(
    "source", ["${1 + 2}", "${params.p}", "${[1, 2]}", "${'a' in record.list}", "${record.a['b']}", "x${value}"]
)
def test_what_is_not_written_is_left_to_closures(source: str) -> None:
    assert written(source)[0] is None


def test_more_parentheses_than_python_reads_are_left_to_closures() -> None:
    chain = " || ".join(["!value"] * 120)
    assert written(f"${{{chain}}}")[0] is None


@pytest.mark.parametrize("hostile", ["x') or exit('", "\\n", "{env}", "__import__"])
def test_texts_and_keys_are_literals(hostile: str) -> None:
    quoted = hostile.replace("'", "\\'")
    text, _ = written(f"${{value == '{quoted}' ? 'a' : 'b'}}")
    plain, _ = written("${value == 'plain' ? 'a' : 'b'}")
    assert text is not None
    assert plain is not None
    assert len(compile(text, "t", "eval").co_names) == len(compile(plain, "t", "eval").co_names)
