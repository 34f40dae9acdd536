"""Rows of the running side as people read them: instants as text, stored JSON as values, samples as text."""

from collections.abc import Mapping
from typing import Any

import msgspec

from patra.kernel.clock import format_instant
from patra.kernel.safety.redact import redact

INSTANT_SUFFIXES = ("_at", "_time", "_from", "_to", "_until", "_instant")
JSON_COLUMNS = frozenset(
    {
        "stats",
        "checkpoint",
        "record_remarks",
        "trigger_params",
        "request_digest",
        "response_digest",
        "slice_spec",
    }
)
FREE_TEXTS = frozenset(
    {"error", "detail", "sample", "record_remarks", "request_digest", "response_digest", "trigger_params", "checkpoint"}
)
"""Columns that hold what providers and people wrote: they are shown without secrets and personal data."""


def legible_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its instants as text, its stored JSON as values and its bytes as text."""
    return {name: _legible(name, value) for name, value in row.items()}


def _legible(name: str, value: Any) -> Any:
    if isinstance(value, int) and name.endswith(INSTANT_SUFFIXES):
        return format_instant(value)
    if name in JSON_COLUMNS and isinstance(value, str) and value:
        return msgspec.json.decode(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def redacted_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without anything secret or personal in what others wrote; keys, windows and cursors stay as they are."""
    return {name: redact(value) if name in FREE_TEXTS else value for name, value in row.items()}


def shown_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as people and other systems see it: legible, without secrets and personal data."""
    return redacted_row(legible_row(row))
