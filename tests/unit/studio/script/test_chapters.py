"""What is understood of forty short chapters in ten genres: who, where, which things, who speaks, what is not there."""

from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
import yaml

from patra.studio.script.dialogue import utterances_of
from patra.studio.script.people import people_of
from patra.studio.script.sentences import read_chapter
from tests.support.understood import understood

CHAPTERS = yaml.safe_load((Path(__file__).parent / "chapters.yaml").read_text("utf-8"))
GENRES = ["story", "explainer", "recipe", "news", "letter", "biography", "dialogue", "poem", "instruction", "history"]


def chapters_with(field):
    return [pytest.param(chapter, id=chapter["id"]) for chapter in CHAPTERS if field in chapter]


def shown(plan):
    pictures = [shot.picture for shot in plan.shots]
    return {name for p in pictures for name in (*p.motifs, *p.pictograms)}


def test_there_are_three_chapters_of_each_genre():
    counts = Counter(chapter["genre"] for chapter in CHAPTERS)
    assert set(counts) == set(GENRES)
    assert min(counts.values()) >= 3


@pytest.mark.parametrize("chapter", chapters_with("people"))
def test_everyone_is_known_by_name_and_kind(chapter):
    kinds = people_of(read_chapter(chapter["text"])).kinds
    expected = chapter["people"]
    assert set(expected) <= set(kinds), kinds
    assert {name: kinds[name] for name, kind in expected.items() if kind} == {n: k for n, k in expected.items() if k}
    if not expected:
        assert {f.name for s in understood(chapter["text"]).shots for f in s.picture.figures} == set()


@pytest.mark.parametrize("chapter", chapters_with("places"))
def test_scenes_are_where_the_text_says(chapter):
    places = [shot.picture.place for shot in understood(chapter["text"]).shots if shot.picture.framing != "card"]
    assert [place for place, _ in groupby(place for place in places if place)] == chapter["places"]


@pytest.mark.parametrize("chapter", chapters_with("objects"))
def test_things_that_are_there_are_shown(chapter):
    assert set(chapter["objects"]) <= shown(understood(chapter["text"]))


@pytest.mark.parametrize("chapter", chapters_with("absent"))
def test_what_is_denied_or_compared_with_is_not_shown(chapter):
    assert not set(chapter["absent"]) & shown(understood(chapter["text"]))


@pytest.mark.parametrize("chapter", chapters_with("speakers"))
def test_each_quotation_has_its_speaker(chapter):
    read = read_chapter(chapter["text"])
    spoken = utterances_of(read, chapter["text"], people_of(read))
    assert [said.speaker for said in spoken] == chapter["speakers"]


@pytest.mark.parametrize("chapter", chapters_with("genre"))
def test_what_explains_is_drawn_as_cards_and_a_story_is_not(chapter):
    pictures = [shot.picture for shot in understood(chapter["text"]).shots]
    cards = [picture.card.kind for picture in pictures if picture.card]
    if chapter.get("explains"):
        assert len(cards) == len(pictures)
        assert set(chapter.get("cards", ())) <= set(cards), cards
    else:
        assert len(cards) * 2 <= len(pictures), cards
