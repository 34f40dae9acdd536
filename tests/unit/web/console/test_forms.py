"""Fields of forms: the last of each, and every value of those that name many."""

from patra.web.console.forms import form_fields, handed_on, join_fields
from patra.web.problem import Problem


def test_every_value_of_a_field_that_names_many_is_a_line() -> None:
    pairs = [("tasks", "a"), ("group", "x"), ("tasks", "b"), ("tasks", ""), ("group", "y")]
    assert join_fields(pairs) == {"tasks": "a\nb", "group": "y"}


def test_a_form_is_read_the_same_way() -> None:
    assert form_fields(b"event_ids=1&event_ids=2%0A3&why=") == {"event_ids": "1\n2\n3", "why": ""}
    assert isinstance(form_fields(b"&".join(b"a=1" for _ in range(3000))), Problem)


def test_what_is_new_in_each_form_is_not_handed_on() -> None:
    assert handed_on({"once": "1", "confirm": "x", "group": "y"}) == {"group": "y"}
