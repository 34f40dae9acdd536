"""Collects what a film is made of: the files of each shot, and the shots that had to be left out (C§2.6).

Pure: the rows and the plan come in, the parts and the payloads of events go out.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from patra.studio.film.compose import COMPOSER_VERSION
from patra.studio.gateway import ChapterRequest, Options
from patra.studio.script.plan import Plan
from patra.studio.storage.artifacts import Artifact, Manifest
from patra.studio.storage.store import FilmRow, NamedParts, PartRow
from patra.studio.vocabulary.reasons import Reason


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
    wishes: Options
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
            "format": self.wishes.format,
            "ambience": self.wishes.ambience,
            "shots": [
                {"shot_id": shot_id, "profiles": profiles} | {kind: a.sha256 for kind, a in sorted(files.items())}
                for shot_id, files, profiles in self.shots
            ],
            "left_out": msgspec.to_builtins(self.left_out),
            **({"edits": msgspec.to_builtins(self.plan.edits)} if self.plan.edits else {}),
        }


def gather(film: FilmRow, request: ChapterRequest, plan: Plan, results: Sequence[PartRow]) -> Parts | None:
    """What a film of a run is made of, and what had to be left out; nothing while a part is still on its way."""
    found = _wanted_parts(film.parts, results)
    if found is None:
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
            worker, code = failed or ("video", str(Reason.SHOT_LEFT_OUT))
            left_out.append(
                LeftOut(shot_id=shot.shot_id, worker_type=worker, error_code=code, narration=shot.narration)
            )
    return Parts(
        plan=plan,
        title=request.title or plan.title,
        quality=request.quality,
        wishes=request.wishes,
        shots=tuple(shots),
        left_out=tuple(left_out),
    )


def _wanted_parts(parts: str, results: Sequence[PartRow]) -> list[PartRow] | None:
    """The results that the Orchestrator named, each of the attempt that counts; nothing while one is missing."""
    attempts = msgspec.json.decode(parts, type=NamedParts).attempts
    found = [part for part in results if attempts.get(part.job_id) == part.epoch]
    return found if len(found) == len(attempts) else None


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


def announcements(film: FilmRow, manifest: Manifest, shots: int, at: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of a film that is made: the payloads of `compose.completed` and `artifact.published`."""
    made, *subtitles, poster = manifest.artifacts
    common: dict[str, Any] = {
        "run_id": film.run_id,
        "task_id": film.context.correlation_id,
        "final_artifact_uri": made.uri,
        "duration_ms": manifest.facts["duration_ms"],
    }
    completed = common | {
        "artifact": msgspec.to_builtins(made),
        "subtitles": [msgspec.to_builtins(one) for one in subtitles],
        "poster": msgspec.to_builtins(poster),
        "shots": shots,
        "composed_at": at,
    }
    published = common | {
        "artifact_id": made.artifact_id,
        "media_type": made.media_type,
        "sha256": made.sha256,
        "bytes": made.bytes,
        "published_at": at,
    }
    return completed, published
