"""Things that nothing draws are lettered, in the words of the text."""

import pytest

from patra.studio.script.words.nouns import phrase_of, unshown_nouns


@pytest.mark.parametrize(
    ("sentence", "language", "nouns"),
    [
        ("Amara lifts the lid of the old accordion.", "en", ("lid", "accordion")),
        ("They sell combs, buttons and thimbles.", "en", ("combs", "buttons", "thimbles")),
        ("A boy called Jonas dropped his red scarf in the snow.", "en", ("scarf",)),
        ("The building now holds a café.", "en", ("building",)),
        ("The dog slept beside the lamp for an hour.", "en", ()),  # drawn, or nothing to be seen
        ("There was no accordion, only a hand like a trowel.", "en", ()),
        ("她的背篓里装着蘑菇、木耳和野菜。", "zh", ("木耳", "野菜")),
        ("爷爷点上一支旱烟。", "zh", ("旱烟",)),
        ("桌上摆着一台旧收音机。", "zh", ()),  # has a pictogram
        ("Он играл на гармони.", "ru", ()),
    ],
)
def test_nouns_without_a_drawing_are_found_as_they_are_written(
    sentence: str, language: str, nouns: tuple[str, ...]
) -> None:
    assert unshown_nouns(sentence, language) == nouns


@pytest.mark.parametrize(
    ("sentence", "language", "phrase"),
    [
        ("他靠耳朵学会了三弦，在茶馆里坐着。", "zh", "他靠耳朵学会了三弦"),
        ("二零零一年，他来了。", "zh", ""),
        ("The old dog slept, and gulls wheeled over marram.", "en", "and gulls wheeled over marram"),
        ("The old dog slept by the lamp.", "en", ""),
    ],
)
def test_a_clause_of_which_nothing_is_drawn_is_lettered_whole(sentence: str, language: str, phrase: str) -> None:
    assert phrase_of(sentence, language) == phrase


def test_a_clause_is_lettered_as_it_stands_or_not_at_all():
    told = "She said the brioche felt like velvet."
    assert phrase_of(told, "en") == "She said the brioche felt like velvet"
    assert phrase_of(
        "          said the brioche felt like velvet.", "en", "Aunt Rose said the brioche felt like velvet."
    ) == ("Aunt Rose said the brioche felt like velvet")


def test_what_a_thing_does_is_on_no_label():
    assert unshown_nouns("Then Elsa saw a small light moving on the water.", "en") == ()
    assert not any(noun.endswith("停") for noun in unshown_nouns("他在井边停下来，擦了擦额头上的汗。", "zh"))
