"""Turns the name of a group into how it fares: what waits, what fails and when that is tried again."""

import msgspec

from patra.bus.catalogue.reasons import Reason
from patra.bus.consuming.delivery_order import FAR_FUTURE
from patra.bus.store import deliveries, groups
from patra.kernel.clock import format_instant
from patra.kernel.db import Tx
from patra.kernel.safety.redact import redact_text
from patra.web.api.bus.shapes import Group, to_shape
from patra.web.endpoint import Endpoint, EndpointGroup, Request
from patra.web.problem import Problem

MAX_FAILING = 100


class FailingDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a group failed on and tries again; `due` is null while it waits behind another of its key."""

    event_id: str
    event_type: str
    failures: int
    due: str | None
    error_code: str
    error_detail: str


class GroupDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One group, and the events that it tries again: the next attempt first, up to a bound."""

    group: Group
    failing: list[FailingDelivery]


def routes(tag: str) -> list[Endpoint]:
    summary = "One consumer group, with the events that it fails on and tries again"
    problems = {404: "there is no such group"}
    return [EndpointGroup(tag).get("/bus/groups/{group}", _group, summary, GroupDetail, problems=problems)]


def _group(request: Request) -> GroupDetail | Problem:
    name = request.path["group"]

    def read(tx: Tx) -> tuple[list[groups.GroupTotals], list[deliveries.Retrying]]:
        found = [one for one in groups.totals(tx) if one.name == name]
        return found, deliveries.retrying(tx, name, MAX_FAILING) if found else []

    found, failing = request.patra.db.read(read)
    if not found:
        return Problem(404, Reason.GROUP_UNKNOWN.value, Reason.GROUP_UNKNOWN.text, name)
    return GroupDetail(group=to_shape(found[0], Group), failing=[_failing(one) for one in failing])


def _failing(one: deliveries.Retrying) -> FailingDelivery:
    return FailingDelivery(
        event_id=one.event_id,
        event_type=one.event_type,
        failures=one.failures,
        due=None if one.due_at >= FAR_FUTURE else format_instant(one.due_at),
        error_code=one.error_code,
        error_detail=redact_text(one.error_detail),
    )
