"""Someone is drawn in the colour that the text says they wear."""

import pytest

from patra.studio.paint.figures import COATS, Look
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
