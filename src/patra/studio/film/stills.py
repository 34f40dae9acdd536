"""Takes one picture out of a clip, small enough for a list of shots (C§2.6)."""

import tempfile
from pathlib import Path

from patra.studio.film.ffmpeg import run

STILL_WIDTH_PX = 480


def still(clip: Path, at_seconds: float) -> bytes:
    """The frame of a clip at a time as JPEG, at most `STILL_WIDTH_PX` wide."""
    with tempfile.TemporaryDirectory(prefix="patra-still-") as folder:
        out = Path(folder) / "still.jpg"
        scale = f"scale='min({STILL_WIDTH_PX},iw)':-2"
        run(["-ss", f"{at_seconds:.3f}", "-i", str(clip), "-frames:v", "1", "-vf", scale, "-q:v", "5", str(out)])
        return out.read_bytes()
