"""Words whose drawing is that very thing have a drawing."""

import pytest

from patra.studio.script.certainty.exact import is_exact
from patra.studio.script.pictograms import pictograms_of


@pytest.mark.parametrize(
    ("word", "sentence", "language", "exact"),
    [
        ("bicycles", "Two bicycles.", "en", True),
        ("nuts", "Two nuts.", "en", False),
        ("plums", "The plums.", "en", False),
        ("bridge", "He was the bridge of peace.", "en", False),
        ("鱼", "他钓到一条鱼。", "zh", True),
        ("鱼", "同事们叫她鲸鱼的邻居。", "zh", False),
        ("电池", "屋顶换上了太阳能电池板。", "zh", False),
        ("statue", "Her statue stands there.", "en", False),
        ("canoe", "A canoe lay on the shore.", "en", False),
        ("puppets", "Three puppets hung there.", "en", False),
        ("tunnel", "The tunnel is dry.", "en", True),
        ("kingfisher", "A kingfisher dived.", "en", False),
        ("candle", "She is a candle maker.", "en", False),
        ("candle", "She lit a candle.", "en", True),
        ("洋葱", "把洋葱切碎。", "zh", False),
        ("气球", "孩子放走了气球。", "zh", False),
        ("缆车", "缆车停在山顶。", "zh", True),
        ("砂纸", "准备砂纸和胶水。", "zh", False),
        ("绳子", "石头上有绳子。", "zh", False),
    ],
)
def test_a_word_is_exact_where_its_drawing_is_that_thing(word: str, sentence: str, language: str, exact: bool) -> None:
    assert is_exact(word, sentence, language) is exact


def test_a_suitcase_is_no_backpack():
    english, chinese = pictograms_of("She packed a suitcase.", "en"), pictograms_of("他提着行李箱。", "zh")
    assert english == chinese == pictograms_of("Her luggage stood there.", "en")
    assert english != pictograms_of("She packed a backpack.", "en")
