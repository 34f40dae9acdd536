"""Turns the text of an expression into a closure over a context (ch. 4.8).

    window.to - duration('PT1S')         page.token == null ? 'first' : page.token
    join(ids, ',')                       coalesce(params.term, 'all[sb]')

The grammar is all there is: literals, declared names, whitelisted calls, `? :`, `|| && !`, comparison, `in`,
`+ - * / %`, `[index]` and `[list, of, values]`. There are no attributes, no loops, no definitions and no way to name
anything that was not declared, so a typo is found when it is compiled. Length, depth and number of parts are bounded
here, every value that comes up is bounded in `values`.
"""

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import msgspec

from patra.ingest.expressions.evaluation import (
    Eval,
    Node,
    both,
    call_function,
    choose_branch,
    compare_values,
    compute_value,
    either,
    item_at,
    looked_up,
    member_of,
    walk_of,
)
from patra.ingest.expressions.functions import FUNCTIONS, Function
from patra.ingest.expressions.paths import Steps, json_path
from patra.ingest.expressions.values import arithmetic, bounded_list, truth
from patra.kernel.errors import Invalid
from patra.kernel.pattern import pattern

MAX_LENGTH = 4096
MAX_DEPTH = 32
MAX_PARTS = 256

Names = Mapping[str, frozenset[str] | None]
"""What may be read: a root and its members, or None where anything below it is JSON that may be walked by key."""

Way = tuple[str, Steps]
"""A root of the second kind, and how far an expression looks into it; no steps: it reads all of it."""


class Token(msgspec.Struct, frozen=True):
    kind: str  # number, text, name, op, end
    value: Any
    at: int


_LEXEME = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<op>\|\||&&|==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])"
    r"|(?P<quote>['\"]))"
)
_TEXT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


class Parser:
    """Recursive descent; each rule gives a closure. Reading starts at a place of the source, for templates."""

    def __init__(self, source: str, at: int, names: Names, allowed: Collection[str] | None) -> None:
        if len(source) > MAX_LENGTH:
            raise Invalid("expr_invalid", f"the expression has more than {MAX_LENGTH} characters")
        self.source = source
        self.names = names
        self.allowed = allowed
        self.read: set[str] = set()
        self.ways: list[Way] = []
        self.nodes: dict[Eval, Node] = {}
        """What closures compute, as far as it can be written as text."""
        self._bare: dict[Eval, str] = {}
        self._places: dict[Eval, Callable[[Any], Any]] = {}
        self._depth = 0
        self._parts = 0
        self.item_at = at
        self._token = self._lex()

    # --- the grammar, loosest binding first

    def expression(self) -> Eval:
        self._enter()
        test = self._or()
        if self._accept("?"):
            then = self.expression()
            self._expect(":")
            other = self.expression()
            test = self._note_kind(choose_branch(test, then, other), "chosen", test, then, other)
        self._depth -= 1
        return test

    def _or(self) -> Eval:
        left = self._and()
        while self._accept("||"):
            right = self._and()
            left = self._note_kind(either(left, right), "either", left, right)
        return left

    def _and(self) -> Eval:
        left = self._not()
        while self._accept("&&"):
            right = self._not()
            left = self._note_kind(both(left, right), "both", left, right)
        return left

    def _not(self) -> Eval:
        if self._accept("!"):
            self._enter()
            inner = self._not()
            self._depth -= 1
            return self._note_kind(lambda c: not truth(inner(c)), "not", inner)
        return self._comparison()

    def _comparison(self) -> Eval:
        left = self._sum()
        for sign in ("==", "!=", "<=", ">=", "<", ">"):
            if self._accept(sign):
                right = self._sum()
                return self._note_kind(compare_values(sign, left, right), "compared", sign, left, right)
        if self._token.kind == "name" and self._token.value == "in":
            self._advance()
            items = self._sum()
            return lambda c: member_of(left(c), items(c))
        return left

    def _sum(self) -> Eval:
        left = self._product()
        while (operator := self._token.value) in ("+", "-") and self._token.kind == "op":
            self._advance()
            left = compute_value(cast("str", operator), left, self._product())
        return left

    def _product(self) -> Eval:
        left = self._negative()
        while (operator := self._token.value) in ("*", "/", "%") and self._token.kind == "op":
            self._advance()
            left = compute_value(cast("str", operator), left, self._negative())
        return left

    def _negative(self) -> Eval:
        if self._accept("-"):
            self._enter()
            inner = self._negative()
            self._depth -= 1
            return lambda c: arithmetic("-", 0, inner(c), c.env)
        return self._parse_index()

    def _parse_index(self) -> Eval:
        value = self._primary()
        while self._accept("["):
            place = self.expression()
            self._expect("]")
            value = item_at(value, place)
        return value

    def _primary(self) -> Eval:
        token = self._token
        self._enter()
        self._depth -= 1
        match token.kind, token.value:
            case (("number" | "text"), value):
                self._advance()
                return self._note_kind(lambda _: value, "literal", value)
            case "op", "(":
                self._advance()
                inner = self.expression()
                self._expect(")")
                return inner
            case "op", "[":
                self._advance()
                items = self._arguments("]")
                return lambda c: bounded_list([item(c) for item in items])
            case "name", ("true" | "false" | "null") as word:
                self._advance()
                constant = {"true": True, "false": False, "null": None}[word]
                return self._note_kind(lambda _: constant, "literal", constant)
            case "name", name:
                self._advance()
                return self._call(name, token.at) if self._accept("(") else self._name(name, token.at)
            case "end", _:
                what = "something is missing at the end"
            case _:
                what = f"{token.value!r} cannot stand here"
        raise self.error(what, token.at)

    # --- names and calls

    def _name(self, root: str, at: int) -> Eval:
        path = [root]
        while self._accept("."):
            if self._token.kind != "name":
                raise self.error("a name must follow the dot", self._token.at)
            path.append(self._token.value)
            self._advance()
        if root not in self.names:
            hint = difflib.get_close_matches(root, self.names, 1)
            if root in FUNCTIONS:
                raise self.error(f"{root} is a function; write {FUNCTIONS[root].usage}", at)
            raise self.error(
                f"there is no {root!r} here", at, hint[0] if hint else f"known: {', '.join(sorted(self.names))}"
            )
        members = self.names[root]
        self.read.add(".".join(path[:2]) if members else root)
        if members is None:
            self.ways.append((root, tuple(path[1:])))
            walk = self._note_kind(walk_of(tuple(path)), "walk", *path)
            if len(path) == 1:
                self._bare[walk] = root
            return walk
        if not members and len(path) == 1:
            return lambda c: c.values.get(root)
        if len(path) != 2 or path[1] not in members:
            hint = difflib.get_close_matches(path[1], members, 1) if len(path) > 1 else []
            known = ", ".join(f"{root}.{member}" for member in sorted(members)) or "nothing"
            raise self.error(
                f"there is no {'.'.join(path)!r} here", at, f"{root}.{hint[0]}" if hint else f"known: {known}"
            )
        return self._note_kind(walk_of((root, path[1])), "walk", root, path[1])

    def _call(self, name: str, at: int) -> Eval:
        function = FUNCTIONS.get(name)
        if function is None:
            hint = difflib.get_close_matches(name, FUNCTIONS, 1)
            raise self.error(f"there is no function {name!r}", at, hint[0] if hint else "see the list of functions")
        if self.allowed is not None and name not in self.allowed:
            raise self.error(
                f"expr.allowedFunctions does not list {name!r}", at, f"add {name} to expr.allowedFunctions"
            )
        arguments = self._arguments(")", function)
        if not function.fewest <= len(arguments) <= function.most:
            raise self.error(f"{function.name} is called as {function.usage}", at)
        if name == "jsonPath" and (first := self._places.get(arguments[1])) is not None:
            return self._note_kind(looked_up(arguments[0], first), "called", function, *arguments)
        return self._note_kind(call_function(function, arguments), "called", function, *arguments)

    def _arguments(self, close: str, function: Function | None = None) -> list[Eval]:
        found: list[Eval] = []
        while not self._accept(close):
            if found:
                self._expect(",")
            literal = function is not None and function.literal == len(found)
            found.append(self._literal(function, found) if literal and function else self.expression())
        return found

    def _literal(self, function: Function, before: list[Eval]) -> Eval:
        """An argument that is compiled with the expression: a path or a pattern in quotes."""
        token = self._token
        if token.kind != "text":
            raise self.error(f"{function.name} wants a quoted text here: {function.usage}", token.at)
        self._advance()
        try:
            if function.name == "matches":
                source = pattern(token.value).source
                return self._note_kind(lambda _: source, "literal", source)
            path = json_path(token.value)
        except Invalid as error:
            raise self.error(error.detail, token.at, error.advice) from None
        if before and (root := self._bare.get(before[0])) is not None:  # it looks along the path, not at all of it
            self.ways.remove((root, ()))
            self.ways.append((root, path.lead))
        find = path.find
        argument = self._note_kind(lambda _: find, "path", path)
        if path.steps is not None and None not in path.steps:
            self._places[argument] = path.first
        return argument

    def _note_kind(self, evaluate: Eval, kind: str, *parts: Any) -> Eval:
        self.nodes[evaluate] = Node(kind, parts)
        return evaluate

    # --- tokens

    def end(self) -> None:
        if self._token.kind != "end":
            raise self.error(f"{self._token.value!r} cannot stand here", self._token.at)

    @property
    def closes(self) -> int | None:
        """Where a template goes on: the place after a `}`, if that is what comes next."""
        return self._token.at + 1 if self._token.kind == "op" and self._token.value == "}" else None

    def error(self, what: str, at: int, hint: str = "") -> Invalid:
        advice = f"did you mean {hint}?" if hint and " " not in hint else hint
        return Invalid("expr_invalid", f"{what} (character {at + 1} of {_short(self.source)!r})", advice=advice)

    def _enter(self) -> None:
        self._depth += 1
        self._parts += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"the expression is nested deeper than {MAX_DEPTH}", self._token.at)
        if self._parts > MAX_PARTS:
            raise self.error(f"the expression has more than {MAX_PARTS} parts", self._token.at)

    def _accept(self, operator: str) -> bool:
        if self._token.kind == "op" and self._token.value == operator:
            self._advance()
            return True
        return False

    def _expect(self, operator: str) -> None:
        if not self._accept(operator):
            raise self.error(f"{operator!r} is missing", self._token.at)

    def _advance(self) -> None:
        if self._token.kind == "op" and self._token.value == "}":
            return  # the rest belongs to the template
        self._token = self._lex()

    def _lex(self) -> Token:
        match = _LEXEME.match(self.source, self.item_at)
        if match is None:
            rest = self.source[self.item_at :]
            at = self.item_at + len(rest) - len(rest.lstrip())
            if at < len(self.source):
                raise Invalid(
                    "expr_invalid", f"{self.source[at]!r} means nothing (character {at + 1} of {_short(self.source)!r})"
                )
            return Token("end", "", at)
        self.item_at = match.end()
        group = cast("str", match.lastgroup)
        at = match.start(group)
        if group == "quote":
            return Token("text", self._text(match[group], at), at)
        if group == "number":
            text = match[group]
            if len(text) > 18:
                self._token = Token("number", text, at)
                raise self.error("the number is too long", at)
            return Token("number", float(text) if "." in text else int(text), at)
        return Token(group, match[group], at)

    def _text(self, quote: str, at: int) -> str:
        out: list[str] = []
        while self.item_at < len(self.source):
            char = self.source[self.item_at]
            self.item_at += 1
            if char == quote:
                return "".join(out)
            if char == "\\":
                escape = self.source[self.item_at : self.item_at + 1]
                self.item_at += 1
                if escape not in _TEXT_ESCAPES:
                    raise Invalid("expr_invalid", f"\\{escape} means nothing in a text (character {self.item_at})")
                char = _TEXT_ESCAPES[escape]
            out.append(char)
        raise Invalid(
            "expr_invalid", f"the text that begins at character {at + 1} of {_short(self.source)!r} has no end"
        )


def _short(source: str) -> str:
    return source if len(source) <= 80 else source[:77] + "…"
