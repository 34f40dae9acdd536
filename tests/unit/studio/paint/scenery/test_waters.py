"""Places at the water."""

import pytest

from patra.studio.paint import things
from patra.studio.paint.scene import paint
from patra.studio.script.shots import Picture


@pytest.mark.parametrize("place", ["harbour", "island", "sea"])
@pytest.mark.parametrize("told", [(), ("lighthouse",)])
def test_a_lighthouse_stands_only_where_the_text_has_one(
    place: str, told: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []
    lighthouse = things.lighthouse
    monkeypatch.setattr(things, "lighthouse", lambda c, x, *more: drawn.append(x) or lighthouse(c, x, *more))
    paint(Picture(place=place, time="day", weather="clear", mood="calm", sign="", seed=3, motifs=told), 96, 54, 1.0)
    assert bool(drawn) == bool(told)
