"""Someone is drawn in the colour that the text says they wear."""

import pytest

from patra.studio.paint.figures import COATS, HAIRS, Look
from patra.studio.script.certainty.clothes import dress_figures
from patra.studio.script.plan import make_plan
from patra.studio.script.shots import Figure

ELSA = Figure(kind="girl", name="Elsa", number=0)


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("She ran to the beach in her yellow coat.", "yellow"),
        ("她穿着一件红色的大衣。", "red"),
        ("She saw a yellow coat.", ""),
    ],
)
def test_clothes_have_the_stated_colour(text: str, colour: str) -> None:
    (figure,) = dress_figures((ELSA,), text)
    assert figure.coat == colour
    assert (Look(figure).coat == COATS.get(colour)) == bool(colour)


@pytest.mark.parametrize(
    ("text", "colour"),
    [
        ("An old man in a green hat was peeling an orange.", "green"),
        ("老人戴着一顶红色的帽子。", "red"),
        ("There was a green hat on the chair.", ""),
    ],
)
def test_a_hat_has_the_stated_colour(text: str, colour: str) -> None:
    (figure,) = dress_figures((Figure(kind="old", name="old man", number=0),), text)
    assert (figure.hat, figure.coat) == (colour, "")
    assert Look(figure).cap == COATS.get(colour)


def test_of_two_people_nobody_is_dressed() -> None:
    assert all(not one.coat for one in dress_figures((ELSA, ELSA), "They came in a red coat."))


def test_no_pictogram_shows_clothes_in_another_colour() -> None:
    shots = make_plan("Elsa stood on the beach in her yellow coat.").shots
    assert "tshirt-crew" not in shots[0].picture.pictograms


@pytest.mark.parametrize(
    ("text", "hair"),
    [
        ("The conductor, a man with white hair, opened the door. The conductor sat down.", ["white"]),
        ("A red-haired girl came in. Mrs Lind looked at the girl.", ["red"]),
        ("Marta had long dark plaits. Marta smiled.", ["black"]),
        ("Marta smiled. In the end her hair had turned grey. Marta smiled.", ["grey"]),
        ("Marta had a white dog. Marta smiled.", [""]),
        ("门口站着一位满头白发的老师。老师笑了。", ["white"]),
        ("一个金色头发的女孩跑过来。女孩笑了。", ["blond"]),
        ("一匹白马站在村口。女孩笑了。", [""]),
    ],
)
def test_hair_has_the_stated_colour(text: str, hair: list[str]) -> None:
    figures = make_plan(text, least=0.0).shots[-1].picture.figures
    assert [figure.hair for figure in figures] == hair
    assert all(Look(figure).hair == HAIRS[figure.hair] for figure in figures if figure.hair)


def test_hair_that_turns_grey_was_not_so_before() -> None:
    text = "Mrs Lind stood in the village and looked at the church.\n\nYears later Mrs Lind came back, and her hair had turned grey."
    first, last = make_plan(text, least=0.0).shots
    assert [figure.hair for shot in (first, last) for figure in shot.picture.figures] == ["", "grey"]


def test_a_coat_is_worn_until_the_text_says_otherwise() -> None:
    text = "Mrs Lind came in a grey coat.\n\nMrs Lind looked at the church for a while.\n\nIn summer Mrs Lind came in a red coat."
    figures = [figure for shot in make_plan(text, least=0.0).shots for figure in shot.picture.figures]
    assert [figure.coat for figure in figures] == ["grey", "grey", "red"]
    chinese = "王奶奶穿着一件灰色的大衣来了。\n\n王奶奶看了看门口，没有说话。"
    assert [f.coat for s in make_plan(chinese, least=0.0).shots for f in s.picture.figures] == ["grey", "grey"]
