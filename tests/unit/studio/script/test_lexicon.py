import pytest

from patra.studio.script.lexicon import MOTIFS, PLACES, tags_of


@pytest.mark.parametrize(
    ("sentence", "language", "field", "tag"),
    [
        ("The harbours lay still.", "en", "places", "harbour"),
        ("Two boys ran.", "en", "figures", "boy"),
        ("灯塔亮着。", "zh", "motifs", "lighthouse"),
        ("傍晚下起了雨。", "zh", "weathers", "rain"),
        ("An old woman stood there.", "en", "figures", "granny"),
    ],
)
def test_words_are_found_in_their_forms(sentence, language, field, tag):
    assert tag in getattr(tags_of(sentence, language), field)


def test_the_longest_chinese_word_wins():
    assert tags_of("灯塔亮着。", "zh").motifs == ("lighthouse",)


def test_a_word_that_only_shares_a_character_is_not_meant():
    tags = tags_of("我相信星期一马上就到。", "zh")
    assert not {"letter", "star", "horse"} & set(tags.motifs)


def test_a_place_that_someone_talks_of_is_not_where_they_are():
    assert tags_of('"Come to the city," she said.', "en").places == ()
    assert tags_of("A man would come from the city.", "en").places == ()


def test_weather_that_ends_is_no_more():
    assert tags_of("At dawn the fog lifted, and snow began to fall.", "en").weathers == ("clear", "snow")
    assert tags_of("窗外的雨慢慢停了。", "zh").weathers == ("clear",)


def test_every_entry_has_words_in_both_languages():
    for table in (PLACES, MOTIFS):
        for tag, words in table.items():
            english, chinese = words.split("|")
            assert english.split(), tag
            assert chinese.split(), tag
