"""Texts that others wrote: control characters written out, numbers read within bounds."""

import re

# C0 and C1 controls (escape sequences begin with them), and marks that turn the direction of what follows
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_INTEGER = re.compile(r"-?[0-9]{1,19}").fullmatch
MAX_INTEGER = 2**62
"""Beyond it no number of ours lies; a column holds 64 bits."""


def without_controls(text: str, *, keep: str = "") -> str:
    """The text with control characters written out: what others sent must not steer the operator's terminal."""

    def written_out(match: re.Match[str]) -> str:
        if match[0] in keep:
            return match[0]
        return f"\\x{ord(match[0]):02x}" if ord(match[0]) < 256 else f"\\u{ord(match[0]):04x}"

    return _CONTROL.sub(written_out, text)


def integer_of(text: str) -> int | None:
    """The integer that a text is, in ASCII digits; None for what is none, or beyond what a column holds."""
    if not _INTEGER(text):
        return None
    number = int(text)
    return number if abs(number) <= MAX_INTEGER else None
