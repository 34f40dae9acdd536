"""The rate key and policy of a leg of the snapshot, and the signal that an answer's headers give.

Providers spell their limits in many ways: the pack's names go first, then the spellings that are common.
A reset is seconds from now, an epoch in seconds or milliseconds, or a date; its size shows where the pack is wrong
about it. `Retry-After` counts on refusals only: some providers send it with every answer.
"""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from patra.ingest.packs.sections import Limits, RateHeaders, RateLimit
from patra.ingest.packs.spec import Leg
from patra.ingest.ratelimit.token_bucket import Policy, Sign, Signal
from patra.ingest.vocabulary.codes import Operation, RateScope, ResetKind
from patra.kernel.clock import SECOND, parse_duration, parse_instant

Headers = Mapping[str, str]
"""Header names in small letters."""

_REMAINING = ("x-ratelimit-remaining", "x-rate-limit-remaining", "ratelimit-remaining")
_RESET = ("x-ratelimit-reset", "x-rate-limit-reset", "ratelimit-reset")
_LIMIT = ("x-rate-limit-limit", "x-ratelimit-limit", "ratelimit-limit")
_INTERVAL = ("x-rate-limit-interval", "x-ratelimit-interval")
_CONCURRENCY = ("x-concurrency-limit",)
_MAX_RESET_S = 366 * 86_400  # a larger number is an instant, not a span


def rate_key(source: str, leg: Leg, *, authenticated: bool) -> str:
    """`(provenance_code, endpoint_name [, credential_id])`, wider or narrower as the pack's scope says (4.10.2)."""
    parts = [source]
    match leg.rate_limit.scope:
        case RateScope.ENDPOINT:
            parts.append(leg.endpoint_code)
        case RateScope.HOST:
            parts = [f"host:{urlsplit(leg.http.base_url).netloc.lower()}"]
        case RateScope.SOURCE:
            pass
    if leg.rate_limit.per_credential and authenticated and leg.auth.credential_ref:
        parts.append(leg.auth.credential_ref)
    return "|".join(parts)


def rate_policy(rate: RateLimit, limits: Limits, *, authenticated: bool) -> Policy:
    """What the pack allows, in the machine's integers; with the credential its other limits hold."""
    more = rate.authenticated if authenticated else None
    per_sec = (more and more.refill_rate_per_sec) or rate.refill_rate_per_sec
    burst = (more and more.burst_capacity) or rate.burst_capacity
    declared = max(round(per_sec * 1000), 1)
    lowest = max(round(rate.min_rate_per_sec * 1000), round(declared / rate.demote_rate_max_multiplier), 1)
    return Policy(
        rate=declared,
        burst=max(burst, rate.cost),
        warmup=round(rate.warmup_sec * SECOND),
        quantum=rate.quantum,
        demote=round(rate.demote_rate * 1000),
        floor=min(lowest, declared),
        step=max(round(rate.recover_step_per_sec * 1000), 1),
        calm=max(parse_duration(rate.cool_down), 1),
        quota_hour=(more and more.quota_hourly) or rate.quota_hourly or 0,
        quota_day=(more and more.quota_daily) or rate.quota_daily or 0,
        concurrency=(more and more.max_concurrency) or limits.max_concurrency or 0,
    )


def quota_share(rate: RateLimit, operation: Operation) -> int:
    """Thousandths of a quota that the operation may use up (4.10.5: HARVEST before UPDATE before BACKFILL)."""
    return round(rate.quota_share.get(operation, 1.0) * 1000)


def signal_of(
    status: int | None,
    headers: Headers,
    spelling: RateHeaders,
    *,
    adaptive: bool,
    now: int,
    permit: str,
    allowed_at: int,
) -> Signal:
    """What an answer, or its absence (`status` None), says to the gate."""
    refused = status is None or status >= 300
    sign = Sign.OK
    if status == 429:
        sign = Sign.HTTP_429
    elif status is None or status in {500, 502, 503, 504}:
        sign = Sign.TRANSIENT_5XX
    retry_after = retry_after_of(headers, now) if refused else None
    if not adaptive:
        return Signal(sign=sign, permit=permit, allowed_at=allowed_at, retry_after=_or(retry_after))
    structured = _parse_structured(headers)
    remaining = _count(_header_value(headers, spelling.remaining, _REMAINING))
    reset = _reset(_header_value(headers, spelling.reset, _RESET), spelling.reset_kind, now)
    return Signal(
        sign=sign,
        permit=permit,
        allowed_at=allowed_at,
        retry_after=_or(retry_after),
        remaining=_or(remaining if remaining is not None else structured.get("remaining")),
        reset=_or(reset if reset is not None else _after(structured.get("reset"), now)),
        limit=_or(_limit(headers, spelling)),
        concurrency=_or(_count(_header_value(headers, spelling.concurrency, _CONCURRENCY))),
        cost=max((_count(_header_value(headers, spelling.cost, ())) or 1) - 1, 0),
    )


def retry_after_of(headers: Headers, now: int) -> int | None:
    """The span of `Retry-After`: seconds or an HTTP date; 0 is a span, nonsense is None.

    So is more than a year: after one slip of its provider (`31 Dec 9999`) a source would never be asked again.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,6})?", text):
        span = int(float(text) * SECOND)
    elif (at := _date(text)) is not None:
        span = max(at - now, 0)
    else:
        return None
    return span if span <= _MAX_RESET_S * SECOND else None


def _or(value: int | None) -> int:
    return -1 if value is None else value


def _after(seconds: int | None, now: int) -> int | None:
    return None if seconds is None else now + seconds * SECOND


def _header_value(headers: Headers, named: str | None, common: tuple[str, ...]) -> str | None:
    for name in ((named.lower(),) if named else ()) + common:
        if (text := headers.get(name)) is not None and text.strip():
            return text.strip()
    return None


def _count(text: str | None) -> int | None:
    """`12`, `12.0`, `12, 12;w=1`: the first number, whole."""
    match = re.match(r"[0-9]{1,15}(?=$|[\s,;.])", text or "")
    return int(match[0]) if match else None


def _reset(text: str | None, kind: ResetKind, now: int) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,16}(\.[0-9]{0,9})?", text):
        return _date(text)
    number = float(text)
    if number >= 100_000_000_000 or (kind is ResetKind.EPOCH_MS and number > _MAX_RESET_S):
        return int(number * 1000)
    if number > _MAX_RESET_S:
        return int(number * SECOND)
    return now + int(number * SECOND)


def _limit(headers: Headers, spelling: RateHeaders) -> int | None:
    """Requests per interval as thousandths of a request a second; a limit without its interval says nothing."""
    count = _count(_header_value(headers, spelling.limit, _LIMIT))
    interval = _header_value(headers, spelling.interval, _INTERVAL)
    match = re.fullmatch(r"([0-9]{1,6})\s*(ms|s|sec|m|min|h|d)?", (interval or "").lower())
    if not count or not match or not int(match[1]):
        return None
    unit = {None: 1000, "ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    return max(count * 1_000_000 // (int(match[1]) * unit[match[2]]), 1)


def _parse_structured(headers: Headers) -> dict[str, int]:
    """The IETF draft's single header: `limit=100, remaining=50, reset=5`, or `"default";r=50;t=30`."""
    text = headers.get("ratelimit", "")
    named = {"r": "remaining", "t": "reset", "remaining": "remaining", "reset": "reset"}
    return {named[m[1]]: int(m[2]) for m in re.finditer(r"\b(remaining|reset|r|t)=([0-9]{1,9})\b", text)}


def _date(text: str) -> int | None:
    if (at := parse_instant(text)) is not None:
        return at
    try:
        parsed = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()) * SECOND
