"""Applies people's edits to planned shots: what is said, where it is, who and what is seen, how long it lasts (C§2.3).

An edit names only what changes. It is bound to the part of the chapter that its shot tells, so that it finds its shot
when the chapter is planned again, by a later release too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from patra.kernel.errors import Invalid
from patra.studio.script.facts import Card
from patra.studio.script.lexicon import MOODS, MOTIFS, PLACES, TIMES, WEATHERS, tags_of
from patra.studio.script.pictograms import PICTOGRAMS, pictograms_of
from patra.studio.script.sentences import CONTROL, Sentence, read_chapter
from patra.studio.script.shots import INSERTS, MOVES, Figure, Shot
from patra.studio.vocabulary.reasons import Reason

STAGING_VALUES = {
    "place": [*PLACES],
    "time": list(TIMES),
    "weather": list(WEATHERS),
    "mood": ["calm", *MOODS],
    "framing": ["wide", "medium", "insert"],
    "camera": sorted(set(MOVES)),
}
"""What a staging may say, by field; what the painter knows."""

KINDS = ("woman", "man", "girl", "boy", "granny", "old", "child")
MAX_NARRATION_CHARACTERS = 2000
MAX_LETTERING_CHARACTERS = 300
MAX_SECONDS = 120.0
MAX_PEOPLE, MAX_THINGS = 3, 8
SEED_STEP = 7919  # between the takes of a shot
_SPEECH = re.compile(r"([“「『\"][^”」』\"]*[”」』\"]?)")


class ShotEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What someone wants changed in a shot; what is not given stays as it is. An empty `place` is no place."""

    narration: str | None = None  # what is said instead
    place: str | None = None
    time: str | None = None
    weather: str | None = None
    mood: str | None = None
    framing: str | None = None
    camera: str | None = None
    subject: str | None = None  # the thing of a close-up
    people: tuple[str, ...] | None = None  # a name of the chapter, a kind, or NAME=KIND
    things: tuple[str, ...] | None = None  # instead of those that the text names
    lettering: str | None = None  # words instead of a scene
    seconds: float | None = None  # at least this long
    again: bool = False  # another take: a new drawing, and model servers are asked again
    reset: bool = False  # without the earlier edits of the shot

    @property
    def changes(self) -> dict[str, Any]:
        return msgspec.to_builtins(self)


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit with who made it, when, and the part of the chapter that its shot tells."""

    shot_id: str
    start: int
    end: int
    change: ShotEdit
    by: str
    at: int


class AppliedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit as a plan and the film's manifest show it."""

    shot_id: str
    changes: dict[str, Any]
    by: str
    at: str
    applied: bool = True  # not where no shot tells that part alone any more, or this release cannot draw it


def source_of(shot: Shot) -> tuple[int, int]:
    """The part of the chapter that a shot tells."""
    return shot.sentences[0].start, shot.sentences[-1].end


def edited_shots(
    shots: Sequence[Shot], edits: Sequence[Edit], kinds: Mapping[str, str], language: str, stored: int = 0
) -> tuple[list[Shot], tuple[bool, ...]]:
    """The shots with the edits in their order, and which of these found their shot and can be drawn.

    `kinds` are the people of the chapter. The first `stored` edits were taken earlier, perhaps by a release that drew
    more: what cannot be drawn is left out. Raises Invalid with the field of another that cannot be shown.
    """
    found = list(shots)
    places = {source_of(shot): shot.index for shot in shots}
    resets = {(edit.start, edit.end): number for number, edit in enumerate(edits) if edit.change.reset}
    applied: list[bool] = []
    for number, edit in enumerate(edits):
        source = edit.start, edit.end
        index = places.get(source)
        applied.append(index is not None)
        if index is None or number < resets.get(source, 0):
            continue
        before = shots[index] if edit.change.reset else found[index]
        try:
            found[index] = _edit_shot(before, edit.change, kinds, language)
        except Invalid:
            if number >= stored:
                raise
            found[index], applied[number] = before, False
    return found, tuple(applied)


def parts_of(shot: Shot, kinds: Mapping[str, str]) -> list[list[dict[str, Any]]]:
    """Who says what in a shot whose text was rewritten: what is in quotation marks is its speaker's."""
    speaker = shot.picture.speaker
    number = next((place for place, name in enumerate(kinds) if name == speaker), 0)
    figure = next((one for one in shot.picture.figures if one.name == speaker), None)
    kind = kinds.get(speaker) or (figure.kind if figure else "")

    def part(words: str) -> dict[str, Any]:
        theirs = bool(speaker) and _SPEECH.fullmatch(words) is not None
        whose = {"speaker": speaker, "kind": kind, "number": number} if theirs else {}
        return {"text": words.strip(), "speaker": "", "kind": "", "number": 0} | whose

    return [
        [part(words) for words in _SPEECH.split(sentence.text) if any(map(str.isalnum, words))]
        for sentence in shot.sentences
    ]


def _edit_shot(shot: Shot, change: ShotEdit, kinds: Mapping[str, str], language: str) -> Shot:
    fields: dict[str, Any] = {}
    if change.narration is not None:
        fields |= {"sentences": _sentences(change.narration, shot, language), "rewritten": True}
    if change.seconds is not None:
        if not 0 <= change.seconds <= MAX_SECONDS:
            raise _invalid("seconds", f"is between 0 and {MAX_SECONDS:g}")
        fields["least_ms"] = round(1000 * change.seconds)
    take = shot.take + change.again
    staged = _stage_change(shot, change, kinds, language)
    fixed = tuple(dict.fromkeys([*shot.fixed, *staged]))
    picture = msgspec.structs.replace(shot.picture, **staged)
    if change.again:
        picture = msgspec.structs.replace(picture, seed=(picture.seed + SEED_STEP) % 2**32)
    if not any(figure.name == picture.speaker for figure in picture.figures):
        picture = msgspec.structs.replace(picture, speaker="")
    told = msgspec.structs.replace(shot, picture=picture, take=take, fixed=fixed, **fields)
    least = max(told.estimated_ms, told.least_ms)
    who = tuple(figure.name for figure in picture.figures) if change.people is not None else shot.characters
    return msgspec.structs.replace(told, estimated_ms=least, characters=who)


def _stage_change(shot: Shot, change: ShotEdit, kinds: Mapping[str, str], language: str) -> dict[str, Any]:
    """The fields of the picture that change."""
    before, staged = shot.picture, dict[str, Any]()
    if change.place is not None:
        staged["place"] = change.place and _place(change.place, language)
    for field in ("time", "weather", "mood", "camera"):
        value = getattr(change, field)
        if value is not None:
            staged[field] = _check_value(field, value, STAGING_VALUES[field])
    if change.people is not None:
        staged["figures"] = _figures(change.people, kinds)
        staged["crowd"] = before.crowd and bool(change.people)
    if change.things is not None:
        staged |= _things(change.things, language)
    return staged | _frame_change(shot, change, staged, kinds)


def _frame_change(shot: Shot, change: ShotEdit, staged: Mapping[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """How it is framed: lettering is a card, a subject a close-up, a place or people a scene."""
    if change.lettering is not None:
        text = _text("lettering", change.lettering, MAX_LETTERING_CHARACTERS)
        return {"framing": "card", "card": Card(kind="words", title=text), "figures": (), "crowd": False, "subject": ""}
    before = shot.picture
    framing = change.framing and _check_value("framing", change.framing, STAGING_VALUES["framing"])
    subject = change.subject and _check_value("subject", change.subject, INSERTS)
    if framing == "insert" and not (subject or before.subject):
        raise _invalid("subject", f"a close-up shows one of {', '.join(INSERTS)}")
    if subject:
        framing = "insert"
    leaves_card = before.framing == "card" and (framing or staged.get("place") or change.people)
    if not framing and not leaves_card:
        return {}
    figures = staged.get("figures")
    if figures is None:
        figures = before.figures or _figures(shot.characters[:MAX_PEOPLE], kinds)
    shown = framing or ("medium" if figures else "wide")
    return {
        "framing": shown,
        "card": None,
        "figures": figures,
        "subject": (subject or before.subject) if shown == "insert" else "",
    }


def _sentences(narration: str, shot: Shot, language: str) -> tuple[Sentence, ...]:
    text = _text("narration", narration, MAX_NARRATION_CHARACTERS)
    stop = "" if text[-1] in '.!?…。！？”"' else "。" if language == "zh" else "."  # a line without one is a title
    chapter = read_chapter(text + stop, language)
    said = [chapter.title, *(sentence.text for sentence in chapter.sentences)]
    start, end = source_of(shot)
    paragraph = shot.sentences[0].paragraph
    found = tuple(
        Sentence(text=one, start=start, end=end, paragraph=paragraph) for one in said if any(map(str.isalnum, one))
    )
    if not found:
        raise _invalid("narration", "holds nothing that can be said")
    return found


def _text(field: str, given: str, most: int) -> str:
    text = given.strip()
    if found := CONTROL.search(text):
        raise _invalid(field, f"U+{ord(found[0]):04X} at character {found.start() + 1} is no text")
    if not 0 < len(text) <= most:
        raise _invalid(field, f"has {len(text)} characters, not 1 to {most}")
    return text


def _check_value(field: str, value: str, values: Sequence[str]) -> str:
    if value not in values:
        raise _invalid(field, f"{value!r} is not one of {', '.join(values)}")
    return value


def _place(value: str, language: str) -> str:
    """A place by its name or by a word for it: a beach is `sea`."""
    if value in PLACES:
        return value
    found = [place for one in (language, "en") for place in tags_of(value, one).places if place in PLACES]
    return found[0] if found else _check_value("place", value, STAGING_VALUES["place"])


def _things(given: Sequence[str], language: str) -> dict[str, tuple[str, ...]]:
    """Motifs that the painter draws, and pictograms for the rest."""
    if len(given) > MAX_THINGS:
        raise _invalid("things", f"{len(given)} things, at most {MAX_THINGS}")
    motifs: list[str] = []
    pictograms: list[str] = []
    for word in given:
        drawn = [word] if word in MOTIFS else [m for one in (language, "en") for m in tags_of(word, one).motifs]
        shown = [word] if word in PICTOGRAMS else [p for one in (language, "en") for p in pictograms_of(word, one)]
        if not drawn and not shown:
            raise _invalid("things", f"no drawing shows {word!r}")
        (motifs if drawn else pictograms).append((drawn or shown)[0])
    return {"motifs": tuple(dict.fromkeys(motifs)), "pictograms": tuple(dict.fromkeys(pictograms))}


def _figures(given: Sequence[str], kinds: Mapping[str, str]) -> tuple[Figure, ...]:
    if len(given) > MAX_PEOPLE:
        raise _invalid("people", f"{len(given)} people, at most {MAX_PEOPLE}")
    numbers = {name: number for number, name in enumerate(kinds)}
    figures: list[Figure] = []
    for one in given:
        name, mark, kind = (part.strip() for part in one.partition("="))
        own = kind if mark else kinds.get(name) or (name if name in KINDS else "")
        if not name or own not in KINDS:
            known = ", ".join([*kinds, *KINDS])
            raise _invalid("people", f"{one!r} is not one of {known}; give NAME=KIND for someone new")
        figures.append(Figure(kind=own, name=name, number=numbers.get(name, len(numbers) + len(figures))))
    return tuple(figures)


def _invalid(field: str, detail: str) -> Invalid:
    return Invalid(Reason.EDIT_INVALID, detail, place=field)


__all__ = ["AppliedEdit", "Edit", "ShotEdit", "edited_shots", "parts_of", "source_of"]
