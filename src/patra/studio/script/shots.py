"""Turns scenes into shots: what is said, what is seen, how it is framed, how the camera moves (C§2.3)."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from patra.kernel.canonical import sha256_hex
from patra.studio.script.cast.ages import is_birth
from patra.studio.script.cast.crowds import THEY, Crowd, crowd_in, crowd_of
from patra.studio.script.cast.presence import unreported_part
from patra.studio.script.depiction import is_salutation, seen_part, with_closed_speech, without_speech
from patra.studio.script.dialogue import Reading
from patra.studio.script.facts import Card, card_of, with_whole_text
from patra.studio.script.lexicon import CHILDREN, Tags, motif_words, named_places
from patra.studio.script.pictograms import BODY, is_pictured, pictogram_words
from patra.studio.script.scenes import Beat, Scene, Setting
from patra.studio.script.sentences import LONGEST, Sentence
from patra.studio.script.signs import set_of
from patra.studio.script.tables.things import FURNITURE, PAINTED
from patra.studio.script.words.groups import groups_in
from patra.studio.script.words.nouns import phrase_of, unshown_nouns

INSERTS = ("letter", "clock", "key", "book", "cup", "candle", "map", "lamp", "bell")  # things worth a close look
LANDMARKS = frozenset({"lighthouse", "bridge", "train", "kite"})  # things that want a wide view
WATERS = frozenset({"sea", "lake", "river", "harbour", "island"})
RATE = {"en": 14.0, "zh": 4.3}  # characters spoken in a second
SHORTEST = {"en": 48, "zh": 14}  # a shorter sentence shares its shot with the next
MOST_LABELS = 4
CHILD_WORDS = frozenset({"children", "child", "孩子", "小孩"})
MOVES = ("push_in", "pan_right", "pull_out", "pan_left", "drift_up", "push_in", "drift_down")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A person in the picture. `name` keeps clothes and face the same through the film."""

    kind: str  # child, woman, man, old
    name: str = ""
    number: int = -1  # in the order in which the chapter names people: no two are dressed alike
    coat: str = ""  # the colour that the text says they wear
    hat: str = ""
    hair: str = ""


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """What is seen, in words that the painter and a model server both understand."""

    place: str
    time: str
    weather: str
    mood: str
    framing: str = "wide"  # wide, medium, insert, card
    subject: str = ""  # the thing of an insert
    motifs: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    crowd: bool = False
    crowd_kinds: tuple[str, ...] = ()  # who the crowd are, in turn; of all kinds where nothing is here
    crowd_count: int = 0  # how many, where the text says
    camera: str = "push_in"
    view: int = 0  # of a place that is seen again: 0 the whole, 1 and 2 nearer, to the left and to the right
    card: Card | None = None  # with framing `card`: what is drawn instead of a place
    spoken: tuple[str, ...] = ()  # motifs that people only mention
    pictograms: tuple[str, ...] = ()  # things that no drawing of ours shows
    captions: tuple[tuple[str, str], ...] = ()  # the text's own words for motifs and pictograms
    labels: tuple[str, ...] = ()  # things that neither a drawing nor a pictogram shows, lettered
    sign: str = ""  # the word of a place whose drawing does not say which one it is
    phrase: str = ""  # a clause of which nothing is drawn, lettered below
    speaker: str = ""  # the figure that speaks
    absent: tuple[str, ...] = ()  # motifs that must not be seen
    uncertain: tuple[str, ...] = ()  # motifs and pictograms that no card draws: its words say them
    portraits: tuple[Figure, ...] = ()  # on a card: who certainly is meant, of the kind `someone` as a silhouette
    vignette: bool = False  # on a card: a small picture of the place
    layout: int = 0  # of a card
    seed: int = 0


class Shot(msgspec.Struct, frozen=True, kw_only=True):
    shot_id: str
    index: int
    scene: int
    sentences: tuple[Sentence, ...]
    picture: Picture
    characters: tuple[str, ...]
    estimated_ms: int
    least_ms: int = 0  # what someone asked for; nothing: as long as what is said
    take: int = 0  # how often someone wanted another one
    fixed: tuple[str, ...] = ()  # fields of the picture that someone set: no chat model changes them
    certainty: float = 1.0  # how likely all claims of the scene hold
    doubts: tuple[str, ...] = ()  # what makes it uncertain, in words
    rewritten: bool = False  # someone changed what is said

    @property
    def narration(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)


def shots_of(scenes: Sequence[Scene], reading: Reading) -> list[Shot]:
    rules = "zh" if reading.language == "zh" else "en"
    is_letter = bool(scenes) and is_salutation(scenes[0].beats[0].sentence.text)
    shots: list[Shot] = []
    views: dict[str, int] = {}
    afloat: frozenset[str] = frozenset()
    paper: str | None = None
    company: tuple[Figure, ...] = ()
    for scene in scenes:
        seed = int(sha256_hex(f"{scene.index}|{scene.beats[0].sentence.text}")[:8], 16)
        for place, beats in enumerate(_group_beats(scene.beats, reading)):
            goes_on = bool(shots) and shots[-1].sentences[-1].paragraph == beats[0].sentence.paragraph
            people, speaker = _people(beats, reading, () if is_letter and not goes_on else company)
            tags, paper = _of_paper(_join_tags(beats), scene.setting.place, paper)
            tags, afloat = _afloat(tags, people, scene.setting.place, afloat)
            recently = [shot.picture.subject for shot in shots[-3:]]
            last = shots[-1].picture if shots else None
            picture = _picture(
                beats, scene.setting, tags, people, recently, reading, first=place == 0, number=len(shots), last=last
            )
            company = () if picture.crowd else people or (company if goes_on else ())
            wide = picture.framing == "wide"
            views[scene.setting.place] = views.get(scene.setting.place, -1) + wide
            index, characters = len(shots), sum(len(beat.sentence.text) for beat in beats)
            shots.append(
                Shot(
                    shot_id=f"shot_{index + 1:04}",
                    index=index,
                    scene=scene.index,
                    sentences=tuple(beat.sentence for beat in beats),
                    picture=msgspec.structs.replace(
                        picture,
                        seed=seed,
                        speaker=speaker if any(f.name == speaker for f in picture.figures) else "",
                        view=views[scene.setting.place] % 3 if wide and not people else 0,
                    ),
                    characters=tuple(figure.name for figure in people),
                    estimated_ms=round(1000 * characters / RATE[rules]) + 500 * len(beats),
                )
            )
    return shots


def _group_beats(beats: Sequence[Beat], reading: Reading) -> list[list[Beat]]:
    """Sentences that share a picture: short ones of one paragraph together, up to one breath and a half.

    A new speaker gets a new picture, and so does each sentence that is drawn as a card.
    """
    rules = "zh" if reading.language == "zh" else "en"
    groups: list[list[Beat]] = []
    for beat in beats:
        last = groups[-1] if groups else None
        said = sum(len(b.sentence.text) for b in last) if last else 0
        short = min(said, len(beat.sentence.text)) < SHORTEST[rules]
        fits = said + len(beat.sentence.text) <= LONGEST[rules] * 0.9
        speakers = {name for b in (*(last or ()), beat) if (name := reading.speaker(b.sentence))}
        carded = reading.explains and any(card_of(b.sentence.text, reading.language) for b in (*(last or ()), beat))
        together = short and fits and len(speakers) < 2 and not carded
        if last and together and last[-1].sentence.paragraph == beat.sentence.paragraph:
            last.append(beat)
        else:
            groups.append([beat])
    return groups


def _join_tags(beats: Sequence[Beat]) -> Tags:
    def all_of(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tag for beat in beats for tag in getattr(beat.tags, field)))

    return Tags(**{field: all_of(field) for field in Tags.__struct_fields__})


def _people(beats: Sequence[Beat], reading: Reading, company: tuple[Figure, ...]) -> tuple[tuple[Figure, ...], str]:
    """Who is in the picture, and who of them speaks: the speakers first, then those whom the sentences name.

    A small group without names is so many people; "they" are those of the picture before, if nobody else is meant.
    """
    spoken = [name for beat in beats if (name := reading.speaker(beat.sentence))]
    narrated = (unreported_part(reading.narration_of(beat.sentence), reading.language) for beat in beats)
    told = " ".join(seen_part(text, reading.language) for text in narrated)
    group, _ = groups_in(told, reading.language)
    meant = reading.people.acting if group else reading.people.within
    named = [name for b in beats for name in meant(b.sentence.start, b.sentence.end)]
    heard = [said.to for beat in beats for said in reading.utterances_in(beat.sentence) if said.to]
    names = [name for name in dict.fromkeys([*spoken, *named, *heard]) if not (group and name in CHILD_WORDS)]
    kinds = reading.people.kinds
    numbers = {name: number for number, name in enumerate(kinds)}
    if is_birth(told):  # nor is anyone there of whom a child is born
        names, group = list(spoken), ()
    start = beats[-1].sentence.start
    figures = [
        Figure(kind=reading.people.kind_at(name, start), name=name, number=numbers.get(name, -1)) for name in names
    ]
    figures += _grouped_figures(group, kinds, reading.people.names, names)
    unnamed = [figure for figure in company if figure.name[-1:].isdigit()]
    if (not figures or (unnamed and not spoken)) and THEY & set(re.findall(r"[a-z]+|[他她]们", told.lower())):
        figures = list(company)
    return tuple(figures[:3]), spoken[0] if spoken else ""


def _grouped_figures(
    group: Sequence[str], kinds: Mapping[str, str], proper: Sequence[str], shown: Sequence[str]
) -> list[Figure]:
    """The people of a small group: those of the chapter who have names and fit, else some without names."""
    numbers = {name: number for number, name in enumerate(kinds)}
    known = [name for name, kind in kinds.items() if kind in group and name in proper]
    alike = len(set(group)) == 1 or set(group) <= CHILDREN  # parents are never two others who have names
    if group and alike and sorted(kinds[name] for name in known) == sorted(group):
        return [Figure(kind=kinds[n], name=n, number=numbers[n]) for n in known if n not in shown]
    return [
        Figure(kind=kind, name=f"{kind} {place + 1}", number=len(kinds) + place) for place, kind in enumerate(group)
    ]


def _of_paper(tags: Tags, place: str, before: str | None) -> tuple[Tags, str | None]:
    """After a paper boat was spoken of, "the boat" is that one as long as the place stays; it carries nobody."""
    if "paperboat" not in tags.motifs and place != before:
        return tags, None
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
    beats: Sequence[Beat],
    scene: Setting,
    tags: Tags,
    people: tuple[Figure, ...],
    recently: Sequence[str],
    reading: Reading,
    *,
    first: bool,
    number: int,
    last: Picture | None,
) -> Picture:
    setting, text = beats[-1].setting, " ".join(beat.sentence.text for beat in beats)
    things = [motif for motif in tags.motifs if motif in INSERTS and motif not in recently]
    unnamed = reading.people.without_names(text, reading.language)
    words = {
        name: word
        for name, word in pictogram_words(unnamed, reading.language).items()
        if not (scene.inside and name in FURNITURE)
        and PAINTED.get(name) not in tags.motifs
        and (reading.bodily or name not in BODY)
    }
    pictograms = tuple(words)
    labels = _labels(scene, unnamed, reading.language)
    wide_thing = bool(LANDMARKS & set(tags.motifs))
    again = (
        last is not None
        and last.crowd
        and not people
        and bool(THEY & set(re.findall(r"[a-z]+|[他她]们", text.lower())))
    )
    many = groups_in(seen_part(text, reading.language), reading.language)[1]
    crowd = again or crowd_in(many, language=reading.language)
    who = crowd_of(many, reading.language)
    if again and last is not None and not crowd_in(many, language=reading.language):
        who = Crowd(kinds=last.crowd_kinds, count=last.crowd_count)
    seen = (*people, *(("crowd",) if crowd else ()))
    card = None if is_salutation(text) else _card(beats, scene, seen, tags, (pictograms, labels), reading)
    framing, subject = "wide", ""
    if is_salutation(text):
        framing, subject = "insert", "letter"
    elif card is not None:
        framing = "card"
    elif things and not people and not words and not labels and len(tags.motifs) == 1 and not first and not wide_thing:
        framing, subject = "insert", things[0]
    elif people and (not first or not (scene.place or set_of(scene.sign))) and not wide_thing:
        framing = "medium"
    camera = MOVES[number % len(MOVES)]
    if framing in {"insert", "card"}:
        camera = ("push_in", "pan_right", "pull_out")[number % 3] if framing == "insert" else "push_in"
    told = motif_words(" ".join(reading.narration_of(beat.sentence) for beat in beats), reading.language)
    return Picture(
        spoken=tuple(motif for motif in motif_words(unnamed, reading.language) if motif not in told),
        place=scene.place,
        time=scene.time,
        weather=setting.weather,
        mood=setting.mood,
        framing=framing,
        subject=subject,
        motifs=tags.motifs,
        figures=people if framing != "card" else (),
        crowd=crowd and framing != "card",
        crowd_kinds=who.kinds if crowd and framing != "card" else (),
        crowd_count=who.count if crowd and framing != "card" else 0,
        camera=camera,
        card=card,
        pictograms=pictograms,
        captions=tuple((motif_words(unnamed, reading.language) | words).items()),
        labels=labels,
        sign=scene.sign,
        phrase="" if framing == "card" or labels else phrase_of(without_speech(unnamed), reading.language, text),
        absent=setting.absent,
    )


def _labels(scene: Setting, text: str, language: str) -> tuple[str, ...]:
    """What is lettered: things that nothing shows, and places that are named beside the one that is seen."""
    others = [
        word
        for place, word in named_places(without_speech(text), language)
        if len(word) > 1 and place != scene.place and word != scene.sign and not is_pictured(word, language)
    ]
    nouns = [*unshown_nouns(text, language), *(word.replace("-", " ") for word in others)]
    return tuple(dict.fromkeys(nouns))[:MOST_LABELS]


def _is_report(card: Card, tags: Tags) -> bool:
    """Whether a sentence of a story reports figures and nothing else: no place, no thing that could be drawn."""
    written = any(letter.isdigit() for letter in card.title + "".join(card.items))
    return card.kind in {"number", "bars"} and written and not tags.places and not tags.motifs


def _card(
    beats: Sequence[Beat],
    scene: Setting,
    people: Sequence[object],
    tags: Tags,
    things: tuple[tuple[str, ...], tuple[str, ...]],
    reading: Reading,
) -> Card | None:
    """A chart, a list or lettering for what has no scene; a chapter that explains prefers it to a scene.

    A sentence of which nothing can be drawn is lettered, wherever it is: the place alone would be an unrelated one.
    """
    if people and not reading.explains:
        return None
    pictograms, labels = things
    placed = bool(scene.place) or (not reading.explains and bool(set_of(scene.sign)))
    text = with_closed_speech(" ".join(beat.sentence.text for beat in beats))
    told = next((card for beat in beats if (card := card_of(beat.sentence.text, reading.language))), None)
    told = with_whole_text(told, text) if told is not None and len(beats) > 1 else told
    if told is not None and (reading.explains or not placed or _is_report(told, tags)):
        return told
    if placed and not reading.cards_only:
        drawn = (*tags.places, *tags.motifs, *tags.times, *tags.weathers, *pictograms, *labels)
        return None if drawn else Card(kind="words", title=text)
    if pictograms or tags.motifs:
        return Card(kind="things", title=text)
    return Card(kind="words", title=text)
