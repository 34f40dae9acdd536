"""Where and when: compounds, what is heard, jumps in time, verse, numbers of reports."""

import pytest

from tests.support.understood import understood


def seen(text: str) -> list[tuple[str, str, str]]:
    return [(s.picture.place, s.picture.time, s.picture.framing) for s in understood(text).shots]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("A school band played on the quay.", ["harbour"]),
        ("She stood in the village and looked for the road.", ["village"]),
        ("晚上我躺在房间的床上，能听见海浪的声音。", ["room"]),
        ("Priya found a box on the bus to the village.", [""]),
        ("She walked to a small house behind the farm.", [""]),
        ("She opened a small school above a farm.", [""]),
        ("省博物馆的专家来到河边。", ["river"]),
        (
            "Old Henrik stood in the forest.\n\nA woman was ill on the farm.\n\nHenrik put on his coat and closed the box.",
            ["forest", "field", ""],
        ),
        ("The goat stood on the track near Mill Lane.", [""]),
        ("“这是我爸爸的。他在船上当厨师，一年才回来一次。”男孩说。", [""]),
        ("“It is my father's. He is a cook at sea, on a ship,” said the boy.", [""]),
        ("在稻田边，米粒捉了三只虫。\n\n她把瓶子放在枕头旁边。", ["field", "room"]),
        ("孩子们在图书馆里读书。\n\n三十岁的时候，他在家乡造了一座石桥。", ["library", "river"]),
    ],
)
def test_the_place_is_where_it_happens(text: str, places: list[str]) -> None:
    assert [place for place, _, _ in seen(text)] == places


def test_a_jump_in_time_leaves_the_night_behind() -> None:
    assert [time for _, time, _ in seen("那天夜里，村子里很静，没有人说话。\n\n后来，他在村子里种了很多树。")] == [
        "night",
        "day",
    ]
    assert (
        seen(
            "The village was quiet, and a man named Tom was born there.\n\nHe lived in the village. He slept. One night he left."
        )[0][1]
        == "day"
    )


def test_stanzas_of_short_lines_are_a_poem_and_no_explanation() -> None:
    poem = "The river keeps the moon at night,\na coin it never spends.\n\nIt keeps the heron, tall and white,\nand rain that never ends.\n\nIt keeps the boats, it keeps the snow,\nthe bridge of broken stone."
    assert {framing for _, _, framing in seen(poem)} == {"wide"}


def test_figures_of_a_report_are_a_card_and_those_of_a_story_are_not() -> None:
    text = "The ferry lay in the harbour in the rain.\n\nThe crossing takes 40 minutes and costs six pounds."
    assert [framing for _, _, framing in seen(text)] == ["wide", "card"]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("Press the patch on the hole of the tube for a while.", "printer"),
        ("“The last train leaves in four minutes,” said Tom at the station.", "leaf"),
        ("“Take mine,” said Tom at the station.", "pickaxe"),
        ("一九零三年，村里换上了油灯。", "bottle-wine"),
        ("这棵树长在马路中间。", "horse"),
    ],
)
def test_words_that_only_look_like_a_thing_show_none(text: str, absent: str) -> None:
    for shot in understood(text).shots:
        assert absent not in (*shot.picture.motifs, *shot.picture.pictograms)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (  # a life: nobody says that she is still in the village
            "Ada was born in a village in 1902.\n\nIn 1920 she read every book of Newton.\n\nShe died in 1961.",
            ["village", "", ""],
        ),
        ("Dear Tom,\n\nThe beach was cold.\n\nFather has bought a new hat.", ["", "sea", ""]),
        ("苏秀英一九四零年出生在一个村子里。\n\n五十年里，她接生了两千个孩子。", ["village", ""]),
        (
            "The two boys sat in the forest.\n\nTom opened his bag.",
            ["forest", "forest"],
        ),  # a story goes on where it was
    ],
)
def test_a_place_lasts_for_its_paragraph_where_paragraphs_are_episodes(text: str, places: list[str]) -> None:
    assert [place for place, _, _ in seen(text)] == places


def test_a_sentence_of_which_nothing_can_be_drawn_is_lettered_and_not_shown_as_its_place() -> None:
    text = "The boats lay in the harbour at dawn, all of them grey.\n\nIt had always been so, and so it would remain."
    assert [framing for _, _, framing in seen(text)] == ["wide", "card"]


def test_a_close_up_hides_nobody_and_nothing_that_the_sentence_names() -> None:
    text = "Anna stood in the kitchen with her old mother.\n\nOn the table Anna found a letter and an egg."
    shot = understood(text).shots[-1].picture
    assert (shot.framing, [f.name for f in shot.figures], dict(shot.captions)) == (
        "medium",
        ["Anna"],
        {"letter": "letter", "egg": "egg"},
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Ruth opened the case. Inside lay a black suit.", ""),
        ("Ruth learned to draw hills with a pencil.", ""),
        ("Women were not allowed on the ships in those days, said Ruth.", ""),
        ("Ruth baked the clay in an oven.", ""),
        ("Ruth climbed onto the roof of the lorry.", ""),
        ("小林每天五点起床，看手上的纹路。", ""),
        ("Ruth walked to the village.", "village"),
        ("河边有码头、市场和茶馆，小林坐着。", "river"),
    ],
)
def test_words_that_only_look_like_a_place_are_none(text: str, place: str) -> None:
    assert {shot.picture.place for shot in understood(text).shots} == {place}


def test_the_place_of_a_later_paragraph_is_not_that_of_the_first() -> None:
    text = "Everyone knew that Ruth could walk on a rope.\n\nShe lived above the bakery with a parrot."
    assert [place for place, _, _ in seen(text)] == ["", "kitchen"]


def test_a_title_that_asks_how_is_an_explanation_even_if_someone_is_in_it() -> None:
    text = "How a Zip Works\n\nA zip is a fastener of small teeth.\n\nEach tooth has a hook.\n\nA zip can carry a man."
    pictures = [shot.picture for shot in understood(text).shots]
    assert {picture.framing for picture in pictures} == {"card"}
    assert not any("tooth" in picture.pictograms for picture in pictures)
    about = understood("How we hear\n\nThe ear sends a signal to the brain.").shots[0].picture
    assert about.pictograms == ("ear-hearing", "brain")


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("Ruth sat at the sewing machine in the village.", ((), ("sewing machine",))),
        ("The hook drops into the water of the river.", (("hook", "water"), ("river",))),
        ("晚上大家在村子里包饺子。", (("noodles",), ())),
    ],
)
def test_a_pictogram_shows_the_sense_that_is_meant(text: str, things: tuple[tuple[str, ...], ...]) -> None:
    (shot,) = understood(text).shots
    assert (shot.picture.pictograms, shot.picture.labels) == things


def test_a_place_without_anyone_in_it_does_not_become_where_people_are() -> None:
    text = "“听。”白老师说。\n\n巷子里的猫跳上了屋顶。\n\n“我听见了。”白老师说。"
    assert [place for place, _, _ in seen(text)] == ["", "street", ""]


def test_a_year_inside_of_a_sentence_leaves_the_night_behind() -> None:
    text = "She worked at night in the village.\n\nShe died in her garden in 1979, under a tree."
    assert [time for _, time, _ in seen(text)] == ["night", "day"]


def test_a_fire_in_the_name_of_an_animal_is_no_fire() -> None:
    (shot,) = understood("村子里飞来三只萤火虫。").shots
    assert "fire" not in shot.picture.motifs


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("Tom sat in the kitchen.\n\nHe went out into the rain. The dog barked.", [("kitchen", ""), ("", "outside")]),
        ("小明坐在厨房里。他冒着雨跑出了门。", [("kitchen", ""), ("", "外面")]),
        ("Tom sat in the kitchen. He wanted to go to the lake.", [("kitchen", "")]),  # a plan is no place
        ("Nadia stood in the school playground.", [("", "playground")]),
        ("In her car a dog slept on the seat.", [("", "car")]),
        ("从海边寄来的信放在厨房里。", [("kitchen", "")]),
        ("阿四站在教室里。晚上，阿四把书放在枕头边。", [("hall", "教室"), ("room", "")]),
    ],
)
def test_who_goes_out_is_outside_and_what_is_planned_is_not_here(text: str, places: list[tuple[str, str]]) -> None:
    shots = understood(text).shots
    found = [(shot.picture.place, shot.picture.sign) for shot in shots]
    assert list(dict.fromkeys(found)) == places


def test_animals_of_speech_are_on_plates_and_crowds_of_pupils_are_children() -> None:
    asked = understood('The boy sat in the kitchen. "Do you like dogs?" said Anna.').shots[-1].picture
    assert asked.spoken == ("dog",)
    crowd = understood("The pupils stood in the street.").shots[0].picture
    assert (crowd.crowd, crowd.crowd_kinds) == (True, ("girl", "boy"))
