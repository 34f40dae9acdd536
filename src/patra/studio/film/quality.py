"""draft, standard or high goes in; the size, frame rate and encoder settings come out (C§2.1 requested_quality)."""

import msgspec


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    width: int
    height: int
    fps: int
    preset: str
    crf: int
    smooth: float  # how much larger than shown pictures are painted
    audio_kbit: int


QUALITIES = {
    "draft": Quality(
        name="draft", width=854, height=480, fps=20, preset="superfast", crf=25, smooth=1.5, audio_kbit=96
    ),
    "standard": Quality(
        name="standard", width=1280, height=720, fps=24, preset="veryfast", crf=22, smooth=1.6, audio_kbit=128
    ),
    "high": Quality(name="high", width=1920, height=1080, fps=30, preset="fast", crf=19, smooth=1.6, audio_kbit=192),
}
