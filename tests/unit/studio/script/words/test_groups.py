"""Small groups of people without names."""

import pytest

from patra.studio.script.words.groups import groups_in
from tests.support.understood import understood


@pytest.mark.parametrize(
    ("sentence", "language", "kinds"),
    [
        ("Two old women sat on a bench.", "en", ("granny", "granny")),
        ("Three boys ran home.", "en", ("boy", "boy", "boy")),
        ("Her parents sold tea.", "en", ("woman", "man")),
        ("Two boats lay at the quay.", "en", ()),
        ("三位老人在下棋。", "zh", ("old", "old", "old")),
        ("两个外国游客坐着。", "zh", ("woman", "man")),
        ("孩子们围着火。", "zh", ("girl", "boy")),
        ("三张桌子。", "zh", ()),
    ],
)
def test_a_small_group_is_so_many_people(sentence: str, language: str, kinds: tuple[str, ...]) -> None:
    found, rest = groups_in(sentence, language)
    assert found == kinds
    assert len(rest) == len(sentence)
    assert (rest == sentence) == (kinds == ())


def kinds_of(text: str) -> list[list[str]]:
    return [[figure.kind for figure in shot.picture.figures] for shot in understood(text).shots]


def test_a_group_is_no_crowd_and_its_owner_is_not_in_it() -> None:
    (shot,) = understood("In the village Anna slept.\n\nHer parents sold tea in the village square until late.").shots[
        1:
    ]
    assert ([figure.kind for figure in shot.picture.figures], shot.picture.crowd) == (["woman", "man"], False)


def test_they_are_those_of_the_picture_before() -> None:
    text = (
        "Two old women sat in the village and drank their tea.\n\nThen they walked slowly down to the river together."
    )
    assert kinds_of(text) == [["granny", "granny"], ["granny", "granny"]]


def test_two_who_have_names_are_meant_by_their_kind() -> None:
    text = "Anna and Ruth lived in the village.\n\nThe two women kept a shop there for many long years."
    assert [[f.name for f in shot.picture.figures] for shot in understood(text).shots][1] == ["Anna", "Ruth"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("六岁的时候，老王在村子里得了一场大病。", "boy"),
        ("六岁的时候，周守义在村子里，周守义病了，他很怕。", "boy"),
        ("In the village Ruth was nine and drew planets.", "girl"),
        ("In the village Ruth turned eighty, and sang.", "granny"),
        ("In the village Ruth was forty and sang.", "woman"),
    ],
)
def test_who_is_six_is_drawn_as_a_child(text: str, kind: str) -> None:
    assert kinds_of(text)[0] == [kind]


def test_they_after_many_are_the_many() -> None:
    text = (
        "Ruth sat in the village.\n\nVolunteers with torches came at midnight.\n\nBy dawn they had counted forty boats."
    )
    assert [
        (shot.picture.crowd, kinds) for shot, kinds in zip(understood(text).shots, kinds_of(text), strict=True)
    ] == [
        (False, ["woman"]),
        (True, []),
        (True, []),
    ]
