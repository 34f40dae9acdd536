"""Illustrated pages: each kind and layout draws something of its own, in every format."""

from collections import Counter

import msgspec
import pytest
from PIL import ImageChops

from patra.studio.paint.canvas import Canvas
from patra.studio.paint.pages import NAME_Y, Page, _name, _plates
from patra.studio.paint.palette import palette_for
from patra.studio.paint.scene import Layers, paint
from patra.studio.script.facts import Card
from patra.studio.script.shots import Figure, Picture

WOMAN = Figure(kind="woman", name="Ines", number=0)
SOMEONE = Figure(kind="someone", name="Ines", number=0)


def page(kind: str, **fields: object) -> Picture:
    card = Card(kind=kind, title="The receptionist looked up from the desk and did not smile at all.")
    return Picture(place="harbour", time="day", weather="clear", mood="calm", framing="card", card=card, **fields)  # type: ignore[arg-type]


def painted(picture: Picture, size: tuple[int, int] = (320, 180)) -> Layers:
    return paint(picture, *size, smooth=1.0)


def test_each_layout_of_each_kind_is_another_picture() -> None:
    seen = [painted(page(kind, layout=layout)).back.tobytes() for kind in ("words", "page") for layout in range(3)]
    assert max(Counter(seen).values()) <= 2  # a page of nothing but words is laid out alike on either side
    assert len(set(seen)) >= 5


def test_by_night_the_paper_is_dark() -> None:
    day = painted(page("words")).back.convert("L").resize((1, 1)).getpixel((0, 0))
    night = painted(msgspec.structs.replace(page("words"), time="night"))
    assert night.back.convert("L").resize((1, 1)).getpixel((0, 0)) < day


def test_who_says_it_stands_in_front_and_has_a_mouth() -> None:
    quote = painted(page("quote", portraits=(WOMAN,)))
    assert set(quote.mouths) == {"Ines"}
    assert quote.front is not None


def test_a_silhouette_has_no_face() -> None:
    assert painted(page("quote", portraits=(SOMEONE,))).mouths == {}
    assert painted(page("page", portraits=(SOMEONE,))).front is None


def test_a_vignette_shows_the_place() -> None:
    assert painted(page("page", vignette=True)).back.tobytes() != painted(page("page")).back.tobytes()


@pytest.mark.parametrize("size", [(180, 320), (240, 240)])
def test_pages_fit_other_formats(size: tuple[int, int]) -> None:
    layers = painted(page("page", portraits=(WOMAN, SOMEONE), vignette=True), size)
    assert layers.back.width == round(size[0] * 1.2)


def test_a_name_and_plates_stay_clear_of_the_edges_and_the_narrator():
    assert NAME_Y < 0.62
    c = Canvas(1280, 720, palette_for("day", "clear", "calm"), 3)
    plain = c.image.copy()
    colours = Page((90, 40, 40), (10, 10, 10), (250, 250, 250))
    named = page("page")
    _name(c, "Wilhelmina-Konstantinopolitanska von Habsburg und Lothringen", named, (0.9, 0.3), 0.046, colours)
    _plates(c, ["bell"] * 6, 0.5, 0.6, 0.07, colours)
    changed = ImageChops.difference(plain.convert("RGB"), c.image.convert("RGB")).getbbox()
    assert changed is not None
    assert changed[0] >= 0.05 * 1280
    assert changed[2] <= 0.93 * 1280
