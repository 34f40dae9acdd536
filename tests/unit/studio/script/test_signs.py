"""Places without a drawing of their own have a sign, and no unrelated place is shown for them."""

import pytest

from tests.support.understood import understood


def seen(text: str) -> list[tuple[str, str]]:
    return [(shot.picture.place, shot.picture.sign) for shot in understood(text).shots]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Anna sat on the beach.\n\nAt the airport she opened her bag.", [("sea", ""), ("", "airport")]),
        ("Anna waited at the police station with her bag.", [("", "police-station")]),
        ("Anna lay in the hospital with a fever.", [("room", "hospital")]),
        ("Anna stood in the kitchen.", [("kitchen", "")]),
        ("小雨站在医院的走廊里。", [("", "走廊")]),
        ("他坐在教室里写作业。", [("hall", "教室")]),
    ],
)
def test_a_place_is_drawn_as_itself_or_has_a_sign(text: str, places: list[tuple[str, str]]) -> None:
    assert seen(text) == places


def test_a_bed_in_a_prison_is_in_no_living_room() -> None:
    assert seen("Tom woke in the prison before six.\n\nHe sat on the bed and read his letter.") == [("", "prison")] * 2


def test_places_that_are_named_beside_the_one_that_is_seen_are_lettered() -> None:
    (shot,) = understood("河边慢慢出现了码头、市场和茶馆。").shots
    assert (shot.picture.place, shot.picture.labels) == ("river", ("码头", "市场", "茶馆"))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("凌晨三点，急诊室里只剩下一个男人。", [("", "急诊室")]),  # by its ending
        ("Tom waited at the boathouse with a bag.", [("", "boathouse")]),
        ("Tom parked in the car park.", [("", "car-park")]),
        ("Tom stood on the car deck.", [("", "")]),
        ("Tom slept in the car.", [("", "car")]),
        ("渡口停着一条船。", [("river", "")]),
        ("Every street lamp in Dunmore went dark.", [("", "")]),
        ("Tom sat in the village.\n\nVolunteers walk the beach until dawn.", [("village", ""), ("", "")]),
        ("后来茶馆关了门，他在巷口修钟表。", [("street", "")]),
    ],
)
def test_no_place_is_shown_that_is_not_certain(text: str, places: list[tuple[str, str]]) -> None:
    assert seen(text) == places
