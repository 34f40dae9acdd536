"""What a plan will cost: requests from history, permits, quota periods, time at the declared rate (ch. 4.10.6)."""

from patra.ingest.packs.compiler import Overrides, compile_spec
from patra.ingest.planning.limits.cost import cost_of
from patra.ingest.planning.slicing.slice_groups import time_groups
from patra.ingest.planning.slicing.slice_spec import Slicer
from patra.ingest.planning.slicing.windows import Density, Span
from patra.ingest.vocabulary.codes import Operation
from patra.kernel.clock import DAY, parse_instant
from tests.unit.ingest.sample_packs import loaded

NOW = parse_instant("2026-11-16T00:00:00Z") or 0
WEEK = Span(NOW - 8 * DAY, NOW - DAY)


def cost(rate: dict[str, object], reports=()):
    sections = {"rateLimit": rate, "window": {"maxWindow": "P1D", "align": "day"}, "pagination": {"pageSize": 100}}
    spec = compile_spec(loaded("token"), "works", Operation.HARVEST, Overrides(sections=sections)).spec
    assert spec is not None
    return cost_of(spec, time_groups(spec, Slicer(spec, "k"), WEEK, [], Density(reports)), {}, NOW)


def test_without_a_history_it_is_one_request_a_slice_at_least():
    found = cost({"refillRatePerSec": 0.5, "cost": 1})
    assert (found.slices, found.requests, found.records, found.measured) == (7, 7, None, False)
    assert (found.rate_per_sec, found.seconds, found.quota_left, found.quota_periods) == (0.5, 14, None, 0)


def test_a_history_says_how_many_requests_and_records():
    found = cost({"refillRatePerSec": 1, "cost": 2}, [(WEEK, 7 * 995)])
    assert (found.records, found.measured) == (7 * 995, True)
    assert (found.requests, found.permits) == (70, 140)
    assert found.seconds == 140, "what a request costs is time, too"


def test_a_quota_spreads_it_over_periods():
    found = cost({"refillRatePerSec": 100, "quotaDaily": 25, "quotaReserve": 0, "cost": 1}, [(WEEK, 7 * 995)])
    assert (found.quota_left, found.quota_periods) == (25, 4), "two slices of ten requests fit into a day"
    assert found.seconds > 3 * DAY // 1_000_000
