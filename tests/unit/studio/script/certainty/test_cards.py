"""An uncertain scene is a card with what of it is certain."""

import itertools

import pytest

from patra.studio.script.certainty.cards import LAYOUTS, SCENE, SOMEONE, quotation
from patra.studio.script.plan import make_plan
from tests.support.understood import understood

HOTEL = """The Wrong Suitcase

"Excuse me," said the tall man at the hotel desk, "this suitcase is full of puppets."

The receptionist, Ines, looked up from her screen.

"And what did you lose, sir?" she asked.

A girl of about seven pulled a grey suitcase into the lobby.
"""


def test_only_what_is_certain_enough_stays_a_scene() -> None:
    for shot in make_plan(HOTEL).shots:
        assert (shot.picture.framing == "card") == (shot.certainty < SCENE), shot.narration
    assert all(shot.picture.framing != "card" for shot in understood(HOTEL).shots)


def test_what_someone_says_is_a_quotation_with_who_certainly_says_it() -> None:
    first = make_plan(HOTEL).shots[0].picture
    assert first.card is not None
    assert (first.card.kind, first.card.title) == ("quote", "Excuse me, this suitcase is full of puppets.")
    assert [(one.name, one.kind) for one in first.portraits] == [("man", "man")]
    assert (first.figures, first.crowd, first.vignette) == ((), False, False)


def test_a_role_that_may_be_a_woman_or_a_man_is_a_silhouette() -> None:
    text = (
        "Dear Sir,\n\nThe plumber came on Monday, looked into the hole and whistled at the wall.\n\nYours, Thea Marsh"
    )
    shot = make_plan(text).shots[1]
    assert [(one.name, one.kind) for one in shot.picture.portraits] == [("plumber", SOMEONE)]


def test_who_is_one_of_several_is_not_shown_alone() -> None:
    text = "In the village stood Mrs Lind and a ticket collector with a parrot. They shared one spoon."
    assert all(not shot.picture.portraits for shot in make_plan(text).shots if shot.picture.framing == "card")


def test_cards_in_a_row_are_laid_out_differently() -> None:
    layouts = [shot.picture.layout for shot in make_plan(HOTEL).shots if shot.picture.card]
    assert all(a != b for a, b in itertools.pairwise(layouts))
    assert set(layouts) <= set(range(LAYOUTS))


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("“你放在厨房了？”母亲问。“没有，我记得我锁了门。”", "zh", ""),
        ("“把门关上，”母亲说，“外面冷。”", "zh", "把门关上，外面冷。"),
        ('"Are you there?" asked Tom. "No, I am here."', "en", ""),
    ],
)
def test_two_speakers_are_on_no_quotation_card(text: str, language: str, said: str) -> None:
    assert quotation(text, language) == said


def test_a_pictogram_is_not_on_more_than_two_cards_in_a_row() -> None:
    steps = ["Lift the bicycle.", "Turn the bicycle over.", "Clean the bicycle with a cloth.", "Park the bicycle."]
    pictures = [shot.picture for shot in make_plan("How to clean it\n\n" + "\n\n".join(steps)).shots]
    drawn = ["bicycle" in {*p.pictograms, *p.motifs} - {*p.uncertain} for p in pictures]
    assert drawn[:3] == [True, True, False]
