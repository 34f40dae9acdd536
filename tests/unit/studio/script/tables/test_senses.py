"""A word of two senses is drawn in the one that it has here, or not at all."""

import pytest

from patra.studio.script.lexicon import tags_of
from patra.studio.script.pictograms import pictograms_of
from patra.studio.script.tables.senses import is_other_sense


@pytest.mark.parametrize(
    ("word", "sentence", "other"),
    [
        ("lock", "Ruth walked along the towpath to the lock.", True),
        ("lock", "The door had a heavy lock.", False),
        ("record", "She broke the world record.", True),
        ("fire", "The fire brigade came at noon.", True),
        ("fire", "They sat by the fire.", False),
        ("room", "There was no room for a piano.", True),
        ("dark", "He wore a dark green coat.", True),
        ("bus-stop", "The bus stops at the harbour.", True),
        ("ring", "I saw the rings of Saturn.", True),
        ("chain", "The neighbours formed a chain and passed the buckets.", True),
        ("chain", "Oil the chain of the bicycle.", False),
        ("cow", "A cow stood there.", False),
    ],
)
def test_company_decides(word: str, sentence: str, other: bool) -> None:
    assert is_other_sense(word, sentence) is other


@pytest.mark.parametrize(
    ("sentence", "language", "motifs"),
    [
        ("大熊猫团团到了。", "zh", ()),
        ("萤火虫飞过来。", "zh", ()),
        ("他迷路了。", "zh", ()),
        ("马路边有一匹马。", "zh", ("path", "horse")),
        ("一杯姜茶放在那里。", "zh", ()),
        ("The train leaves at six.", "en", ("train",)),
    ],
)
def test_a_part_of_another_word_is_nothing(sentence: str, language: str, motifs: tuple[str, ...]) -> None:
    assert tags_of(sentence, language).motifs == motifs


@pytest.mark.parametrize(
    ("sentence", "language", "shown"),
    [
        ("Keepers burned whale oil.", "en", ("bottle-wine",)),
        ("They were making cheese.", "en", ("cheese",)),
        ("Mum brought hot chocolate.", "en", ("fa:mug-hot",)),
        ("小店只卖汽水，不卖爆米花。", "zh", ("fa:glass-water",)),
        ("The orchestra got a wheel of cheese instead of flowers.", "en", ("music-clef-treble", "cheese")),
        ("Never plant a tree under a power line.", "en", ()),
    ],
)
def test_only_what_is_meant_has_a_pictogram(sentence: str, language: str, shown: tuple[str, ...]) -> None:
    assert pictograms_of(sentence, language) == shown
