"""Who is meant: roles beside names, names that are also words, people who are only spoken of."""

import pytest

from patra.studio.script.dialogue import utterances_of
from patra.studio.script.people import people_of
from patra.studio.script.sentences import read_chapter
from tests.support.understood import understood


def people(text: str) -> list[list[tuple[str, str]]]:
    return [[(f.name, f.kind) for f in shot.picture.figures] for shot in understood(text).shots]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Marta, an old shepherd, walked through the village.", [[("Marta", "granny")]]),
        ("“I wanted to go home,” said Owen Price, a baker, in the village.", [[("Owen Price", "man")]]),
        ("Captain Rosa Lind stood on the quay.", [[("Rosa Lind", "woman")]]),
        ("An old professor sat in the library. He read her letter.", [[("professor", "old")]]),
        ("In the village Ruth remembered her aunt.", [[("Ruth", "woman")]]),
        ("Dear Hanna,\n\nThe train stood in the station all day long, and nobody came.", [[], []]),
        ("Nicolas Conté, a French officer, walked through the village.", [[("Nicolas Conté", "man")]]),
        ("Henrietta Voss grew up in a village, the third daughter of a baker.", [[("Henrietta Voss", "woman")]]),
        ("In the village Ruth kept a parrot called Admiral.", [[("Ruth", "woman")]]),
        ("In the village Ruth put it on the tailor's table.", [[("Ruth", "woman")]]),
        ("As a child Ruth rode through the village.", [[("Ruth", "girl")]]),
        ("Twenty minutes later the village slept.", [[]]),
        ("Tomás and Bea waited in the village.", [[("Tomás", "man"), ("Bea", "woman")]]),
        ("老板娘吴桂芳在村口擦桌子，吴桂芳很累。", [[("吴桂芳", "woman")]]),
        ("教师罗兰·希尔在村口看见一位姑娘。", [[("罗兰·希尔", "man"), ("姑娘", "woman")]]),
        ("准备小葱，村口的小葱洗净。", [[]]),
        ("In the village Ruth gave it to Amir. He smiled.", [[("Ruth", "woman"), ("Amir", "man")]]),
        ("Inês Duarte walked through the village.", [[("Inês Duarte", "woman")]]),
        ("村口的邮票上印着女王的头像。", [[]]),
        ("Her name was Duchess, the elephant of the village.", [[]]),
        ("In the village Ruth drew them before they melted.", [[("Ruth", "woman")]]),
        ("八十一岁的船工孟庆和在村口画画，孟庆和走了。", [[("孟庆和", "old")]]),
        ("一位老船长在村口站着。", [[("船长", "old")]]),
        ("村口有两个学生，他们很高兴。", [[("woman 1", "woman"), ("man 2", "man")]]),
        ("二十岁的阿依古丽嫁到了村子里。", [[("阿依古丽", "woman")]]),
        ("村里的裁判一直是瘸腿的郑伯。", [[("郑伯", "old")]]),
        ("“做什么？”乐乐晃着腿问，慢慢走进村子。", [[("乐乐", "boy")]]),
        ("邻居王奶奶在村口站着。", [[("王奶奶", "granny")]]),
        ("他的父亲是船夫，住在村子里。", [[("父亲", "man")]]),
        ("工程师李敏说，村子里的树活了。", [[("李敏", "woman")]]),
    ],
)
def test_a_role_beside_a_name_is_that_persons(text: str, expected: list[list[tuple[str, str]]]) -> None:
    assert people(text) == expected


def test_a_girl_who_opens_the_story_is_the_one_who_is_named_later() -> None:
    text = "“One ticket, please,” said the girl at the station.\n\n“My brother is waiting,” said Elsa. “He is alone.”"
    assert people(text) == [[("Elsa", "girl")], [("Elsa", "girl")]]
    other = "A girl stood at the station.\n\n“My brother is waiting,” said Elsa. “He is alone in the city.”"
    assert people(other) == [[("girl", "girl")], [("Elsa", "woman")]]


def test_a_name_that_is_also_weather_is_no_weather() -> None:
    (shot,) = understood("小雨站在村口，看着书包。").shots
    assert (shot.picture.weather, [f.name for f in shot.picture.figures]) == ("clear", ["小雨"])
    assert understood("村口下着小雨。").shots[0].picture.weather == "rain"


def test_several_people_are_a_crowd_and_no_single_one() -> None:
    (shot,) = understood("二十个工人在河边造桥。").shots
    assert (shot.picture.crowd, shot.picture.figures) == (True, ())


def test_the_musician_of_whom_nobody_spoke_yet_is_the_man_who_spoke() -> None:
    text = "“It is ready,” said the man to Mrs Okafor.\n\n“Then give me a new one in red,” said the musician."
    assert [names[0] for names in people(text)] == [("man", "man"), ("man", "man")]


def test_who_is_addressed_is_in_the_picture() -> None:
    text = "小海和爸爸站在站台上等火车，小海在上学。\n\n一位老人走过来，说：“小朋友，你要去哪里？”"
    assert people(text)[1] == [("老人", "old"), ("小海", "boy")]


def test_the_boy_of_a_life_is_the_one_whose_life_it_is() -> None:
    text = "Wilson Bent was born in the village.\n\nHis father sold ten cows and bought the boy a camera."
    assert people(text)[1] == [("father", "man"), ("Wilson Bent", "man")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Priya gave it to the driver, an old man with a stick.", [[("Priya", "woman"), ("driver", "old")]]),
        (
            "The driver, an old man and a girl stood in the village.",
            [[("driver", "man"), ("old man", "old"), ("girl", "girl")]],
        ),
        ("馆长周敏在门口等人。", [[("周敏", "woman")]]),
        ("第一个进来的是七十岁的船长韩大海。", [[("韩大海", "old")]]),
        ("老师傅没有说话，只看着门口。", [[("老师傅", "old")]]),
        ("六岁的米粒不敢睡觉。", [[("米粒", "girl")]]),
        ("外婆家的院子里有一口老井。", [[]]),
        ("丈夫去世以后，陈玉兰出生的村子也变了。", [[("陈玉兰", "woman")]]),
        ("Her husband died before the war, and the girl stood in the village.", [[("girl", "girl")]]),
        ("Two police officers came with a carrot.", [[("woman 1", "woman"), ("man 2", "man")]]),
        ("两名小学生在河边玩。", [[("girl 1", "girl"), ("boy 2", "boy")]]),
        ("十一岁的罗小川告诉爷爷，石头很大。", [[("罗小川", "boy"), ("爷爷", "old")]]),
        ("Tariq Bello was born in a harbour town, the fifth of nine children.", [[]]),
        ("Salma stood in the village. An old photograph of her father hung there.", [[("Salma", "woman")]]),
        ("Librarian Joan Pike found a cat.", [[("Joan Pike", "woman")]]),
        ("一八九二年，梅思远在村口画画，他很高兴。", [[("梅思远", "man")]]),
        ("放学了，阿布站在村口，他没有带伞。", [[("阿布", "boy")]]),
        ("A schoolgirl called Mina Rask walked up.", [[("Mina Rask", "girl")]]),
    ],
)
def test_who_is_one_person_and_who_is_not_there(text: str, expected: list[list[tuple[str, str]]]) -> None:
    assert people(text) == expected


def test_where_someone_is_born_nobody_is_seen_grown_up_and_a_child_is_one() -> None:
    text = "Ines Calder was born in 1902 in a village.\n\nAs a child she sat in the workshop.\n\nAt thirty she sat in the workshop."
    assert people(text) == [[], [("Ines Calder", "girl")], [("Ines Calder", "woman")]]


def test_her_is_not_the_one_who_does_it() -> None:
    text = "A girl stood in the village with Priya.\n\nPriya walked with her through the rain."
    assert people(text)[1] == [("Priya", "woman"), ("girl", "girl")]


def test_a_place_that_someone_owns_does_not_show_them() -> None:
    assert people("Priya found a box.\n\nIt stood in the corner of her kitchen.")[1] == []


def test_after_narration_a_speaker_does_not_speak_to_the_last_one_before_it() -> None:
    text = (
        "“Keep it,” said the old man to Priya.\n\nFor three weeks it stood in the kitchen.\n\n"
        "One evening a girl came into the kitchen. “I lost a box,” she whispered."
    )
    assert people(text)[-1] == [("girl", "girl")]


def test_they_of_chinese_women_are_those_who_were_met() -> None:
    text = "六岁的米粒不敢睡觉。\n\n外婆拿来一盏灯。\n\n她们走到村口。"
    assert people(text)[-1] == [("米粒", "girl"), ("外婆", "granny")]


def test_an_age_lasts_for_its_paragraph_until_another_one_is_told() -> None:
    text = (
        "Tom Bell was seven when a fever took his hearing. He learned to feel the music through the wooden floor of the school. "
        "At twenty he went to the city and carried plates there until late in the evening."
    )
    assert [figures[0][1] for figures in people(text)] == ["boy", "boy", "man"]


def test_an_hour_of_which_someone_speaks_is_no_age() -> None:
    text = "“For tonight? You are early, madam. The play begins at eight,” said the man to Rosa."
    assert dict(people(text)[-1])["Rosa"] == "woman"


def test_how_someone_acts_is_no_name():
    text = "李娜站在家门口。“这串钥匙是你的吧？”\n李娜接过钥匙，高兴得差点跳起来。“太谢谢您了！”"
    assert [name for name in people_of(read_chapter(text)).kinds if name.endswith("得")] == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("叶子为什么会动\n\n叶子里有水。碰一下，叶子就合上了。叶绿体是一种小颗粒。", {}),
        ("种树\n\n杨树和柏树不一样：它们长得快。杨树喜欢水，柏树不怕旱。", {}),
        ("花茎顶部长满了细毛。", {}),
        ("街角有一家钟表铺，大家都叫他钱师傅。钱师傅修好了表。", {"钱师傅": "man"}),
        ("大家都喊她孙医生。孙医生笑了。", {"孙医生": "woman"}),
        ("My dog, Rusty, slept on the sofa. Rusty was tired.", {}),
        ("Our parrot Juno said hello. Juno was old.", {}),
        ("Lena, our cat, was hungry. Lena ate.", {}),
        ("When Lena came home, the hen slept. Lena was tired.", {"Lena": "woman"}),
        ("The train ran between Delft and Utrecht, and Ada slept.", {"Ada": "woman"}),
    ],
)
def test_things_animals_and_towns_are_no_people_and_a_call_says_the_sex(text: str, kinds: dict[str, str]) -> None:
    assert people_of(read_chapter(text)).kinds == kinds


def test_they_of_a_new_paragraph_of_a_letter_are_others() -> None:
    text = "Dear Ada,\n\nRuth and Amir came on Monday.\n\nDo you remember the bridge? They have painted it blue.\n\nYours, Tom"
    shots = understood(text).shots
    (shot,) = [shot for shot in shots if "painted" in shot.narration]
    assert shot.picture.figures == ()


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("小伙子把木箱放下。小伙子擦了擦汗。小伙子笑了。", {"小伙子": "man"}),
        ("许多人站在门口，许多人带着花。李秀英老师说：“别急。”", {"李秀英": "woman"}),
        ("周玉兰奶奶坐在门口。周玉兰奶奶笑了。", {"周玉兰": "granny"}),
        ("王建国从学生时代起就爱跑步。", {"王建国": "man"}),
        (
            "Piet ran out. He was nine, and his grandfather's knees hurt. “Wait,” the old man called. By noon the boy was back.",
            None,
        ),
        ("Nobody would hire an old woman. Ruth sighed, and she went home.", {"Ruth": "woman"}),
    ],
)
def test_a_part_of_a_word_a_title_or_someone_denied_is_no_further_person(
    text: str, kinds: dict[str, str] | None
) -> None:
    found = people_of(read_chapter(text)).kinds
    assert found == (kinds or {"Piet": "boy", "old man": "old"})


def test_who_acts_in_the_next_line_did_not_speak_in_this_one() -> None:
    text = "“修一下要多少钱？”男孩问。\n“十块。”老人说。\n“太贵了。”\n老人放下钳子。"
    chapter = read_chapter(text)
    assert [said.speaker for said in utterances_of(chapter, text, people_of(chapter))] == ["男孩", "老人", "男孩"]
