"""Says what a person has to check against the live service before a pack is trusted.

A pack says what its provider's totals, bounds, order, times and deletions mean. Some pages and the probe of the bounds
cannot prove all of it, but may contradict it; the rest is put as a question with the command that answers it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.ingest.operations.trial.bounds import UNCLEAR
from patra.ingest.operations.trial.request import Wanted
from patra.ingest.operations.try_source import Tried
from patra.ingest.packs.compiler import LoadedPack, offered_operations
from patra.ingest.packs.merge import merge
from patra.ingest.packs.schema import Sections
from patra.ingest.vocabulary.codes import MissingIds, Operation, TotalMeaning


class LiveCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to check: what the pack declares, what this page shows, and what to ask the service."""

    topic: str
    declared: str
    seen: str
    ask: str
    contradicted: bool = False


def live_checks(loaded: LoadedPack, wanted: Wanted, found: Tried, pack: str) -> list[LiveCheck]:
    """What to look at before a harvest of this endpoint is trusted; `pack` is how the command was given it."""
    operations = offered_operations(loaded.pack, wanted.endpoint)
    at = merge(loaded.tree, wanted.endpoint, operations[0] if operations else Operation.HARVEST).sections
    times = [str(record["updated"]) for record in found.records if "updated" in record]
    said = loaded.pack.semantics
    command = f"patra ingest try {pack} {wanted.endpoint}"
    return [
        _total(at, found, said.total if said else "", command),
        _bounds(at, times, found, said.bounds if said else "", command),
        _order(at, times),
        _precision(at, times, said.precision if said else ""),
        _deletions(loaded, at, found, said.deletions if said else "", pack),
        LiveCheck(
            topic="update time",
            declared=f"{at.response.update_time.value} ({said.update_time if said else at.response.update_time.text})",
            seen=f"{len(times)} of {len(found.records)} records have one",
            ask="Take a record that you know was changed lately: does its update time show it?",
        ),
    ]


def _total(at: Sections, found: Tried, said: str, command: str) -> LiveCheck:
    meaning = at.pagination.total
    fewer = found.total is not None and meaning is TotalMeaning.EXACT and (found.items or 0) > found.total
    return LiveCheck(
        topic="total",
        declared=f"{meaning.value} ({said or meaning.text})",
        seen=f"{found.total if found.total is not None else 'none'}; {found.items or 0} records on this page",
        ask=f"Cut the window in two with --from and --to: do the totals of `{command}` add up to that of the whole?",
        contradicted=fewer,
    )


def _bounds(at: Sections, times: Sequence[str], found: Tried, said: str, command: str) -> LiveCheck:
    window = at.window
    declared = window.bounds.value if window.bounds is not None else "not declared: read past the end"
    outside = [time for time in times if not found.window_from <= time < found.window_to] if found.window_to else []
    cut = window.supports_updated_since and at.response.update_time.value in {"CHANGED", "REVISED"}
    seen = f"{len(outside)} of {len(times)} update times lie outside {found.window_from} to {found.window_to}"
    probe = found.bounds
    if probe is not None:
        asked = f"{probe.record} of {probe.updated} was asked for, by the {probe.unit}, from and up to its own time"
        seen += f"; {asked}: lower bound {probe.lower}, upper bound {probe.upper}"
    if probe is not None and UNCLEAR not in {probe.lower, probe.upper}:
        return LiveCheck(
            topic="bounds",
            declared=f"{declared} ({said})" if said else declared,
            seen=seen,
            ask=f"Nothing: {probe.says}.",
            contradicted=probe.loses,
        )
    return LiveCheck(
        topic="bounds",
        declared=f"{declared} ({said})" if said else declared,
        seen=seen,
        ask=f"Take a record that was changed at the very end of a window: does exactly one of `{command} --to END` and "
        "`… --from END` show it? None means loss; both only means that it is read twice.",
        contradicted=bool(cut and outside and len(outside) == len(times)),
    )


def _order(at: Sections, times: Sequence[str]) -> LiveCheck:
    rising, falling = list(times) == sorted(times), list(times) == sorted(times, reverse=True)
    shown = "of one instant" if rising and falling else "rising" if rising else "falling" if falling else "in no order"
    return LiveCheck(
        topic="order",
        declared=f"{at.ordering.order_by}{', rising: a slice may stop half-way' if at.ordering.ascending else ''}",
        seen=f"update times of this page are {shown}" if times else "no update times on this page",
        ask="Ask for the same page twice, a minute apart: are its records the same, in the same order?",
        contradicted=bool(times) and at.ordering.ascending and not rising,
    )


def _precision(at: Sections, times: Sequence[str], said: str) -> LiveCheck:
    finest = "none"
    if times:
        whole = all(time.endswith("T00:00:00Z") for time in times)
        finest = "fractions of a second" if any("." in time for time in times) else "days" if whole else "seconds"
    declared = at.window.precision.value if at.window.precision is not None else "not declared"
    return LiveCheck(
        topic="precision",
        declared=f"{declared} ({said})" if said else declared,
        seen=f"the update times of this page have {finest}",
        ask="Is the filter compared as finely as that? If it is coarser, `window.precision` must say so.",
    )


def _deletions(loaded: LoadedPack, at: Sections, found: Tried, said: str, pack: str) -> LiveCheck:
    gone = sum(1 for record in found.records if record.get("deleted"))
    path = at.response.deleted_path
    by_id = [name for name, one in loaded.pack.endpoints.items() if one.batching.missing_ids is MissingIds.DELETED]
    declared = f"`{path}`" if path else f"answered as gone by `{by_id[0]}`" if by_id else "not reported"
    detail = at.two_phase.linked_endpoint
    return LiveCheck(
        topic="deletions",
        declared=f"{declared} ({said})" if said else declared,
        seen=f"{gone} of {len(found.records)} records of this page are deleted",
        ask="Find a record that the provider has deleted: is it still in the list?"
        + (f" What does `patra ingest try {pack} {detail} --id ID` say of it?" if detail else ""),
    )


def lines_of(checks: Sequence[LiveCheck]) -> list[str]:
    """The checks as a person reads them."""
    out = ["", "Check against the live service before you trust a harvest:"]
    for one in checks:
        mark = "  ← CONTRADICTED by this page" if one.contradicted else ""
        out += [
            "",
            f"{one.topic}{mark}",
            f"  declared: {one.declared}",
            f"  seen:     {one.seen}",
            f"  ask:      {one.ask}",
        ]
    return [*out, "", "Keep what you saw: `patra ingest record` writes the exchange into files, without your secrets."]


def tree_of(checks: Sequence[LiveCheck]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(one) for one in checks]
