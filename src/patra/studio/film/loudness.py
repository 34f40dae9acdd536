"""Turns samples into the gain that brings them to the target loudness, measured by ffmpeg's `ebur128` (EBU R 128; B6).

The limiter takes a part of the gain away again, up to 1 LU of speech with high peaks, so loudness is measured behind
it and the gain is corrected by what is missing.
"""

import re
from collections.abc import Callable, Iterable

from patra.studio.film.ffmpeg import Stop, run

TARGET_LUFS = -16.0  # as streaming services ask for speech
TOLERANCE_LU = 0.2
MAX_GAIN_DB = 18.0
MAX_CORRECTIONS = 4
SILENCE_LUFS = -70.0  # the absolute gate: nothing was above it

_INTEGRATED = re.compile(r"I:\s+(-?[\d.]+) LUFS")

Samples = Callable[[], Iterable[bytes]]


def level(gain_db: float) -> str:
    """The filters that apply a gain and keep peaks below -1.5 dBFS."""
    return f"volume={gain_db:.2f}dB,alimiter=limit=0.84:level=false"


def gain_to_target(samples: Samples, rate: int, stop: Stop | None = None) -> float:
    """Decibels for `level` that make mono 16-bit samples as loud as the target, within reason; none for silence."""
    gain = 0.0
    for _ in range(1 + MAX_CORRECTIONS):
        measured = loudness(samples(), rate, level(gain), stop)
        if measured <= SILENCE_LUFS or abs(TARGET_LUFS - measured) <= TOLERANCE_LU:
            break
        gain = max(-MAX_GAIN_DB, min(MAX_GAIN_DB, gain + TARGET_LUFS - measured))
    return gain


def loudness(pieces: Iterable[bytes], rate: int, filters: str = "anull", stop: Stop | None = None) -> float:
    """Integrated loudness in LUFS behind the filters, to a tenth; -70 for silence."""
    said = run(
        [
            *("-nostats", "-f", "s16le", "-ar", str(rate), "-ac", "1", "-i", "pipe:0"),
            *("-af", f"{filters},ebur128=framelog=quiet", "-f", "null", "-"),
        ],
        pieces,
        stop,
        log_level="info",
    )
    return float(_INTEGRATED.findall(said)[-1])
