"""Decides from the shots that were made when each begins and what is said when (C§2.6)."""

from collections.abc import Sequence

import msgspec

from patra.studio.script.cast.segments import tagged_words
from patra.studio.script.shots import Picture
from patra.studio.voice.espeak import Mark
from patra.studio.voice.narration import Said, Timing


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """A finished shot: its picture, its sound, its timing; paths of files that are whole."""

    shot_id: str
    video: str
    audio: str
    timing: Timing
    sounds: dict[str, float] = {}  # what is heard beside speech, and how loud
    mood: str = "calm"
    silent: bool = False  # nothing but speech
    lettering: str = ""  # what stands on its card


class Cue(msgspec.Struct, frozen=True, kw_only=True):
    """One caption of the film, in milliseconds."""

    at: int
    end: int
    text: str
    lettered: bool = False  # the same words stand in the picture


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
            cues += [
                Cue(
                    at=start + c.at,
                    end=start + c.end,
                    text=c.text,
                    lettered=_letters(c.text) in _letters(clip.lettering),
                )
                for c in captions(said, language)
            ]
        frames += clip.timing.frames
    fps = clips[0].timing.fps if clips else 1
    return Timeline(clips=tuple(clips), cues=tuple(cues), starts=tuple(starts), duration_ms=round(1000 * frames / fps))


def _letters(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


MAX_LINE_CHARACTERS = {"zh": 16, "en": 42}
MAX_LINES = 2


def lettering_of(picture: Picture) -> str:
    """All that stands on a shot's card."""
    card = picture.card
    return " ".join((card.title, *card.items)) if card is not None and picture.framing == "card" else ""


def captions(said: Said, language: str) -> list[Cue]:
    """A sentence as captions of at most two lines, cut between words at the times at which they are heard."""
    lines = lines_of(said.text, language)
    pairs = _shared_out(lines)
    places = [pair[0][0] for pair in pairs]
    times = [said.at, *(_time_of(said, place) for place in places[1:]), said.end]
    return [
        Cue(
            at=times[k],
            end=max(times[k] + 1, times[k + 1]),
            text="\n".join(said.text[start:end].strip() for start, end in pair),
        )
        for k, pair in enumerate(pairs)
    ]


def lines_of(text: str, language: str) -> list[tuple[int, int]]:
    """Where the lines of a caption begin and end: about equally long, none too long, none empty."""
    most = MAX_LINE_CHARACTERS["zh" if language == "zh" else "en"]
    count = max(1, -(-len(text.strip()) // most))
    while True:
        lines = _break_text(text, min(most, -(-len(text) // count) + (2 if language == "zh" else 8)), language)
        if len(lines) <= count or count > len(text):
            return lines
        count += 1


def _break_text(text: str, most: int, language: str) -> list[tuple[int, int]]:
    """Lines filled up to a length, broken after a space or, in Chinese, between words, best after punctuation."""
    lines: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            break
        end = min(len(text), at + most)
        if end < len(text):
            end = _break_before(text, at, end, language)
        lines.append((at, end))
        at = end
    return lines


def _break_before(text: str, at: int, end: int, language: str) -> int:
    if language == "zh":
        marks = [i + 1 for i in range(at + 5, end) if text[i] in "，；、：。！？—”"]
        if marks:
            return marks[-1]
        end = end - 1 if text[end : end + 1] in set("，；、：。！？”") and end - 1 > at else end
        words = [place for place, _, _ in tagged_words(text) if at + (end - at) // 2 < place <= end]
        return words[-1] if words else end
    spaces = [i for i in range(at + 1, end + 1) if text[i : i + 1].isspace()]
    return spaces[-1] if spaces else end


def _shared_out(lines: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Two lines a caption; an odd one shares out so that no caption is a single short line after a full one."""
    return [lines[k : k + MAX_LINES] for k in range(0, len(lines), MAX_LINES)] or [[(0, 0)]]


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
