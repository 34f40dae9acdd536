"""What every executor gets and gives, whatever does the work: this machine or a model server (C§2.5, B6)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from patra.kernel.errors import Permanent
from patra.studio.film.quality import Quality
from patra.studio.profiles import Profile
from patra.studio.storage.artifacts import Artifact, ArtifactStore
from patra.studio.vocabulary.reasons import Reason

T = TypeVar("T")
Stop = Callable[[], bool]


class JobRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A job, ready to be done."""

    job_id: str
    run_id: str
    shot_id: str
    worker_type: str
    prompt: dict[str, Any]
    prompt_sha256: str
    inputs: tuple[Artifact, ...]
    profile: Profile
    quality: Quality
    language: str
    fresh: str = ""

    def input(self, kind: str) -> Artifact | None:
        return next((artifact for artifact in self.inputs if artifact.kind == kind), None)

    def artifact_of(self, kind: str) -> Artifact:
        found = self.input(kind)
        if found is None:
            raise Permanent(Reason.ARTIFACT_MISSING, f"{self.worker_type} needs {kind}")
        return found

    def work(self, version: str) -> dict[str, Any]:
        """What identifies this work: the same gives the same files. Neither run nor job nor time is in it."""
        return {
            "worker_type": self.worker_type,
            "version": version,
            "profile": self.profile.identity,
            "prompt_sha256": self.prompt_sha256,
            "inputs": sorted(f"{artifact.kind}:{artifact.sha256}" for artifact in self.inputs),
            "quality": self.quality.name,
            "fresh": self.fresh,
        }


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a workspace that are finished, and figures for the Observer."""

    files: tuple["File", ...]
    metrics: dict[str, float] = {}


class File(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    kind: str
    media_type: str
    fields: dict[str, Any] = {}


class Executor(Protocol):
    """Does one kind of work. Raises Transient for what may be tried again, Permanent for what may not."""

    version: str

    def execute(self, order: JobRequest, folder: Path, artifacts: ArtifactStore, stop: Stop) -> JobResult: ...


def read(artifacts: ArtifactStore, artifact: Artifact, kind: "type[T]") -> T:
    """An artifact that is JSON, as its type."""
    try:
        return msgspec.json.decode(artifacts.path(artifact).read_bytes(), type=kind)
    except msgspec.DecodeError as error:
        raise Permanent(Reason.ARTIFACT_CORRUPT, f"{artifact.kind}: {error}") from error
