"""What a scene does not draw is on a plate, with the word of the text."""

import numpy as np
import pytest

from patra.studio.paint.plates import plates_of, undrawn
from patra.studio.paint.scene import paint
from patra.studio.script.shots import Figure, Picture


def picture(**fields: object) -> Picture:
    return Picture(**{"place": "village", "time": "day", "weather": "clear", "mood": "calm", "seed": 4} | fields)  # pyright: ignore[reportArgumentType]


ANNA = Figure(kind="woman", name="Anna", number=0)


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ({"motifs": ("key", "house", "door")}, ("key", "door")),
        ({"motifs": ("boat",), "place": "river"}, ()),
        ({"motifs": ("boat",), "place": "forest"}, ("boat",)),
        ({"motifs": ("moon",), "time": "night"}, ()),
        ({"motifs": ("moon",), "place": "kitchen", "time": "night"}, ("moon",)),
        ({"motifs": ("letter", "key"), "framing": "medium", "figures": (ANNA,)}, ("key",)),
        ({"motifs": ("fence",), "framing": "medium", "figures": (ANNA,)}, ("fence",)),
        ({"motifs": ("fence",)}, ()),
    ],
)
def test_a_motif_that_the_place_does_not_show_is_missing(fields: dict[str, object], missing: tuple[str, ...]) -> None:
    assert undrawn(picture(**fields)) == missing


def test_each_thing_has_its_pictogram_and_its_own_word_once() -> None:
    shown = picture(
        motifs=("key",),
        pictograms=("paw", "airport"),
        captions=(("key", "keys"), ("paw", "fox"), ("airport", "airport")),
        labels=("accordion", "fox"),
        sign="airport",
    )
    assert plates_of(shown) == [("paw", "fox"), ("key", "keys"), ("", "accordion")]


@pytest.mark.parametrize("fields", [{"labels": ("accordion",)}, {"sign": "hut"}, {"motifs": ("key",)}])
@pytest.mark.parametrize("framing", ["wide", "medium"])
def test_plates_and_signs_are_seen(fields: dict[str, object], framing: str) -> None:
    figures = (ANNA,) if framing == "medium" else ()

    def pixels(**more: object) -> np.ndarray:
        layers = paint(picture(framing=framing, figures=figures, **more), 192, 108, 1.0)
        whole = layers.back.convert("RGB")
        if layers.front is not None and layers.mask is not None:
            whole.paste(layers.front, (layers.front_left, layers.front_top), layers.mask)
        return np.asarray(whole, np.int16)

    changed = np.abs(pixels(**fields) - pixels()).sum(axis=2) > 60
    assert 50 < changed.sum() < changed.size * 0.2
