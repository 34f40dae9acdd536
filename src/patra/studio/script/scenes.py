"""Turns sentences into scenes: runs of sentences in one setting, with who is there (C§2.3).

A setting carries over: what a sentence does not mention stays as it was. A new place opens a new scene; a new time of
day does so at the start of a paragraph, so that "she remembered the night" does not cut away. Where each paragraph is
about something else (a report, a life, a letter, a poem) a place lasts for its paragraph only: no place is shown rather
than an unrelated one.
"""

# ruff: noqa: E501  patterns read better unbroken

import re
from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from patra.studio.script.depiction import here_part, with_open_speech, without_speech
from patra.studio.script.language import READ
from patra.studio.script.lexicon import INSIDE, Tags, named_places, tags_of
from patra.studio.script.people import People
from patra.studio.script.sentences import Chapter, Sentence
from patra.studio.script.signs import OUTDOORS, is_room, set_of, sign_of

IMPLIED = {
    "indoors": "room",
    "lighthouse": "sea",
    "boat": "sea",
    "bridge": "river",
    "train": "station",
}
"""Where something must be that can be nowhere else."""


OUTSIDE = frozenset({"bridge", "lighthouse"})  # what is in no room
WITH_WATER = frozenset({"sea", "harbour", "island", "lake", "river", "mountain", "city"})  # there is one there
BEDS = frozenset({"bed", "pillow", "床", "枕头", "被窝"})
FIRST_SENTENCES = 2
DAYLIGHT = {"time": "day", "weather": "clear"}
_PASSING = re.compile(
    r"\b(?:all|every|each|many) (?:night|evening|morning|dawn)s?\b|\bat night\b.*\b(?:they|people) \w+|"
    r"[一整每][到个]?(?:夜|晚|早)|夜夜|天天晚上",
    re.IGNORECASE,
)
_JUMP = re.compile(
    r"\W*(?:(?:\w+ )?(?:years?|months?|weeks?|days?) later|later\b|in (?:1[0-9]{3}|20[0-9]{2})\b|"
    r"at the age of|when (?:he|she) was \w+|today\b|nowadays|the next (?:day|year|week)|(?:in|one|last|that) (?:spring|summer|autumn|fall|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|the following|since then|over the years|every (?:year|spring|summer|autumn|winter)|"
    r"for (?:\w+|[\d,]+|the next \w+) (?:years?|months?|weeks?|days?|decades?|centuries)\b|by (?:1[0-9]{3}|20[0-9]{2})\b)|"
    r"(?:后来|今天|如今|现在|从此|此后|每年|多年来|[^，。]{0,6}[年月天]里|[^，。]{0,4}世纪|第二天|第二年|多年以后|几年后|不久以后|[^，。]{0,6}(?:岁|年)(?:那年|的时候|时|以后|后|，))",
    re.IGNORECASE,
)


_LEAVES = re.compile(
    r"\b(?:went|goes|walk(?:ed|s)|ran|runs|stepp?(?:ed|s)|rushed|came|hurried|slipped|crept|stormed|carried \w+|brought \w+) "
    r"(?:back |straight |quietly )?(?:out(?: into| of| to| in|\b)|outside|outdoors)|\b(?:closed|shut|locked) the door behind|"
    r"\b(?:left|leaves|leaving) (?:the|his|her|their) (?:house|room|shop|school|office|hospital|cabin|hut|kitchen|café|cafe|bakery|"
    r"library|museum|theatre|church|factory|station|flat|apartment|workshop|hall|inn|building)\b|"
    r"\b(?:ran|runs|walk(?:ed|s)|went|hurried|drove|rode|cycled|trudged) (?:home|away|off|back home)\b|"
    r"\b(?:through|in|into) the (?:\w+ )?(?:rain|snow|fog|mist|storm|downpour|blizzard)\b|冒着?[大风]?[雨雪]|在?[雨雪]中|[雨雪]里|雪地|往家|跑回家|走回家|"
    r"(?:走|跑|冲|奔|赶)出(?!来|生|版)|出了(?:门|屋|家|校|院|店)|(?:走|跑|来|站|冲)(?:到|在)(?:了)?(?:门|屋|窗)外|推门(?:出去|而出)|离开了?(?:家|屋|店|学校|医院|房间)",
    re.IGNORECASE,
)
"""Who goes out: a room ends there."""


_YEAR = re.compile(
    r"\b(?:in|by|until|since) (?:1[0-9]{3}|20[0-9]{2})\b|(?:1[0-9]{3}|20[0-9]{2}|[一二][零〇一二三四五六七八九]{3})年"
)
_SAME = re.compile(r"Its? (?!has|is|was|will|took|had)|它")
"""A paragraph that goes on about the place or the thing of the one before."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where and when, in what weather and mood."""

    place: str = ""  # nowhere yet: no place is shown rather than an unrelated one
    time: str = "day"
    weather: str = "clear"
    mood: str = "calm"
    sign: str = ""  # the word of a place whose drawing does not say which one it is
    passing: bool = False  # the time of day was only of that paragraph: all night, every evening
    absent: tuple[str, ...] = ()  # motifs that are said not to be there, such as the moon of a dark night

    @property
    def inside(self) -> bool:
        return self.place in INSIDE or is_room(self.sign)


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


def scenes_of(chapter: Chapter, people: People, *, explains: bool = False, episodic: bool = False) -> list[Scene]:
    """The scenes of a chapter; one that explains stays nowhere until it says where something is.

    In an episodic one a place lasts until its paragraph ends.
    """
    language = chapter.language
    told = with_open_speech(
        [people.without_names(s.text, language) for s in chapter.sentences], [s.paragraph for s in chapter.sentences]
    )
    tagged = [(s, tags_of(text, language)) for s, text in zip(chapter.sentences, told, strict=True)]
    # who mentions a boat is not on the water
    narrated = [tags_of(without_speech(text), language).motifs for text in told]
    setting = (
        Setting()
        if explains or episodic
        else opening(
            msgspec.structs.replace(tags, motifs=motifs)
            for (s, tags), motifs in zip(tagged, narrated, strict=True)
            if s.paragraph == tagged[0][0].paragraph
        )
    )
    scenes: list[Scene] = []
    beats: list[Beat] = []
    paragraph, last = -1, ("", "", "")
    peopled, paragraphs = True, 0
    here, away = set[str](), set[str]()  # who is at this place, and who was last seen at another
    for (sentence, found), text, motifs in zip(tagged, told, narrated, strict=True):
        tags = found
        first = sentence.paragraph != paragraph
        if explains:  # inside of a thing is no room
            tags = msgspec.structs.replace(found, places=tuple(place for place in found.places if place != "indoors"))
        later = first and paragraph >= 0
        jumps = later and bool(_JUMP.match(sentence.text) or _YEAR.search(sentence.text))
        jumps = jumps or (later and setting.passing and not tags.times)
        lapses = (
            jumps
            or (later and not peopled and paragraphs > 1)
            or (episodic and later and not _SAME.match(sentence.text))
        ) and not tags.places
        if lapses:
            setting = msgspec.structs.replace(setting, place="", sign="", **({} if jumps else DAYLIGHT))
        who = set(people.within(sentence.start, sentence.end))
        if later and not tags.places and who & away and not who & here:
            setting = msgspec.structs.replace(setting, place="", sign="")  # they were last seen elsewhere
        planned = not who and bool(named_places(without_speech(text), language))  # a play that will be in a prison
        if not tags.places and (planned or _names_another(text, setting.place, language)):
            setting = msgspec.structs.replace(setting, place="", sign="")  # where it is now is not certain
        if setting.sign and not setting.place and not set_of(setting.sign):
            setting = msgspec.structs.replace(setting, sign="")  # nothing draws it, and nothing says that it lasts
        after = follow(setting, tags, first=first, jumps=jumps, narrated=motifs)
        stays = (after.place, after.sign) == (setting.place, setting.sign)
        if after.inside and stays and not tags.places and language in READ and _LEAVES.search(without_speech(text)):
            after = msgspec.structs.replace(after, place="", sign=OUTDOORS[language])
        if tags.times and _PASSING.search(sentence.text):
            after = msgspec.structs.replace(after, passing=True)
        if explains and first and not tags.places:
            after = msgspec.structs.replace(after, place="")  # the next paragraph explains something else
        if (after.place, after.sign) != last[:2]:
            away, here = away | here, set[str]()
        here |= who
        away -= who
        paragraph = sentence.paragraph
        if beats and (after.place, after.sign, after.time) != last:
            scenes.append(_scene(len(scenes), beats, people))
            beats = []
        if tags.places:  # what is only described may be far from where people are; the first paragraph sets the scene
            peopled = bool(who) or sentence.paragraph == tagged[0][0].paragraph
        elif who and not first:
            peopled = True  # and who is named right after it is there
        paragraphs += first
        setting, last = after, (after.place, after.sign, after.time)
        beats.append(Beat(sentence=sentence, tags=tags, setting=after))
    if beats:
        scenes.append(_scene(len(scenes), beats, people))
    return scenes


def _names_another(text: str, place: str, language: str) -> bool:
    """Whether a sentence names places, and the one where it is not among them: nobody can be sure to be there still."""
    named = {tag for tag, _ in named_places(here_part(text, language), language)} if language in READ else set[str]()
    return bool(named) and place not in named and not (place in INSIDE and "window" in tags_of(text, language).motifs)


def opening(tags: Iterable[Tags]) -> Setting:
    """The setting before the first word: what the first sentences will say of it."""
    start = Setting()
    seen: dict[str, str] = {}
    for number, found in enumerate(islice(tags, 6)):
        soon = number < FIRST_SENTENCES  # the night of the third sentence is not that of the first
        for field, values in (
            ("place", found.places),
            *((("time", found.times), ("weather", found.weathers)) if soon else ()),
        ):
            known = sorted(values, key=lambda value: IMPLIED.get(value, value) not in INSIDE)
            if known and field not in seen:
                seen[field] = IMPLIED.get(known[0], known[0])
                if field == "place":
                    seen["sign"] = _sign(found, known[0])
        if "place" not in seen and (implied := next((IMPLIED[m] for m in found.motifs if m in IMPLIED), "")):
            seen["place"] = implied
    if seen.get("place") == "elsewhere":
        seen["place"] = ""
    return msgspec.structs.replace(start, **seen)


def _sign(tags: Tags, place: str) -> str:
    return sign_of(place, dict(zip(tags.places, tags.place_words, strict=False)).get(place, ""))


def follow(
    setting: Setting, tags: Tags, *, first: bool, jumps: bool = False, narrated: Sequence[str] | None = None
) -> Setting:
    """The setting after a sentence; one that jumps in time leaves the time of day and the weather behind."""
    motifs = tags.motifs if narrated is None else narrated
    if jumps:
        setting = msgspec.structs.replace(setting, time="day", weather="clear", absent=(), passing=False)
    place, sign = setting.place, setting.sign
    looking_out = setting.inside and "window" in tags.motifs
    somewhere = [tag for tag in tags.places if tag != "indoors"]
    somewhere.sort(key=lambda tag: tag not in INSIDE)  # in the city, in a workshop: the workshop
    stays = setting.place in somewhere or (setting.place in {"harbour", "island"} and somewhere == ["sea"])
    stays = stays or (setting.place in WITH_WATER and somewhere == ["river"] and "bridge" in motifs)
    if somewhere and not stays and not looking_out:
        place, sign = somewhere[0], _sign(tags, somewhere[0])
        place = "" if place == "elsewhere" else place
    elif stays and (told := _sign(tags, setting.place)):
        sign = told
    elif not place and sign and not somewhere:
        pass  # of a place that no drawing shows nothing else is known
    elif "indoors" in tags.places and not somewhere and (not setting.inside or _to_bed(setting, tags)):
        place, sign = "room", ""
    elif first and not looking_out and (outside := OUTSIDE & set(motifs)) and setting.place not in WITH_WATER:
        place, sign = IMPLIED[min(outside)], ""
    elif first and "train" in motifs and setting.place in {"sea", "harbour", "island", "lake"}:
        place, sign = IMPLIED["train"], ""
    elif not place:
        place = next((IMPLIED[motif] for motif in motifs if motif in IMPLIED and motif != "train"), "")
    time = setting.time
    if tags.times and (first or (place, sign) != (setting.place, setting.sign)):
        time = tags.times[0]
    weather = setting.weather
    if tags.weathers:
        weather = tags.weathers[-1]
    elif time != setting.time:
        weather = "clear"
    mood = tags.moods[0] if tags.moods else ("calm" if first else setting.mood)
    carried = () if time != setting.time else setting.absent
    absent = tuple(motif for motif in dict.fromkeys([*carried, *tags.denied]) if motif not in tags.motifs)
    passing = setting.passing and not first
    return Setting(place=place, sign=sign, time=time, weather=weather, mood=mood, absent=absent, passing=passing)


def _to_bed(setting: Setting, tags: Tags) -> bool:
    """Whether a bed is spoken of in a room that has none: it stands in another one."""
    beds = BEDS & set(tags.place_words)
    return bool(beds) and (
        setting.place in INSIDE - {"room"} or set_of(setting.sign) not in {"", "ward", "loft", "corridor"}
    )


def _scene(index: int, beats: Sequence[Beat], people: People) -> Scene:
    present = (name for beat in beats for name in people.within(beat.sentence.start, beat.sentence.end))
    return Scene(
        index=index,
        setting=beats[0].setting,
        beats=tuple(beats),
        characters=tuple(dict.fromkeys(present)),
    )
