import pytest

from patra.studio.script.language import disagrees, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The sea.", "en"),
        ("Anna war allein.", "en"),  # too little to tell
        ("大海 sea 很平静", "zh"),
        ("Мальчик пошёл домой.", "ru"),
        ("これは小さな本です。", "ja"),
        ("바다는 조용했다.", "ko"),
        ("Das Meer war still und der Mond nicht zu sehen.", "de"),
        ("La mer était calme et le garçon rentrait.", "fr"),
        ("El niño fue a la escuela con su madre.", "es"),
    ],
)
def test_the_language_is_found_from_letters_and_frequent_words(text, language):
    assert language_of(text) == language


def test_a_language_that_is_given_must_fit_the_script():
    assert disagrees("Мальчик пошёл домой.", "en") == "ru"
    assert disagrees("The boy went home.", "zh") == "en"
    assert disagrees("Das Meer war still und der Mond nicht.", "en") == ""  # one script: the given one is believed
