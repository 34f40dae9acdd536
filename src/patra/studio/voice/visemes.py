"""Turns phonemes with their times into one mouth shape per picture frame (B6, lipsync)."""

from collections.abc import Sequence

import msgspec

from patra.studio.voice.espeak import Mark

SHAPES = ("rest", "closed", "teeth", "small", "wide", "open", "round", "pucker", "tongue")
"""From shut to open: rest, m/b/p, f/v, consonants, ee, ah, oh, oo/w, l/th."""

_GROUPS = (
    ("closed", "mbp"),
    ("teeth", "fv"),
    ("tongue", "lθðɫɹr"),
    ("pucker", "uʊwʉyɥ"),
    ("round", "oɔɒɤʌ"),
    ("open", "aɑɐæɜ"),
    ("wide", "iɪeɛɨj"),
    ("small", "əɚtdnszʃʒkɡgŋhxɕʂʈɖʐcɟʔɾqɣ"),
)
_SHAPE = {letter: shape for shape, letters in _GROUPS for letter in letters}


class Mouth(msgspec.Struct, frozen=True, kw_only=True):
    """A mouth shape for each frame of a shot, as an index into SHAPES; and where the eyes blink."""

    fps: int
    shapes: tuple[int, ...]
    blinks: tuple[int, ...]


def shape_of(phoneme: str) -> str:
    """The first letter that says something about the mouth decides; stress and length marks do not."""
    return next((_SHAPE[letter] for letter in phoneme if letter in _SHAPE), "rest")


def mouth_of(phonemes: Sequence[Mark], frames: int, fps: int) -> Mouth:
    """What the mouth shows in each frame: of several phonemes in one frame, the one heard longest."""
    shapes: list[int] = []
    first = 0
    for frame in range(frames):
        start, end = frame * 1000 / fps, (frame + 1) * 1000 / fps
        while first < len(phonemes) and phonemes[first].end <= start:
            first += 1
        best, heard = "rest", 0.0
        for mark in phonemes[first : first + 8]:
            if mark.at >= end:
                break
            length = min(mark.end, end) - max(mark.at, start)
            if length > heard:
                best, heard = shape_of(mark.text), length
        shapes.append(SHAPES.index(best))
    every = max(1, round(fps * 3.7))
    blinks = tuple(f for start in range(every // 2, frames, every) for f in (start, start + 1, start + 2) if f < frames)
    return Mouth(fps=fps, shapes=tuple(shapes), blinks=blinks)
