"""Scenes go in; shots come out: what is said, what is seen, how it is framed, how the camera moves (C§2.3)."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from patra.kernel.canonical import sha256_hex
from patra.studio.script.lexicon import CHILDREN, Tags
from patra.studio.script.scenes import Beat, Scene, Setting
from patra.studio.script.sentences import LONGEST, Sentence

INSERTS = ("letter", "clock", "key", "book", "cup", "candle", "map", "lamp", "bell")  # things worth a close look
LANDMARKS = frozenset({"lighthouse", "bridge", "train", "kite"})  # things that want a wide view
WATERS = frozenset({"sea", "lake", "river", "harbour", "island"})
RATE = {"en": 14.0, "zh": 4.3}  # characters spoken in a second
SHORTEST = {"en": 48, "zh": 14}  # a shorter sentence shares its shot with the next
MOVES = ("push_in", "pan_right", "pull_out", "pan_left", "drift_up", "push_in", "drift_down")

_PRONOUNS = {"woman": re.compile(r"\b[Ss]he\b|\b[Hh]er\b|她"), "man": re.compile(r"\b[Hh]e\b|\b[Hh]is\b|\b[Hh]im\b|他")}


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """Someone in the picture. `name` keeps clothes and face the same through the film."""

    kind: str  # child, woman, man, old
    name: str = ""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """What is seen, in words that the painter and a model server both understand."""

    place: str
    time: str
    weather: str
    mood: str
    framing: str = "wide"  # wide, medium, insert
    subject: str = ""  # the thing of an insert
    motifs: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    crowd: bool = False
    camera: str = "push_in"
    mirror: bool = False  # the place seen from its other side
    seed: int = 0


class Shot(msgspec.Struct, frozen=True, kw_only=True):
    shot_id: str
    index: int
    scene: int
    sentences: tuple[Sentence, ...]
    picture: Picture
    characters: tuple[str, ...]
    estimated_ms: int

    @property
    def narration(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


def shots_of(scenes: Sequence[Scene], language: str, cast: Mapping[str, str]) -> list[Shot]:
    rules = "zh" if language == "zh" else "en"
    shots: list[Shot] = []
    recent: dict[str, str] = {}
    views: dict[str, int] = {}
    afloat: frozenset[str] = frozenset()
    paper = ""
    for scene in scenes:
        seed = int(sha256_hex(f"{scene.index}|{scene.beats[0].sentence.text}")[:8], 16)
        for place, beats in enumerate(_grouped(scene.beats, rules)):
            tags = _joined(beats)
            people = _people(tags, beats, cast, recent)
            tags, paper = _of_paper(tags, scene.setting.place, paper)
            tags, afloat = _afloat(tags, people, scene.setting.place, afloat)
            recently = [shot.picture.subject for shot in shots[-3:]]
            picture = _picture(
                beats[-1].setting, scene.setting, tags, people, recently, first=place == 0, number=len(shots)
            )
            views[scene.setting.place] = views.get(scene.setting.place, -1) + (picture.framing == "wide")
            index = len(shots)
            characters = sum(len(beat.sentence.text) for beat in beats)
            shots.append(
                Shot(
                    shot_id=f"shot_{index + 1:04}",
                    index=index,
                    scene=scene.index,
                    sentences=tuple(beat.sentence for beat in beats),
                    picture=msgspec.structs.replace(picture, seed=seed, mirror=views[scene.setting.place] % 2 == 1),
                    characters=tuple(c for c in scene.characters if any(c in b.sentence.text for b in beats)),
                    estimated_ms=round(1000 * characters / RATE[rules]) + 500 * len(beats),
                )
            )
    return shots


def _grouped(beats: Sequence[Beat], rules: str) -> list[list[Beat]]:
    """Sentences that share a picture: short ones of one paragraph together, up to one breath and a half."""
    groups: list[list[Beat]] = []
    for beat in beats:
        last = groups[-1] if groups else None
        said = sum(len(b.sentence.text) for b in last) if last else 0
        short = min(said, len(beat.sentence.text)) < SHORTEST[rules]
        fits = said + len(beat.sentence.text) <= LONGEST[rules] * 0.9
        if last and short and fits and last[-1].sentence.paragraph == beat.sentence.paragraph:
            last.append(beat)
        else:
            groups.append([beat])
    return groups


def _joined(beats: Sequence[Beat]) -> Tags:
    def all_of(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tag for beat in beats for tag in getattr(beat.tags, field)))

    return Tags(**{field: all_of(field) for field in Tags.__struct_fields__})


def _people(tags: Tags, beats: Sequence[Beat], cast: Mapping[str, str], recent: dict[str, str]) -> tuple[Figure, ...]:
    """Who is in the picture: the named, then whom a pronoun or a kind points to; `recent` is who was last meant."""
    text = " ".join(beat.sentence.text for beat in beats)
    figures = {name: Figure(kind=kind, name=name) for name, kind in cast.items() if name in text}
    for name, kind in cast.items():
        if name in text:
            recent[kind] = name
            if kind in CHILDREN:  # the boy is "he" later, the girl "she", each "the child"
                recent |= {"woman" if kind == "girl" else "man": name, "child": name}
    for kind in tags.figures:
        if kind == "crowd":
            continue
        meant_by_pronoun = kind not in _PRONOUNS or _PRONOUNS[kind].search(text)
        if any(figure.kind == kind or figure.kind in CHILDREN for figure in figures.values()):
            continue
        if not meant_by_pronoun:
            recent[kind] = kind
        name = recent.get(kind, kind)
        figures.setdefault(name, Figure(kind=cast.get(name, kind), name=name))
    return tuple(figures.values())[:3]


def _of_paper(tags: Tags, place: str, before: str) -> tuple[Tags, str]:
    """After a paper boat was spoken of, "the boat" is that one as long as the place stays; it carries nobody."""
    if "paperboat" not in tags.motifs and place != before:
        return tags, ""
    motifs = tuple(dict.fromkeys("paperboat" if motif == "boat" else motif for motif in tags.motifs))
    return msgspec.structs.replace(tags, motifs=motifs), place


def _afloat(tags: Tags, people: tuple[Figure, ...], place: str, before: frozenset[str]) -> tuple[Tags, frozenset[str]]:
    """Who sits in a boat stays in it, mentioned or not, until the place or the company changes."""
    names = frozenset(figure.name for figure in people)
    if place not in WATERS:
        return tags, frozenset()
    if "boat" in tags.motifs and people:
        return tags, names | {"boy", "girl", "child"} if any(f.kind in CHILDREN for f in people) else names
    if before and people and (names <= before or any(figure.kind in before for figure in people)):
        return msgspec.structs.replace(tags, motifs=(*tags.motifs, "boat")), before | names
    return tags, before if not people else frozenset()


def _picture(
    setting: Setting,
    scene: Setting,
    tags: Tags,
    people: tuple[Figure, ...],
    recently: Sequence[str],
    *,
    first: bool,
    number: int,
) -> Picture:
    things = [motif for motif in tags.motifs if motif in INSERTS and motif not in recently]
    framing, subject = "wide", ""
    if (
        things
        and not first
        and not LANDMARKS & set(tags.motifs)
        and (scene.inside or things[0] not in {"lamp", "bell"})
    ):
        framing, subject = "insert", things[0]
    elif people and not first and not LANDMARKS & set(tags.motifs):
        framing = "medium"
    camera = MOVES[number % len(MOVES)]
    if framing == "insert":
        camera = ("push_in", "pan_right", "pull_out")[number % 3]
    return Picture(
        place=scene.place,
        time=scene.time,
        weather=setting.weather,
        mood=setting.mood,
        framing=framing,
        subject=subject,
        motifs=tags.motifs,
        figures=people,
        crowd="crowd" in tags.figures,
        camera=camera,
    )
