"""The shots that were made go in; when each begins and what is said when comes out (C§2.6)."""

from collections.abc import Sequence

import msgspec

from patra.studio.voice.espeak import Mark
from patra.studio.voice.narration import Said, Timing


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """A finished shot: its picture, its sound, its timing; paths of files that are whole."""

    shot_id: str
    video: str
    audio: str
    timing: Timing


class Cue(msgspec.Struct, frozen=True, kw_only=True):
    """One caption of the film, in milliseconds."""

    at: int
    end: int
    text: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    clips: tuple[Clip, ...]
    cues: tuple[Cue, ...]
    starts: tuple[int, ...]
    duration_ms: int


def timeline_of(clips: Sequence[Clip], language: str) -> Timeline:
    """Clips one after another; time is counted in frames, so nothing drifts."""
    cues: list[Cue] = []
    starts: list[int] = []
    frames = 0
    for clip in clips:
        start = round(1000 * frames / clip.timing.fps)
        starts.append(start)
        for said in clip.timing.sentences:
            cues += [Cue(at=start + c.at, end=start + c.end, text=c.text) for c in captions(said, language)]
        frames += clip.timing.frames
    fps = clips[0].timing.fps if clips else 1
    return Timeline(clips=tuple(clips), cues=tuple(cues), starts=tuple(starts), duration_ms=round(1000 * frames / fps))


LONGEST = {"zh": 26, "en": 74}  # characters that can be read at once


def captions(said: Said, language: str) -> list[Cue]:
    """A sentence as captions that can be read, cut between words at the times at which they are heard."""
    most = LONGEST["zh" if language == "zh" else "en"]
    if len(said.text) <= most:
        return [Cue(at=said.at, end=said.end, text=said.text)]
    parts = -(-len(said.text) // most)
    breaks = _breaks(said.text, parts, language)
    times = [said.at, *(_time_of(said, place) for place in breaks), said.end]
    places = [0, *breaks, len(said.text)]
    return [
        Cue(at=times[k], end=max(times[k] + 1, times[k + 1]), text=said.text[places[k] : places[k + 1]].strip())
        for k in range(len(places) - 1)
    ]


def _breaks(text: str, parts: int, language: str) -> list[int]:
    marks = "，；、：。！？—" if language == "zh" else ",;:—"
    breaks: list[int] = []
    for k in range(1, parts):
        aim = len(text) * k / parts
        whole = [i + 1 for i, c in enumerate(text[:-1]) if (c in marks or (language != "zh" and c == " "))]
        near = [i for i in whole if i > (breaks[-1] if breaks else 0) + 3]
        if near:
            breaks.append(min(near, key=lambda i: abs(i - aim) - (6 if text[i - 1] in marks else 0)))
        else:
            breaks.append(round(aim))
    return sorted(set(breaks))


def _time_of(said: Said, place: int) -> int:
    """When the word at a place of the text is heard; found by the words before it, else by its share of the length."""
    at = 0
    best: Mark | None = None
    for word in said.words:
        found = said.text.find(word.text, at)
        if found < 0:
            continue
        if found >= place:
            return word.at
        at, best = found + len(word.text), word
    if best is not None and at >= place - 2:
        return best.end
    return said.at + round((said.end - said.at) * place / max(1, len(said.text)))
