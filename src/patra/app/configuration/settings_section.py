"""One table of the settings file: its base, the marks of its fields, and how their values may be shown."""

from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from patra.app.configuration.secrets import is_reference
from patra.kernel.safety.redact import redact_url

SECRET = {"secret": True}  # Meta(extra=SECRET): never shown, except where it is only a reference
URL = {"url": True}  # Meta(extra=URL): shown without its password
SECRET_PATH = {"secret_path": True}  # Meta(extra=SECRET_PATH): a URL whose path may be a key; only its host is shown

HIDDEN = "(hidden)"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""

    def __repr__(self) -> str:
        values = ", ".join(
            f"{field.name}={display_value(field, getattr(self, field.name))!r}"
            for field in msgspec.structs.fields(type(self))
        )
        return f"{type(self).__name__}({values})"


def display_value(field: msgspec.structs.FieldInfo, value: Any) -> Any:
    """The value as it may be printed: secrets hidden, references kept, URLs without passwords."""
    if is_marked(field, "secret"):
        if isinstance(value, (tuple, list)):
            return [_shown_secret(item) for item in cast("Sequence[object]", value)]
        return _shown_secret(value)
    if is_marked(field, "url") and value and not is_reference(value):
        return redact_url(value)
    if is_marked(field, "secret_path") and value and not is_reference(value):
        return without_path(value)
    return value


def without_path(url: str) -> str:
    """Scheme and host of a URL: chat services and relays let everybody post who knows the path."""
    try:
        parts = urlsplit(redact_url(url))
    except ValueError:  # no URL: another place says so
        return HIDDEN
    rest = HIDDEN if parts.path.strip("/") or parts.query or parts.fragment else ""
    return f"{parts.scheme}://{parts.netloc}/{rest}"


def _shown_secret(value: object) -> object:
    """A secret may carry a name in front (`alice=env:TOKEN`): the name and a reference are not secret."""
    if not value:
        return value
    text = str(value)
    name, mark, secret = ("", "", text) if is_reference(text) else text.rpartition("=")
    return f"{name}{mark}{secret}" if is_reference(secret) else f"{name}{mark}{HIDDEN}"


def meta_of(field: msgspec.structs.FieldInfo) -> Meta:
    found = [item for item in getattr(field.type, "__metadata__", ()) if isinstance(item, Meta)]
    return found[0] if found else Meta()


def is_marked(field: msgspec.structs.FieldInfo, mark: str) -> bool:
    return bool((meta_of(field).extra or {}).get(mark))
