"""A fetched answer and where it leads go in; a committed batch comes out, measured and logged (ch. 9.3, 14.3).

A `Book` keeps what one run must count: the number of its batches, its stats, and requests that landed nothing, which
count with the next batch. Everything that a batch does is one transaction (`commits.land`).
"""

from typing import Any
from zlib import crc32

import msgspec
from msgspec.structs import replace

from patra.ingest import commits, measures
from patra.ingest.classify import Action, Verdict
from patra.ingest.codes import PaginationType
from patra.ingest.commits import Batch, Committed, Work
from patra.ingest.course import Course, Options
from patra.ingest.evidence import batch_stats, body_hash, error_of, request_digest, response_digest
from patra.ingest.fetching import Fetched, Tally
from patra.ingest.landing import Landing
from patra.ingest.line import Line
from patra.ingest.machines import TaskOn
from patra.ingest.paging import Place, stateful
from patra.ingest.reasons_running import X
from patra.ingest.records import Sorted, packed
from patra.ingest.running_store import Taken
from patra.ingest.runs import DONE, BatchStatus, Checkpoint, Closing, Phase, RunOn, Stats
from patra.ingest.services import Services
from patra.ingest.steps import Step
from patra.kernel.canonical import sha256_hex
from patra.kernel.db import Database
from patra.kernel.telemetry import get_logger

log = get_logger()

RENEWALS = 10
"""A lease is held on to that often in its time: not with every batch, nor so seldom that a slow answer outlasts it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A batch as it is known before it is written."""

    line: Line
    phase: Phase
    place: Place
    fetched: Fetched
    landing: Landing
    step: Step
    started: int
    items: int = 0


class Book:
    """What one run counts, and the one place that writes its batches."""

    def __init__(self, db: Database, services: Services, course: Course, taken: Taken, options: Options) -> None:
        self._db = db
        self._s = services
        self._spec = course.spec
        self._taken = taken
        self._log = log.bind()  # as it is set up now: most lines of batches are below its level, and cost nothing then
        self._options = options
        self._work = Work(
            spec=course.spec,
            taken=taken,
            ttl=options.ttl,
            publish=options.publish,
            server_clock=options.server_clock,
        )
        self._renewed = 0
        self.stats = Stats()
        self.batches = 0
        self.carried = Tally()
        self.used: dict[str, int] = {}
        """Permits by rate key, for those that have a quota, since the last batch."""
        self.landed: dict[str, Any] = {}
        """What the last batch says of itself in a trace (14.6)."""

    def carry(self, tally: Tally) -> None:
        """A request whose answer lands nothing counts with the next batch."""
        self.carried = added(self.carried, tally)

    def use(self, key: str, permits: int) -> None:
        """What a request has used of a quota is booked with the next batch."""
        self.used[key] = self.used.get(key, 0) + permits

    def healing(self, acts: tuple[X, ...]) -> None:
        """Something was done about the state of things: it is counted and logged."""
        for act in acts:
            name = _heal_name(act)
            self.stats.healed[name] = self.stats.healed.get(name, 0) + 1
            self.stats.rate_adjusted = self.stats.rate_adjusted or act is X.QPS_DOWNSHIFT
            if act in {X.CONCURRENCY_DOWN, X.QPS_DOWNSHIFT}:  # 9.7: too many 429 bound both
                self._s.crowds.lower(self._taken.task.partition_key, self._s.clock.now())
            measures.SELF_HEAL.labels(type=name).inc()
            log.warning("ingest_self_heal", act=act.value, type=name, run_id=self._taken.run_id)

    def land(self, entry: Entry, before: Checkpoint) -> Closing | None:
        """Commit a batch; gives the end of the run, if it is one. `before` is the checkpoint that it came from."""
        line, step, landing, fetched = entry.line, entry.step, entry.landing, entry.fetched
        self.healing(step.healed)
        tally = added(self.carried, fetched.tally)
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

        renew = not 0 <= now - self._renewed < self._options.ttl // RENEWALS  # nor where the clock was set back
        begun = self._s.clock.now()
        committed: Committed = self._db.run(
            lambda tx: commits.land(
                tx,
                self._work,
                batch,
                landing,
                step.confirm,
                step.checkpoint,
                stats,
                stats_of,
                step.closing,
                now,
                self.used,
                renew=renew,
            )
        )
        self._renewed = now if renew else self._renewed
        line.meter(measures.BOOKKEEPING).observe((self._s.clock.now() - begun) / 1000)
        self.landed = {
            "page": place_no(entry.place),
            "pageToken": entry.place.token,
            "hasNext": step.has_next,
            "status": step.status.value,
            "http.status": fetched.answer.status if fetched.answer is not None else None,
            "error.level": fetched.verdict.level,
        }
        if committed.cancelled:
            return self.close(Closing(run=RunOn.CANCEL, task=TaskOn.CANCEL, code=X.CANCELLED), before)
        self.stats = committed.stats
        self.carried = Tally()
        self.used = {}
        self._s.pulses.of(line.circuit_key).batch(now, now - entry.started)
        _measure(line, committed, landing, now - entry.started)
        self._tell(batch, committed, landing)
        return step.closing

    def close(self, closing: Closing, checkpoint: Checkpoint) -> Closing:
        """End the run without a batch."""
        now = self._s.clock.now()
        self.stats.add_fetch(self.carried)
        self._db.run(lambda tx: commits.close(tx, self._work, closing, checkpoint, self.stats, now, self.used))
        self.used = {}
        return closing

    def _batch(self, entry: Entry, before: Checkpoint) -> Batch:
        line, phase, place, step, fetched = entry.line, entry.phase, entry.place, entry.step, entry.fetched
        answer, verdict = fetched.answer, fetched.verdict
        following = step.following
        kept = self._options.keep_bodies and answer is not None and len(answer.body) <= self._options.max_body
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
            request=request_digest(line, fetched.at),
            response=response_digest(line, fetched, has_next=step.has_next, landing=entry.landing),
            body_hash=body_hash(answer.body) if kept and answer else None,
            body=packed(answer.body) if kept and answer else None,
            code=_code(verdict, step),
            level=verdict.level,
            error=error_of(verdict),
        )

    def _before_key(self, phase: Phase, place: Place, step: Step, before: Checkpoint) -> str | None:
        """What is unique about a page of a chained list within its run: its token or URL, in its turn."""
        pagination = self._spec.pagination
        if phase is not Phase.LIST or pagination.type not in {PaginationType.TOKEN, PaginationType.URL}:
            return None
        again = stateful(pagination) or step.status is not BatchStatus.SUCCEEDED or place.reread
        turn = f"#{self.batches}" if again else ""
        return sha256_hex(f"{place.passes}|{before.restarts}|{place.token or place.url or ''}{turn}")[:32]

    def _tell(self, batch: Batch, committed: Committed, landing: Landing) -> None:
        out = committed.sorted
        write = (
            self._log.warning
            if batch.level is not None
            else self._log.info
            if sampled(self._taken.run_id, batch.no)
            else self._log.debug
        )
        write(
            "ingest_batch",
            run_id=self._taken.run_id,
            batch_no=batch.no,
            correlation_id=f"ing-{self._taken.run_id}-{batch.no}",
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


def sampled(run_id: str, batch_no: int) -> bool:
    """One successful batch of a hundred is logged at INFO, the same ones every time; the others at DEBUG (14.5)."""
    return crc32(f"{run_id}/{batch_no}".encode()) % 100 == 0


def place_no(place: Place) -> int:
    """The page's number for people: as the provider counts, or from the first on."""
    return place.page if place.page is not None else place.index + 1


def added(one: Tally, other: Tally) -> Tally:
    """Both together; the later view of the rate gate counts."""
    out = Tally(view=other.view or one.view, longest=max(one.longest, other.longest))
    for field in ("requests", "retries", "throttled", "retry_after_hits", "told", "permits", "waited", "latency",
                  "wire_bytes", "circuit_opened", "demoted", "quota_soft", "quota_hard", "refused"):  # fmt: skip
        setattr(out, field, getattr(one, field) + getattr(other, field))
    return out


_HEAL_NAMES = {
    X.QPS_DOWNSHIFT: "qpsDownshift",
    X.RESLICE: "reslice",
    X.CIRCUIT_OPEN: "circuitOpen",
    X.CONCURRENCY_DOWN: "concurrencyDown",
    X.PAGE_SHRINK: "pageSizeShrink",
    X.HALTED: "halt",
    X.TASK_STOPPED: "taskStop",
    X.DRIFTED: "reread",
}


def _heal_name(act: X) -> str:
    return _HEAL_NAMES.get(act, act.name.lower())


def _code(verdict: Verdict, step: Step) -> X:
    if verdict.level is not None or verdict.action is Action.RESTART:
        return verdict.code
    if step.closing is not None and step.closing is not DONE:
        return step.closing.code
    return X.NEXT if step.has_next else X.DONE


def _measure(line: Line, committed: Committed, landing: Landing, latency: int) -> None:
    out = committed.sorted
    line.meter(measures.BATCHES).inc()
    line.meter(measures.BATCH_LATENCY).observe(latency / 1000)
    counts = {
        "insert": len(out.new),
        "update": len(out.newer),
        "skip": len(out.equal) + len(out.older) + out.repeated + landing.outside,
        "quarantine": len(landing.bad),
    }
    if landing.bad:
        measures.ERRORS.labels(level="L3", **line.labels).inc(len(landing.bad))
    for action, count in counts.items():
        if count:
            line.meter(measures.ITEMS, action).inc(count)


def _plain(text: str | None) -> str | None:
    """PostgreSQL's text cannot hold U+0000."""
    return None if text is None else text.replace("\0", "\ufffd")
