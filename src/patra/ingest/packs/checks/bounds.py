"""What the provider allows, and the two phases (ch. 3.3.3, 4.6, 4.17 no. 4 and 6)."""

from collections.abc import Iterator

from patra.ingest.packs.checks.draft import Draft
from patra.ingest.packs.problems import Problem, TreePath
from patra.ingest.vocabulary.codes import Operation, Role
from patra.ingest.vocabulary.reasons import Reason


def check_limits(draft: Draft) -> Iterator[Problem]:
    """Nothing asks for more than `limits` says."""
    at, limits = draft.at, draft.at.limits
    authenticated, identified = at.rate_limit.authenticated, at.rate_limit.identified
    asked: list[tuple[TreePath, float | None, float | None]] = [
        (("retry", "maxAttempts"), at.retry.max_attempts, limits.max_attempts),
        (("rateLimit", "refillRatePerSec"), at.rate_limit.refill_rate_per_sec, limits.max_rate_per_sec),
        (
            ("rateLimit", "authenticated", "refillRatePerSec"),
            authenticated.refill_rate_per_sec,
            limits.max_rate_per_sec,
        ),
        (("rateLimit", "identified", "refillRatePerSec"), identified.refill_rate_per_sec, limits.max_rate_per_sec),
        (("rateLimit", "maxConcurrency"), at.rate_limit.max_concurrency, limits.max_concurrency),
        (("rateLimit", "authenticated", "maxConcurrency"), authenticated.max_concurrency, limits.max_concurrency),
        (("rateLimit", "quotaDaily"), at.rate_limit.quota_daily, limits.quota_daily),
        (("rateLimit", "quotaHourly"), at.rate_limit.quota_hourly, limits.quota_hourly),
        (("rateLimit", "authenticated", "quotaDaily"), authenticated.quota_daily, limits.quota_daily),
        (("rateLimit", "authenticated", "quotaHourly"), authenticated.quota_hourly, limits.quota_hourly),
    ]
    if draft.lists:
        asked.append((("pagination", "pageSize"), at.pagination.page_size, limits.max_page_size))
        size, pages = at.pagination.page_size, at.pagination.max_page
        if size and pages and limits.max_depth and size * pages > limits.max_depth and not at.pagination.bridge_to_time:
            yield draft.error(
                Reason.LIMIT_EXCEEDED,
                ("pagination", "maxPage"),
                f"{pages} pages of {size} pass the provider's depth of {limits.max_depth}",
                f"maxPage: {limits.max_depth // size}",
            )
    if draft.second:
        asked.append((("batching", "idBatchSize"), at.batching.id_batch_size, limits.max_id_batch))
    for path, value, most in asked:
        if value is not None and most is not None and value > most:
            yield draft.error(
                Reason.LIMIT_EXCEEDED,
                path,
                f"{value:g} is more than the provider allows ({most:g})",
                f"{path[-1]}: {most:g}",
            )
    rate = at.rate_limit
    if rate.identified.param is not None and rate.identified.param not in at.params:
        yield draft.error(
            Reason.PARAM_INVALID,
            ("rateLimit", "identified", "param"),
            f"there is no parameter {rate.identified.param}",
            f"one of {', '.join(at.params)}" if at.params else "declare it under params",
        )
    if rate.min_rate_per_sec > rate.refill_rate_per_sec:
        yield draft.error(
            Reason.LIMIT_EXCEEDED,
            ("rateLimit", "minRatePerSec"),
            f"the least rate {rate.min_rate_per_sec:g} is above the rate {rate.refill_rate_per_sec:g}",
            "lower minRatePerSec",
        )


def check_two_phase(draft: Draft, detail_reads: frozenset[str]) -> Iterator[Problem]:
    """`detail_reads` are the names that the detail request reads."""
    if draft.second:
        return
    two_phase = draft.at.two_phase
    linked = two_phase.linked_endpoint
    if linked is None and draft.detail is None:
        if two_phase.enabled:
            yield draft.error(
                Reason.TWO_PHASE_INCOMPLETE,
                ("twoPhase", "linkedEndpoint"),
                "two phases need the DETAIL endpoint",
                "linkedEndpoint: fetch",
            )
        elif draft.operation is Operation.UPDATE:
            yield draft.error(
                Reason.TWO_PHASE_INCOMPLETE,
                ("twoPhase", "linkedEndpoint"),
                "UPDATE fetches records by id and needs a DETAIL endpoint",
                "give twoPhase.linkedEndpoint (with enabled: false it serves UPDATE only)",
            )
        return
    endpoint = draft.pack.endpoints.get(linked or draft.name)
    if endpoint is None:
        yield draft.error(
            Reason.TWO_PHASE_INCOMPLETE,
            ("twoPhase", "linkedEndpoint"),
            f"there is no endpoint {linked!r}",
            f"known: {', '.join(draft.pack.endpoints)}",
        )
        return
    if endpoint.role is not Role.DETAIL:
        yield draft.error(
            Reason.TWO_PHASE_INCOMPLETE,
            ("twoPhase", "linkedEndpoint"),
            f"{linked} has the role {endpoint.role}, not DETAIL",
            f"endpoints.{linked}.role: DETAIL",
        )
    detail = draft.detail
    if detail is None:
        return
    if not detail_reads & {"ids", "id"}:
        yield detail.error(
            Reason.TWO_PHASE_INCOMPLETE,
            ("http", "queryTemplate"),
            "nothing in the detail request reads ids or id",
            "put ${join(ids, ',')} or ${id} into query, path or body",
        )
    elif "ids" not in detail_reads and detail.at.batching.id_batch_size != 1:
        yield detail.error(
            Reason.TWO_PHASE_INCOMPLETE,
            ("batching", "idBatchSize"),
            "the detail request takes one id, but ids come in groups",
            "idBatchSize: 1",
        )
