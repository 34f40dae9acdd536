"""The parts of a run go in; the film, `compose.completed` and `artifact.published` come out (C§2.6). Producer:
Composer.

The film is made under a lease with heartbeats. It is announced only when the file is whole, its hash recorded and its
streams and length checked; a killed composer leaves nothing that counts, and the next one starts where files are.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from patra.bus.bus import Bus
from patra.bus.consumer import Event
from patra.kernel import leases
from patra.kernel.clock import SECOND, format_instant
from patra.kernel.db import Database, Tx
from patra.kernel.errors import Fenced, PatraError, Permanent
from patra.kernel.leases import Lease, LeaseTable
from patra.kernel.machine import advance
from patra.kernel.redact import redact_text
from patra.kernel.retry import Backoff
from patra.kernel.telemetry import bind_lineage, get_logger
from patra.studio import store
from patra.studio.artifacts import Artifact, ArtifactStore, Manifest
from patra.studio.contracts import VERSIONS, Said, after, context_of, epoch_of, plan_id_of, say
from patra.studio.film.compose import COMPOSER_VERSION, compose
from patra.studio.film.ffmpeg import Interrupted, Stop, lengths, run
from patra.studio.film.quality import QUALITIES
from patra.studio.film.timeline import Clip, timeline_of
from patra.studio.gateway import Wishes
from patra.studio.reasons import R
from patra.studio.script.plan import Plan
from patra.studio.stages import FILM, Film, FilmOn, Stage
from patra.studio.store import FilmRow, PartRow, Q
from patra.studio.voice.narration import Timing

log = get_logger()

GROUP = "composer"
FILMS = LeaseTable(
    table="stu_film", id="run_id", partition="owner_kind", priority="priority", due="due_at", ready="state = 'wanted'"
)
LEASE = 30 * SECOND
TRIES = 3
BACKOFF = Backoff(base=2 * SECOND, factor=2.0, cap=60 * SECOND)
TOLERANCE_MS = 100


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A shot that is not in the film, and why."""

    shot_id: str
    worker_type: str
    error_code: str
    narration: str


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """All that a film is made of."""

    plan: Plan
    title: str
    quality: str
    wishes: Wishes
    shots: tuple[tuple[str, dict[str, Artifact], dict[str, str]], ...]  # id, files by kind, profiles by worker
    left_out: tuple[LeftOut, ...]

    def work(self) -> dict[str, Any]:
        return {
            "worker_type": "compose",
            "version": COMPOSER_VERSION,
            "title": self.title,
            "language": self.plan.language,
            "quality": self.quality,
            "subtitles": self.wishes.subtitles,
            "shots": [
                {"shot_id": shot_id, "profiles": profiles} | {kind: a.sha256 for kind, a in sorted(files.items())}
                for shot_id, files, profiles in self.shots
            ],
            "left_out": msgspec.to_builtins(self.left_out),
        }


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    published: int = 0
    failed: int = 0
    fenced: int = 0


class Composer:
    def __init__(self, db: Database, bus: Bus, artifacts: ArtifactStore, worker_id: str, *, lease: int = LEASE) -> None:
        self._db = db
        self._bus = bus
        self._artifacts = artifacts
        self._id = worker_id
        self._lease = lease
        self._leaving = threading.Event()
        bus.consumer("job.succeeded", group=GROUP, versions=VERSIONS)(self.on_job)
        bus.consumer("job.failed", group=GROUP, versions=VERSIONS)(self.on_job)
        bus.consumer("run.stage.changed", group=GROUP, versions=VERSIONS)(self.on_stage)

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

    def on_stage(self, tx: Tx, event: Event) -> None:
        run_id, stage = event.payload["run_id"], event.payload["stage"]
        run, film = store.run(tx, run_id), store.film(tx, run_id)
        if run is None or run.stage != stage:
            return  # it has moved on since
        if stage in {Stage.CANCELLED, Stage.FAILED} and film and FILM.allows(Film(film.state), FilmOn.CANCEL):
            self._move(tx, film, FilmOn.CANCEL, R.CANCELLED)
        if stage != Stage.COMPOSING:
            return
        now, context = self._bus.clock.now(), store.text(context_of(event))
        row = {"run_id": run_id, "state": Film.WANTED.value, "epoch": run.epoch, "context": context, "due_at": now}
        if film is None:
            tx.insert_absent("stu_film", [row], key=("run_id",))
        elif film.epoch < run.epoch:
            if not FILM.allows(Film(film.state), FilmOn.AGAIN):
                self._move(tx, film, FilmOn.CANCEL, R.CANCELLED)
                film = msgspec.structs.replace(film, state=Film.CANCELLED.value)
            self._move(tx, film, FilmOn.AGAIN, R.RERUN)
            tx.execute(Q["film_again"], {"run_id": run_id, "epoch": run.epoch, "context": context, "now": now})

    # ---- making films

    def leave(self) -> None:
        self._leaving.set()

    def run_once(self) -> Counts:
        """Make one film, if one is wanted and all its parts are there."""
        now = {"now": self._bus.clock.now()}
        taken = self._db.run(self._taken) if self._db.read(lambda tx: tx.fetch(Q["films_due"], now)) else None
        if taken is None:
            return Counts()
        film, lease, parts = taken
        with bind_lineage(run_id=film.run_id, task_id=film.context.correlation_id):
            heart = _Heart(self._db, self._bus, lease, self._lease, self._leaving)
            try:
                with heart:
                    manifest = self._made(parts, heart.stop)
                self._db.run(lambda tx: self._published(tx, film, lease, manifest, parts))
            except (Interrupted, Fenced):
                self._db.run(lambda tx: self._back(tx, film, lease))
                return Counts(fenced=1)
            except Exception as error:  # noqa: BLE001  a loop's edge: it becomes a recorded reason
                code = str(error.code) if isinstance(error, PatraError) else str(R.COMPOSE_FAILED)
                words = redact_text(
                    error.detail if isinstance(error, PatraError) else f"{type(error).__name__}: {error}"
                )
                log.warning("studio_compose_failed", code=code, reason=words)
                self._db.run(lambda tx: self._failed(tx, film, lease, code, words[:2000]))
                return Counts(failed=1)
        return Counts(published=1)

    def _taken(self, tx: Tx) -> tuple[FilmRow, Lease, Parts] | None:
        now = self._bus.clock.now()
        for run_id in leases.expire(tx, FILMS, now=now):
            lost = store.film(tx, run_id)
            if lost and lost.state == Film.LEASED:
                self._move(tx, lost, FilmOn.EXPIRE, R.LEASE_LOST)
        held = leases.acquire(tx, FILMS, holder=self._id, n=1, now=now, ttl=self._lease)
        if not held:
            return None
        film = store.film(tx, held[0].id)
        parts = gather(tx, held[0].id)
        if film is None or parts is None:  # the word of a job is still on its way
            leases.release(tx, FILMS, held)
            return None
        self._move(tx, film, FilmOn.TAKE, "")
        return film, held[0], parts

    def _made(self, parts: Parts, stop: Stop) -> Manifest:
        """The film of these parts: found, or made, checked and kept."""
        work = parts.work()
        if (found := self._artifacts.find(work)) is not None:
            return found
        quality = QUALITIES[parts.quality]
        clips = [
            Clip(
                shot_id=shot_id,
                video=str(self._artifacts.verify(files["video"])),
                audio=str(self._artifacts.verify(files["audio"])),
                timing=msgspec.json.decode(self._artifacts.verify(files["timing"]).read_bytes(), type=Timing),
            )
            for shot_id, files, _ in parts.shots
        ]
        timeline = timeline_of(clips, parts.plan.language)
        tags = {
            "title": parts.title or "Untitled",
            "comment": "Pictures drawn and voice synthesised by Patra Studio; no footage.",
        }
        burn = parts.wishes.subtitles == "burnt"
        with self._artifacts.workspace() as folder:
            film, subtitles = compose(
                timeline, quality, folder, language=parts.plan.language, burn=burn, tags=tags, stop=stop
            )
            found_ms = _checked(film, timeline.duration_ms)
            poster = folder / "poster.jpg"
            at = min(2.6, timeline.duration_ms / 2000)
            run(
                [
                    "-ss",
                    f"{at:.2f}",
                    "-i",
                    str(film),
                    "-frames:v",
                    "1",
                    "-q:v",
                    "4",
                    "-fflags",
                    "+bitexact",
                    str(poster),
                ],
                stop=stop,
            )
            shape = {"duration_ms": timeline.duration_ms, "width": quality.width, "height": quality.height}
            kept = [
                self._artifacts.keep(film, "film", "video/mp4", **shape),
                self._artifacts.keep(subtitles, "subtitles", "application/x-subrip", language=parts.plan.language),
                self._artifacts.keep(poster, "poster", "image/jpeg", width=quality.width, height=quality.height),
            ]
            facts = {
                "duration_ms": timeline.duration_ms,
                "streams_ms": found_ms,
                "starts_ms": list(timeline.starts),
                "captions": len(timeline.cues),
                "left_out": work["left_out"],
                "planner": parts.plan.planner,
            }
            return self._artifacts.commit(work, kept, facts)

    def _published(self, tx: Tx, film: FilmRow, lease: Lease, manifest: Manifest, parts: Parts) -> None:
        leases.guard(tx, FILMS, [lease])
        if store.hold_run(tx, film.run_id) != (Stage.COMPOSING, film.epoch):
            raise Interrupted  # it was cancelled while the film was made
        now = self._bus.clock.now()
        made, subtitles, poster = manifest.artifacts
        run_row = store.run(tx, film.run_id)
        task_id = run_row.task_id if run_row else film.context.correlation_id
        completed: dict[str, Any] = {
            "run_id": film.run_id,
            "task_id": task_id,
            "final_artifact_uri": made.uri,
            "duration_ms": manifest.facts["duration_ms"],
            "artifact": msgspec.to_builtins(made),
            "subtitles": [msgspec.to_builtins(subtitles)],
            "poster": msgspec.to_builtins(poster),
            "shots": len(parts.shots),
            "composed_at": format_instant(now),
        }
        published: dict[str, Any] = {
            "run_id": film.run_id,
            "task_id": task_id,
            "artifact_id": made.artifact_id,
            "final_artifact_uri": made.uri,
            "duration_ms": manifest.facts["duration_ms"],
            "media_type": made.media_type,
            "sha256": made.sha256,
            "bytes": made.bytes,
            "published_at": format_instant(now),
        }
        key = f"{film.run_id}:{film.epoch}"
        (first,) = say(self._bus, tx, film.context, [Said(type="compose.completed", key=key, payload=completed)])
        say(self._bus, tx, after(film.context, first), [Said(type="artifact.published", key=key, payload=published)])
        self._move(tx, msgspec.structs.replace(film, state=Film.LEASED.value), FilmOn.PUBLISH, R.PUBLISHED)
        tx.execute(Q["film_made"], {"run_id": film.run_id, "manifest": msgspec.json.encode(manifest)})
        leases.release(tx, FILMS, [lease])

    def _back(self, tx: Tx, film: FilmRow, lease: Lease) -> None:
        now = store.film(tx, film.run_id)
        if leases.release(tx, FILMS, [lease]) and now and now.state == Film.LEASED:
            self._move(tx, now, FilmOn.EXPIRE, R.LEASE_LOST)

    def _failed(self, tx: Tx, film: FilmRow, lease: Lease, code: str, words: str) -> None:
        now = store.film(tx, film.run_id)
        if not leases.release(tx, FILMS, [lease]) or now is None or now.state != Film.LEASED:
            return
        tries = film.tries + 1
        due = self._bus.clock.now() + BACKOFF.delay(tries, 0.0)
        tx.execute(
            Q["film_postponed"],
            {"run_id": film.run_id, "due_at": due, "tries": tries, "error_code": code, "error": words},
        )
        self._move(tx, now, FilmOn.RETRY if tries < TRIES else FilmOn.GIVE_UP, code)

    def _move(self, tx: Tx, film: FilmRow, on: FilmOn, reason: str) -> None:
        move = FILM.move(film.run_id, Film(film.state), on, reason=str(reason), at=self._bus.clock.now())
        advance(tx, FILM, table="stu_film", key="run_id", column="state", moves=[move])


def gather(tx: Tx, run_id: str) -> Parts | None:
    """What a film of a run is made of, and what had to be left out; nothing while a part is still on its way."""
    run_row = store.run(tx, run_id)
    task = store.task(tx, run_row.task_id) if run_row else None
    plan_id = plan_id_of(run_id, run_row.plan_version) if run_row else ""
    plan = store.plan(tx, plan_id)
    found = store.parts(tx, run_id, plan_id)
    if run_row is None or task is None or plan is None or found is None:
        return None
    by_shot: dict[str, list[PartRow]] = {}
    for part in found:
        by_shot.setdefault(part.shot_id, []).append(part)
    shots: list[tuple[str, dict[str, Artifact], dict[str, str]]] = []
    left_out: list[LeftOut] = []
    for shot in plan.shots:
        files, profiles, failed = _files(by_shot.get(shot.shot_id, ()))
        if {"video", "audio", "timing"} <= files.keys():
            shots.append((shot.shot_id, files, profiles))
        else:
            worker, code = failed or ("video", str(R.SHOT_LEFT_OUT))
            left_out.append(
                LeftOut(shot_id=shot.shot_id, worker_type=worker, error_code=code, narration=shot.narration)
            )
    return Parts(
        plan=plan,
        title=task["title"] or plan.title,
        quality=task["quality"],
        wishes=msgspec.json.decode(task["options"], type=Wishes),
        shots=tuple(shots),
        left_out=tuple(left_out),
    )


def _files(parts: Sequence[PartRow]) -> tuple[dict[str, Artifact], dict[str, str], tuple[str, str] | None]:
    files: dict[str, Artifact] = {}
    profiles: dict[str, str] = {}
    failed: tuple[str, str] | None = None
    for part in parts:
        if part.status == "succeeded":
            profiles[part.worker_type] = part.profile_id
            files |= {a["kind"]: msgspec.convert(a, Artifact) for a in part.artifacts}
        elif part.worker_type != "lipsync":
            failed = (part.worker_type, part.error_code)
    return files, profiles, failed


def _checked(film: Path, expected_ms: int) -> dict[str, int]:
    """How long each stream of the film is. Raises when one is missing, or ends before or after the others."""
    found = lengths(film)
    whole = found.keys() == {"video", "audio", "subtitle"}
    if not whole or any(abs(ms - expected_ms) > TOLERANCE_MS for ms in found.values()):
        raise Permanent(R.COMPOSE_FAILED, f"{found} ms instead of {expected_ms}")
    return found


class _Heart:
    """Renews the film's lease while it is made."""

    def __init__(self, db: Database, bus: Bus, lease: Lease, ttl: int, leaving: threading.Event) -> None:
        self._db, self._bus, self._lease, self._ttl, self._leaving = db, bus, lease, ttl, leaving
        self._lost = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heart film", daemon=True)

    def stop(self) -> bool:
        return self._lost.is_set() or self._leaving.is_set()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(min(1.0, self._ttl / 4 / 1_000_000)):
            try:
                if not self._db.run(self._renewed):
                    self._lost.set()
            except PatraError:
                log.warning("studio_heartbeat_failed", run_id=self._lease.id)

    def _renewed(self, tx: Tx) -> bool:
        film = store.film(tx, self._lease.id)
        kept = leases.renew(tx, FILMS, [self._lease], now=self._bus.clock.now(), ttl=self._ttl)
        return bool(kept) and film is not None and film.state == Film.LEASED
