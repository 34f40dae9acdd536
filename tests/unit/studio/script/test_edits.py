"""Edits change what they name and nothing else; they find their shot by the part of the chapter that it tells."""

import msgspec
import pytest

from patra.kernel.errors import Invalid
from patra.studio.script.edits import Edit, ShotEdit, source_of
from patra.studio.script.plan import make_plan
from patra.studio.vocabulary.reasons import Reason

CHAPTER = (
    "The Small Boat\n\nThe sea was calm at dusk, and the harbour slept under a wide and quiet sky.\n\n"
    "A boy named Tom sat alone in a small boat on the water, and the boat turned slowly.\n\n"
    "That night Tom followed the lighthouse all the way home."
)
PLAIN = make_plan(CHAPTER)


def edit(number: int, **fields: object) -> Edit:
    shot = PLAIN.shots[number - 1]
    start, end = source_of(shot)
    return Edit(shot_id=shot.shot_id, start=start, end=end, change=ShotEdit(**fields), by="ann", at=0)


def planned(*edits: Edit):
    return make_plan(CHAPTER, edits=edits)


def changed_prompts(plan) -> list[str]:
    return [new.prompt_id for old, new in zip(PLAIN.prompts, plan.prompts, strict=True) if old.sha256 != new.sha256]


def test_only_the_prompts_of_the_edited_shot_change():
    plan = planned(edit(2, place="kitchen"))
    assert changed_prompts(plan) == ["prm_0002_llm", "prm_0002_video"]
    assert plan.shots[1].picture == msgspec.structs.replace(PLAIN.shots[1].picture, place="kitchen")
    assert plan.shots[1].fixed == ("place",)  # no chat model takes it back


def test_a_shot_that_blends_from_the_edited_one_begins_with_its_new_picture():
    text = "The sea was calm, and the gulls cried over the long and empty beach all day.\n\nTom walked along the sea, and he sang a song that his mother had taught him."
    before = make_plan(text)
    (first, second) = before.shots
    start, end = source_of(first)
    change = Edit(shot_id="shot_0001", start=start, end=end, change=ShotEdit(weather="rain"), by="ann", at=0)
    after = make_plan(text, edits=[change])
    assert first.scene == second.scene
    assert after.prompt("shot_0002", "video").body["before"]["weather"] == "rain"
    assert after.prompt("shot_0002", "audio") == before.prompt("shot_0002", "audio")


def test_what_is_said_can_be_rewritten_and_a_shot_held_longer():
    plan = planned(edit(3, narration="Tom said, “Home at last.” He slept", seconds=9.5))
    assert changed_prompts(plan) == ["prm_0003_llm", "prm_0003_audio", "prm_0003_video"]
    audio = plan.prompt("shot_0003", "audio").body
    assert audio["sentences"] == ["Tom said, “Home at last.”", "He slept."]
    assert [part["text"] for part in audio["parts"][0]] == ["Tom said,", "“Home at last.”"]
    assert (audio["least_ms"], plan.shots[2].estimated_ms) == (9500, 9500)
    assert source_of(plan.shots[2]) == source_of(PLAIN.shots[2])  # it still tells that part of the chapter


def test_people_keep_their_looks_and_new_ones_have_a_kind():
    figures = planned(edit(1, people=("Tom", "Anna=woman"))).shots[0].picture.figures
    assert [(f.name, f.kind) for f in figures] == [("Tom", "boy"), ("Anna", "woman")]
    assert figures[0] == PLAIN.shots[1].picture.figures[0]
    assert planned(edit(2, people=())).shots[1].picture.figures == ()


def test_things_and_places_are_found_by_their_words():
    picture = planned(edit(1, things=("teapot", "kettle"), place="beach")).shots[0].picture
    assert (picture.motifs, picture.pictograms, picture.place) == (("cup",), ("kettle",), "sea")


def test_lettering_replaces_the_scene_and_a_place_brings_it_back():
    lettered = planned(edit(2, lettering="Three weeks later")).shots[1].picture
    assert (lettered.framing, lettered.card.title, lettered.figures) == ("card", "Three weeks later", ())
    back = planned(edit(2, lettering="Three weeks later"), edit(2, place="sea")).shots[1].picture
    assert (back.framing, back.card, [f.name for f in back.figures]) == ("medium", None, ["Tom"])


def test_another_take_is_another_drawing_and_other_work_for_every_worker():
    plan = planned(edit(2, again=True), edit(2, again=True))
    assert plan.shots[1].take == 2
    assert plan.shots[1].picture.seed != PLAIN.shots[1].picture.seed
    assert changed_prompts(plan) == ["prm_0002_llm", "prm_0002_audio", "prm_0002_video"]


def test_a_reset_leaves_the_shot_as_it_was_planned():
    plan = planned(edit(2, place="kitchen", narration="Nothing."), edit(2, reset=True))
    assert changed_prompts(plan) == []
    assert [one.changes for one in plan.edits] == [{"place": "kitchen", "narration": "Nothing."}, {"reset": True}]


def test_an_edit_whose_part_of_the_chapter_is_cut_otherwise_changes_nothing_and_says_so():
    plan = planned(msgspec.structs.replace(edit(2, place="kitchen"), end=9999))
    assert changed_prompts(plan) == []
    assert [(one.by, one.applied) for one in plan.edits] == [("ann", False)]


def test_a_stored_edit_that_cannot_be_drawn_any_more_changes_nothing_and_says_so():
    gone = edit(2, place="nowhere-at-all")
    plan = make_plan(CHAPTER, edits=[gone, edit(2, weather="rain")], stored=1)
    assert plan.shots[1].picture == msgspec.structs.replace(PLAIN.shots[1].picture, weather="rain")
    assert [one.applied for one in plan.edits] == [False, True]
    with pytest.raises(Invalid):
        make_plan(CHAPTER, edits=[edit(1, weather="rain"), gone], stored=1)  # it is new


def test_edits_before_a_reset_of_their_shot_are_not_looked_at():
    plan = planned(edit(2, place="nowhere-at-all"), edit(2, reset=True, weather="rain"))
    assert plan.shots[1].picture == msgspec.structs.replace(PLAIN.shots[1].picture, weather="rain")
    gone = edit(2, reset=True, place="nowhere-at-all")
    assert make_plan(CHAPTER, edits=[edit(2, weather="rain"), gone], stored=2).shots == PLAIN.shots


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("place", "nowhere-at-all"),
        ("time", "teatime"),
        ("weather", ""),
        ("mood", "odd"),
        ("framing", "sideways"),
        ("framing", "insert"),
        ("camera", "spin"),
        ("subject", "walrus"),
        ("people", ("Nobody Known",)),
        ("people", ("Anna=robot",)),
        ("people", ("Tom",) * 4),
        ("things", ("qwzx",)),
        ("things", ("cup",) * 9),
        ("lettering", ""),
        ("lettering", "x" * 301),
        ("narration", " … "),
        ("narration", "a\x00b"),
        ("narration", "x" * 2001),
        ("seconds", -1.0),
        ("seconds", 121.0),
        ("seconds", float("nan")),
    ],
)
def test_what_cannot_be_said_or_drawn_is_refused_by_its_field(field, value):
    with pytest.raises(Invalid) as refused:
        planned(edit(2, **{field: value}))
    assert refused.value.code == Reason.EDIT_INVALID
    assert refused.value.place in {field, "subject"}
