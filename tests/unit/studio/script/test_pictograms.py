from patra.studio.paint.pictogram import MOTIF_GLYPHS, has_glyph
from patra.studio.script.lexicon import MOTIFS
from patra.studio.script.pictograms import MOST_SHOWN, PICTOGRAMS, pictogram_of_motif, pictograms_of


def test_the_font_has_every_pictogram():
    assert [name for name in (*PICTOGRAMS, *MOTIF_GLYPHS.values()) if not has_glyph(name)] == []
    assert set(MOTIF_GLYPHS) <= set(MOTIFS)


def test_nouns_lead_to_pictograms_in_both_languages():
    assert pictograms_of("Boil the kettle and add two eggs.", "en") == ("kettle", "egg")
    assert pictograms_of("把鸡蛋放进锅里。", "zh") == ("egg", "pot-steam")
    assert len(pictograms_of("bread, cheese, rice, corn, beer and a cow", "en")) == MOST_SHOWN


def test_neither_a_verb_nor_what_is_denied_is_a_thing():
    assert "water" not in pictograms_of("They water the garden.", "en")
    assert pictograms_of("He came without a knife.", "en") == ()


def test_a_motif_has_the_pictogram_of_its_own_word():
    assert pictogram_of_motif("boat", "ferry") == "ferry"
    assert pictogram_of_motif("boat", "ships") == "fa:ship"
    assert pictogram_of_motif("bird", "owl") == "owl"
    assert pictogram_of_motif("boat", "boat") == ""
