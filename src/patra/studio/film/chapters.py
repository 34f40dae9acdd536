"""Turns the shots of a film into its chapters: a new one where the place changes, or what is explained (C§2.6)."""

from collections.abc import Sequence

import msgspec

from patra.studio.script.lexicon import PLACES, TIMES
from patra.studio.script.shots import Shot

MIN_CHAPTER_MS = 8000  # a shorter one belongs to the one before it
MAX_TITLE_CHARACTERS = {"en": 42, "zh": 16}
_ESCAPED = str.maketrans({mark: f"\\{mark}" for mark in "=;#"} | {"\\": "＼", "\n": " "})  # none ends a line


class ChapterMark(msgspec.Struct, frozen=True, kw_only=True):
    """One chapter of a film, in milliseconds."""

    at: int
    end: int
    title: str


def chapters_of(shots: Sequence[Shot], starts: Sequence[int], duration_ms: int, language: str) -> list[ChapterMark]:
    """The chapters of a film whose shots begin at these times; none where there would be only one."""
    begins: list[tuple[int, str]] = []
    before: tuple[object, ...] = ()
    for shot, at in zip(shots, starts, strict=True):
        place = (shot.picture.place, shot.picture.time) if shot.picture.place else (shot.sentences[0].paragraph,)
        if place != before and (not begins or at - begins[-1][0] >= MIN_CHAPTER_MS):
            begins.append((at, title_of(shot, language)))
            before = place
    while len(begins) > 1 and duration_ms - begins[-1][0] < MIN_CHAPTER_MS:
        begins.pop()
    ends = [at for at, _ in begins[1:]] + [duration_ms]
    marks = [ChapterMark(at=at, end=end, title=title) for (at, title), end in zip(begins, ends, strict=True)]
    return marks if len(marks) > 1 else []


def title_of(shot: Shot, language: str) -> str:
    """Where and when it is, or the first words of what is said."""
    picture = shot.picture
    if picture.place and picture.framing != "card":
        words = [_word(PLACES.get(picture.place, picture.place), picture.place, language)]
        told = picture.time in TIMES and picture.time != "day"  # what is said of no time is by day
        words += [_word(TIMES[picture.time], picture.time, language)] if told else []
        return "，".join(words) if language == "zh" else ", ".join(words).capitalize()
    most = MAX_TITLE_CHARACTERS["zh" if language == "zh" else "en"]
    text = shot.narration
    if len(text) <= most:
        return text.rstrip("。.")
    cut = text[: most - 1] if language == "zh" else text[:most].rpartition(" ")[0] or text[: most - 1]
    return cut.rstrip(" ,，;；:：") + "…"


def ffmetadata(marks: Sequence[ChapterMark]) -> str:
    """The chapters as ffmpeg reads them."""
    return ";FFMETADATA1\n" + "".join(
        f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={mark.at}\nEND={mark.end}\ntitle={mark.title.translate(_ESCAPED)}\n"
        for mark in marks
    )


def _word(entry: str, name: str, language: str) -> str:
    """A name of the lexicon in the language of the film: its first Chinese word of two characters, or it."""
    if language != "zh":
        return name
    words = entry.partition("|")[2].split()
    return next((word for word in words if len(word) > 1), name)
