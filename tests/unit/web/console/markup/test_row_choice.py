"""Boxes of rows and the form that they belong to."""

from patra.web.console.markup.row_choice import choice_bar, choice_box


def test_the_form_holds_what_its_rows_share_and_asks_the_confirmation_of_each_act() -> None:
    made = choice_bar("letters", {"group": "a&b", "type": ""}, [("bus.replay", "Replay…")], "/console/bus")
    assert 'id="choose-letters" method="get"' in made
    assert '<input type="hidden" name="group" value="a&amp;b">' in made
    assert '<input type="hidden" name="back" value="/console/bus">' in made
    assert 'name="type"' not in made
    assert 'formaction="/console/confirm/bus.replay">Replay…</button>' in made


def test_a_box_belongs_to_the_form_and_is_escaped() -> None:
    made = choice_box("records", "keys", '"><script>', "it")
    assert 'form="choose-records" name="keys" value="&#34;&gt;&lt;script&gt;"' in made
