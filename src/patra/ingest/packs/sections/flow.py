"""How much, how fast, how often: rate, quota, retry, batching, planning, refresh (ch. 4.6, 4.10 to 4.12, 4.14, 8)."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import replace

from patra.ingest.packs.sections.base import Bit, Count, Duration, Name, Positive, Priority, doc
from patra.ingest.vocabulary.codes import Dimension, MissingIds, Operation, RateScope, ResetKind, RetryPolicy
from patra.kernel.clock import parse_duration


class RateHeaders(Bit, frozen=True, kw_only=True):
    """Headers in which the provider states its limits."""

    limit: Annotated[str | None, doc("Requests allowed per interval.", "X-Rate-Limit-Limit")] = "X-RateLimit-Limit"
    interval: Annotated[str | None, doc("Length of that interval, such as `1s`.", "X-Rate-Limit-Interval")] = None
    remaining: Annotated[str | None, doc("Requests left.", "X-RateLimit-Remaining")] = "X-RateLimit-Remaining"
    reset: Annotated[str | None, doc("When the count starts again.", "X-RateLimit-Reset")] = "X-RateLimit-Reset"
    reset_kind: Annotated[ResetKind, doc("How that is written.", "EPOCH_S")] = ResetKind.SECONDS
    concurrency: Annotated[str | None, doc("Requests allowed at the same time.", "X-Concurrency-Limit")] = None
    cost: Annotated[str | None, doc("What this request has cost.", "X-RateLimit-Cost")] = None


class RateAuthenticated(Bit, frozen=True, kw_only=True):
    """What changes when the credential is there."""

    refill_rate_per_sec: Annotated[Positive | None, doc("Requests per second.", 10.0)] = None
    burst_capacity: Annotated[Count | None, doc("Requests at once.", 10)] = None
    quota_hourly: Annotated[Count | None, doc("Requests per hour.", 5000)] = None
    quota_daily: Annotated[Count | None, doc("Requests per day.", 100_000)] = None
    max_concurrency: Annotated[Count | None, doc("Requests at the same time.", 3)] = None


class RateIdentified(Bit, frozen=True, kw_only=True):
    """What changes when a parameter says who is asking, such as an e-mail address."""

    param: Annotated[Name | None, doc("The parameter.", "mailto")] = None
    refill_rate_per_sec: Annotated[Positive | None, doc("Requests per second.", 3.3)] = None
    burst_capacity: Annotated[Count | None, doc("Requests at once.", 10)] = None


class RateLimit(Bit, frozen=True, kw_only=True):
    """Token bucket, adaptation and quotas (ch. 4.10)."""

    refill_rate_per_sec: Annotated[float, doc("Requests per second in the long run.", 3.0, gt=0, le=1000)] = 1.0
    burst_capacity: Annotated[int, doc("Requests that may go out at once.", 3, ge=1, le=1000)] = 1
    warmup_sec: Annotated[float, doc("Time in which the rate rises to its value after a start.", 0.0, ge=0)] = 0.0
    cost: Annotated[int, doc("Permits that one request of this endpoint takes.", 1, ge=1)] = 1
    quantum: Annotated[int, doc("Permits in a row that one task may take while others wait.", 10, ge=1)] = 10
    scope: Annotated[RateScope, doc("Who shares the bucket.", "SOURCE")] = RateScope.ENDPOINT
    per_credential: Annotated[bool, doc("A bucket for each credential.", True)] = False
    max_concurrency: Annotated[
        int, doc("C_max: tasks of one source, endpoint and operation at the same time.", 4, ge=1, le=256)
    ] = 4
    demote_rate: Annotated[float, doc("The rate is divided by this on 429 and transient 5xx.", 2.0, ge=1.1, le=10)] = (
        2.0
    )
    demote_rate_max_multiplier: Annotated[
        float, doc("The rate falls to no less than the declared one divided by this.", 10.0, ge=1)
    ] = 10.0
    min_rate_per_sec: Annotated[float, doc("r_min: the rate never falls below it.", 0.1, gt=0)] = 0.1
    recover_step_per_sec: Annotated[float, doc("δ: what the rate regains in each calm period.", 0.1, gt=0)] = 0.1
    cool_down: Annotated[Duration, doc("Length of a calm period.", "PT30S")] = "PT30S"
    header_adaptive: Annotated[bool, doc("Follow what the provider's headers say.", True)] = True
    retry_after_respect: Annotated[
        bool, doc("Wait as `Retry-After` says. Must stay on; a pack that turns it off is refused.", True)
    ] = True
    headers: Annotated[RateHeaders, doc("How the provider spells its limits.", {"limit": "X-Rate-Limit-Limit"})] = (
        RateHeaders()
    )
    quota_hourly: Annotated[Count | None, doc("Requests per hour; absent means no bound.", 5000)] = None
    quota_daily: Annotated[Count | None, doc("Requests per UTC day; absent means no bound.", 100_000)] = None
    quota_reserve: Annotated[float, doc("Share of a quota that plans leave untouched.", 0.1, ge=0, lt=1)] = 0.1
    quota_share: Annotated[
        dict[Operation, Annotated[float, doc("A share of the quota.", 0.6, gt=0, le=1)]],
        doc("Most of the quota that an operation's plans may take.", {"BACKFILL": 0.5}),
    ] = field(default_factory=lambda: {Operation.HARVEST: 1.0, Operation.UPDATE: 0.8, Operation.BACKFILL: 0.6})
    identified: Annotated[
        RateIdentified, doc("Other limits when a parameter is given.", {"param": "mailto", "refillRatePerSec": 3.3})
    ] = RateIdentified()
    authenticated: Annotated[
        RateAuthenticated, doc("Other limits when the credential is there.", {"refillRatePerSec": 10})
    ] = RateAuthenticated()

    def for_params(self, params: Mapping[str, Any]) -> "RateLimit":
        """The limits of a run with these parameters."""
        known = self.identified
        if known.param is None or params.get(known.param) is None:
            return self
        return replace(
            self,
            refill_rate_per_sec=known.refill_rate_per_sec or self.refill_rate_per_sec,
            burst_capacity=known.burst_capacity or self.burst_capacity,
        )


class Limits(Bit, frozen=True, kw_only=True):
    """What the provider says it allows. Nothing in the pack may ask for more (ch. 3.3.3, 4.17 no. 6)."""

    max_page_size: Annotated[Count | None, doc("Largest page.", 1000)] = None
    max_depth: Annotated[
        Count | None,
        doc("Deepest record that paging reaches; a larger slice is cut in two first (ruling I4).", 10_000),
    ] = None
    max_id_batch: Annotated[Count | None, doc("Most ids in one request.", 200)] = None
    max_rate_per_sec: Annotated[Positive | None, doc("Requests per second.", 10.0)] = None
    max_concurrency: Annotated[Count | None, doc("Requests at the same time.", 3)] = None
    max_attempts: Annotated[Count | None, doc("Attempts for one request that the provider tolerates.", 5)] = None
    quota_daily: Annotated[Count | None, doc("Requests per day.", 100_000)] = None
    quota_hourly: Annotated[Count | None, doc("Requests per hour.", 5000)] = None
    max_url_length: Annotated[int, doc("Longest URL; longer ones are refused before they are sent.", 8000, ge=64)] = (
        8000
    )


class Retry(Bit, frozen=True, kw_only=True):
    """Second attempts for transient failures (ch. 4.11)."""

    policy: Annotated[RetryPolicy, doc("How the delays grow.", "exponential_jitter")] = RetryPolicy.EXPONENTIAL_JITTER
    max_attempts: Annotated[int, doc("Attempts for one batch, the first included.", 5, ge=1, le=20)] = 5
    base_delay: Annotated[Duration, doc("First delay.", "PT0.1S")] = "PT0.1S"
    max_delay: Annotated[Duration, doc("Longest delay.", "PT30S")] = "PT30S"
    factor: Annotated[float, doc("Growth from one delay to the next.", 2.0, ge=1, le=10)] = 2.0
    jitter: Annotated[float, doc("Share of a delay that is random.", 0.2, ge=0, le=1)] = 0.2
    retryable_status: Annotated[
        tuple[Annotated[int, doc("A status.", 503, ge=400, le=599)], ...],
        doc(
            "Statuses worth a second attempt; 4xx beside 408 and 429 only where the provider means them so.", [429, 503]
        ),
    ] = (408, 429, 500, 502, 503, 504)
    retryable_errors: Annotated[
        tuple[str, ...], doc("Failures without a status worth a second attempt.", ["timeout", "reset"])
    ] = ("timeout", "dns", "tls", "connect", "reset", "truncated")

    @property
    def base_us(self) -> int:
        return parse_duration(self.base_delay)

    @property
    def max_us(self) -> int:
        return parse_duration(self.max_delay)


class Batching(Bit, frozen=True, kw_only=True):
    """Ids in groups, for detail requests (ch. 4.6)."""

    id_batch_size: Annotated[int, doc("Ids in one detail request.", 200, ge=1, le=10_000)] = 200
    combine_threshold: Annotated[
        int, doc("Ids are collected over pages until so many wait; 0 fetches after each page.", 200, ge=0)
    ] = 0
    missing_ids: Annotated[MissingIds, doc("What happens to an id for which no record comes back.", "QUARANTINE")] = (
        MissingIds.QUARANTINE
    )


class TwoPhase(Bit, frozen=True, kw_only=True):
    """First ids, then records (ch. 4.6)."""

    enabled: Annotated[bool, doc("The list gives ids; records come from the linked endpoint.", True)] = False
    linked_endpoint: Annotated[
        Name | None,
        doc("The DETAIL endpoint. Without `enabled` it serves UPDATE only.", "fetch"),
    ] = None


class KeyBounds(Bit, frozen=True, kw_only=True):
    """A numeric key of the records, by which the smallest window is read in ranges where it is too deep (ruling I4)."""

    first: Annotated[int, doc("Smallest key that a record may have.", 1, ge=0)]
    last: Annotated[int, doc("Largest key that a record may have.", 99_999_999, ge=1)]


class Planning(Bit, frozen=True, kw_only=True):
    """How a plan is cut into slices and what each slice may use (ch. 4.12, 8)."""

    dimension: Annotated[Dimension, doc("Along what the plan is cut.", "TIME")] = Dimension.AUTO
    max_pages_per_slice: Annotated[
        int, doc("A window that is estimated to need more pages is cut in two.", 200, ge=1)
    ] = 200
    pages_per_slice: Annotated[int, doc("Pages of one slice when cutting by pages.", 200, ge=1)] = 200
    ids_per_slice: Annotated[int, doc("Ids of one slice when cutting by ids.", 1000, ge=1, le=10_000)] = 1000
    hash_buckets: Annotated[
        int,
        doc(
            "Ids are spread over so many buckets, so that a slice touches all parts of the id space.",
            128,
            ge=1,
            le=4096,
        ),
    ] = 1
    max_requests: Annotated[int, doc("Budget of one slice in requests.", 800, ge=1)] = 800
    max_duration_sec: Annotated[int, doc("Budget of one slice in seconds.", 900, ge=1)] = 900
    key_bounds: Annotated[
        KeyBounds | None,
        doc(
            "Where the smallest window passes `limits.maxDepth`, it is read in ranges of this key; the request reads "
            "`${key.from}` and `${key.to}`, which are null otherwise.",
            {"first": 1, "last": 99_999_999},
        ),
    ] = None
    priority: Annotated[
        Priority | None,
        doc("The smaller runs first; HARVEST 100, UPDATE 200, BACKFILL 300 unless given (ruling I1).", 100),
    ] = None
    inventory_limit: Annotated[
        int, doc("Queued tasks of one source, endpoint and operation at which a plan waits (PARTIAL).", 10_000, ge=1)
    ] = 10_000
    spread: Annotated[
        Duration, doc("Tasks of a plan are made due one after the other at this distance, to smooth the load.", "PT1S")
    ] = "PT0S"
    reslice_bytes: Annotated[int, doc("A larger answer asks for smaller slices.", 5_242_880, ge=1024)] = 5 * 1024 * 1024
    reslice_throttled: Annotated[float, doc("A larger share of 429 asks for smaller slices.", 0.05, gt=0, le=1)] = 0.05


class Update(Bit, frozen=True, kw_only=True):
    """Which known records are fetched again (ch. 4.14, 6.3)."""

    stale_after: Annotated[
        Duration | None, doc("Records not looked at for so long are fetched again; absent turns it off.", "P30D")
    ] = None
    rounds: Annotated[
        int, doc("Staleness: a plan takes at most one part in so many of all records, the stalest first.", 30, ge=1)
    ] = 1
    expr_change: Annotated[
        bool, doc("Records made by another mapping than the present one are fetched again.", True)
    ] = True
    signals: Annotated[
        bool, doc("Records that were reported (retracted, merged, incomplete, quarantined) are fetched again.", True)
    ] = True
    max_candidates: Annotated[int, doc("Most records of one plan.", 100_000, ge=1)] = 100_000
