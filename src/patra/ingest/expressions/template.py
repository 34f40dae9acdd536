"""Renders a template (`rows=${page.size}`): nothing, text, or the value itself (ch. 4.8).

A template that is one `${…}` and nothing else keeps the type of its value, so that lists and numbers reach a JSON body
as they are. In a text with several parts, one part without a value leaves the whole without one: half a filter is worse
than none. `$${` is a literal `${`.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from patra.ingest.expressions.evaluation import Node
from patra.ingest.expressions.expression import MAX_LENGTH, Eval, Names, Parser, Way
from patra.ingest.expressions.values import Context, bounded_text, evaluation_failure, text_of
from patra.ingest.vocabulary.codes import NullPolicy
from patra.kernel.errors import Invalid

OPEN = "${"
ESCAPED = "$${"


class Template(msgspec.Struct, frozen=True):
    """A compiled template: its source, the names it reads, its parts (literal text or expression), and how far they
    look into values that are JSON.
    """

    source: str
    names: frozenset[str]
    parts: tuple[str | Eval, ...]
    ways: tuple[Way, ...] = ()
    nodes: Mapping[Eval, Node] = {}
    """What its expressions compute, for `expression_code`."""

    @property
    def constant(self) -> bool:
        return all(isinstance(part, str) for part in self.parts)

    @property
    def alone(self) -> Eval | None:
        """The one expression that it is, if it is nothing else."""
        first = self.parts[0]
        return None if len(self.parts) > 1 or isinstance(first, str) else first

    def value(self, context: Context) -> Any:
        """The value of a single expression, or the text of several parts; None where a part has no value."""
        if len(self.parts) == 1 and not isinstance(self.parts[0], str):
            return self.parts[0](context)
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            found = part(context)
            if found is None:
                return None
            out.append(text_of(found, context.env))
        return bounded_text("".join(out), context.env)

    def encode_text(self, context: Context, encode: Callable[[str], str]) -> str | None:
        """As text whose literal parts stay and whose expressions are encoded; None where one has no value."""
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
            elif (found := part(context)) is None:
                return None
            else:
                out.append(encode(text_of(found, context.env)))
        return bounded_text("".join(out), context.env)

    def text(self, context: Context, policy: NullPolicy = NullPolicy.OMIT) -> str | None:
        """As text; None says that the null policy leaves it out."""
        found = self.value(context)
        if found is not None:
            return text_of(found, context.env)
        match policy:
            case NullPolicy.OMIT:
                return None
            case NullPolicy.EMPTY:
                return ""
            case NullPolicy.FAIL:
                raise evaluation_failure(f"{self.source!r} has no value, and nullPolicy is fail")


def compile_template(source: str, names: Names, allowed: Collection[str] | None = None) -> Template:
    """Compile a template. Raises Invalid with the character where it goes wrong."""
    if len(source) > MAX_LENGTH:
        raise Invalid("expr_invalid", f"the template has more than {MAX_LENGTH} characters")
    parts: list[str | Eval] = []
    read: set[str] = set()
    ways: list[Way] = []
    nodes: dict[Eval, Node] = {}
    literal = ""
    at = 0
    while at < len(source):
        if source.startswith(ESCAPED, at):
            literal += OPEN
            at += len(ESCAPED)
        elif source.startswith(OPEN, at):
            if literal:
                parts.append(literal)
                literal = ""
            parser = Parser(source, at + len(OPEN), names, allowed)
            parts.append(parser.expression())
            if (close := parser.closes) is None:
                raise parser.error("the `}` of this expression is missing", at)
            read |= parser.read
            ways += parser.ways
            nodes |= parser.nodes
            at = close
        else:
            literal += source[at]
            at += 1
    if literal or not parts:
        parts.append(literal)
    return Template(source, frozenset(read), tuple(parts), tuple(ways), nodes)


def has_expression(source: str) -> bool:
    """Whether a text is more than literal."""
    return OPEN in source.replace(ESCAPED, "")
