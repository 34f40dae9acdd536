"""Sentences go in; scenes come out: runs of sentences in one setting, with who is there (C§2.3).

A setting carries over: what a sentence does not mention stays as it was. A new place opens a new scene; a new time
of day
does so at the start of a paragraph, so that "she remembered the night" does not cut away.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from patra.studio.script.lexicon import CHILDREN, INSIDE, Tags, tags_of
from patra.studio.script.sentences import Chapter, Sentence

_NAME = re.compile(r"(?<![.!?…\"“”'’\n])\s([A-Z][a-z]{2,})\b")
_NO_NAMES = frozenset(
    [
        "The",
        "And",
        "But",
        "She",
        "Her",
        "His",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "God",
        "Sir",
        "Madam",
        "English",
        "Chinese",
        "Chapter",
    ]
)
_ZH_NAME = re.compile(r"(?:小|阿|老)[\u4e00-\u9fff]")
_ZH_NO_NAMES = frozenset(
    [
        "小船",
        "小岛",
        "小路",
        "小屋",
        "小镇",
        "小时",
        "小心",
        "小巷",
        "小孩",
        "小溪",
        "小河",
        "小狗",
        "小猫",
        "小桥",
        "小鸟",
        "小径",
        "小院",
        "小声",
        "小的",
        "小小",
        "老人",
        "老师",
        "老树",
        "老头",
        "老屋",
        "老者",
        "老了",
        "老太",
        "老旧",
        "老是",
        "老板",
    ]
)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when, in what weather and mood."""

    place: str = "field"
    time: str = "day"
    weather: str = "clear"
    mood: str = "calm"

    @property
    def inside(self) -> bool:
        return self.place in INSIDE


class Beat(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence with what it mentions and the setting it stands in."""

    sentence: Sentence
    tags: Tags
    setting: Setting


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    setting: Setting
    beats: tuple[Beat, ...]
    characters: tuple[str, ...]


def scenes_of(chapter: Chapter) -> list[Scene]:
    tagged = [(sentence, tags_of(sentence.text, chapter.language)) for sentence in chapter.sentences]
    setting = opening(tags for _, tags in tagged)
    names = tuple(cast_of(chapter))
    scenes: list[Scene] = []
    beats: list[Beat] = []
    paragraph = 0
    for sentence, tags in tagged:
        first = sentence.paragraph != paragraph
        after = follow(setting, tags, first=first)
        paragraph = sentence.paragraph
        if beats and (after.place, after.time) != (setting.place, setting.time):
            scenes.append(_scene(len(scenes), beats, names))
            beats = []
        setting = after
        beats.append(Beat(sentence=sentence, tags=tags, setting=after))
    if beats:
        scenes.append(_scene(len(scenes), beats, names))
    return scenes


def opening(tags: Iterable[Tags]) -> Setting:
    """The setting before the first word: what the first sentences will say of it."""
    start = Setting()
    seen: dict[str, str] = {}
    for found in islice(tags, 6):
        for field, values in (("place", found.places), ("time", found.times), ("weather", found.weathers)):
            if values and field not in seen:
                seen[field] = values[0]
    return msgspec.structs.replace(start, **seen)


def follow(setting: Setting, tags: Tags, *, first: bool) -> Setting:
    """The setting after a sentence."""
    place = setting.place
    looking_out = setting.inside and "window" in tags.motifs
    if tags.places and setting.place not in tags.places and not looking_out:
        place = tags.places[0]
    time = setting.time
    if tags.times and (first or place != setting.place):
        time = tags.times[0]
    weather = setting.weather
    if tags.weathers:
        weather = tags.weathers[-1]
    elif time != setting.time:
        weather = "clear"
    mood = tags.moods[0] if tags.moods else ("calm" if first else setting.mood)
    return Setting(place=place, time=time, weather=weather, mood=mood)


def cast_of(chapter: Chapter) -> dict[str, str]:
    """Names that come twice or more, most frequent first, and what the sentences around them say they are."""
    text = "\n".join(sentence.text for sentence in chapter.sentences)
    if chapter.language == "zh":
        found = Counter(name for name in _ZH_NAME.findall(text) if name not in _ZH_NO_NAMES)
    else:
        inner = {name for name in _NAME.findall(text) if name not in _NO_NAMES}
        found = Counter({name: len(re.findall(rf"\b{name}\b", text)) for name in inner})
    names = [name for name, count in sorted(found.items(), key=lambda item: (-item[1], item[0])) if count > 1][:6]
    return {name: _kind(name, chapter) for name in names}


def _kind(name: str, chapter: Chapter) -> str:
    votes: Counter[str] = Counter()
    for number, sentence in enumerate(chapter.sentences):
        if name not in sentence.text:
            continue
        for near in (number - 1, number, number + 1):
            if 0 <= near < len(chapter.sentences) and chapter.sentences[near].paragraph == sentence.paragraph:
                votes.update(tags_of(chapter.sentences[near].text, chapter.language).figures)
    text = "".join(sentence.text for sentence in chapter.sentences)
    young = re.search(rf"{name}[^。.]{{0,12}}([一二三四五六七八九十0-9]+岁|years old)", text) or votes.keys() & CHILDREN
    if young:
        return "girl" if votes["woman"] + 2 * votes["girl"] > votes["man"] + 2 * votes["boy"] else "boy"
    votes.pop("crowd", None)
    return max(votes, key=lambda kind: (votes[kind], kind)) if votes else "man"


def _scene(index: int, beats: Sequence[Beat], names: Sequence[str]) -> Scene:
    text = " ".join(beat.sentence.text for beat in beats)
    return Scene(
        index=index,
        setting=beats[0].setting,
        beats=tuple(beats),
        characters=tuple(name for name in names if name in text),
    )
