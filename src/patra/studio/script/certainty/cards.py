"""Decides whether a shot stays a scene, or becomes a card with what of it is certain (C§2.3).

On a card stand the sentence's own words, or what someone says in it; beside them a picture of the place, portraits
and pictograms, each only where that claim is certain. Who is certain but of unknown sex or age is a silhouette with
the name.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from patra.studio.script.certainty.claims import Claim, certainty_of, doubts
from patra.studio.script.certainty.clothes import dress_figures, hair_of_people, with_hair
from patra.studio.script.certainty.people import figure_claims, people_claims
from patra.studio.script.certainty.surroundings import place_claims, thing_claims
from patra.studio.script.depiction import with_closed_speech
from patra.studio.script.dialogue import Reading
from patra.studio.script.facts import Card
from patra.studio.script.scenes import Beat, Scene
from patra.studio.script.sentences import Sentence
from patra.studio.script.shots import Figure, Picture, Shot

SCENE = 0.47  # a shot whose claims hold less likely is a card
PART = 0.85  # a part of a card that is less certain is left out
SOMEONE = "someone"  # the kind of a figure that is drawn as a silhouette
LAYOUTS = 3
MOST_ALIKE = 2  # cards in a row with the same pictogram
PAGE_MOVES = ("pan_right", "pan_left", "push_in")  # of each layout; a zoom takes five times as long as a pan
_QUOTED = re.compile(r"[“「『\"]([^”」』\"]{2,})[”」』\"]?")
QUOTE_SHARE = 0.45  # of the sentence, from which on the card is the quotation


def settle_shots(shots: Sequence[Shot], scenes: Sequence[Scene], reading: Reading, least: float = SCENE) -> list[Shot]:
    """The shots with their claims; those that are not certain enough as cards."""
    beats = [beat for scene in scenes for beat in scene.beats]
    places = {beat.sentence.start: number for number, beat in enumerate(beats)}
    hair = hair_of_people([beat.sentence for beat in beats], reading)
    found: list[Shot] = []
    worn: dict[str, Figure] = {}  # everyone in the clothes of which the text spoke last
    for shot in shots:
        first = places[shot.sentences[0].start]
        own = beats[first : first + len(shot.sentences)]
        figures = with_hair(dress_figures(shot.picture.figures, shot.narration, worn), hair, shot.sentences[-1].end)
        worn |= {figure.name: figure for figure in figures}
        dressed = msgspec.structs.replace(shot, picture=msgspec.structs.replace(shot.picture, figures=figures))
        found.append(_settle_shot(dressed, own, beats[:first], reading, least))
    return _drop_repeats(found)


def _drop_repeats(shots: Sequence[Shot]) -> list[Shot]:
    """A pictogram that the two cards before show, too, is left out."""
    found: list[Shot] = []
    drawn: list[set[str]] = []
    for shot in shots:
        picture = shot.picture
        if picture.framing != "card":
            drawn.append(set())
            found.append(shot)
            continue
        shown = {name for name in (*picture.pictograms, *picture.motifs) if name not in picture.uncertain}
        again = shown & drawn[-1] & drawn[-2] if len(drawn) >= MOST_ALIKE else set[str]()
        drawn.append(shown - again)
        if again:
            card = picture.card
            if card is not None and card.kind == "things" and shown == again:
                card = msgspec.structs.replace(card, kind="words")
            uncertain = (*picture.uncertain, *sorted(again))
            picture = msgspec.structs.replace(picture, uncertain=uncertain, card=card)
        found.append(msgspec.structs.replace(shot, picture=picture))
    return found


def _settle_shot(shot: Shot, own: Sequence[Beat], before: Sequence[Beat], reading: Reading, least: float) -> Shot:
    picture = shot.picture
    things = thing_claims(shot, reading, scenic=False)
    coloured = {claim.subject for claim in things if claim.evidence == "thing_coloured"}
    picture = msgspec.structs.replace(
        picture,
        pictograms=tuple(name for name in picture.pictograms if name not in coloured),
    )
    things = [claim for claim in things if claim.subject not in coloured]
    picture = msgspec.structs.replace(picture, uncertain=tuple(c.subject for c in things if c.confidence < PART))
    shot = msgspec.structs.replace(shot, picture=picture)
    if picture.framing == "insert":
        return shot
    if picture.framing == "card":
        return _vary_card(shot, things)
    earlier = [beat.sentence for beat in before]
    people = people_claims(shot, earlier, reading)
    place = place_claims(shot, own, before, reading)
    scenic = thing_claims(shot, reading, scenic=True)
    painted = [claim for claim in scenic if claim.subject in picture.motifs]  # a pictogram has its word below it
    claims = [*people, *place, *painted]
    if certainty_of(claims) >= least:
        return msgspec.structs.replace(shot, certainty=round(certainty_of(claims), 2), doubts=tuple(doubts(claims)))
    card = _card_of(shot, people, place, earlier, reading)
    return msgspec.structs.replace(
        _vary_card(msgspec.structs.replace(shot, picture=card), things),
        certainty=round(certainty_of(claims), 2),
        doubts=tuple(doubts(claims)),
    )


def _vary_card(shot: Shot, things: Sequence[Claim]) -> Shot:
    """A card in one of the layouts, no two alike in a row; without pictograms it is lettering."""
    picture = shot.picture
    card = picture.card
    if card is None:
        return shot
    drawn = [c for c in things if c.confidence >= PART]
    if card.kind == "things" and not drawn:
        card = msgspec.structs.replace(card, kind="words")
    turn = shot.index % LAYOUTS
    paged = card.kind in {"words", "quote", "page"}
    camera = PAGE_MOVES[turn] if paged else picture.camera
    return msgspec.structs.replace(
        shot, picture=msgspec.structs.replace(picture, card=card, layout=turn, camera=camera)
    )


def _card_of(
    shot: Shot, people: Sequence[Claim], place: Sequence[Claim], before: Sequence[Sentence], reading: Reading
) -> Picture:
    picture, text = shot.picture, with_closed_speech(shot.narration)
    portraits = tuple(
        portrait for figure in picture.figures if (portrait := _portrait(figure, shot, before, reading)) is not None
    )
    if any(c.about == "missing" and c.evidence != "narrator_acts" for c in people) or any(
        c.evidence in {"asked_about", "signature"} for c in people
    ):
        portraits = ()  # who is alone beside the words seems to be alone there
    if len(portraits) < len(picture.figures):  # of several who are meant all are shown, or who is named
        stated = {c.subject for c in people if c.evidence in {"named_here", "role_here"}}
        portraits = tuple(one for one in portraits if one.name in stated)
    here = all(claim.confidence >= PART for claim in place) and any(
        c.evidence in {"place_here", "place_paragraph"} for c in place
    )
    missing = any(claim.about == "missing" for claim in people)
    quote = quotation(text, reading.language)
    speaker = next((name for s in shot.sentences if (name := reading.speaker(s))), "")
    if len(quote) >= QUOTE_SHARE * len(text):
        named = next((p for p in portraits if p.name == speaker), None)
        card = Card(kind="quote", title=quote, items=(_display_name(speaker, reading),) if named else ())
        portraits = (named,) if named else ()
    else:
        asked = any(claim.evidence == "asked_about" for claim in people)
        band = here and not missing and not asked
        card = Card(kind="page" if portraits or band else "things", title=text)
    return msgspec.structs.replace(
        picture,
        framing="card",
        card=card,
        figures=(),
        crowd=False,
        crowd_kinds=(),
        crowd_count=0,
        speaker="",
        phrase="",
        portraits=portraits,
        vignette=card.kind == "page" and here,
        camera="push_in",
        view=0,
    )


def quotation(text: str, language: str) -> str:
    """What one person says in a shot; nothing where the words between end a sentence: another may answer."""
    found = list(_QUOTED.finditer(text))
    between = [text[one.end() : other.start()].strip() for one, other in pairwise(found)]
    if any(words and words[-1] not in ",，：:" for words in between):
        return ""
    pieces = [one[1].strip() for one in found]
    whole = ("" if language == "zh" else " ").join(pieces)
    return f"{whole[:-1]}{'。' if language == 'zh' else '.'}" if whole[-1:] in {",", "，"} else whole


def _display_name(name: str, reading: Reading) -> str:
    return name if name in reading.people.names or reading.language == "zh" else f"the {name}"


def _portrait(figure: Figure, shot: Shot, before: Sequence[Sentence], reading: Reading) -> Figure | None:
    """Someone who certainly is there: as they look where that is certain, too, else as a silhouette."""
    claims = figure_claims(figure, shot, before, reading)
    if certainty_of(c for c in claims if c.about in {"person", "name"}) < PART:
        return None
    looks = certainty_of(c for c in claims if c.about in {"sex", "age"})
    return figure if looks >= PART else msgspec.structs.replace(figure, kind=SOMEONE)
