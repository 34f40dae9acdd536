"""What speaks against the place that a shot would show."""

import pytest

from patra.studio.script.certainty.cards import SCENE
from patra.studio.script.certainty.elsewhere import against_carried, against_stated
from patra.studio.script.plan import make_plan
from tests.support.understood import understood


@pytest.mark.parametrize(
    ("told", "language", "inside", "evidence"),
    [
        ("She sat at the table and drew a ship.", "en", False, "place_other_side"),
        ("他点了油灯，坐在床上。", "zh", False, "place_other_side"),
        ("They watched the waves and the grey sky.", "en", True, "place_other_side"),
        ("At nineteen she went to Manchester to study.", "en", True, "place_after_time"),
        ("后来英国人种植茶树。", "zh", False, "place_after_time"),
        ("Then she left with a small bag.", "en", True, "place_left"),
        ("他回到屋里。", "zh", False, "place_left"),
        ("In Lisbon Mara was hungry.", "en", True, "place_of_a_name"),
        ("Mara laughed with Ines.", "en", True, ""),
        ("Mara waited at the door.", "en", True, "place_part"),
    ],
)
def test_what_a_sentence_tells_may_be_against_the_place_before(
    told: str, language: str, inside: bool, evidence: str
) -> None:
    assert against_carried(told, language, ("Mara", "Ines"), inside=inside, peopled=True) == evidence


def test_of_others_the_place_before_is_not_certain() -> None:
    assert against_carried("The merchants were rich.", "en", (), inside=False, peopled=False) == "place_others"
    assert against_carried("Les marchands.", "fr", (), inside=False, peopled=True) == "place_others"


@pytest.mark.parametrize(
    ("told", "words", "place", "language", "evidence"),
    [
        ("学校离家很近，走路只要十分钟。", ("学校",), "school", "zh", "place_general"),
        ("他在茶馆的屋顶上。", ("茶馆",), "shop", "zh", "place_part"),
        ("他是开茶馆的人家的孩子。", ("茶馆",), "shop", "zh", "place_as_people"),
        ("We rode the tram up the hill.", ("hill",), "mountain", "en", "place_alike"),
        ("She sailed to Greenland from the harbour.", ("harbour",), "harbour", "en", "place_of_a_name"),
        ("She stood in the harbour.", ("harbour",), "harbour", "en", ""),
    ],
)
def test_a_stated_place_need_not_be_where_it_happens(
    told: str, words: tuple[str, ...], place: str, language: str, evidence: str
) -> None:
    assert against_stated(told, words, place, language, (), inside=False) == evidence


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("The museum's roof was painted green by Mrs Lind on a very cold day.", "only a part"),
        ("图书馆的屋顶换上了太阳能电池板，每年可以节省两成电费。", "only a part"),
        ("附近的公共汽车站也将增加两条线路。", "only a part of another word"),
        ("Today most salt is spread on icy roads.", "any place of that kind"),
        ("Mrs Lind stood at the door of the library and waited for the bus.", "only a part"),
    ],
)
def test_a_place_that_is_spoken_against_is_no_scene(text: str, doubt: str) -> None:
    doubts = [line for shot in understood(text).shots for line in shot.doubts]
    assert doubt in "; ".join(doubts)
    last = make_plan(text).shots[-1]
    assert last.picture.framing == "card"
    assert last.certainty < SCENE


def test_a_place_lasts_for_the_sentence_right_behind_and_no_paragraph_more() -> None:
    first = "Mrs Lind stood in the kitchen and hummed a very old song of her mother."
    second = "Mrs Lind cut the bread slowly and thought of nothing else but the bread."
    same, next_ = (make_plan(f"{first}{gap}{second}").shots[-1] for gap in (" ", "\n\n"))
    assert (same.picture.framing, same.picture.place) == ("medium", "kitchen")
    assert next_.picture.framing == "card"


def test_a_thing_that_is_only_there_makes_a_place_last() -> None:
    text = "Tom stood by the sea and looked at the clouds for a long time.\n\nTom sat alone in a small boat."
    assert make_plan(text).shots[-1].picture.framing != "card"


def test_a_card_is_no_place_of_someone_who_is_elsewhere() -> None:
    text = "Ilse Mott worked in the kitchen. In 1931 she sailed to Greenland with her brother and a dog."
    last = make_plan(text).shots[-1]
    assert (last.picture.framing, last.picture.vignette) == ("card", False)
