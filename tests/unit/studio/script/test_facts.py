import pytest

from patra.studio.script.facts import card_of, with_whole_text


@pytest.mark.parametrize(
    ("sentence", "language", "kind", "items"),
    [
        ("You need flour, two eggs and a pinch of salt.", "en", "list", ("flour", "two eggs", "pinch of salt")),
        ("It has three parts: a stem, a leaf and a root.", "en", "list", ("stem", "leaf", "root")),
        ("需要面粉、白糖和一点盐。", "zh", "list", ("面粉", "白糖", "一点盐")),
        ("The process is called photosynthesis.", "en", "definition", ("The process is called photosynthesis",)),
        ("电池是一种储存能量的装置。", "zh", "definition", ("储存能量的装置",)),
        ("The bridge was opened in 1894.", "en", "date", ("The bridge was opened in 1894.",)),
    ],
)
def test_lists_and_definitions_are_found(sentence, language, kind, items):
    card = card_of(sentence, language)
    assert card is not None
    assert (card.kind, card.items) == (kind, items)


@pytest.mark.parametrize(
    ("sentence", "language"),
    [
        ("Women carried buckets, pots, up two hundred and twelve steps.", "en"),
        ("I write to you from the train, somewhere between Graz and Ljubljana.", "en"),
    ],
)
def test_what_is_counted_or_lies_between_is_no_list(sentence, language):
    card = card_of(sentence, language)
    assert card is None or card.kind != "list"


def test_the_verb_before_a_chinese_list_is_no_part_of_its_first_item():
    card = card_of("出发之前，先准备好绳子、手电筒、地图和水壶。", "zh")
    assert card is not None
    assert card.items == ("绳子", "手电筒", "地图", "水壶")
    card = card_of("桌上放着胶带、剪刀和彩纸。", "zh")
    assert card is not None
    assert card.items[-2:] == ("剪刀", "彩纸")


def test_amounts_of_one_unit_are_compared():
    card = card_of("A snail travels 1 metre, while a horse travels 800 metres.", "en")
    assert card is not None
    assert (card.kind, card.items, card.values) == ("bars", ("snail|1 metre", "horse|800 metres"), (1.0, 800.0))


def test_an_amount_has_its_value():
    for sentence, language, value in (
        ("About 71 percent of it is water.", "en", 71.0),
        ("约百分之七十一是水。", "zh", 71.0),
        ("It holds two million litres.", "en", 2e6),
        ("Simmer it for twenty-five minutes.", "en", 25.0),
        ("They waited for seventy days.", "en", 70.0),
        ("Sixteen people came.", "en", 16.0),
    ):
        card = card_of(sentence, language)
        assert card is not None
        assert (card.kind, card.values) == ("number", (value,))


@pytest.mark.parametrize(
    "sentence", ["He walked home, tired and cold.", "Tom, Anna and the dog ran.", "She was a queen."]
)
def test_a_sentence_of_a_story_is_no_list(sentence):
    card = card_of(sentence, "en")
    assert card is None or card.kind != "list"


@pytest.mark.parametrize(
    ("sentence", "language", "items"),
    [
        ("Eat it straight from the pan, with bread and a little parsley.", "en", None),
        ("准备一个有洞的花盆、一袋营养土和几根薄荷枝条。", "zh", ("花盆", "一袋营养土", "几根薄荷枝条")),
    ],
)
def test_the_items_of_a_list_are_whole_nouns(sentence: str, language: str, items: tuple[str, ...] | None) -> None:
    card = card_of(sentence, language)
    assert (card.items if card and card.kind == "list" else None) == items


@pytest.mark.parametrize(
    "sentence",
    [
        "A hundred and five people came.",
        "Wait two or three minutes.",
        "It takes 20 to 25 minutes.",
        "It weighs one point five kilograms.",
        "It lasted 3-4 hours.",
    ],
)
def test_the_last_part_of_a_larger_amount_or_of_a_range_is_no_amount(sentence: str) -> None:
    card = card_of(sentence, "en")
    assert card is None or card.kind != "number"


@pytest.mark.parametrize("sentence", ["他们把苹果、梨和核桃搬上马车。", "第二天，船队沿着海岸运来盐、鱼和棉布。"])
def test_a_list_with_what_is_done_is_read_as_a_sentence(sentence: str) -> None:
    card = card_of(sentence, "zh")
    assert card is None or card.kind != "list"


def test_a_number_is_not_taken_out_of_its_sentence():
    text = "This soup feeds four people who are hungry after a long day outside and takes about forty minutes."
    card = card_of(text, "en")
    assert card is not None
    assert (card.kind, card.items) == ("number", (text,))


def test_a_card_of_one_sentence_has_all_that_its_shot_says():
    number, items = card_of("Bake it for forty minutes.", "en"), card_of("You need a saw, a drill and a ruler.", "en")
    assert number is not None
    assert items is not None
    both = with_whole_text(number, "Bake it for forty minutes. Let it cool.")
    assert both is not None
    assert (both.title, both.items) == (number.title, ("Bake it for forty minutes. Let it cool.",))
    assert with_whole_text(items, "You need a saw, a drill and a ruler. Begin early.") is None
