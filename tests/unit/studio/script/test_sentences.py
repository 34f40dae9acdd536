from patra.studio.script.sentences import LONGEST, language_of, read_chapter


def test_a_first_line_without_a_full_stop_is_the_title():
    chapter = read_chapter("The Quiet Light\n\nIt was evening. The sea was calm.")
    assert chapter.title == "The Quiet Light"
    assert [s.text for s in chapter.sentences] == ["It was evening.", "The sea was calm."]


def test_a_chapter_heading_is_the_title_even_without_a_blank_line():
    assert read_chapter("第一章 纸船\n清晨，江面上有雾。").title == "第一章 纸船"
    assert read_chapter("# Chapter One\nIt rained.").title == "Chapter One"


def test_a_first_sentence_is_no_title():
    assert read_chapter("It was evening.\n\nThe sea was calm.").title == ""


def test_abbreviations_and_initials_do_not_end_a_sentence():
    chapter = read_chapter("Mr. Hale met Dr. J. Stone at noon. They spoke.")
    assert [s.text for s in chapter.sentences] == ["Mr. Hale met Dr. J. Stone at noon.", "They spoke."]


def test_a_quotation_with_its_speaker_stays_one_sentence():
    chapter = read_chapter('"Stop!" she said. "Why?" asked Tom.')
    assert [s.text for s in chapter.sentences] == ['"Stop!" she said.', '"Why?" asked Tom.']


def test_chinese_sentences_end_after_their_closing_quotation_mark():
    chapter = read_chapter("他说：“我想回家。”然后他站起来。")
    assert [s.text for s in chapter.sentences] == ["他说：“我想回家。”", "然后他站起来。"]


def test_each_sentence_knows_its_place_in_the_chapter():
    text = "Title\n\nOne came.  Two went!\n\nThree stayed."
    for sentence in read_chapter(text).sentences:
        assert " ".join(text[sentence.start : sentence.end].split()) == sentence.text


def test_a_long_sentence_is_cut_at_its_clauses_into_breaths():
    text = "He walked on, " * 30 + "and then he slept."
    sentences = read_chapter(text).sentences
    assert len(sentences) > 2
    assert all(len(s.text) <= LONGEST["en"] for s in sentences)
    assert "".join(s.text for s in sentences).replace(" ", "") == text.replace(" ", "")


def test_the_language_is_found_from_the_letters():
    assert language_of("The sea.") == "en"
    assert language_of("大海 sea 很平静") == "zh"
    assert read_chapter("Das Meer war still.", "de").language == "de"


def test_a_text_without_words_has_no_sentences():
    assert read_chapter("…\n\n* * *\n").sentences == ()


def test_chinese_typed_with_latin_marks_is_read_as_with_its_own():
    latin = '钥匙\n\n"你去哪里?"奶奶问,手里拿着3,000元和v2.0的说明书.他没回答;他看了看表:七点.'
    chinese = '钥匙\n\n"你去哪里？"奶奶问，手里拿着3,000元和v2.0的说明书。他没回答；他看了看表：七点。'
    assert read_chapter(latin) == read_chapter(chinese)
    assert len(read_chapter(latin).sentences) == 3
    assert [s.text for s in read_chapter("He said 你好, then left.", "en").sentences] == ["He said 你好, then left."]
