"""Turns draft, standard or high, and a format, into size, frame rate and encoder settings (C§2.1 requested_quality)."""

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


FORMATS = ("16:9", "9:16", "1:1")
"""Wide for screens, upright for phones, square for both."""


def shape_quality(quality: Quality, form: str) -> Quality:
    """The quality in another format: the short side is always the height of the wide one."""
    match form:
        case "9:16":
            return msgspec.structs.replace(quality, width=quality.height, height=quality.width)
        case "1:1":
            return msgspec.structs.replace(quality, width=quality.height)
        case _:
            return quality


QUALITIES = {
    "draft": Quality(
        name="draft", width=854, height=480, fps=20, preset="superfast", crf=25, smooth=1.5, audio_kbit=96
    ),
    "standard": Quality(
        name="standard", width=1280, height=720, fps=24, preset="veryfast", crf=22, smooth=1.6, audio_kbit=128
    ),
    "high": Quality(name="high", width=1920, height=1080, fps=30, preset="fast", crf=19, smooth=1.6, audio_kbit=192),
}
