"""Which evidence there is for a place, and which things are certain."""

import pytest

from patra.studio.script.plan import make_plan
from tests.support.understood import understood


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("Mrs Lind drove past the church.", "only passed"),
        ("In a street lived Mrs Lind.", "where someone lives"),
        ("Mrs Lind stood in the village.\n\nThe city of Leeford has hired Mrs Lind.", "stands for its people"),
    ],
)
def test_a_place_that_may_not_be_where_someone_is_is_doubted(text: str, doubt: str) -> None:
    assert doubt in "; ".join(line for shot in understood(text).shots for line in shot.doubts)


def test_a_place_that_the_sentence_states_is_certain() -> None:
    (shot,) = make_plan("Mrs Lind stood in the village.").shots
    assert (shot.picture.framing, shot.doubts) == ("wide", ())


@pytest.mark.parametrize(
    ("text", "uncertain"),
    [
        ("Turn the bicycle upside down.", ()),
        ("Loosen the two nuts of the bicycle.", ("peanut",)),
        ("Avoid the screwdriver.", ("screwdriver",)),
    ],
)
def test_things_of_two_senses_or_denied_are_on_no_card(text: str, uncertain: tuple[str, ...]) -> None:
    (shot,) = make_plan(f"How to mend it\n\n{text}").shots
    assert shot.picture.uncertain == uncertain


def test_a_ferry_is_painted_with_no_sails() -> None:
    ferry, boat = (make_plan(f"Mrs Lind stood on the quay. The {name} came.").shots for name in ("ferry", "boat"))
    assert "thing boat" in "; ".join(line for shot in ferry for line in shot.doubts)
    assert "thing boat" not in "; ".join(line for shot in boat for line in shot.doubts)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("The boat reached the far bank. Ada put down her oars.", False),
        ("The boat reached the far bank. Ada lowered its sail.", True),
        ("小船靠了岸。阿秀放下船桨。", False),
        ("小船靠了岸。阿秀收起了帆。", True),
    ],
)
def test_a_boat_that_is_rowed_has_no_sails_on_a_card(text: str, drawn: bool) -> None:
    picture = make_plan(text).shots[0].picture
    assert "boat" in picture.motifs
    assert (picture.framing != "card" or "boat" not in picture.uncertain) is drawn


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("Mrs Lind stood in the village. Far away a dog howled.", True),
        ("Mrs Lind stood in the village. A dog howled.", False),
        ("王奶奶站在村口。远处传来狗叫声。", True),
        ("王奶奶站在村口。一只狗跑过来。", False),
    ],
)
def test_an_animal_that_is_only_heard_does_not_stand_there(text: str, heard: bool) -> None:
    assert ("only heard" in "; ".join(line for shot in understood(text).shots for line in shot.doubts)) is heard


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("The liner left at noon. Captain Rosa Lind stood on the boat at sea.", True),
        ("Captain Rosa Lind stood on the boat at sea.", False),
        ("The liner left at noon. Captain Rosa Lind rowed the boat at sea.", False),
        ("客轮中午离港。船长王建国坐在船上，看着大海。", True),
        ("船长王建国坐在船上，看着大海。", False),
    ],
)
def test_nobody_rows_the_ship_of_a_chapter(text: str, doubted: bool) -> None:
    last = understood(text).shots[-1]
    assert ("thing boat: drawn as another kind" in "; ".join(last.doubts)) is doubted
