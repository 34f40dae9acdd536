"""Writes a compiled expression as the text of a Python expression, for a function that is generated (decision 0082).

    ${coalesce(item.name, trim(fields.given))}
    (x1 if (x1 := there.get('name')) is not None else (None if (x2 := found.get('given')) is None else call7(env, x2)))

Nothing of a pack becomes code: what enters the text is written here, a name that is counted here, or a literal as
`repr` writes it. What is not known here (arithmetic, lists, `in`, `[…]`) is left to the closures that `expression`
makes; where both can, they give the same (a property test holds them equal).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from patra.ingest.expressions.evaluation import Eval, Node, comparison, guard_function
from patra.ingest.expressions.functions import Function
from patra.ingest.expressions.paths import Path, Steps
from patra.ingest.expressions.values import Env, same, text_of
from patra.kernel.pattern import pattern

Named = Callable[[str, Any], str]
"""Gives an object a name in the text: `named("call", f)` is `call7`."""

_OF_TEXT = {"trim": "{0}.strip() or None", "lower": "{0}.lower()", "text": "{0}"}
"""Functions of one value that give nothing for nothing, and what they are of a text within its bounds."""
_SAFE = frozenset({"concat", "trim", "lower", "text", "lists", "startsWith", "endsWith"})
"""Functions that fail in no other way than as an evaluation does."""


class FunctionBody:
    """The lines of one function that is written."""

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

    def under_name(self, name: str) -> None:
        """Make of the list `value` what stands under a name of each of its items, where there is anything."""
        self.add("made = []")
        with self.under("for part in value:"):
            self.add(f"part = part[{name!r}] if type(part) is dict and {name!r} in part else None")
            self.add("if part is not None: made.append(part)")
        self.add("value = made")


def record_loop(name: str, lines: Sequence[str]) -> str:
    """A function that does so for each of some records; a record with a flaw is left, and the others go on.

    A row is the place of a record, the record, its object (an empty one if it is none) and what is found of it.
    """
    head = f"def {name}(rows, flaws, env, plan):\n    for at, record, there, found in rows:\n        try:"
    tail = "        except FieldFlawed as flawed:\n            flaws[at] = flawed.flaw"
    return "\n".join([head, "            node = record", *(f"        {line}" for line in lines), tail])


class _Unwritten(Exception):  # noqa: N818  it never leaves this module
    """A part that is left to the closures."""


class ExpressionCode:
    """Writes expressions into one function. `roots`: the variables in which it has the names that they read.

    `objects`: of these roots, the variables that hold their object, or an empty one if they are none.
    """

    def __init__(self, named: Named, roots: Mapping[str, str], objects: Mapping[str, str]) -> None:
        self._named = named
        self._roots = roots
        self._objects = objects
        self._count = 0
        self._nodes: Mapping[Eval, Node] = {}

    def text(self, evaluate: Eval | None, nodes: Mapping[Eval, Node]) -> str | None:
        """None where it cannot be written."""
        if evaluate is None:
            return None
        self._nodes = nodes
        try:
            text = self._write_code(evaluate)
            compile(text, "<expression>", "eval")
        except (_Unwritten, SyntaxError, RecursionError, MemoryError):  # more parentheses than Python reads, too
            return None
        return text

    def looked_up(self, whole: str, steps: Steps, *, is_object: bool) -> str:
        """Lookups one after the other; whatever is not there is None. `is_object`: `whole` is sure to be one."""
        for step in steps:
            there = self._fresh()
            held = f"{there} := {whole}"
            if not isinstance(step, str):
                inside = there if step in {0, -1} else f"-len({there}) <= {step!r} < len({there})"
                whole = f"({there}[{step!r}] if type({held}) is list and {inside} else None)"
            elif is_object:
                whole = f"({whole}[{step!r}] if {step!r} in {whole} else None)"  # half the price of `get`
            else:
                whole = f"({there}.get({step!r}) if type({held}) is dict else None)"
            is_object = False
        return whole

    def _write_code(self, evaluate: Eval) -> str:
        if (node := self._nodes.get(evaluate)) is None:
            raise _Unwritten
        match node:
            case Node("literal", (value,)):
                return repr(value)
            case Node("walk", (root, *path)):
                return self._walk(root, tuple(path))
            case Node("chosen", (test, then, other)):
                return f"({self._write_code(then)} if {self._write_code(test)} else {self._write_code(other)})"
            case Node("either" | "both" as kind, (left, right)):
                sign = "or" if kind == "either" else "and"
                return f"(not not ({self._write_code(left)} {sign} {self._write_code(right)}))"
            case Node("not", (inner,)):
                return f"(not {self._write_code(inner)})"
            case Node("compared", (sign, left, right)):
                return self._write_comparison(sign, left, right)
            case Node("called", (function, *arguments)):
                return self._write_call(function, arguments)
            case _:
                raise _Unwritten

    def _walk(self, root: str, path: tuple[str, ...]) -> str:
        if root not in self._roots:
            raise _Unwritten
        if path and (there := self._objects.get(root)) is not None:
            return self.looked_up(there, path, is_object=True)
        return self.looked_up(self._roots[root], path, is_object=False)

    def _write_comparison(self, sign: str, left: Eval, right: Eval) -> str:
        one, other = self._write_code(left), self._write_code(right)
        if sign not in {"==", "!="}:
            return f"{self._named('compare', comparison(sign))}({one}, {other})"
        no = "not " if sign == "!=" else ""
        match self._nodes.get(right):
            case Node("literal", (str(),)):  # equal texts are of one kind
                return f"({no}{one} == {other})"
            case Node("literal", (None,)) if self._kind(left) != "literal":
                return f"({no}{one} is None)"
            case _:
                return f"({no}{self._named('same', same)}({one}, {other}))"

    def _write_call(self, function: Function, arguments: list[Eval]) -> str:
        match function.name:
            case "coalesce":
                *tried, last = map(self._write_code, arguments)
                names = [self._fresh() for _ in tried]
                chain = [f"{x} if ({x} := {text}) is not None else " for x, text in zip(names, tried, strict=True)]
                return f"({''.join(chain)}{last})"
            case "jsonPath" | "jsonPaths":
                return self._write_search(function, *arguments)
            case "matches":
                value, source = arguments
                found, x = pattern(self._nodes[source].parts[0]), self._fresh()
                matched = self._named("matched", _matching(found.matches))
                return f"(({x} := {self._write_code(value)}) is not None and {matched}(env, {x}))"
            case _:
                safe = function.name in _SAFE
                call = self._named("call", function.call if safe else guard_function(function))
                texts = [*map(self._write_code, arguments)]
        if (of_text := _OF_TEXT.get(function.name)) is not None:
            x = self._fresh()
            test = f"type({x}) is str and len({x}) <= env.max_text"
            return f"(None if ({x} := {texts[0]}) is None else ({of_text.format(x)}) if {test} else {call}(env, {x}))"
        if function.name == "concat" and (whole := self._write_join(arguments, texts)):
            return f"({whole} else {call}({', '.join(['env', *texts])}))"
        if function.name == "lists" and len(texts) > 1 and {*map(self._kind, arguments)} == {"walk"}:
            return f"(None if {' is '.join(texts)} is None else {call}({', '.join(['env', *texts])}))"
        return f"{call}({', '.join(['env', *texts])})"

    def _write_join(self, arguments: list[Eval], texts: list[str]) -> str:
        """`concat` of texts, nothings and texts that are written out, within its bound; empty for anything else."""
        parts: list[str] = []
        tests: list[str] = []
        for argument, text in zip(arguments, texts, strict=True):
            match self._nodes.get(argument):
                case Node("literal", (str(),)):
                    parts.append(text)
                case Node("walk", _):  # two lookups, should the call come to it, change nothing
                    x = self._fresh()
                    tests.append(f"(({x} := {text}) is None or type({x}) is str)")
                    parts.append(f"({x} or '')")
                case _:
                    return ""
        whole = self._fresh()
        tests.append(f"len({whole} := {' + '.join(parts)}) <= env.max_text")
        return f"{whole} if {' and '.join(tests)}"

    def _kind(self, evaluate: Eval) -> str:
        return node.kind if (node := self._nodes.get(evaluate)) is not None else ""

    def _write_search(self, function: Function, value: Eval, argument: Eval) -> str:
        path: Path = self._nodes[argument].parts[0]
        match self._nodes.get(value):
            case Node("walk", (root,)) if root in self._objects:
                there, whole = self._objects[root], self._roots[root]
            case _:
                there, whole = None, self._write_code(value)
        if function.name == "jsonPath" and path.steps is not None and None not in path.steps:
            if there is None or not path.steps or not isinstance(path.steps[0], str):
                return self.looked_up(whole, path.steps, is_object=False)
            return self.looked_up(there, path.steps, is_object=True)
        search = f"{self._named('call', guard_function(function))}(env, {whole}, {self._named('find', path.find)})"
        key = path.lead[0] if path.lead else None
        if function.name == "jsonPath" and there is not None and isinstance(key, str):
            return f"({search} if {there}.get({key!r}) else None)"  # below what is empty it finds nothing
        return search

    def _fresh(self) -> str:
        self._count += 1
        return f"x{self._count}"


def _matching(matches: Callable[[str], bool]) -> Callable[[Env, Any], bool]:
    return lambda env, value: matches(text_of(value, env))
