"""Who many people are, and how many."""

import pytest

from patra.studio.script.cast.crowds import crowd_of
from patra.studio.script.people import people_of
from patra.studio.script.sentences import read_chapter
from tests.support.understood import understood


@pytest.mark.parametrize(
    ("text", "language", "kinds", "count"),
    [
        ("Five tired plumbers sat on the steps.", "en", ("man", "woman"), 5),
        ("The plumbers came at 7.", "en", ("man", "woman"), 0),
        ("Six women waited.", "en", ("woman",), 6),
        ("Forty monks sang.", "en", ("man",), 0),
        ("The pupils laughed.", "en", ("girl", "boy"), 0),
        ("The villagers danced.", "en", (), 0),
        ("六名护士站在门口。", "zh", ("man", "woman"), 6),
        ("十六名护士站在门口。", "zh", ("man", "woman"), 0),
        ("村民们来了。", "zh", (), 0),
        ("士兵们来了。", "zh", ("man",), 0),
    ],
)
def test_many_people_are_those_of_their_word(text: str, language: str, kinds: tuple[str, ...], count: int) -> None:
    crowd = crowd_of(text, language)
    assert (crowd.kinds, crowd.count) == (kinds, count)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("The elderly gentleman smiled.", {"elderly gentleman": "old"}),
        ("“Sit down,” said the old lady.", {"old lady": "granny"}),
        ("很多外国专家来了。", {}),
        ("一位老太太来了。", {"老太太": "granny"}),
    ],
)
def test_old_people_are_old_and_many_experts_are_not_one(text: str, kinds: dict[str, str]) -> None:
    assert people_of(read_chapter(text)).kinds == kinds


def test_they_who_were_counted_stay_as_many() -> None:
    first, then = (shot.picture for shot in understood("Five plumbers stood in the street.\n\nThey laughed.").shots)
    assert (first.crowd_kinds, first.crowd_count) == (then.crowd_kinds, then.crowd_count) == (("man", "woman"), 5)
