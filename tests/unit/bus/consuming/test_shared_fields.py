"""What sets the dead letters of one cause apart from what was handled."""

from patra.bus.consuming.shared_fields import MAX_DEPTH, MAX_VALUE_CHARS, USES_OF_A_VALUE, SharedField, shared_fields

HANDLED = [{"order": f"o-{n}", "cents": n, "to": {"country": "DE", "zip": "1"}} for n in range(9)]


def letters(*changed: dict[str, object]) -> list[dict[str, object]]:
    return [{"order": f"x-{n}", "cents": n, "to": {"country": "DE", "zip": "1"}} | one for n, one in enumerate(changed)]


def test_a_field_that_all_letters_miss_and_all_handled_have_is_found() -> None:
    found = shared_fields([{"order": "x"}, {"order": "y"}], HANDLED)
    assert found == [
        SharedField(path="/cents", letters="missing", handled="number"),
        SharedField(path="/to", letters="missing", handled="object"),
    ]


def test_a_field_of_another_kind_is_found_and_one_handled_event_like_it_clears_it() -> None:
    odd = letters({"cents": "7"}, {"cents": "8"})
    assert shared_fields(odd, HANDLED) == [SharedField(path="/cents", letters="text", handled="number")]
    assert shared_fields(odd, [*HANDLED, {**HANDLED[0], "cents": "1"}]) == []


def test_a_field_that_only_the_letters_have_is_found_and_null_is_a_kind() -> None:
    assert shared_fields(letters({"gift": True}), HANDLED) == [
        SharedField(path="/gift", letters="boolean", handled="missing")
    ]
    assert shared_fields(letters({"cents": None}), HANDLED)[0].letters == "null"


def test_a_value_that_all_letters_agree_on_is_found_inside_objects_too() -> None:
    found = shared_fields(
        letters({"to": {"country": "XX", "zip": "1"}}, {"to": {"country": "XX", "zip": "1"}}), HANDLED
    )
    assert found == [SharedField(path="/to/country", letters='"XX"', handled='"DE"')]
    many = [{**one, "to": {"country": f"C{n}", "zip": "1"}} for n, one in enumerate(HANDLED)]
    assert shared_fields(
        letters({"to": {"country": "XX", "zip": "1"}}, {"to": {"country": "XX", "zip": "1"}}), many
    ) == [SharedField(path="/to/country", letters='"XX"', handled="9 other values")]


def test_the_ids_of_a_single_letter_tell_nothing_but_a_value_outside_a_few_that_come_again_does() -> None:
    assert shared_fields(letters({}), HANDLED) == []
    found = shared_fields(letters({"to": {"country": "XX", "zip": "1"}}), HANDLED)
    assert found == [SharedField(path="/to/country", letters='"XX"', handled='"DE"')]
    assert shared_fields(letters({"to": {"country": "XX", "zip": "1"}}), HANDLED[: USES_OF_A_VALUE - 1]) == []


def test_values_that_differ_are_found_where_all_of_them_lie_outside_a_few() -> None:
    odd = letters({"to": {"country": "XX", "zip": "1"}}, {"to": {"country": "YY", "zip": "1"}})
    assert shared_fields(odd, HANDLED) == [SharedField(path="/to/country", letters='"XX", "YY"', handled='"DE"')]
    assert shared_fields([*odd, *letters({})], HANDLED) == []


def test_letters_that_do_not_agree_share_nothing() -> None:
    assert shared_fields(letters({"cents": "7"}, {"cents": 8}), HANDLED) == []


def test_with_nothing_on_one_side_nothing_is_said() -> None:
    assert shared_fields([], HANDLED) == []
    assert shared_fields(letters({}), []) == []


def test_payloads_that_are_no_objects_are_compared_as_a_whole() -> None:
    assert shared_fields(["a"], HANDLED) == [SharedField(path="", letters="text", handled="object")]


def test_long_values_are_cut_and_deep_ones_are_left_alone() -> None:
    (found,) = shared_fields(letters({"note": "n" * 500}, {"note": "n" * 500}), [{**HANDLED[0], "note": "ok"}])
    assert len(found.letters) == MAX_VALUE_CHARS + 1

    def nested(value: str) -> dict[str, object]:
        inside: object = value
        for _ in range(MAX_DEPTH + 1):
            inside = {"in": inside}
        return {"deep": inside}

    assert shared_fields([nested("a"), nested("a")], [nested("b")]) == []
