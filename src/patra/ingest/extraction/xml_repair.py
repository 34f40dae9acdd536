r"""Replaces what XML does not allow in a body that does not parse, and counts it.

Live repositories send control characters (`\x17` on a page of OJS), references to them, and bytes of another charset.
One such byte must not lose all records of a page, nor the pages behind it.
"""

import re

BOM = b"\xef\xbb\xbf"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")


def mended_xml(body: bytes) -> tuple[bytes, int]:
    """The body in UTF-8 with U+FFFD for what XML does not allow, and how often that was: one bad byte of one record
    must not lose the page of all others.
    """
    text = body.removeprefix(BOM)
    declared = _DECLARED.match(text)
    charset = declared[1].decode("ascii") if declared is not None else "utf-8"
    try:
        if len("<".encode(charset)) > 1:  # UTF-16 is written by some that send UTF-8: it could not be read here
            charset = "utf-8"
        plain, before = text.decode(charset, "replace"), "\ufffd".encode(charset, "ignore") or text
    except (UnicodeError, LookupError):  # no such charset: some send `undefined`
        plain, before = text.decode("utf-8", "replace"), "\ufffd".encode()
    replaced = max(plain.count("\ufffd") - text.count(before), 0)
    plain, controls = _NOT_XML.subn("\ufffd", plain)
    references = 0

    def allowed_reference(reference: re.Match[str]) -> str:
        nonlocal references
        code = int(reference[1], 16) if reference[1] else int(reference[2])
        if code > 0x10FFFF or 0xD800 <= code < 0xE000 or _NOT_XML.match(chr(code)):
            references += 1
            return "\ufffd"
        return reference[0]

    plain = _REFERENCE.sub(allowed_reference, plain)
    if declared is not None:
        plain = plain.replace(declared[0].decode("ascii"), '<?xml version="1.0" encoding="utf-8"', 1)
    return plain.encode("utf-8", "replace"), replaced + controls + references
