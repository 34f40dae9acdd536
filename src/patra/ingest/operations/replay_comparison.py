"""What a batch was then and is now, line by line, and what to conclude from the lines (14.9.2)."""

from enum import StrEnum
from typing import Any

import msgspec

from patra.ingest.execution.compiled_plan import CompiledPlan
from patra.ingest.extraction.classify import Verdict
from patra.ingest.extraction.response import Listed
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.http.request import Position
from patra.ingest.landing.evidence import body_hash, content_hash
from patra.ingest.landing.page_records import Landing
from patra.ingest.landing.run_state import Phase
from patra.ingest.packs.spec import Spec
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.safety.redact import redact_url

NOT_KEPT = "(not kept)"
SHOWN_IDS = 10


class Weight(StrEnum):
    """What a difference means."""

    DECISIVE = "decisive"
    INFORMATIVE = "informative"  # it may differ although nothing has changed: a total that grows, a time stamp


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the report; `same` is None where there is nothing to compare with."""

    what: str
    then: Any
    now: Any
    same: bool | None
    weight: Weight = Weight.DECISIVE


class SeenBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer holds, by this program."""

    status: int | None
    verdict: Verdict
    listed: Listed | None
    landing: Landing
    body: bytes | None


class ReplayedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch with what it takes to do it again."""

    evidence: dict[str, Any]
    fingerprint: str
    spec: Spec
    course: CompiledPlan
    line: EndpointClient
    at: Position
    phase: Phase

    @property
    def all_answered(self) -> dict[str, Any]:
        return self.evidence["response_digest"]


def compared_lines(batch: ReplayedBatch, seen: SeenBatch) -> list[Compared]:
    then, listed = batch.all_answered, seen.listed
    token, url = (listed.token, listed.url) if listed is not None else (None, None)
    landed = batch.evidence["status_code"] == "SUCCEEDED"

    def line(what: str, was: Any, now: Any, weight: Weight = Weight.DECISIVE, *, known: bool = True) -> Compared:
        return Compared(
            what=what, then=was if known else NOT_KEPT, now=now, same=was == now if known else None, weight=weight
        )

    return [
        line("status", then["status"], seen.status),
        line("verdict", then["verdict"]["code"], seen.verdict.code.value),
        line("records", then["itemsCount"], len(listed.items or ()) if listed is not None else 0),
        line("ids", then.get("idsHash"), seen.landing.digest, known=landed and "idsHash" in then),
        line("content", then.get("contentHash"), content_hash(seen.landing), known=landed and "contentHash" in then),
        line("next", bool(then.get("nextTokenHint") or then.get("nextUrlHint")), bool(token or url)),
        # providers may make a new token for every request: the same page, another name for the next one
        line("nextToken", then.get("nextTokenHint"), token, Weight.INFORMATIVE),
        line("nextUrl", then.get("nextUrlHint"), None if url is None else redact_url(url), Weight.INFORMATIVE),
        line("hasMore", then.get("hasMoreHint"), listed.has_more if listed is not None else None),
        line("total", then.get("totalHint"), listed.total if listed is not None else None, Weight.INFORMATIVE),
        line(
            "body",
            then.get("bodyHash"),
            None if seen.body is None else f"sha256:{body_hash(seen.body)}",
            Weight.INFORMATIVE,
        ),
    ]


def conclusion_of(compared: list[Compared], seen: SeenBatch | None, batch: ReplayedBatch) -> RunReason:
    if compared[0].same is False:
        return RunReason.REPLAY_REQUEST
    if seen is None:
        return RunReason.REPLAY_UNANSWERED
    if all(one.same is not False for one in compared if one.weight is Weight.DECISIVE):
        return RunReason.REPLAY_EQUAL
    answered = seen.verdict.level is None or batch.all_answered["verdict"]["level"] is not None
    return RunReason.REPLAY_CHANGED if answered else RunReason.REPLAY_UNANSWERED


def moved_ids(before: SeenBatch | None, seen: SeenBatch | None, *, kept: bool) -> tuple[list[str], list[str]]:
    """The ids that were removed and added, where the body was kept for comparison."""
    if before is None or seen is None or kept:
        return [], []
    then, now = before.landing.ids, seen.landing.ids
    gone = [one for one in then if one not in set(now)]
    came = [one for one in now if one not in set(then)]
    return gone[:SHOWN_IDS], came[:SHOWN_IDS]
