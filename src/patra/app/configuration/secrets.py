"""Resolves a secret's reference (`env:NAME`, `file:PATH`); other text is the value itself.

What was read by a reference is known as a secret from then on (`kernel.known_secrets`).
"""

import os
from collections.abc import Mapping
from pathlib import Path

from patra.kernel.errors import ConfigInvalid
from patra.kernel.safety.known_secrets import know_secret

REFERENCES = ("env:", "file:")


def is_reference(text: object) -> bool:
    return isinstance(text, str) and text.startswith(REFERENCES)


def resolve(text: str, place: str, environ: Mapping[str, str] = os.environ) -> str:
    """What the text refers to, without surrounding white space; `place` names the setting in errors."""
    kind, _, name = text.partition(":")
    if not is_reference(text):
        return text
    if kind == "env":
        if not (value := environ.get(name, "").strip()):
            raise ConfigInvalid(
                "config_secret_missing",
                f"it refers to the variable {name}, which is not set or empty",
                place=place,
                advice=f"set {name} in the environment of this process",
            )
        return know_secret(value)
    try:
        value = Path(name).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigInvalid(
            "config_secret_missing",
            f"it refers to the file {name}, which cannot be read: {reason}",
            place=place,
            advice="create the file, or make it readable for this process",
        ) from error
    if not value:
        raise ConfigInvalid(
            "config_secret_missing",
            f"it refers to the file {name}, which is empty",
            place=place,
            advice="write the secret into the file",
        )
    return know_secret(value)
