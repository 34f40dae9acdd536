"""Turns a fetch and what became of it into the digests and counts of its batch row (ch. 14.3, 14.9.1).

Everything that is needed to render the request again stands in the row; nothing that opens a door does: secrets are
`{name}`, addresses and numbers of people are masked, and of the body only a hash and a sample of 1 KB are kept.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from patra.ingest.expressions.escaping import Refused
from patra.ingest.extraction.classify import Verdict, excerpt
from patra.ingest.extraction.response import Listed
from patra.ingest.fetching.endpoint_client import EndpointClient, request_hash
from patra.ingest.fetching.fetch import Fetched
from patra.ingest.fetching.sender import Tally
from patra.ingest.http.request import Position
from patra.ingest.landing.page_records import Landing
from patra.ingest.landing.records import Sorted
from patra.kernel.safety.excerpt import redacted_excerpt
from patra.kernel.safety.redact import redact, redact_text, redact_url

SAMPLE_BYTES = 1024
_HINTS = ("retry-after", "x-ratelimit-remaining", "x-ratelimit-limit", "x-ratelimit-reset", "x-rate-limit-limit",
          "x-rate-limit-interval", "x-concurrency-limit", "content-type", "etag", "last-modified", "date",
          "link")  # fmt: skip


def request_digest(line: EndpointClient, at: Position) -> str:
    """`request_digest`: the request as it may be shown, the hash of all of it, and the place it was rendered at."""
    shown = line.masked_request(at)
    tree: dict[str, Any] = {"at": msgspec.to_builtins(at), "leg": line.leg.endpoint_code}
    if isinstance(shown, Refused):
        tree["refused"] = f"{shown.place}: {shown.detail}"
    else:
        tree |= {
            "method": shown.method,
            "urlTemplate": line.leg.http.base_url + line.leg.http.path_template,
            "query": line.leg.http.query_template,
            "url": redact_url(shown.url),
            "headers": [_header(name, value) for name, value in shown.headers],
            "bodyHash": None if shown.body is None else f"sha256:{sha256(shown.body).hexdigest()}",
            "hash": request_hash(shown),
        }
    return msgspec.json.encode(tree).decode()


@lru_cache(maxsize=256)
def _header(name: str, value: str) -> str:
    """A header as it may be shown; most are the same with every request."""
    return f"{name}: {redact({name: value})[name]}"


def response_digest(line: EndpointClient, fetched: Fetched, *, has_next: bool, landing: Landing | None = None) -> str:
    """`response_digest`: status, what the headers hinted at, where the list stood, hash and sample of the body."""
    answer, listed = fetched.answer, fetched.listed
    tree: dict[str, Any] = {
        "status": answer.status if answer else None,
        "verdict": _verdict(fetched.verdict),
        "itemsPath": line.leg.response.items_path,
        "nextTokenPath": line.leg.pagination.next_token_path,
        "nextUrlPath": line.leg.pagination.next_url_path,
        "hasNext": has_next,
        **_hints(listed),
        **fetched.tally.view,
    }
    if landing is not None and answer is not None:
        tree |= {"idsHash": landing.digest, "contentHash": content_hash(landing)}
    if answer is not None:
        tree["headerHints"] = {name: redact_text(answer.headers[name]) for name in _HINTS if name in answer.headers}
        tree["bodyBytes"] = len(answer.body)
        tree["bodyHash"] = f"sha256:{body_hash(answer.body)}"
        if fetched.document is not None and fetched.document.replaced:
            tree["undecodable"] = fetched.document.replaced
        tree["sample"] = redacted_excerpt(answer.body, SAMPLE_BYTES)
    return msgspec.json.encode(tree).decode()


def body_hash(body: bytes) -> str:
    return sha256(body).hexdigest()


def content_hash(landing: Landing) -> str:
    """The identity of the records of one answer: id, time and content of each, in no order."""
    lines = sorted(f"{r.id}\0{r.updated_at}\0{r.content_hash}" for r in landing.records)
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def batch_stats(
    fetched: Fetched, tally: Tally, sorted_: Sorted, polluted: int, items: int, outside: int,
    *, has_next: bool, next_hint: dict[str, Any], latency: int, healed: dict[str, bool],
) -> str:  # fmt: skip
    """`ing_task_run_batch.stats` (ch. 14.3.2), with the first three ids of each kind as examples."""
    answer = fetched.answer
    return msgspec.json.encode(
        {
            "itemsCount": items,
            "inserted": len(sorted_.new),
            "updated": len(sorted_.newer),
            "updatedSameTime": sorted_.same_time,
            "skipped": len(sorted_.equal) + len(sorted_.older) + sorted_.repeated + outside,
            "equal": len(sorted_.equal),
            "older": len(sorted_.older),
            "repeated": sorted_.repeated,
            "outsideWindow": outside,
            "failed": polluted,
            "latencyMs": latency // 1000,
            "waitMs": tally.waited // 1000,
            "requests": tally.requests,
            "retryCount": tally.retries,
            "429Count": tally.throttled,
            "hasNext": has_next,
            "nextHint": {"token": None, "page": None, "url": None, **next_hint},
            "http": {"status": answer.status if answer else None, "bytes": tally.wire_bytes},
            "selfHealing": {"qpsDownshift": False, "pageSizeShrink": False, **healed},
            "examples": {
                "inserted": [r.id for r in sorted_.new[:3]],
                "updated": [r.id for r, _ in sorted_.newer[:3]],
                "equal": sorted_.equal[:3],
                "older": sorted_.older[:3],
            },
        }
    ).decode()


def error_of(verdict: Verdict) -> str | None:
    """What an operator reads about a failed batch."""
    if verdict.level is None:
        return None
    advice = f" ({verdict.advice})" if verdict.advice else ""
    return f"{verdict.code.value}: {verdict.detail or verdict.code.text}{advice}"


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "code": verdict.code.value,
        "level": verdict.level,
        "action": verdict.action.value,
        "rule": verdict.rule or None,
    }


def _hints(listed: Listed | None) -> dict[str, Any]:
    if listed is None:
        return {"itemsCount": 0}
    return {
        "itemsCount": len(listed.items or ()),
        "totalHint": listed.total,
        "hasMoreHint": listed.has_more,
        "nextTokenHint": listed.token,
        "nextUrlHint": None if listed.url is None else redact_url(listed.url),
    }


__all__ = ["batch_stats", "body_hash", "content_hash", "error_of", "excerpt", "request_digest", "response_digest"]
