"""Turns text for a place in a request into the same text made harmless there, or a refusal (ch. 4.8)."""

from urllib.parse import quote
from xml.sax.saxutils import escape

import msgspec

from patra.ingest.vocabulary.reasons import Reason

Pairs = list[tuple[str, str]]


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing is sent; `place` names the part of the pack: `http.queryTemplate.term`."""

    code: Reason
    place: str
    detail: str


class Refusal(Exception):  # noqa: N818  it carries a value out of the rendering, no further
    """Ends a rendering; `request.Renderer` turns it into its value."""

    def __init__(self, code: Reason, place: str, detail: str) -> None:
        super().__init__(detail)
        self.refused = Refused(code=code, place=place, detail=detail)


def printable(text: str, place: str) -> str:
    """Text without control characters, line breaks and halves of surrogate pairs."""
    if text.isascii() and text.isprintable():
        return text
    for char in text:
        code = ord(char)
        if code < 0x20 or 0x7F <= code < 0xA0 or code in {0x2028, 0x2029} or 0xD800 <= code < 0xE000:
            raise Refusal(Reason.RENDER_UNSAFE, place, f"the rendered value holds the character U+{code:04X}")
    return text


def visible(text: str, place: str) -> str:
    """A header's value: visible ASCII, spaces inside."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    bad = next((c for c in text if not (c.isascii() and c.isprintable())), " ")
    raise Refusal(Reason.RENDER_UNSAFE, place, f"a header cannot hold the character U+{ord(bad):04X} there")


def encoded_pairs(pairs: Pairs, safe: str, *, plus: bool) -> str:
    out: list[str] = []
    for name, value in pairs:
        text = quote(value, safe=safe)
        out.append(f"{quote(name, safe='')}={text.replace('%20', '+') if plus else text}")
    return "&".join(out)


def xml_text(text: str) -> str:
    return escape(printable(text, "http.bodyTemplate.text"), {'"': "&quot;", "'": "&apos;"})
