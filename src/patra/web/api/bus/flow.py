"""Turns the catalogue, the log and the groups into one picture: who publishes what how fast, and who reads it."""

import msgspec

from patra.app.components.bus import bus_of
from patra.bus.catalogue.registered_types import shown_types
from patra.bus.store import groups, rates
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Tx
from patra.web.endpoint import Endpoint, EndpointGroup, Request


class FlowType(msgspec.Struct, frozen=True, kw_only=True):
    """A type: `events` were published in the last `window_s` seconds; `more` says that there were even more."""

    type: str
    producer: str
    events: int
    more: bool
    per_minute: float
    readers: list[str]
    declared: list[str]
    """Groups that the catalogue names and that do not read it here."""


class FlowGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group that reads some types."""

    name: str
    state: str
    waiting: int
    failing: int
    dead: int
    oldest: str | None


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Who sends what to whom, and how fast."""

    window_s: int
    types: list[FlowType]
    groups: list[FlowGroup]


def routes(tag: str) -> list[Endpoint]:
    summary = "Types with their producers, rates and readers"
    return [EndpointGroup(tag).get("/bus/flow", _flow, summary, Flow)]


def _flow(request: Request) -> Flow:
    bus = bus_of(request.patra).bus
    kinds = shown_types(bus.catalogue, request.patra.db.read(bus.registered_elsewhere)).types
    now = request.patra.clock.now()

    def read(tx: Tx) -> tuple[dict[str, int], list[groups.GroupTotals]]:
        return rates.published_lately(tx, kinds, now), groups.totals(tx)

    counts, totals = request.patra.db.read(read)
    readers = {name: [one.name for one in totals if name in one.subscriptions] for name in kinds}
    minutes = rates.RATE_WINDOW / (60 * SECOND)
    return Flow(
        window_s=rates.RATE_WINDOW // SECOND,
        types=[
            FlowType(
                type=name,
                producer=kind.producer,
                events=counts[name],
                more=counts[name] >= rates.MAX_COUNTED,
                per_minute=round(counts[name] / minutes, 2),
                readers=sorted(readers[name]),
                declared=sorted({one.group for one in kind.consumers} - set(readers[name])),
            )
            for name, kind in sorted(kinds.items())
        ],
        groups=[
            FlowGroup(
                name=one.name,
                state=one.state.value,
                waiting=one.waiting,
                failing=one.failing,
                dead=one.dead,
                oldest=format_instant(one.oldest) if one.oldest is not None else None,
            )
            for one in totals
        ],
    )
