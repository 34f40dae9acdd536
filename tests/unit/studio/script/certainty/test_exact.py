"""Words whose drawing is that very thing have a drawing."""

import pytest

from patra.studio.script.certainty.exact import is_exact


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
        ("砂纸", "准备砂纸和胶水。", "zh", False),
        ("绳子", "石头上有绳子。", "zh", False),
    ],
)
def test_a_word_is_exact_where_its_drawing_is_that_thing(word: str, sentence: str, language: str, exact: bool) -> None:
    assert is_exact(word, sentence, language) is exact
