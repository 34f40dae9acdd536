"""Adds quiet sound to speech: rain, wind, sea, stream, fire, room where the picture has them, and a soft pad (B6).

Everything is synthesised from fixed seeds as loops without a seam, so the same film has the same bytes. Under speech it
is ducked; between shots it fades from one to the next.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from patra.studio.film.timeline import Clip, Timeline
from patra.studio.script.lexicon import INSIDE
from patra.studio.script.shots import Picture
from patra.studio.script.signs import is_room

Samples = np.ndarray[Any, np.dtype[np.float32]]

LEVELS = {"rain": 0.011, "wind": 0.010, "sea": 0.012, "stream": 0.009, "fire": 0.008, "room": 0.0025}
"""How loud each is without speech: its RMS, where 1 is full scale."""

PAD_LEVEL = 0.006
INSIDE_SHARE = 0.4  # of the weather that is heard in a room
DUCKED = 0.4  # of all of it, under speech
FADE_S, DUCK_BEFORE_S, DUCK_AFTER_S = 0.8, 0.15, 0.45
LOOP_SAMPLES = 1 << 18  # 11.9 s at 22,050 Hz
WAV_HEADER_BYTES = 44  # our own: a plain header, then samples
PLACES = {"sea": "sea", "harbour": "sea", "island": "sea", "river": "stream", "lake": "stream"}
CHORDS = {
    "calm": (110.0, 164.8, 220.0),
    "joyful": (130.8, 196.0, 329.6),
    "sad": (110.0, 164.8, 261.6),
    "tense": (98.0, 146.8, 233.1),
    "mysterious": (92.5, 138.6, 220.0),
    "warm": (130.8, 196.0, 246.9),
}
"""The pad of a mood, in hertz."""


def sounds_of(picture: Picture) -> dict[str, float]:
    """What is heard in a picture beside speech, and how loud: only what the text says is there. Cards are silent."""
    if picture.framing == "card":
        return {}
    inside = picture.place in INSIDE or is_room(picture.sign)
    found: dict[str, float] = {}
    if picture.weather in {"rain", "storm"}:
        found["rain"] = LEVELS["rain"] * (INSIDE_SHARE if inside else 1.0)
    if picture.weather in {"wind", "storm"}:
        found["wind"] = LEVELS["wind"] * (INSIDE_SHARE if inside else 1.0)
    if (water := PLACES.get(picture.place)) is not None:
        found[water] = LEVELS[water]
    if "fire" in picture.motifs:
        found["fire"] = LEVELS["fire"]
    if inside:
        found["room"] = LEVELS["room"]
    return found


def mix_samples(timeline: Timeline) -> Iterator[bytes]:
    """The samples of all shots with what is heard beside speech, a shot at a time."""
    rate = timeline.clips[0].timing.rate
    before: Mapping[str, float] = {}
    at = 0
    for clip in timeline.clips:
        speech = np.frombuffer(Path(clip.audio).read_bytes()[WAV_HEADER_BYTES:], "<i2").astype(np.float32)
        levels = {**clip.sounds, f"pad:{clip.mood}": PAD_LEVEL}
        if clip.silent:
            levels = {}
        beside = _beside(levels, before, at, len(speech), rate) * _duck(clip, len(speech), rate)
        yield np.clip(np.rint(speech + 32767 * beside), -32768, 32767).astype("<i2").tobytes()
        before, at = levels, at + len(speech)


def _beside(levels: Mapping[str, float], before: Mapping[str, float], at: int, count: int, rate: int) -> Samples:
    """Loops at their levels, each fading from what it was in the shot before."""
    total = np.zeros(count, np.float32)
    fade = max(1, min(count, round(FADE_S * rate)))
    for name in sorted({*levels, *before}):
        was, now = before.get(name, 0.0), levels.get(name, 0.0)
        level = np.full(count, now, np.float32)
        level[:fade] = np.linspace(was, now, fade, endpoint=False, dtype=np.float32)
        loop = _loop(name, rate)
        total += level * np.take(loop, np.arange(at, at + count), mode="wrap")
    return total


def _duck(clip: Clip, count: int, rate: int) -> Samples:
    """1 where nobody speaks, `DUCKED` under speech, with ramps between."""
    gain = np.ones(count, np.float32)
    times = np.arange(count, dtype=np.float32) / rate
    for said in clip.timing.sentences:
        start, end = said.at / 1000, said.end / 1000
        points = (start - DUCK_BEFORE_S, start, end, end + DUCK_AFTER_S)
        first, last = (max(0, min(count, round(edge * rate))) for edge in (points[0], points[3]))
        ramp = np.interp(times[first:last], points, (1.0, DUCKED, DUCKED, 1.0)).astype(np.float32)
        gain[first:last] = np.minimum(gain[first:last], ramp)
    return gain


@lru_cache(maxsize=16)
def _loop(name: str, rate: int) -> Samples:
    """One loop of a sound, of RMS 1: noise with a spectrum, and a swell that returns to where it began."""
    kind, _, mood = name.partition(":")
    match kind:
        case "rain":
            made = _noise(1, rate, 900, 9000) * _swell(1, (1, 3), 0.12) + 0.6 * _drops(2, 900, 0.002, rate)
        case "wind":
            made = _noise(3, rate, 120, 700) * _swell(3, (1, 2, 5), 0.75)
        case "sea":
            made = (
                _noise(4, rate, 60, 600) * _swell(4, (2,), 0.8)
                + 0.5 * _noise(5, rate, 900, 5000) * _swell(4, (2,), 1.0) ** 2
            )
        case "stream":
            made = _noise(6, rate, 400, 3500) * _swell(6, (7, 19, 31), 0.3)
        case "fire":
            made = _noise(7, rate, 40, 220) + 2.2 * _drops(8, 110, 0.006, rate)
        case "room":
            made = _noise(9, rate, 40, 260)
        case _:
            made = _pad(CHORDS.get(mood, CHORDS["calm"]), rate)
    return (made / math.sqrt(float(np.mean(made**2)))).astype(np.float32)


def _noise(seed: int, rate: int, low: float, high: float) -> Samples:
    """Noise between two frequencies, softer the higher; its end leads to its beginning."""
    rng = np.random.Generator(np.random.PCG64(seed))
    hertz = np.fft.rfftfreq(LOOP_SAMPLES, 1 / rate)
    shape = np.where((hertz >= low) & (hertz <= high), 1 / np.sqrt(np.maximum(hertz, 1.0)), 0.0)
    phases = np.exp(2j * np.pi * rng.random(len(hertz)))
    made = np.fft.irfft(shape * phases, LOOP_SAMPLES)
    return (made / np.sqrt(np.mean(made**2))).astype(np.float32)


def _swell(seed: int, cycles: Sequence[int], depth: float) -> Samples:
    """A slow rise and fall around 1, whole cycles a loop."""
    rng = np.random.Generator(np.random.PCG64(100 + seed))
    turn = 2 * np.pi * np.arange(LOOP_SAMPLES) / LOOP_SAMPLES
    waves = np.zeros(LOOP_SAMPLES)
    for count in cycles:
        waves += np.sin(count * turn + 2 * np.pi * rng.random())
    return (1 + depth * waves / len(cycles)).astype(np.float32)


def _drops(seed: int, count: int, seconds: float, rate: int) -> Samples:
    """Many short sounds at random times, of random loudness: drops, crackling."""
    rng = np.random.Generator(np.random.PCG64(seed))
    hits = np.zeros(LOOP_SAMPLES)
    hits[rng.integers(0, LOOP_SAMPLES, count)] = rng.random(count) ** 3
    tail = np.zeros(LOOP_SAMPLES)
    length = max(8, round(6 * seconds * rate))
    tail[:length] = np.exp(-np.arange(length) / (seconds * rate)) * (2 * rng.random(length) - 1)
    made = np.fft.irfft(np.fft.rfft(hits) * np.fft.rfft(tail), LOOP_SAMPLES)
    return (made / np.sqrt(np.mean(made**2))).astype(np.float32)


def _pad(chord: Sequence[float], rate: int) -> Samples:
    """A chord of soft tones, each swelling in its own time."""
    turn = 2 * np.pi * np.arange(LOOP_SAMPLES) / LOOP_SAMPLES
    made = np.zeros(LOOP_SAMPLES)
    for place, hertz in enumerate(chord):
        cycles = round(hertz * LOOP_SAMPLES / rate)  # whole ones, so that the loop has no seam
        swell = 0.6 + 0.4 * np.sin((place + 1) * turn + place)
        made += swell * (np.sin(cycles * turn) + 0.25 * np.sin((cycles + 1) * turn)) / (1 + 0.5 * place)
    return made.astype(np.float32)
