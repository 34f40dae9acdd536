"""Text without secrets and personal data, each distinct text looked through once while a page is rendered.

A page names the same keys, words and links over and over. Nothing is kept beyond the page: secrets become known late.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from patra.kernel.safety.redact import redact_text

_masked: ContextVar[dict[str, str] | None] = ContextVar("masked", default=None)


@contextmanager
def remember_masked() -> Generator[None]:
    """While this lasts, a text that was looked through is not looked through again."""
    token = _masked.set({})
    try:
        yield
    finally:
        _masked.reset(token)


def masked_text(text: str) -> str:
    known = _masked.get()
    if known is None:
        return redact_text(text)
    found = known.get(text)
    if found is None:
        found = known[text] = redact_text(text)
    return found
