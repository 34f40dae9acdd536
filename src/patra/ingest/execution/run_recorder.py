"""Turns a fetched answer and where it leads into a committed batch, measured and logged (ch. 9.3, 14.3).

A `RunRecorder` keeps what one run must count: the number of its batches, its stats, and requests that landed nothing,
which count with the next batch. Everything that a batch does is one transaction (`batch_commit.land`).
"""

from typing import Any
from zlib import crc32

import msgspec
from msgspec.structs import replace

from patra.ingest.execution.on_success import Step
from patra.ingest.execution.run_context import RunContext
from patra.ingest.extraction.classify import Action, Verdict
from patra.ingest.extraction.completeness import Ledger
from patra.ingest.extraction.pagination import PagePosition
from patra.ingest.fetching import metrics
from patra.ingest.fetching.endpoint_client import EndpointClient
from patra.ingest.fetching.fetch import Fetched
from patra.ingest.fetching.sender import Tally
from patra.ingest.landing import batch_commit
from patra.ingest.landing.batch_commit import Batch, BatchCommit, Committed, RunEnd
from patra.ingest.landing.evidence import batch_stats, body_hash, error_of, request_digest, response_digest
from patra.ingest.landing.page_records import Landing
from patra.ingest.landing.records import Sorted, pack_body
from patra.ingest.landing.run_state import DONE, BatchStatus, Checkpoint, Closing, Phase, Stats
from patra.ingest.planning.limits import back_pressure
from patra.ingest.vocabulary.codes import PaginationType, RepeatedToken
from patra.ingest.vocabulary.run_reasons import RunReason
from patra.kernel.canonical import sha256_hex
from patra.kernel.safety.known_secrets import holds_secret
from patra.kernel.telemetry import get_logger

log = get_logger()

RENEWALS_PER_LEASE = 10
"""A lease is held on to that often in its time: not with every batch, nor so seldom that a slow answer outlasts it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as it is known before it is written."""

    line: EndpointClient
    phase: Phase
    place: PagePosition
    fetched: Fetched
    landing: Landing
    step: Step
    started: int
    items: int = 0


class RunRecorder:
    """What one run counts, and the one place that writes its batches."""

    def __init__(self, context: RunContext) -> None:
        self._run = context
        self._db = context.db
        self._s = context.services
        self._log = log.bind()  # as it is set up now: most lines of batches are below its level, and cost nothing then
        self._options = context.options
        self._renewed = 0
        self.stats = Stats()
        self.batches = 0
        self.ledger: Ledger | None = None
        """The state of the window after the last batch."""
        self.carried = Tally()
        self.used: dict[str, int] = {}
        """Permits by rate key, for those that have a quota, since the last batch."""
        self.landed: dict[str, Any] = {}
        """What the last batch says of itself in a trace (14.6)."""

    def carry(self, tally: Tally) -> None:
        """A request whose answer lands nothing counts with the next batch."""
        self.carried = add_tallies(self.carried, tally)

    def use(self, key: str, permits: int) -> None:
        """What a request has used of a quota is booked with the next batch."""
        self.used[key] = self.used.get(key, 0) + permits

    def healing(self, acts: tuple[RunReason, ...]) -> None:
        """Something was done about the state of things: it is counted and logged."""
        for act in acts:
            name = _heal_name(act)
            self.stats.healed[name] = self.stats.healed.get(name, 0) + 1
            self.stats.rate_adjusted = self.stats.rate_adjusted or act is RunReason.QPS_DOWNSHIFT
            if act in {RunReason.CONCURRENCY_DOWN, RunReason.QPS_DOWNSHIFT}:  # 9.7: too many 429 bound both
                partition, now = self._run.task.task.partition_key, self._s.clock.now()
                self._s.limiters.lower(partition, now)
                if self._s.pressures.due(partition, now):
                    self._db.run(lambda tx, p=partition, a=act, n=now: back_pressure.add(tx, p, a.value, n))
            metrics.SELF_HEAL.labels(type=name).inc()
            log.warning("ingest_self_heal", act=act.value, type=name, run_id=self._run.run_id)

    def land(self, entry: Entry, before: Checkpoint) -> Closing | None:
        """Commit a batch; gives the end of the run, if it is one. `before` is the checkpoint that it came from."""
        line, step, landing, fetched = entry.line, entry.step, entry.landing, entry.fetched
        self.healing(step.healed)
        tally = add_tallies(self.carried, fetched.tally)
        stats = replace(self.stats, healed=dict(self.stats.healed))
        stats.add_fetch(tally)
        stats.has_next_last = step.has_next
        self.batches += 1
        batch = self._batch(entry, before)
        now = self._s.clock.now()
        following = step.following
        hint = {"token": following.token, "page": following.page, "url": following.url} if following else {}
        healed = {_heal_name(act): True for act in step.healed}
        if tally.demoted:
            healed["qpsDownshift"] = True

        def stats_of(out: Sorted) -> str:
            return batch_stats(
                fetched, tally, out, len(landing.bad), entry.items, landing.outside,
                has_next=step.has_next, next_hint=hint, latency=now - entry.started, healed=healed,
            )  # fmt: skip

        renew = (
            not 0 <= now - self._renewed < self._options.ttl // RENEWALS_PER_LEASE
        )  # nor where the clock was set back
        begun = self._s.clock.now()
        commit = BatchCommit(
            work=self._run.work,
            batch=batch,
            landing=landing,
            confirm=step.confirm,
            checkpoint=step.checkpoint,
            stats=stats,
            stats_of=stats_of,
            closing=step.closing,
            now=now,
            used=self.used,
            renew=renew,
        )
        committed: Committed = self._db.run(lambda tx: batch_commit.land(tx, commit))
        self._renewed = now if renew else self._renewed
        took = self._s.clock.now() - begun
        line.meter(metrics.BOOKKEEPING).observe(took / 1000)
        self.landed = {
            "page": place_no(entry.place),
            "token": entry.place.token,
            "hasNext": step.has_next,
            "status": step.status.value,
            "http.status": fetched.answer.status if fetched.answer is not None else None,
            "error.level": fetched.verdict.level,
        }
        self.stats = committed.stats
        self.ledger = committed.ledger
        self.carried = Tally()
        self.used = {}
        self._s.pulses.of(line.circuit_key).batch(now, now - entry.started, took)
        if committed.cursor is RunReason.ADVANCED:
            metrics.CURSOR_EVENTS.labels(direction=self._run.plan.spec.cursor.direction.value).inc()
        _measure(line, committed, landing, now - entry.started)
        self._tell(batch, committed, landing)
        return step.closing

    def close(self, closing: Closing, checkpoint: Checkpoint) -> Closing:
        """End the run without a batch."""
        now = self._s.clock.now()
        self.stats.add_fetch(self.carried)
        end = RunEnd(
            work=self._run.work, closing=closing, checkpoint=checkpoint, stats=self.stats, now=now, used=self.used
        )
        self._db.run(lambda tx: batch_commit.close(tx, end))
        self.used = {}
        return closing

    def _batch(self, entry: Entry, before: Checkpoint) -> Batch:
        line, phase, place, step, fetched = entry.line, entry.phase, entry.place, entry.step, entry.fetched
        answer, verdict = fetched.answer, fetched.verdict
        following = step.following
        kept = (
            self._options.keep_bodies
            and answer is not None
            and len(answer.body) <= self._options.max_body
            and not holds_secret(answer.body)
        )
        return Batch(
            no=self.batches,
            phase=phase,
            status=step.status,
            page_no=place.page,
            page_size=place.size,
            offset=place.offset,
            before_token=_plain(place.token),
            after_token=_plain(following.token) if following else None,
            before_url=_plain(place.url),
            next_url=_plain(following.url) if following else None,
            before_key=self._before_key(phase, place, step, before),
            list_page=place.index if _goes_on(phase, step) else None,
            request=request_digest(line, fetched.at),
            response=response_digest(line, fetched, has_next=step.has_next, landing=entry.landing),
            body_hash=body_hash(answer.body) if kept and answer else None,
            body=pack_body(answer.body) if kept and answer else None,
            code=_code(verdict, step),
            level=verdict.level,
            error=error_of(verdict),
        )

    def _before_key(self, phase: Phase, place: PagePosition, step: Step, before: Checkpoint) -> str | None:
        """What is unique about a page of a chained list within its run: its token or URL, in its turn."""
        pagination = self._run.plan.spec.pagination
        if phase is not Phase.LIST or pagination.type not in {PaginationType.TOKEN, PaginationType.URL}:
            return None
        repeats = pagination.repeated_token is RepeatedToken.CONTINUE or place.reread or before.ranges.todo
        again = repeats or step.status is not BatchStatus.SUCCEEDED
        turn = f"#{self.batches}" if again else ""
        return sha256_hex(f"{place.passes}|{before.restarts}|{place.token or place.url or ''}{turn}")[:32]

    def _tell(self, batch: Batch, committed: Committed, landing: Landing) -> None:
        out = committed.sorted
        write = (
            self._log.warning
            if batch.level is not None
            else self._log.info
            if is_sampled(self._run.run_id, batch.no)
            else self._log.debug
        )
        write(
            "ingest_batch",
            run_id=self._run.run_id,
            batch_no=batch.no,
            correlation_id=self._run.correlation_id(batch.no),
            phase=batch.phase.value,
            status=batch.status.value,
            code=batch.code.value,
            level=batch.level,
            inserted=len(out.new),
            updated=len(out.newer),
            equal=len(out.equal),
            older=len(out.older),
            quarantined=len(landing.bad),
            cursor=committed.cursor.value if committed.cursor else None,
            error=batch.error,
        )


def is_sampled(run_id: str, batch_no: int) -> bool:
    """One successful batch of a hundred is logged at INFO, the same ones every time; the others at DEBUG (14.5)."""
    return crc32(f"{run_id}/{batch_no}".encode()) % 100 == 0


def place_no(place: PagePosition) -> int:
    """The page's number for people: as the provider counts, or from the first on."""
    return place.page if place.page is not None else place.index + 1


def add_tallies(one: Tally, other: Tally) -> Tally:
    """Both together; the later view of the rate gate counts."""
    out = Tally(view=other.view or one.view, longest=max(one.longest, other.longest))
    for field in ("requests", "retries", "throttled", "retry_after_hits", "told", "permits", "waited", "latency",
                  "wire_bytes", "circuit_opened", "demoted", "quota_soft", "quota_hard", "refused"):  # fmt: skip
        setattr(out, field, getattr(one, field) + getattr(other, field))
    return out


_HEAL_NAMES = {
    RunReason.QPS_DOWNSHIFT: "qpsDownshift",
    RunReason.RESLICE: "reslice",
    RunReason.KEY_RANGES: "keyRanges",
    RunReason.CIRCUIT_OPEN: "circuitOpen",
    RunReason.CONCURRENCY_DOWN: "concurrencyDown",
    RunReason.PAGE_SHRINK: "pageSizeShrink",
    RunReason.HALTED: "halt",
    RunReason.TASK_STOPPED: "taskStop",
    RunReason.DRIFTED: "reread",
}


def _heal_name(act: RunReason) -> str:
    return _HEAL_NAMES.get(act, act.name.lower())


def _code(verdict: Verdict, step: Step) -> RunReason:
    if verdict.level is not None or verdict.action is Action.RESTART:
        return verdict.code
    if step.closing is not None and step.closing is not DONE:
        return step.closing.code
    return RunReason.NEXT if step.has_next else RunReason.DONE


def _measure(line: EndpointClient, committed: Committed, landing: Landing, latency: int) -> None:
    out = committed.sorted
    if committed.repeated:
        line.meter(metrics.IDEMPOTENCY_HITS).inc()
        return
    line.meter(metrics.BATCHES).inc()
    line.meter(metrics.BATCH_LATENCY).observe(latency / 1000)
    counts = {
        "insert": len(out.new),
        "update": len(out.newer),
        "skip": len(out.equal) + len(out.older) + out.repeated + landing.outside,
        "quarantine": committed.quarantined,
    }
    if committed.quarantined:
        metrics.ERRORS.labels(level="L3", **line.labels).inc(committed.quarantined)
    for action, count in counts.items():
        if count:
            line.meter(metrics.ITEMS, action).inc(count)


def _goes_on(phase: Phase, step: Step) -> bool:
    """Whether a page landed and the list goes on behind it."""
    landed = phase is Phase.LIST and step.status is BatchStatus.SUCCEEDED
    return landed and not step.checkpoint.over and step.checkpoint.place.index > 0


def _plain(text: str | None) -> str | None:
    """PostgreSQL's text cannot hold U+0000."""
    return None if text is None else text.replace("\0", "\ufffd")
