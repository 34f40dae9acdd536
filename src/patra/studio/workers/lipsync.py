"""Phonemes go in; the narrator's mouth shapes come out, one a frame (B6)."""

from pathlib import Path

import msgspec

from patra.studio.artifacts import ArtifactStore
from patra.studio.voice.narration import Timing
from patra.studio.voice.visemes import mouth_of
from patra.studio.workers.order import File, Made, Order, Stop, read


class Lipsync:
    version = "lipsync-1"

    def execute(self, order: Order, folder: Path, artifacts: ArtifactStore, stop: Stop) -> Made:
        timing = read(artifacts, order.needed("timing"), Timing)
        mouth = mouth_of(timing.phonemes, timing.frames, timing.fps)
        file = folder / "mouth.json"
        file.write_bytes(msgspec.json.encode(mouth))
        del stop
        fields = {"duration_ms": timing.duration_ms}
        return Made(
            files=(File(path=file, kind="mouth_shapes", media_type="application/json", fields=fields),),
            metrics={"frames": timing.frames},
        )
