"""What every strategy bit is made of: a frozen struct in camelCase whose fields carry their own documentation.

The struct's defaults are the platform's defaults (level 1 of ch. 3.3.2). The reference pages, the JSON Schema and the
checks of a pack are made from these declarations, so a field is described here and nowhere else.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Kind = Literal[
    "template", "path", "duration", "pattern", "secret", "host", "function", "apply", "format", "instant", "cron"
]
"""What a text stands for beyond being text; each kind is compiled when a pack is read, so that typos are found then."""


class Bit(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of every section of a pack and of a snapshot."""


def doc(text: str, *examples: Any, kind: Kind | None = None, **constraints: Any) -> Meta:
    """The documentation of a field: one or two sentences, examples, what its text stands for, its bounds."""
    return Meta(
        description=text,
        examples=list(examples) or None,
        extra={"kind": kind} if kind else None,
        **constraints,
    )


NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
"""Names of sources, endpoints, parameters and credentials."""

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
"""Names that expressions use."""

Name = Annotated[str, Meta(pattern=NAME)]
Identifier = Annotated[str, Meta(pattern=IDENTIFIER)]
Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0)]
Priority = Annotated[int, Meta(ge=0, le=999)]
Duration = Annotated[str, Meta(extra={"kind": "duration"})]
Template = Annotated[str, Meta(extra={"kind": "template"})]
Path = Annotated[str, Meta(extra={"kind": "path"})]
Pattern = Annotated[str, Meta(extra={"kind": "pattern"})]
