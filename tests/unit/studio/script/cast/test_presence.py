"""Who is seen in each shot of short chapters of our own writing, by name and kind, and who speaks."""

import re
from pathlib import Path

import pytest
import yaml

from patra.studio.script.cast.presence import is_away, is_dead, is_far, is_workplace, unreported_part
from patra.studio.script.dialogue import utterances_of
from patra.studio.script.people import people_of
from patra.studio.script.sentences import read_chapter
from tests.support.understood import understood

CHAPTERS = yaml.safe_load((Path(__file__).parent / "chapters.yaml").read_text("utf-8"))
MOST_SEEN = 3


def read_told(chapter):
    """The text of a chapter, and from and to where each sentence stands with who is seen in it."""
    text, expected = "", []
    for paragraph in re.split(r"\n\s*\n", chapter["told"].strip()):
        for line in paragraph.splitlines():
            sentence, who = (part.strip() for part in line.rsplit("|", 1))
            text += " " if text and not text.endswith("\n") and sentence.isascii() else ""
            expected.append((len(text), len(text) + len(sentence), [one.strip() for one in who.split(",")]))
            text += sentence
        text += "\n\n"
    return text, expected


@pytest.mark.parametrize("chapter", [pytest.param(chapter, id=chapter["id"]) for chapter in CHAPTERS])
def test_who_is_in_a_chapter_and_who_is_seen_in_each_shot(chapter):
    text, expected = read_told(chapter)
    read = read_chapter(text)
    people = people_of(read)
    assert {name: people.kinds.get(name) for name in chapter["people"]} == chapter["people"]
    if "speakers" in chapter:
        assert [said.speaker for said in utterances_of(read, text, people)] == chapter["speakers"]
    for shot in understood(text).shots:
        here = [who for a, b, who in expected if any(s.start < b and s.end > a for s in shot.sentences)]
        if any("?" in who for who in here) or shot.picture.framing == "card":
            continue
        must, may = {}, {}
        for one in (one for who in here for one in who if one != "-"):
            name, _, kind = one.strip("()").partition("=")
            (may if one.startswith("(") else must)[name] = kind or chapter["people"].get(name, "")
        seen = {figure.name: figure.kind for figure in shot.picture.figures}
        assert set(seen) <= set(must) | set(may), shot.narration
        assert len(seen) == MOST_SEEN or set(must) <= set(seen), shot.narration
        wanted = {name: kind for name, kind in (may | must).items() if kind and name in seen}
        assert {name: seen[name] for name in wanted} == wanted, shot.narration


@pytest.mark.parametrize(
    ("rest", "language", "dead", "away"),
    [
        (" died in 1889", "en", True, False),
        (", who had drowned before she was born", "en", True, False),
        (", who was at sea for most of each year", "en", False, True),
        (" lives in a hut", "en", False, True),
        (" opened the door", "en", False, False),
        ("去世得早", "zh", True, False),
        ("出海遇上风暴，再也没有回来", "zh", True, False),
        ("在深圳打工", "zh", False, True),
        ("在院子里浇花", "zh", False, False),
    ],
)
def test_the_words_behind_a_person_say_that_they_are_dead_or_away(rest, language, dead, away):
    assert (is_dead(rest, language), is_away(rest, language)) == (dead, away)


def test_whom_something_comes_from_or_goes_to_is_not_here():
    assert is_far("It was from her ", "")
    assert is_far("我给", "买了一把木头手枪")
    assert is_far("你告诉", "，要听话")
    assert not is_far("She sat beside ", "")


def test_what_is_reported_and_pictured_is_not_seen_and_a_workshop_is_no_person():
    assert "girl" not in unreported_part("I told her that you share a room with a girl", "en")
    assert "妈妈" not in unreported_part("照片上，妈妈站在雪里", "zh")
    assert "镇长" in unreported_part("镇长说，全镇平安", "zh")
    assert is_workplace("铺开了四十年")
    assert not is_workplace("走进来")
