import pytest

from patra.studio.script.depiction import here_part, seen_part, with_closed_speech, with_open_speech


@pytest.mark.parametrize(
    ("sentence", "language", "gone", "kept"),
    [
        ("There was no moon and no stars over the sea.", "en", ("moon", "stars"), ("sea",)),
        ("There was no moon or stars.", "en", ("moon", "stars"), ()),
        ("He walked without a lamp through the forest.", "en", ("lamp",), ("forest",)),
        ("It was not the sea but a lake.", "en", ("sea",), ("lake",)),
        ("She did not go to the city, but to the lake.", "en", ("city",), ("lake",)),
        ("She could not open the door.", "en", (), ("door",)),
        ("Her hands were like two birds.", "en", ("birds",), ("hands",)),
        ("It was as cold as a stone, and the boat rocked.", "en", ("stone",), ("boat",)),
        ("I like the sea.", "en", (), ("sea",)),
        ("“Have you seen a brown dog?” asked the boy.", "en", ("dog",), ("boy",)),
        ("不要放醋。", "zh", ("醋",), ()),
        ("Do not add cheese.", "en", ("cheese",), ()),
        ("天上没有月亮，只有风。", "zh", ("月亮",), ("风",)),
        ("湖面像一面镜子，很静。", "zh", ("镜子",), ("湖",)),
        ("She wore a scarf embroidered with birds.", "en", ("birds",), ("scarf",)),
        ("他有一块绣着燕子的布。", "zh", ("燕子",), ("布",)),
        ("无数星星亮着。", "zh", (), ("星星",)),
    ],
)
def test_what_is_denied_or_compared_with_is_left_out(sentence, language, gone, kept):
    seen = seen_part(sentence, language)
    assert len(seen) == len(sentence)
    assert [word for word in gone if word in seen] == []
    assert [word for word in kept if word not in seen] == []


def test_who_remembers_a_place_is_not_there():
    assert "sea" not in here_part("She remembered the sea.", "en")
    assert "sea" in seen_part("She remembered the sea.", "en")
    assert "大海" not in here_part("她想起大海。", "zh")


def test_speech_that_goes_on_is_opened_in_its_paragraph_and_ends_with_it():
    sentences = ['He said: "I know the harbour.', 'The boats are old." He left.', "He was 5'9\" tall.", "The kitchen."]
    assert with_open_speech(sentences, [1, 1, 2, 3]) == [sentences[0], f'"{sentences[1]}', *sentences[2:]]


def test_the_storm_of_last_week_is_over():
    assert "storm" not in here_part("A buoy had drifted in last week's storm.", "en")
    assert "暴雨" not in here_part("上周的暴雨冲坏了路。", "zh")
    assert "sea" not in here_part("The crew expects to reach the sea on Monday.", "en")


@pytest.mark.parametrize(
    ("text", "lettered"),
    [
        ("他不会来了。”", "“他不会来了。”"),
        ("他站起来。 “走吧。", "他站起来。 “走吧。”"),
        ("“走吧。”他说。“快。”", "“走吧。”他说。“快。”"),
        ("He said: “Go.”", "He said: “Go.”"),
        ("It was 5'9\" long.", "It was 5'9\" long."),
    ],
)
def test_a_part_of_a_speech_is_lettered_with_both_its_marks(text: str, lettered: str) -> None:
    assert with_closed_speech(text) == lettered
