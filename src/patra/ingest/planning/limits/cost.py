"""What a plan will cost before it is made: windows, requests, quota and time at the declared rate (4.10.6, 4.16)."""

from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from patra.ingest.packs.spec import Spec
from patra.ingest.planning.limits.leg_quotas import LegQuotas, Taken, permits_by_key
from patra.ingest.planning.slicing.slice_groups import Group
from patra.ingest.vocabulary.codes import AuthType
from patra.kernel.clock import SECOND

MAX_COUNTED_SLICES = 100_000
"""A preview counts no further; `more` says that there are more."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan would use. Numbers without a history are the least that it can be."""

    slices: Annotated[int, Meta(description="Windows, ranges of pages or lists of ids.")]
    requests: Annotated[int, Meta(description="Requests that are expected; one a slice where nothing is known.")]
    records: Annotated[int | None, Meta(description="Records that are expected; null where there is no history.")]
    measured: Annotated[bool, Meta(description="Whether earlier runs say how large every slice is.")]
    rate_per_sec: Annotated[float, Meta(description="The rate that the pack declares.")]
    permits: Annotated[int, Meta(description="Requests times what the pack says one costs.")]
    quota_left: Annotated[int | None, Meta(description="What the tightest quota has left now; null without one.")]
    quota_periods: Annotated[int, Meta(description="Periods of a quota that the plan is spread over; 0 without one.")]
    seconds: Annotated[int, Meta(description="How long it takes at that rate, waiting for quotas included.")]
    more: Annotated[bool, Meta(description="There are more slices than were counted.")] = False


def cost_of(spec: Spec, groups: Iterable[Group], taken: Taken, now: int) -> Cost:
    """Count all slices and place them as the planner would."""
    rate = _rate(spec)
    quotas = LegQuotas(spec, taken, now)
    slices, requests, permits, records, known, end, more = 0, 0, 0, 0, 0, now, False
    for group in groups:
        if slices >= MAX_COUNTED_SLICES:
            more = True
            break
        records += group.estimated or 0
        known += len(group.slices) if group.estimated is not None else 0
        for one in group.slices:
            slices += 1
            requests += one.expected_requests
            cost = sum(permits_by_key(spec, one.expected_requests, one.expected_details).values())
            permits += cost
            due = quotas.place(one.expected_requests, one.expected_details).due
            end = max(end, due) + int(cost / rate * SECOND)
    return Cost(
        slices=slices,
        requests=requests,
        records=records if known else None,
        measured=slices > 0 and known == slices,
        rate_per_sec=rate,
        permits=permits,
        quota_left=quotas.remaining(),
        quota_periods=quotas.periods_used(),
        seconds=-(-(end - now) // SECOND),
        more=more,
    )


def _rate(spec: Spec) -> float:
    """The declared rate: that of the credential where there certainly is one."""
    limit = spec.rate_limit
    sure = spec.auth.type is not AuthType.NONE and not spec.auth.optional
    return (limit.authenticated.refill_rate_per_sec if sure else None) or limit.refill_rate_per_sec
