r"""A regular expression of others goes in, a matcher whose time grows only with the text comes out.

The engine of the standard library backtracks, and packs (ingest, ch. 4.8) and contracts (bus) are not code that we
wrote: `(a+)+$` would hold a worker for hours. This one follows all alternatives at once (Thompson's construction; the
deterministic machine is built as it is needed). It knows literals, `.`, classes, groups, `|`, `* + ? {m,n}`,
`\d \w \s`, `^` at the start and `$` at the end, and `(?i)` in front; it has no captures, back-references or
look-around.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache

import msgspec

from patra.kernel.errors import Invalid

MAX_SOURCE = 500
MAX_NODES = 500
MAX_REPEAT = 200
MAX_DEPTH = 20
MAX_TEXT = 16_384
"""Matching looks at no more characters of a text; longer ones are cut (`found`) or do not match (`matches`)."""

Test = Callable[[str], bool]

_MAX_STATES = 1000
_WORD: Test = lambda c: c == "_" or c.isalnum()  # noqa: E731  beside its fellows below
_CLASSES: dict[bool, dict[str, Test]] = {
    False: {"d": lambda c: "0" <= c <= "9", "w": _WORD, "s": lambda c: c in " \t\n\r\f\v"},
    True: {"d": str.isdecimal, "w": _WORD, "s": str.isspace},
}
_SAMPLES = [*map(chr, range(128)), "\u00e9", "\u0663", "\u3000", "\u20ac"]
"""ASCII, and of the rest a letter, a digit, a space and none of them: no class tells more of it apart."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_SPECIAL = "\\.[](){}*+?|^$-/ '\"#&,:;<=>@_`~!%"


class Pattern:
    r"""A compiled pattern: `matches` asks for the whole text, `found` for a part of it.

    `unicode` gives `\d` and `\s` the width that they have in the standard library: every script's digits and spaces.
    """

    def __init__(self, source: str, *, unicode: bool = False) -> None:
        self.source = source
        parser = _Parser(source, _CLASSES[unicode])
        self._loops = parser.loops
        self._ignore_case = parser.ignore_case
        self._anchored = parser.anchored
        self.to_end = parser.to_end
        self._nodes = parser.nodes
        self._accept = parser.accept
        self._begin = parser.start
        self._start = self._closure({parser.start})
        self._moves: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. A text that is too long does not."""
        if len(text) > MAX_TEXT:
            return False
        state = self._start
        for char in text:
            if not (state := self._move(state, char, again=False)):
                return False
        return self._accept in state

    def found(self, text: str) -> bool:
        """Whether a part of the beginning of the text matches."""
        state = self._start
        again = not self._anchored
        cut = text[:MAX_TEXT]
        if self._accept in state and not (self.to_end and cut):
            return True
        for index, char in enumerate(cut):
            state = self._move(state, char, again=again)
            if self._accept in state and (not self.to_end or index == len(text) - 1):
                return True
            if not state and not again:
                return False
        return False

    @cached_property
    def unambiguous(self) -> bool:
        """Whether the standard engine, too, needs time that only grows with the text.

        It does where the next character alone says which part of the pattern it belongs to and by which way: then there
        is one way to read any beginning of a text, and nothing to come back for. A search that may begin anywhere is
        of that kind only without unbounded repeats. What is not plainly so (`(?i)`, literals beyond ASCII) counts as
        ambiguous.
        """
        if self._ignore_case or not self.source.isascii() or (self._loops and not self._anchored):
            return False
        accepted: dict[Test, frozenset[str]] = {}
        for begin in [self._begin, *(out for test, out, _ in self._nodes if test is not None)]:
            seen: set[int] = set()
            taken: set[str] = set()
            stack = [begin]
            while stack:
                number = stack.pop()
                if number in seen:  # two ways to one place without a character in between, as in `(a*)*`
                    return False
                seen.add(number)
                test, out, other = self._nodes[number]
                if test is not None:
                    if test not in accepted:
                        accepted[test] = frozenset(filter(test, _SAMPLES))
                    if taken & accepted[test]:
                        return False
                    taken |= accepted[test]
                elif number != self._accept:
                    stack += [out, other] if other >= 0 else [out]
        return True

    def _move(self, state: frozenset[int], char: str, *, again: bool) -> frozenset[int]:
        key = (state, char, again)
        known = self._moves.get(key)
        if known is not None:
            return known
        seen = char.casefold() if self._ignore_case else char
        ahead: set[int] = set()
        for number in state:
            test, out, _ = self._nodes[number]
            if test is not None and test(seen):
                ahead.add(out)
        following = self._closure(ahead)
        if again:
            following |= self._start
        if len(self._moves) >= _MAX_STATES:
            self._moves.clear()
        self._moves[key] = following
        return following

    def _closure(self, numbers: set[int]) -> frozenset[int]:
        found: set[int] = set()
        stack = list(numbers)
        while stack:
            number = stack.pop()
            if number in found:
                continue
            found.add(number)
            test, out, other = self._nodes[number]
            if test is None and number != self._accept:
                stack.append(out)
                if other >= 0:
                    stack.append(other)
        return frozenset(found)

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"


@lru_cache(maxsize=1024)
def pattern(source: str, *, unicode: bool = False) -> Pattern:
    """The pattern, compiled once. Raises Invalid with what is wrong and where."""
    return Pattern(source, unicode=unicode)


class _Piece(msgspec.Struct, frozen=True):
    """A character test or a group, and how often it stands."""

    test: Test | None
    group: "list[list[_Piece]]"
    fewest: int
    most: int  # -1: no bound


class _Parser:
    """Recursive descent to pieces, then Thompson's machine from the last piece to the first."""

    def __init__(self, source: str, classes: dict[str, Test]) -> None:
        if len(source) > MAX_SOURCE:
            raise _invalid(source[:40] + "…", f"a pattern has at most {MAX_SOURCE} characters")
        self._source = source
        self._classes = classes
        self._at = 0
        self.loops = False
        self.nodes: list[tuple[Test | None, int, int]] = []
        self.ignore_case = source.startswith("(?i)")
        if self.ignore_case:
            self._at = 4
        self.anchored = self._take("^")
        self.to_end = False
        pieces = self._alternatives(0)
        if self._at < len(source):
            raise self._error("nothing opens this `)`" if source[self._at] == ")" else "this cannot stand here")
        if len(pieces) > 1 and (self.anchored or self.to_end):
            raise self._error("`^` and `$` would belong to one alternative only; write ^(a|b)$")
        self.accept = self._node()
        self.start = self._build(pieces, self.accept)

    def _node(self, test: Test | None = None, out: int = -1, other: int = -1) -> int:
        if len(self.nodes) >= MAX_NODES:
            raise self._error(f"the pattern needs more than {MAX_NODES} steps; use smaller repeats")
        self.nodes.append((test, out, other))
        return len(self.nodes) - 1

    def _build(self, alternatives: list[list[_Piece]], end: int) -> int:
        starts: list[int] = []
        for pieces in alternatives:
            start = end
            for piece in reversed(pieces):
                start = self._repeated(piece, start)
            starts.append(start)
        start = starts[0]
        for other in starts[1:]:
            start = self._node(None, start, other)
        return start

    def _repeated(self, piece: _Piece, end: int) -> int:
        def once(out: int) -> int:
            return self._node(piece.test, out) if piece.test else self._build(piece.group, out)

        if piece.most < 0:
            self.loops = True
            loop = self._node(None, end, end)
            self.nodes[loop] = (None, once(loop), end)
            end = loop
        else:
            after = end
            for _ in range(piece.most - piece.fewest):
                end = self._node(None, once(end), after)
        for _ in range(piece.fewest):
            end = once(end)
        return end

    def _alternatives(self, depth: int) -> list[list[_Piece]]:
        if depth > MAX_DEPTH:
            raise self._error("groups are nested too deeply")
        found = [self._sequence(depth)]
        while self._take("|"):
            found.append(self._sequence(depth))
        return found

    def _sequence(self, depth: int) -> list[_Piece]:
        pieces: list[_Piece] = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            if self._source[self._at] == "$":
                if depth or self._at != len(self._source) - 1:
                    raise self._error("`$` stands only at the end of the whole pattern")
                self._at += 1
                self.to_end = True
                break
            atom = self._atom(depth)
            pieces.append(_Piece(*atom, *self._repeat()))
        return pieces

    def _repeat(self) -> tuple[int, int]:
        fewest, most = 1, 1
        if self._take("*"):
            fewest, most = 0, -1
        elif self._take("+"):
            fewest, most = 1, -1
        elif self._take("?"):
            fewest, most = 0, 1
        elif self._take("{"):
            close = self._source.find("}", self._at)
            low, comma, high = self._source[self._at : max(close, self._at)].partition(",")
            if not low.isdigit() or (high and not high.isdigit()):
                raise self._error("a repeat is {m}, {m,} or {m,n}; write \\{ for the character")
            self._at = close + 1
            fewest = int(low)
            most = int(high) if high else (-1 if comma else fewest)
            if max(fewest, most) > MAX_REPEAT or -1 < most < fewest:
                raise self._error(f"a repeat goes up to {MAX_REPEAT}, the smaller number first")
        if self._at < len(self._source) and self._source[self._at] in "*+?{":
            raise self._error("a repeat of a repeat; put the first one into a group")
        return fewest, most

    def _atom(self, depth: int) -> "tuple[Test | None, list[list[_Piece]]]":
        char = self._source[self._at]
        self._at += 1
        if char == "(":
            if self._take("?") and not self._take(":"):
                raise self._error("groups are ( … ) and (?: … ); there is no look-around and no naming")
            inside = self._alternatives(depth + 1)
            if not self._take(")"):
                raise self._error("a `)` is missing")
            return None, inside
        return self._test(char), []

    def _test(self, char: str) -> Test:
        if char == "[":
            return self._class()
        if char == ".":
            return lambda c: c != "\n"
        if char == "\\":
            return self._escape()
        if char in "*+?{":
            raise self._error("there is nothing to repeat", back=1)
        if char in "^$":
            raise self._error("`^` stands only at the start of the whole pattern", back=1)
        return self._literal(char)

    def _class(self) -> Test:
        negated = self._take("^")
        tests: list[Test] = []
        first = True
        while first or not self._take("]"):
            if self._at >= len(self._source):
                raise self._error("a `]` is missing")
            first = False
            tests.append(self._member())
        return (lambda c: not any(t(c) for t in tests)) if negated else (lambda c: any(t(c) for t in tests))

    def _member(self) -> Test:
        low = self._source[self._at]
        self._at += 1
        if low == "\\":
            if self._source[self._at : self._at + 1].lower() in self._classes:
                return self._escape()
            low = self._escaped()
        if self._source[self._at : self._at + 1] == "-" and self._source[self._at + 1 : self._at + 2] not in {"]", ""}:
            self._at += 1
            high = self._source[self._at]
            self._at += 1
            if high == "\\":
                high = self._escaped()
            if high < low:
                raise self._error(f"{low}-{high} goes backwards")
            if self.ignore_case:
                return lambda c: low <= c <= high or low <= c.upper() <= high
            return lambda c: low <= c <= high
        return self._literal(low)

    def _escape(self) -> Test:
        name = self._source[self._at : self._at + 1]
        if name.lower() in self._classes and name:
            self._at += 1
            test = self._classes[name.lower()]
            return test if name.islower() else lambda c: not test(c)
        return self._literal(self._escaped())

    def _escaped(self) -> str:
        name = self._source[self._at : self._at + 1]
        self._at += 1
        if name and name in _SPECIAL:
            return name
        if name in _ESCAPES:
            return _ESCAPES[name]
        raise self._error(f"\\{name} means nothing here", back=1)

    def _literal(self, char: str) -> Test:
        wanted = char.casefold() if self.ignore_case else char
        return lambda c: c == wanted

    def _take(self, char: str) -> bool:
        if self._source.startswith(char, self._at):
            self._at += len(char)
            return True
        return False

    def _error(self, what: str, back: int = 0) -> Invalid:
        return _invalid(self._source, f"{what} (at character {self._at - back + 1})")


def _invalid(source: str, what: str) -> Invalid:
    return Invalid("pattern_invalid", f"{source!r}: {what}", advice="see the reference of patterns for what is known")
