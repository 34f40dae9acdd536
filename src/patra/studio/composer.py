"""Turns the parts of a run into the film, `compose.completed` and `artifact.published` (C§2.6). Producer:
Composer.

The film is made under a lease with heartbeats. It is announced only when the file is whole, its hash recorded and its
streams and length checked; a killed composer leaves nothing that counts, and the next one starts where files are.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consuming.consumer import Event
from patra.kernel import leases
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Fenced, PatraError
from patra.kernel.leases import Lease, LeaseTable
from patra.kernel.machine import advance
from patra.kernel.retry import Backoff
from patra.kernel.safety.redact import redact_text
from patra.kernel.telemetry import bind_lineage, get_logger
from patra.studio.film.ambience import sounds_of
from patra.studio.film.chapters import chapters_of
from patra.studio.film.compose import checked_lengths, compose
from patra.studio.film.ffmpeg import Interrupted, Stop, run
from patra.studio.film.quality import QUALITIES, shape_quality
from patra.studio.film.timeline import Clip, lettering_of, timeline_of
from patra.studio.film_parts import Parts, announcements, gather
from patra.studio.gateway import ChapterRequest
from patra.studio.heartbeat import Heartbeat
from patra.studio.script.plan import Plan
from patra.studio.storage import earlier_release, store
from patra.studio.storage.artifacts import ArtifactStore, Manifest
from patra.studio.storage.full_disk import FULL_DISK_PAUSE, is_disk_full
from patra.studio.storage.own_tenant import of_own_tenant
from patra.studio.storage.store import FilmRow, NamedParts, Q
from patra.studio.vocabulary.contracts import (
    VERSIONS,
    Context,
    OutgoingEvent,
    after,
    context_of,
    epoch_of,
    publish,
    run_epoch_of,
)
from patra.studio.vocabulary.reasons import Reason
from patra.studio.vocabulary.stages import FILM, Film, FilmTransition, Stage
from patra.studio.voice.narration import Timing

MODULE = "Composer"  # as the bus knows it (C§5)

log = get_logger()

GROUP = "composer"
FILMS = LeaseTable(
    table="stu_film", id="run_id", partition="owner_kind", priority="priority", due="due_at", ready="state = 'wanted'"
)
LEASE = 30 * SECOND
TRIES = 3
PARTS_PAUSE = 1 * SECOND
BACKOFF = Backoff(base=2 * SECOND, factor=2.0, cap=60 * SECOND)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    published: int = 0
    failed: int = 0
    fenced: int = 0


class Composer:
    def __init__(
        self,
        db: Database,
        bus: Bus,
        artifacts: ArtifactStore,
        worker_id: str,
        chapters: Callable[[Tx, str], ChapterRequest | None],
        plans: Callable[[Tx, str, str], Plan | None],
        *,
        lease: int = LEASE,
    ) -> None:
        """`chapters` gives the chapter of a run, `plans` the plan that an event refers to, by its id and run."""
        self._db = db
        self._chapters = chapters
        self._plans = plans
        self._bus = bus
        self._artifacts = artifacts
        self._id = worker_id
        self._lease = lease
        self._leaving = threading.Event()
        self._no_film_before = 0
        bus.consumer("job.succeeded", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_job))
        bus.consumer("job.failed", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_job))
        bus.consumer("run.stage.changed", group=GROUP, versions=VERSIONS)(of_own_tenant(self.on_stage))

    # ---- events

    def on_job(self, tx: Tx, event: Event) -> None:
        payload = event.payload
        row = {
            "job_id": payload["job_id"],
            "run_id": payload["run_id"],
            "shot_id": payload.get("shot_id", ""),
            "worker_type": payload.get("worker_type", ""),
            "epoch": epoch_of(event),
            "status": payload["status"],
            "profile_id": payload.get("model_profile_id", ""),
            "artifacts": store.text(payload["artifacts"]),
            "error_code": payload.get("error_code") or "",
        }
        tx.upsert_newer("stu_part", [row], key=("job_id",), newer="epoch")
        tx.execute(Q["film_part_came"], {"run_id": payload["run_id"], "now": self._bus.clock.now()})

    def on_stage(self, tx: Tx, event: Event) -> None:
        """A film is wanted, or no longer; what is said of an earlier epoch comes too late."""
        match event.payload["stage"]:
            case Stage.COMPOSING:
                self._compose_wanted(tx, event.payload, run_epoch_of(event), context_of(event))
            case Stage.CANCELLED | Stage.FAILED:
                self.stop(tx, event.payload["run_id"], run_epoch_of(event), context_of(event))
            case _:
                pass

    def _compose_wanted(self, tx: Tx, payload: Mapping[str, Any], epoch: int, context: Context) -> None:
        run_id, parts = payload["run_id"], payload.get("parts")
        attempts = {part["job_id"]: part["attempt"] for part in parts or ()}
        asked = {
            "run_id": run_id,
            "epoch": epoch,
            "context": store.text(context),
            "plan_id": payload.get("plan_id", ""),
            "parts": "" if parts is None else store.text(NamedParts(epoch=epoch, attempts=attempts)),
        }
        now = self._bus.clock.now()
        if tx.insert_absent("stu_film", [asked | {"state": Film.WANTED.value, "due_at": now}], key=("run_id",)):
            return
        film = self._hold_film(tx, run_id)
        if film.epoch >= epoch:
            return
        if FILM.allows(Film(film.state), FilmTransition.CANCEL):  # it was asked for in an earlier epoch
            film = self._move(tx, film, FilmTransition.CANCEL, Reason.CANCELLED)
        self._move(tx, film, FilmTransition.AGAIN, Reason.RERUN)
        tx.execute(Q["film_again"], asked | {"now": now})

    def stop(self, tx: Tx, run_id: str, epoch: int, context: Context) -> bool:
        """No film of this epoch is published any more; gives False where it is published already.

        The end of a run may be heard of before its film is wanted: that it is not wanted any more is kept, too.
        """
        row = {"run_id": run_id, "state": Film.CANCELLED.value, "epoch": epoch, "context": store.text(context)}
        if tx.insert_absent("stu_film", [row], key=("run_id",)):
            return True
        film = self._hold_film(tx, run_id)
        if film.epoch < epoch:
            self._compose_wanted(tx, {"run_id": run_id}, epoch, context)
            film = self._hold_film(tx, run_id)
        if film.epoch == epoch and FILM.allows(Film(film.state), FilmTransition.CANCEL):
            self._move(tx, film, FilmTransition.CANCEL, Reason.CANCELLED)
        return film.epoch > epoch or film.state != Film.PUBLISHED

    def _hold_film(self, tx: Tx, run_id: str) -> FilmRow:
        """A film that nobody else moves until this transaction ends."""
        store.hold_film(tx, run_id)
        film = store.film(tx, run_id)
        assert film is not None  # noqa: S101  films are not deleted
        return film

    # ---- making films

    def leave(self) -> None:
        self._leaving.set()

    def run_once(self) -> Counts:
        """Make one film, if one is wanted and all its parts are there."""
        now = {"now": self._bus.clock.now()}
        if now["now"] < self._no_film_before:
            return Counts()
        taken = self._db.run(self._take_film) if self._db.read(lambda tx: tx.fetch(Q["films_due"], now)) else None
        if taken is None:
            if self._db.read(earlier_release.films_given_up):
                self._db.run(self._say_given_up)
            return Counts()
        film, lease, parts = taken
        with bind_lineage(run_id=film.run_id, task_id=film.context.correlation_id):
            heart = Heartbeat(lease.id, lambda: self._renew(lease), ttl=self._lease, leaving=self._leaving)
            try:
                with heart:
                    manifest = self._make_film(parts, heart.stop)
                self._db.run(lambda tx: self._publish_film(tx, film, lease, manifest, parts))
            except (Interrupted, Fenced):
                self._db.run(lambda tx: self._back(tx, film, lease))
                return Counts(fenced=1)
            except Exception as error:  # noqa: BLE001  a loop's edge: it becomes a recorded reason
                if is_disk_full(error):  # nobody's failure, and it will pass
                    log.warning("studio_folder_full", folder=str(self._artifacts.root))
                    self._no_film_before = self._bus.clock.now() + FULL_DISK_PAUSE
                    self._db.run(lambda tx: self._back(tx, film, lease))
                    return Counts()
                code = str(error.code) if isinstance(error, PatraError) else str(Reason.COMPOSE_FAILED)
                words = redact_text(
                    error.detail if isinstance(error, PatraError) else f"{type(error).__name__}: {error}"
                )
                log.warning("studio_compose_failed", code=code, reason=words)
                self._db.run(lambda tx: self._fail_film(tx, film, lease, code, words[:2000]))
                return Counts(failed=1)
        return Counts(published=1)

    def _renew(self, lease: Lease) -> bool:
        """Hold on to the film; gives whether it is still ours and still wanted."""

        def renew(tx: Tx) -> bool:
            film = store.film(tx, lease.id)
            kept = leases.renew(tx, FILMS, [lease], now=self._bus.clock.now(), ttl=self._lease)
            return bool(kept) and film is not None and film.state == Film.LEASED

        return self._db.run(renew)

    def _take_film(self, tx: Tx) -> tuple[FilmRow, Lease, Parts] | None:
        now = self._bus.clock.now()
        for run_id in leases.expire(tx, FILMS, now=now):
            lost = store.film(tx, run_id)
            if lost and lost.state == Film.LEASED:
                self._move(tx, lost, FilmTransition.EXPIRE, Reason.LEASE_LOST)
        while held := leases.acquire(tx, FILMS, holder=self._id, n=1, now=now, ttl=self._lease):
            film = store.film(tx, held[0].id)
            parts = self._parts(tx, film) if film else None
            if film is not None and parts is not None:
                self._move(tx, film, FilmTransition.TAKE, "")
                return film, held[0], parts
            leases.release(tx, FILMS, held)  # the result of a job is still on its way: other films come first
            tx.execute(Q["film_waits"], {"run_id": held[0].id, "due_at": now + PARTS_PAUSE})
        return None

    def _parts(self, tx: Tx, film: FilmRow) -> Parts | None:
        named = earlier_release.film_with_parts(tx, film)
        request = self._chapters(tx, film.run_id)
        plan = self._plans(tx, named.plan_id, film.run_id) if named else None
        return gather(named, request, plan, store.parts(tx, film.run_id)) if named and request and plan else None

    def _make_film(self, parts: Parts, stop: Stop) -> Manifest:
        """The film of these parts: found, or made, checked and kept."""
        work = parts.work()
        if (found := self._artifacts.find(work)) is not None:
            return found
        quality = shape_quality(QUALITIES[parts.quality], parts.wishes.format)
        planned = {shot.shot_id: shot for shot in parts.plan.shots}
        clips = [
            Clip(
                shot_id=shot_id,
                video=str(self._artifacts.verify(files["video"])),
                audio=str(self._artifacts.verify(files["audio"])),
                timing=msgspec.json.decode(self._artifacts.verify(files["timing"]).read_bytes(), type=Timing),
                sounds=sounds_of(planned[shot_id].picture),
                mood=planned[shot_id].picture.mood,
                silent=not parts.wishes.ambience,
                lettering=lettering_of(planned[shot_id].picture),
            )
            for shot_id, files, _ in parts.shots
        ]
        timeline = timeline_of(clips, parts.plan.language)
        shots = [planned[shot_id] for shot_id, _, _ in parts.shots]
        chapters = chapters_of(shots, timeline.starts, timeline.duration_ms, parts.plan.language)
        tags = {
            "title": parts.title or "Untitled",
            "comment": "Pictures drawn and voice synthesised by Patra Studio; no footage.",
        }
        burn = parts.wishes.subtitles == "burnt"
        with self._artifacts.workspace() as folder:
            film, subtitles, web_subtitles = compose(
                timeline,
                quality,
                folder,
                language=parts.plan.language,
                burn=burn,
                tags=tags,
                chapters=chapters,
                stop=stop,
            )
            found_ms = checked_lengths(film, timeline.duration_ms, timeline.cues[-1].end if timeline.cues else 0)
            poster = folder / "poster.jpg"
            at = min(2.6, timeline.duration_ms / 2000)
            run(
                [
                    *("-ss", f"{at:.2f}", "-i", str(film)),
                    *("-frames:v", "1", "-q:v", "4", "-fflags", "+bitexact", str(poster)),
                ],
                stop=stop,
            )
            shape = {"duration_ms": timeline.duration_ms, "width": quality.width, "height": quality.height}
            kept = [
                self._artifacts.keep(film, "film", "video/mp4", **shape),
                self._artifacts.keep(subtitles, "subtitles", "application/x-subrip", language=parts.plan.language),
                self._artifacts.keep(web_subtitles, "subtitles", "text/vtt", language=parts.plan.language),
                self._artifacts.keep(poster, "poster", "image/jpeg", width=quality.width, height=quality.height),
            ]
            facts = {
                "duration_ms": timeline.duration_ms,
                "streams_ms": found_ms,
                "starts_ms": list(timeline.starts),
                "chapters": msgspec.to_builtins(chapters),
                "sounds": {clip.shot_id: sorted(clip.sounds) for clip in clips if clip.sounds and not clip.silent},
                "captions": len(timeline.cues),
                "left_out": work["left_out"],
                "uncertain": {shot.shot_id: list(shot.doubts) for shot in parts.plan.shots if shot.doubts},
                "planner": parts.plan.planner,
                "requests": self._requests(parts),
            }
            return self._artifacts.commit(work, kept, facts)

    def _requests(self, parts: Parts) -> dict[str, Any]:
        """What picture servers were sent, by shot."""
        sent = {shot_id: files["request"] for shot_id, files, _ in parts.shots if "request" in files}
        return {shot_id: msgspec.json.decode(self._artifacts.path(one).read_bytes()) for shot_id, one in sent.items()}

    def _publish_film(self, tx: Tx, film: FilmRow, lease: Lease, manifest: Manifest, parts: Parts) -> None:
        composes = earlier_release.hold_composing_run(tx, film)  # before the film, as the Orchestrator holds them
        leases.guard(tx, FILMS, [lease])
        if store.hold_film(tx, film.run_id) != (Film.LEASED, film.epoch) or not composes:
            raise Interrupted  # it was cancelled while the film was made
        now = self._bus.clock.now()
        completed, published = announcements(film, manifest, len(parts.shots), format_instant(now))
        store.note_artifacts(tx, film.run_id, "", msgspec.to_builtins(manifest.artifacts), now)
        key = f"{film.run_id}:{film.epoch}"
        (first,) = publish(
            self._bus,
            tx,
            film.context,
            [OutgoingEvent(type="compose.completed", key=key, payload=completed)],
            by=MODULE,
        )
        publish(
            self._bus,
            tx,
            after(film.context, first),
            [OutgoingEvent(type="artifact.published", key=key, payload=published)],
            by=MODULE,
        )
        self._move(tx, msgspec.structs.replace(film, state=Film.LEASED.value), FilmTransition.PUBLISH, Reason.PUBLISHED)
        tx.execute(Q["film_made"], {"run_id": film.run_id, "manifest": msgspec.json.encode(manifest)})
        leases.release(tx, FILMS, [lease])

    def _back(self, tx: Tx, film: FilmRow, lease: Lease) -> None:
        now = store.film(tx, film.run_id)
        if leases.release(tx, FILMS, [lease]) and now and now.state == Film.LEASED:
            self._move(tx, now, FilmTransition.EXPIRE, Reason.LEASE_LOST)

    def _fail_film(self, tx: Tx, film: FilmRow, lease: Lease, code: str, words: str) -> None:
        now = store.film(tx, film.run_id)
        if not leases.release(tx, FILMS, [lease]) or now is None or now.state != Film.LEASED:
            return
        tries = film.tries + 1
        due = self._bus.clock.now() + BACKOFF.delay(tries, 0.0)
        tx.execute(
            Q["film_postponed"],
            {"run_id": film.run_id, "due_at": due, "tries": tries, "error_code": code, "error": words},
        )
        self._move(tx, now, FilmTransition.RETRY if tries < TRIES else FilmTransition.GIVE_UP, code)
        if tries >= TRIES:
            self._say_failed(tx, msgspec.structs.replace(film, tries=tries, error_code=code, error=words))

    def _say_given_up(self, tx: Tx) -> None:
        """Say `compose.failed` once of films that 0.2.0 gave up: it says nothing, and may have no orchestrator left."""
        for film in earlier_release.films_given_up(tx):
            store.hold_film(tx, film.run_id)  # another composer may say the same
        for film in earlier_release.films_given_up(tx):
            self._say_failed(tx, film)

    def _say_failed(self, tx: Tx, film: FilmRow) -> None:
        payload: dict[str, Any] = {
            "run_id": film.run_id,
            "task_id": film.context.correlation_id,
            "error_code": film.error_code[:100],
            "error_message": film.error,
            "attempts": film.tries,
            "failed_at": format_instant(self._bus.clock.now()),
        }
        failed = OutgoingEvent(type="compose.failed", key=f"{film.run_id}:{film.epoch}", payload=payload)
        publish(self._bus, tx, film.context, [failed], by=MODULE)

    def _move(self, tx: Tx, film: FilmRow, on: FilmTransition, reason: str) -> FilmRow:
        move = FILM.move(film.run_id, Film(film.state), on, reason=str(reason), at=self._bus.clock.now())
        advance(tx, FILM, table="stu_film", key="run_id", column="state", moves=[move])
        return msgspec.structs.replace(film, state=str(move.to))
