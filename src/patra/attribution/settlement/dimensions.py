"""Counts of facts in any combination of dimensions, with filters."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec

from patra.attribution.decision.closure_rules import BILLABLE_IMPRESSION
from patra.kernel.clock import format_instant
from patra.kernel.safety.redact import masked_label

Dimension = Literal["app", "day", "placement", "creative", "opportunity"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class SettledFact(msgspec.Struct, frozen=True, kw_only=True):
    """One billable fact that counts, with what it is settled by."""

    decision_id: int
    app_id: str
    billable_type: str
    fact_at: int
    fact_id: str
    billing_key: str
    placement: str
    creative: str
    """Of a click, the creative of its impression; empty where that is not known any more."""
    opportunity: str
    versions: int
    reason: str
    decided_at: int


class DimensionLine(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of values, in the order of the dimensions that were asked for."""

    values: tuple[str, ...]
    impressions: int
    clicks: int


class DimensionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the facts that meet the filters, by every combination that occurs."""

    dimensions: tuple[str, ...]
    lines: list[DimensionLine]
    impressions: int
    clicks: int

    def rows(self) -> list[dict[str, Any]]:
        """The lines as flat rows, for tables and files."""
        return [
            dict(zip(self.dimensions, line.values, strict=True))
            | {"impressions": line.impressions, "clicks": line.clicks}
            for line in self.lines
        ]


def value_of(fact: SettledFact, dimension: Dimension) -> str:
    match dimension:
        case "app":
            return fact.app_id
        case "day":
            return format_instant(fact.fact_at)[:10]
        case "placement":
            return fact.placement
        case "creative":
            return fact.creative
        case "opportunity":
            return fact.opportunity


def counts_by(
    facts: Iterable[SettledFact], dimensions: Sequence[Dimension], filters: Mapping[Dimension, str]
) -> DimensionCounts:
    """Count the facts that meet every filter; a value that holds an address or a key is masked, each for itself."""
    found: dict[tuple[str, ...], list[int]] = {}
    for fact in facts:
        if any(value_of(fact, name) != wanted for name, wanted in filters.items()):
            continue
        counts = found.setdefault(tuple(masked_label(value_of(fact, name)) for name in dimensions), [0, 0])
        counts[fact.billable_type != BILLABLE_IMPRESSION] += 1
    lines = [DimensionLine(values=key, impressions=pair[0], clicks=pair[1]) for key, pair in sorted(found.items())]
    return DimensionCounts(
        dimensions=tuple(dimensions),
        lines=lines,
        impressions=sum(line.impressions for line in lines),
        clicks=sum(line.clicks for line in lines),
    )
