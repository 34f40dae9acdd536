"""What providers say about their limits, in their own spellings."""

import pytest

from patra.ingest.packs.sections import Limits, RateAuthenticated, RateHeaders, RateLimit
from patra.ingest.ratelimit.policy import quota_share, rate_policy, retry_after_of, signal_of
from patra.ingest.ratelimit.token_bucket import Sign, Signal
from patra.ingest.vocabulary.codes import Operation, ResetKind
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, parse_instant

NOW = parse_instant("2026-11-16T06:10:59Z") or 0


def heard(
    status: int | None, headers: dict[str, str], spelling: RateHeaders | None = None, adaptive: bool = True
) -> Signal:
    return signal_of(
        status, headers, spelling or RateHeaders(), adaptive=adaptive, now=NOW, permit="p", allowed_at=NOW - 1
    )


def test_crossref_names_a_rate_and_a_concurrency() -> None:
    signal = heard(200, {"x-rate-limit-limit": "5", "x-rate-limit-interval": "1s", "x-concurrency-limit": "1"})
    assert (signal.limit, signal.concurrency, signal.remaining) == (5000, 1, -1)


def test_ncbi_gives_limit_and_remaining_without_a_reset() -> None:
    signal = heard(200, {"x-ratelimit-limit": "10", "x-ratelimit-remaining": "8"})
    assert (signal.remaining, signal.reset, signal.limit) == (8, -1, -1)


def test_openalex_counts_the_seconds_until_midnight() -> None:
    signal = heard(200, {"x-ratelimit-remaining": "985", "x-ratelimit-reset": "64141", "x-ratelimit-limit": "1000"})
    assert (signal.remaining, signal.reset, signal.limit) == (985, (NOW // DAY + 1) * DAY, -1)


def test_zenodo_gives_an_epoch_and_a_retry_after_on_success() -> None:
    headers = {"x-ratelimit-remaining": "128", "x-ratelimit-reset": "1784787021", "retry-after": "59"}
    signal = heard(200, headers, RateHeaders(reset_kind=ResetKind.EPOCH_S))
    assert (signal.remaining, signal.reset, signal.retry_after) == (128, 1784787021 * SECOND, -1)
    assert heard(429, headers).retry_after == 59 * SECOND


@pytest.mark.parametrize(
    ("text", "kind", "at"),
    [
        ("30", ResetKind.SECONDS, NOW + 30 * SECOND),
        ("30", ResetKind.EPOCH_S, NOW + 30 * SECOND),
        ("1784787021", ResetKind.SECONDS, 1784787021 * SECOND),
        ("1784787021000", ResetKind.SECONDS, 1784787021 * SECOND),
        ("1784787021500", ResetKind.EPOCH_MS, 1784787021 * SECOND + 500_000),
        ("Mon, 16 Nov 2026 07:10:59 GMT", ResetKind.HTTP_DATE, NOW + HOUR),
        ("2026-11-16T07:10:59Z", ResetKind.SECONDS, NOW + HOUR),
        ("soon", ResetKind.SECONDS, -1),
    ],
)
def test_a_reset_is_read_by_its_size_where_the_pack_is_wrong_about_it(text: str, kind: ResetKind, at: int) -> None:
    assert heard(200, {"x-ratelimit-reset": text}, RateHeaders(reset_kind=kind)).reset == at


def test_the_packs_own_spelling_goes_first() -> None:
    spelling = RateHeaders(remaining="X-Calls-Left", reset="X-Window-End", cost="X-Request-Cost")
    signal = heard(200, {"x-calls-left": "7", "x-ratelimit-remaining": "99", "x-request-cost": "3"}, spelling)
    assert (signal.remaining, signal.cost) == (7, 2)


@pytest.mark.parametrize(
    "text", ["limit=100, remaining=50, reset=5", '"default";r=50;t=5', "100;w=60, limit=100, remaining=50, reset=5"]
)
def test_the_draft_of_the_ietf_is_understood(text: str) -> None:
    signal = heard(200, {"ratelimit": text})
    assert (signal.remaining, signal.reset) == (50, NOW + 5 * SECOND)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0", 0),
        ("120", 2 * MINUTE),
        ("1.5", 1_500_000),
        ("Mon, 16 Nov 2026 06:12:59 GMT", 2 * MINUTE),
        ("Mon, 16 Nov 2026 06:00:00 GMT", 0),
        ("86400", DAY),
        ("-5", None),
        ("later", None),
        ("", None),
        (str(366 * 86_400), 366 * 86_400 * SECOND),
        ("999999999", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(text: str, span: int | None) -> None:
    assert retry_after_of({"retry-after": text}, NOW) == span


def test_signs() -> None:
    signs = {status: heard(status, {}).sign for status in (200, 304, 404, 429, 500, 501, 503, None)}
    assert signs == {
        200: Sign.OK,
        304: Sign.OK,
        404: Sign.OK,
        429: Sign.HTTP_429,
        500: Sign.TRANSIENT_5XX,
        501: Sign.OK,
        503: Sign.TRANSIENT_5XX,
        None: Sign.TRANSIENT_5XX,
    }


def test_a_pack_may_ignore_counts_but_never_retry_after() -> None:
    signal = heard(503, {"retry-after": "5", "x-ratelimit-remaining": "0"}, adaptive=False)
    assert (signal.retry_after, signal.remaining) == (5 * SECOND, -1)


def test_a_policy_takes_the_limits_of_the_credential_when_it_is_there() -> None:
    rate = RateLimit(
        refill_rate_per_sec=3,
        burst_capacity=3,
        quota_daily=100,
        authenticated=RateAuthenticated(refill_rate_per_sec=10, quota_daily=500),
    )
    assert rate_policy(rate, Limits(), authenticated=False).rate == 3000
    policy = rate_policy(rate, Limits(max_concurrency=3), authenticated=True)
    assert (policy.rate, policy.burst, policy.quota_day, policy.concurrency) == (10_000, 3, 500, 3)


def test_a_credential_may_bound_the_requests_at_the_same_time() -> None:
    rate = RateLimit(authenticated=RateAuthenticated(max_concurrency=2))
    limits = Limits(max_concurrency=3)
    assert [rate_policy(rate, limits, authenticated=flag).concurrency for flag in (False, True)] == [3, 2]


def test_the_defaults_are_those_of_the_specification() -> None:
    policy = rate_policy(RateLimit(), Limits(), authenticated=False)
    assert (policy.rate, policy.burst, policy.warmup, policy.demote, policy.floor) == (1000, 1, 0, 2000, 100)
    assert (policy.quota_hour, policy.quota_day) == (0, 0)


def test_the_floor_never_lies_above_the_declared_rate() -> None:
    policy = rate_policy(RateLimit(refill_rate_per_sec=0.05), Limits(), authenticated=False)
    assert (policy.rate, policy.floor) == (50, 50)


def test_harvest_may_use_the_whole_quota_and_backfill_the_least() -> None:
    shares = [quota_share(RateLimit(), op) for op in (Operation.HARVEST, Operation.UPDATE, Operation.BACKFILL)]
    assert shares == [1000, 800, 600]
