"""Which evidence there is for who is seen."""

import pytest

from patra.studio.script.plan import make_plan
from tests.support.understood import understood


def doubted(text: str) -> str:
    return "; ".join(line for shot in understood(text).shots for line in shot.doubts)


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("Ruth stood in the village. There was a ticket collector in the street.", "missing collector"),
        ("Ruth stood in the village, and half the village stood with her.", "missing half the village"),
        ("In the village Ruth got a jar from her aunt.", "person aunt: a relative something comes from"),
        ("In the village the plumber whistled.", "sex plumber: nothing says whether woman or man"),
        ("妈妈在厨房里咳嗽好些了吗？", "a question, a wish or an order"),
        ("镇上的马儿站在村口说话，马儿笑了。", "is also a plain word"),
    ],
)
def test_what_is_uncertain_of_people_is_said(text: str, doubt: str) -> None:
    assert doubt in doubted(text)


@pytest.mark.parametrize(
    "text",
    [
        "Mrs Tamsin stood in the village.",
        "Captain Rosa Lind stood in the village.",
        "In the village an old woman slept.",
    ],
)
def test_who_is_named_with_title_or_word_is_certain(text: str) -> None:
    assert [shot.doubts for shot in understood(text).shots] == [()]


@pytest.mark.parametrize(
    "text",
    [
        "亲爱的妈妈：\n\n我很好。这里天天出太阳。\n\n您的女儿 小雪",
        "Dear Aunt Joan,\n\nThe roof is mended and the hens are laying again.\n\nYour loving niece, Harriet Lind",
    ],
)
def test_a_signature_is_lettered_and_is_no_weather(text: str) -> None:
    last = make_plan(text).shots[-1].picture
    assert last.card is not None
    assert (last.framing, last.card.kind, last.portraits, last.weather) == ("card", "words", (), "clear")


def test_who_is_counted_is_more_certain_than_many() -> None:
    many, four = (make_plan(f"In the street stood {who}.").shots[0] for who in ("plumbers", "six plumbers"))
    assert many.certainty < four.certainty


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("Ruth stood in the village and the pipe under Elm Lane burst.", False),
        ("Ruth stood in the village of Castle Combe.", False),
        ("Ruth stood in the village, where the River Teign and the river Bovey meet.", False),
        ("Ruth stood in the village, and her old dog Biscuit slept.", False),
        ("Ruth stood in the village and hummed Mozart.", True),
    ],
)
def test_a_name_of_a_place_or_a_pet_is_nobody_who_is_missing(text: str, missing: bool) -> None:
    assert ("what may be a name" in doubted(text)) is missing


def test_a_crowd_is_neither_she_nor_he() -> None:
    text = "In the village lived Mrs Lind.\n\nShe died in May, and crowds stood in the street."
    assert make_plan(text).shots[-1].picture.crowd is False
