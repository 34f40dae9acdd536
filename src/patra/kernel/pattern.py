r"""Compiles regular expressions from outside into matchers whose time grows only with the length of the text.

The engine of the standard library backtracks, and packs (ingest, ch. 4.8) and contracts (bus) are not code that we
wrote: `(a+)+$` would hold a worker for hours. RE2 does not. `\d`, `\w` and `\s` are those of ASCII; `\p{L}`, `\p{Nd}`
and the like know every script. `$` is the end of the text; flags such as `(?i)` are RE2's.
"""

from functools import lru_cache
from typing import Any

import re2  # pyright: ignore[reportMissingTypeStubs]

from patra.kernel.errors import Invalid

MAX_SOURCE = 500
MAX_TEXT = 16_384
"""Matching looks at no more characters of a text; longer ones are cut (`found`) or do not match (`matches`)."""
MAX_MEMORY_BYTES = 1 << 20  # for one pattern: `\p{L}{900}` is refused

_UNSUPPORTED = {
    "(?=": "look-ahead",
    "(?!": "look-ahead",
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?P": "a named back-reference",
    "(?>": "an atomic group",
    **{rf"\{number}": "a back-reference" for number in range(1, 10)},
}
_re2: Any = re2


class Pattern:
    """A compiled pattern: `matches` asks for the whole text, `found` for a part of it."""

    def __init__(self, source: str) -> None:
        self.source = source
        if len(source) > MAX_SOURCE:
            raise _invalid(source[:40] + "…", f"a pattern has at most {MAX_SOURCE} characters")
        options = _re2.Options()
        options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY_BYTES
        try:
            self._regexp = _re2.compile(source.encode(), options)
        except _re2.error as error:
            raise _invalid(source, _reason(source, error.args[0].decode(errors="replace"))) from None
        except UnicodeEncodeError:
            raise _invalid(source, "has half of a surrogate pair") from None

    def matches(self, text: str) -> bool:
        """Whether the whole text matches. A text that is too long does not."""
        return len(text) <= MAX_TEXT and self._regexp.fullmatch(_bytes(text)) is not None

    def matches_part(self, text: str) -> bool:
        """Whether a part of the beginning of the text matches. `$` is the end of the whole text, cut or not."""
        if len(text) <= MAX_TEXT:
            return self._regexp.search(_bytes(text)) is not None
        cut = _bytes(text[:MAX_TEXT])
        return self._regexp.search(cut + _bytes(text[MAX_TEXT : MAX_TEXT + 1]), 0, len(cut)) is not None

    def found_in(self, encoded: bytes) -> bool:
        """Whether a part of UTF-8 matches, however long it is."""
        return self._regexp.search(encoded) is not None

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"


@lru_cache(maxsize=1024)
def pattern(source: str) -> Pattern:
    """The pattern, compiled once. Raises Invalid with what is wrong and where."""
    return Pattern(source)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _reason(source: str, message: str) -> str:
    _, _, part = message.partition(": ")
    name = next((name for start, name in _UNSUPPORTED.items() if part.startswith(start)), None)
    detail = f"{name} ({part}) is not supported" if name else message
    return f"{detail} (at character {at + 1})" if part and (at := source.find(part)) >= 0 else detail


def _invalid(source: str, what: str) -> Invalid:
    return Invalid("pattern_invalid", f"{source!r}: {what}", advice="see the reference of patterns for what is known")
