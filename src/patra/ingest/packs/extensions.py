"""Extension points: code of other distributions that a pack may name, found by Python entry points.

A distribution declares an entry point in one of the groups below; a pack names it, and only then is it imported.
`docs/how-to/extend-ingest.md` has the signatures.
"""

from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import entry_points
from typing import Any

from patra.ingest.vocabulary.reasons import Reason
from patra.kernel.errors import Invalid


class ExtensionPoint(StrEnum):
    """The entry point groups."""

    SIGNING = "patra.ingest.signing"
    AUTHENTICATION = "patra.ingest.authentication"
    PAGING = "patra.ingest.paging"
    DECODING = "patra.ingest.decoding"


BUILT_IN: dict[ExtensionPoint, dict[str, str]] = {
    ExtensionPoint.SIGNING: {"hmac_sha256": "patra.ingest.http.credentials:hmac_sha256"},
}
"""What the program brings itself; an entry point of the same name does not replace it."""


def extension_names(point: ExtensionPoint) -> list[str]:
    """The names that a pack may use; nothing is imported."""
    found = {entry.name for entry in entry_points(group=point.value)}
    return sorted(found | set(BUILT_IN.get(point, {})))


def load_extension(point: ExtensionPoint, name: str) -> Callable[..., Any]:
    """The function behind a name; importing it is the first time that its code runs."""
    if name in BUILT_IN.get(point, {}):
        module, _, attribute = BUILT_IN[point][name].partition(":")
        return getattr(__import__(module, fromlist=[attribute]), attribute)
    found = next(iter(entry_points(group=point.value, name=name)), None)
    if found is None:
        raise Invalid(
            Reason.EXTENSION_UNKNOWN,
            f"no {name!r} is installed in the group {point.value}",
            advice=f"known: {', '.join(extension_names(point)) or 'none'}",
        )
    try:
        loaded = found.load()
    except Exception as error:  # other people's code: whatever it raises, the pack cannot be used
        raise Invalid(Reason.EXTENSION_UNKNOWN, f"{found.value} cannot be imported: {error}") from error
    if not callable(loaded):
        raise Invalid(Reason.EXTENSION_UNKNOWN, f"{found.value} is not a function")
    return loaded
