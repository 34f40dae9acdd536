"""The table of pictograms: each has a shape in one of the fonts, and words of both languages."""

from patra.studio.paint.pictogram import has_glyph
from patra.studio.script.tables.things import FURNITURE, PAINTED, PICTOGRAMS


def test_every_pictogram_has_a_shape_and_words() -> None:
    assert [name for name in (*PICTOGRAMS, *PAINTED) if not has_glyph(name)] == []
    assert set(FURNITURE) <= set(PICTOGRAMS)
    for name, row in PICTOGRAMS.items():
        english, chinese = (half.split() for half in row.split("|"))
        assert english, name
        assert chinese, name
        assert all(word.isascii() for word in english), name
