from pathlib import Path

import msgspec

from patra.studio.script.cast.ages import is_life
from patra.studio.script.dialogue import Reading, utterances_of
from patra.studio.script.people import people_of
from patra.studio.script.plan import NEEDS, WORKERS, make_plan
from patra.studio.script.sentences import read_chapter
from patra.studio.script.shots import INSERTS
from tests.support.understood import understood

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
ENGLISH = (EXAMPLES / "the-keeper.txt").read_text("utf-8")
CHINESE = (EXAMPLES / "paper-boats.zh.txt").read_text("utf-8")


def test_the_same_text_gives_the_same_plan_byte_by_byte():
    assert msgspec.json.encode(make_plan(ENGLISH)) == msgspec.json.encode(make_plan(ENGLISH))


def test_every_sentence_is_told_once_and_in_order():
    for text in (ENGLISH, CHINESE):
        starts = [sentence.start for shot in make_plan(text).shots for sentence in shot.sentences]
        assert starts == sorted(set(starts))
        told = "".join(shot.narration for shot in make_plan(text).shots)
        body = text.split("\n", 1)[1]
        assert "".join(told.split()) == "".join(body.split())


def test_a_shot_has_one_prompt_for_each_kind_of_worker():
    plan = make_plan(ENGLISH)
    assert [(p.shot_id, p.worker_type) for p in plan.prompts] == [(s.shot_id, w) for s in plan.shots for w in WORKERS]
    assert set(NEEDS) == set(WORKERS)


def test_the_setting_follows_the_text():
    shots = make_plan(ENGLISH).shots
    assert (shots[0].picture.place, shots[0].picture.time) == ("harbour", "dusk")
    night = next(s for s in shots if "That night" in s.narration)
    assert (night.picture.time, night.picture.weather) == ("night", "fog")
    kitchen = next(s for s in shots if "kettle" in s.narration)
    assert kitchen.picture.place == "kitchen"


def test_a_window_is_looked_through_without_leaving_the_room():
    shot = next(s for s in make_plan(CHINESE).shots if "窗外" in s.narration)
    assert shot.picture.place == "kitchen"


def test_a_name_keeps_its_figure_and_pronouns_point_to_it():
    plan = understood(ENGLISH)
    told = next(s for s in plan.shots if "Tomas took up the oars" in s.narration)
    assert [(f.kind, f.name) for f in told.picture.figures] == [("boy", "Tomas")]
    she = next(s for s in plan.shots if "she said to nobody" in s.narration)
    assert [f.name for f in she.picture.figures] == ["Mara"]
    girl = next(s for s in understood(CHINESE).shots if "她害怕" in s.narration)
    assert [(f.kind, f.name) for f in girl.picture.figures] == [("girl", "小满")]


def test_who_sits_in_a_boat_stays_in_it():
    counted = next(s for s in make_plan(ENGLISH).shots if "counted his breaths" in s.narration)
    assert "boat" in counted.picture.motifs


def test_a_paper_boat_carries_nobody():
    held = next(s for s in make_plan(CHINESE).shots if "她轻轻把船放进水里" in s.narration)
    assert ("boat" in held.picture.motifs, "paperboat" in held.picture.motifs) == (False, True)
    at_sea = next(s for s in make_plan(CHINESE).shots if "渔船" in s.narration)
    assert "boat" in at_sea.picture.motifs
    english = make_plan("She set a paper boat on the river. Then she pushed the boat away from the bank with one hand.")
    assert all(set(s.picture.motifs) & {"boat", "paperboat"} == {"paperboat"} for s in english.shots)


def test_a_thing_is_not_looked_at_closely_again_at_once():
    for text in (ENGLISH, CHINESE):
        subjects = [shot.picture.subject for shot in make_plan(text).shots]
        assert set(subjects) <= {"", *INSERTS}
        for number, subject in enumerate(subjects):
            assert not subject or subject not in subjects[max(0, number - 3) : number]


def test_the_first_shot_opens_with_the_title_and_the_last_ends():
    plan = make_plan(ENGLISH)
    first = plan.prompt(plan.shots[0].shot_id, "video").body
    last = plan.prompt(plan.shots[-1].shot_id, "video").body
    assert (first["cut"], first["title"]) == ("open", "The Keeper of the Quiet Light")
    assert (last["leaves"], last["title"]) == ("end", "")


def test_a_text_without_words_has_an_empty_plan():
    assert make_plan("…").shots == ()


def test_a_title_that_is_given_is_lettered_instead_of_the_chapters_own():
    own, given = make_plan(ENGLISH), make_plan(ENGLISH, title="Another Name")
    assert given.title == "Another Name" != own.title
    first = given.shots[0].shot_id
    assert given.prompt(first, "video").body["title"] == "Another Name"
    assert [shot.narration for shot in given.shots] == [shot.narration for shot in own.shots]


def test_a_quotation_is_said_by_its_speaker_and_the_rest_by_the_narrator():
    plan = make_plan('Anna met Tom. "Sit down," said Tom, "and eat."')
    parts = [part for shot in plan.shots for line in plan.prompt(shot.shot_id, "audio").body["parts"] for part in line]
    assert [(part["speaker"], part["text"]) for part in parts] == [
        ("", "Anna met Tom."),
        ("Tom", '"Sit down,"'),
        ("", "said Tom,"),
        ("Tom", '"and eat."'),
    ]


def test_the_steps_of_an_instruction_are_counted_on_their_cards():
    recipe = "Tea\n\nTea is a drink that is made of leaves and hot water.\n\nFill the kettle with cold water.\n\nPour the water into the pot.\n\nWait for five minutes."
    steps = [shot.picture.card.step for shot in make_plan(recipe).shots]
    assert steps == [None, (1, 3), (2, 3), (3, 3)]
    story = make_plan(ENGLISH).shots
    assert not any(shot.picture.card and shot.picture.card.step for shot in story)


def test_a_long_chapter_is_read_as_a_whole_only_once() -> None:
    text = "\n\n".join(f"Wilma Drost was {age} and stood in the village." for age in range(20, 60))
    is_life.cache_clear()
    make_plan(text)
    assert is_life.cache_info().misses <= 4


def test_what_people_say_in_a_sentence_is_found_by_its_place() -> None:
    text = '"Come in," said Ruth. It rained. "It is late," said Amir.'
    chapter = read_chapter(text)
    people = people_of(chapter)
    reading = Reading(language="en", people=people, text=text, utterances=utterances_of(chapter, text, people))
    assert [reading.speaker(sentence) for sentence in chapter.sentences] == ["Ruth", "", "Amir"]
    assert people.within(0, len(text)) == ["Ruth", "Amir"]
    assert people.acting(text.index("It is"), len(text)) == ["Amir"]


def test_a_number_on_a_card_stands_with_every_sentence_of_its_shot():
    english = "The tower is 96 metres high. It sways.\n\n“I do not mind it,” said Maria."
    chinese = "电台修好后，信号能传八十公里。没有杂音。\n\n“听得真清楚。”李明说。"
    for text in (english, chinese):
        first = make_plan(text).shots[0]
        assert first.picture.card is not None
        assert (first.picture.card.kind, first.picture.card.items) == ("number", (first.narration,))
        assert len(first.sentences) == 2


def test_a_recipe_typed_with_latin_marks_is_one():
    text = "蛋炒饭\n\n鸡蛋两个打散,加一点盐.锅里倒油,放入鸡蛋炒散.倒入米饭,大火翻炒.加入葱花,撒盐.盛进碗里,趁热吃."
    cards = [shot.picture.card for shot in make_plan(text).shots]
    assert any(card is not None and card.step is not None for card in cards)
