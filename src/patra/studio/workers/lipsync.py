"""Turns phonemes into the narrator's mouth shapes, one per frame (B6)."""

from pathlib import Path

import msgspec

from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.voice.narration import Timing
from patra.studio.voice.visemes import mouth_of
from patra.studio.workers.job_request import File, JobRequest, JobResult, Stop, read


class Lipsync:
    version = "lipsync-1"

    def execute(self, order: JobRequest, folder: Path, artifacts: ArtifactStore, stop: Stop) -> JobResult:
        timing = read(artifacts, order.artifact_of("timing"), Timing)
        mouth = mouth_of(timing.phonemes, timing.frames, timing.fps)
        file = folder / "mouth.json"
        file.write_bytes(msgspec.json.encode(mouth))
        del stop
        fields = {"duration_ms": timing.duration_ms}
        return JobResult(
            files=(File(path=file, kind="mouth_shapes", media_type="application/json", fields=fields),),
            metrics={"frames": timing.frames},
        )
