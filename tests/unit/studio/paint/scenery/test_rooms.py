"""Every word of a place that has a set is drawn as that set, and no set is a blank card."""

import numpy as np
import pytest

from patra.studio.paint.scene import paint
from patra.studio.paint.scenery.grounds import GROUNDS
from patra.studio.paint.scenery.rooms import ROOMS
from patra.studio.script.shots import Figure, Picture
from patra.studio.script.signs import OUTDOORS, ROOM_SETS, SETS, is_room, set_of


def picture(sign: str, **fields: object) -> Picture:
    return Picture(
        **({"place": "", "time": "day", "weather": "clear", "mood": "calm", "sign": sign, "seed": 3} | fields)
    )


def test_each_set_has_its_painter() -> None:
    assert set(ROOMS) == ROOM_SETS
    assert set(GROUNDS) == set(SETS) - ROOM_SETS


@pytest.mark.parametrize("name", sorted(SETS))
@pytest.mark.parametrize("time", ["day", "night"])
def test_a_set_is_seen_and_is_none_of_the_others(name: str, time: str) -> None:
    word = SETS[name].split()[0]
    figures = (Figure(kind="woman", name="Mara"),)
    seen = np.asarray(paint(picture(word, time=time, figures=figures), 96, 54, 1.0).back, np.float32)
    page = np.asarray(paint(picture("", time=time, figures=figures), 96, 54, 1.0).back, np.float32)
    assert seen.std() > 9
    assert np.abs(seen - page).mean() > 8


@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("hospital", "ward"), ("菜市场", "market"), ("缆车站", ""), ("towpath", "canal"), ("bus", "carriage"),
        ("校车", "carriage"), (OUTDOORS["en"], "outdoors"), (OUTDOORS["zh"], "outdoors"), ("", ""), ("hut", ""),
    ],
)  # fmt: skip
def test_a_word_leads_to_its_set_also_by_its_ending(sign: str, name: str) -> None:
    assert set_of(sign) == name
    assert is_room(sign) == (name in ROOMS)
