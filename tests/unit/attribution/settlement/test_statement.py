"""Statements: what they come to, and that nothing in one can be changed without its verification telling."""

import io
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patra.attribution.contract.keys import billable_fact_id
from patra.attribution.settlement.dimensions import DIMENSIONS, SettledFact, counts_by, value_of
from patra.attribution.settlement.export import cell_text, key_cell, rows_as_csv
from patra.attribution.settlement.rate_card import Rate
from patra.attribution.settlement.reconcile import TheirFact, differences, their_facts
from patra.attribution.settlement.statement import (
    Statement,
    StatementFile,
    facts_hash,
    in_order,
    make_statement,
    statement_fact,
    statement_hash,
    verification,
)
from patra.kernel.clock import DAY, HOUR
from patra.kernel.errors import Invalid
from tests.unit.attribution.said import T0

RATES = [
    Rate(billable_type="billable_impression", price_micros=2500, currency="EUR", valid_from=T0, version=1),
    Rate(billable_type="billable_click", price_micros=150_000, currency="USD", valid_from=T0, version=2),
]


def fact(number: int, *, click: bool = False, **changes: Any) -> SettledFact:
    kind = "billable_click" if click else "billable_impression"
    made = SettledFact(
        decision_id=number,
        app_id="shop",
        billable_type=kind,
        fact_at=T0 + number * HOUR,
        fact_id=billable_fact_id(f"ref|{number}|{kind}"),
        billing_key=f"ref|{number}|{kind}",
        placement="home",
        creative="cr",
        opportunity=f"o{number}",
        versions=0,
        reason="f_accepted",
        decided_at=T0,
    )
    return msgspec.structs.replace(made, **changes)


def statement(*facts: SettledFact, late: tuple[SettledFact, ...] = (), previous: Statement | None = None):
    stated = [statement_fact(one, RATES, "2026-01", adjustment=False) for one in facts]
    stated += [statement_fact(one, RATES, "2025-12", adjustment=True) for one in late]
    return make_statement(
        in_order(stated),
        app_id="shop",
        period="2026-01",
        begin=T0 + HOUR // 2,
        end=T0 + 31 * DAY,
        closed_at=T0 + 40 * DAY,
        versions=[0],
        previous=previous,
    )


def test_a_statement_says_what_its_facts_come_to():
    found = statement(fact(2), fact(1), fact(3, click=True), fact(4, placement="side"), late=(fact(0),)).statement
    assert (found.impressions, found.clicks, found.adjustments, found.unpriced) == (4, 1, 1, 0)
    assert found.amounts == {"EUR": 4 * 2500, "USD": 150_000}
    assert [(line.adjustment_flag, line.placement, line.count, line.amount_micros) for line in found.lines] == [
        (False, "home", 1, 150_000),
        (False, "home", 2, 5000),
        (False, "side", 1, 2500),
        (True, "home", 1, 2500),
    ]
    assert found.rule_versions[0].billingRuleVersion == "f_billing_v1"


def test_a_fact_without_a_price_is_counted_apart():
    found = statement(fact(1), fact(2, fact_at=T0 - 1)).statement
    assert (found.unpriced, found.amounts) == (1, {"EUR": 2500})


def test_a_name_with_an_address_is_masked_before_it_is_hashed_and_keeps_its_price():
    named = Rate(billable_type="billable_impression", price_micros=7, currency="EUR", valid_from=T0, version=3)
    named = msgspec.structs.replace(named, creative="ann@example.org")
    made = [
        statement_fact(fact(1, creative=name, placement=name), [*RATES, named], "2026-01", adjustment=False)
        for name in ("ann@example.org", "bob@example.org")
    ]
    assert [one.price_micros for one in made] == [7, 2500]
    assert len({one.creative for one in made}) == 2
    assert "example.org" not in msgspec.json.encode(made).decode()
    found = counts_by([fact(1, creative="ann@example.org")], ["creative"], {"creative": "ann@example.org"})
    assert (found.impressions, found.lines[0].values) == (1, (made[0].creative,))


def test_a_cell_that_a_spreadsheet_would_run_is_a_text():
    text = rows_as_csv(["creative", "n"], [{"creative": "=HYPERLINK(1)", "n": -1}, {"creative": "a=b", "n": None}])
    assert text == "creative,n\n'=HYPERLINK(1),-1\na=b,\n"


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_our_own_list_reconciles_though_a_key_begins_as_a_formula_does(sign: str):
    key = f"{sign}Zk|ra|billable_impression"
    ours = [statement_fact(fact(1, billing_key=key), RATES, "2026-01", adjustment=False)]
    text = rows_as_csv(["factId", "billingKey"], [{"factId": ours[0].fact_id, "billingKey": key}])
    assert f",{key_cell(key)}\n" in text
    listed = f"responseReference,renderAttemptId,billableType\n'{sign}Zk,ra,impression\n"
    for theirs in (text, f"billingKey\n'{key}\n", listed):  # as a spreadsheet and files of earlier versions have it
        assert differences(ours, their_facts(io.StringIO(theirs))) == []


def test_an_apostrophe_before_anything_else_is_a_part_of_the_key():
    (row,) = their_facts(io.StringIO("billingKey\n'quoted|ra|billable_click\n"))
    assert row.billing_key == "'quoted|ra|billable_click"


def test_the_order_of_reading_does_not_change_the_hash():
    assert statement(fact(1), fact(2), fact(3)) == statement(fact(3), fact(1), fact(2))


def test_a_sound_chain_is_verified_and_a_gap_in_it_is_told():
    first = statement(fact(1))
    second = statement(fact(2), previous=first.statement)
    third = statement(fact(3), previous=second.statement)
    assert verification([first, second, third]) == []
    assert verification([first, third]) == ["shop 2026-01: does not follow shop 2026-01"]
    assert second.statement.previous_hash == first.statement.hash


FILE = statement(fact(1), fact(2, click=True), late=(fact(0),))


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all leaves."""
    if isinstance(value, dict):
        return [leaf for name, below in value.items() for leaf in paths(below, (*path, name))]
    if isinstance(value, list):
        return [leaf for place, below in enumerate(value) for leaf in paths(below, (*path, place))]
    return [path]


@pytest.mark.parametrize("path", paths(msgspec.to_builtins(FILE)), ids=lambda path: ".".join(map(str, path)))
def test_no_value_of_a_statement_can_be_changed_unnoticed(path: tuple[Any, ...]):
    body = msgspec.to_builtins(FILE)
    place = body
    for name in path[:-1]:
        place = place[name]
    was = place[path[-1]]
    place[path[-1]] = (not was) if isinstance(was, bool) else was + 1 if isinstance(was, int) else f"{was or ''}x"
    assert verification([msgspec.convert(body, StatementFile)]) != []


def test_a_fact_cannot_be_left_out_or_told_twice():
    assert verification([msgspec.structs.replace(FILE, facts=FILE.facts[1:])]) != []
    assert verification([msgspec.structs.replace(FILE, facts=[FILE.facts[0], *FILE.facts])]) != []


@given(st.lists(st.integers(0, 60), unique=True), st.sets(st.sampled_from(DIMENSIONS)), st.sampled_from(DIMENSIONS))
def test_counts_of_any_dimensions_add_up_and_filters_split_them(numbers: list[int], by: set[Any], filtered: Any):
    facts = [fact(n, click=n % 3 == 0, app_id=f"a{n % 2}", creative=f"c{n % 5}") for n in numbers]
    dimensions = sorted(by)
    whole = counts_by(facts, dimensions, {})
    assert whole.impressions + whole.clicks == len(facts)
    assert sum(line.impressions for line in whole.lines) == sum(n % 3 != 0 for n in numbers)
    assert len({line.values for line in whole.lines}) == len(whole.lines)
    parts = [counts_by(facts, dimensions, {filtered: value}) for value in {value_of(one, filtered) for one in facts}]
    assert sum(part.impressions for part in parts) == whole.impressions


def resealed(file: StatementFile, **changes: Any) -> StatementFile:
    """A statement that was changed by one who computes its hashes again."""
    facts = changes.pop("facts", file.facts)
    made = msgspec.structs.replace(file.statement, facts_hash=facts_hash(facts), **changes)
    return StatementFile(statement=msgspec.structs.replace(made, hash=statement_hash(made)), facts=facts)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"fact_id": "bf_other"}, "factId"),
        ({"billing_key": "ref|1|billable_click", "fact_id": billable_fact_id("ref|1|billable_click")}, "billableType"),
        ({"fact_at": "2025-01-01T00:00:00Z"}, "outside the period"),
        ({"fact_at": "2026-02-01T00:00:00Z"}, "outside the period"),
        ({"adjustment_flag": True}, "outside the period"),
        ({"period": "2025-12"}, "outside the period"),
    ],
)
def test_a_fact_that_does_not_belong_is_found_though_every_hash_is_right(changes: dict[str, Any], problem: str):
    sound = statement(fact(1))
    assert verification([resealed(sound)]) == []
    facts = [msgspec.structs.replace(sound.facts[0], **changes)]
    assert any(problem in found for found in verification([resealed(sound, facts=facts)]))


def test_a_wrong_number_of_facts_without_a_price_is_found():
    assert any("without a price" in one for one in verification([resealed(statement(fact(1)), unpriced=1)]))


def test_a_fact_that_two_statements_of_a_chain_bill_is_found():
    first = statement(fact(0, fact_at=T0 + HOUR))
    second = statement(fact(1), late=(fact(0),), previous=first.statement)
    assert verification([second]) == []
    assert verification([first, second]) == [
        "shop 2026-01: 1 fact billed before, ref|0|billable_impression in shop 2026-01"
    ]


def test_a_field_that_no_statement_has_is_refused():
    body = msgspec.to_builtins(FILE)
    body["statement"]["discountMicros"] = 1
    with pytest.raises(msgspec.ValidationError, match="discountMicros"):
        msgspec.convert(body, StatementFile)


def told(text: str, *numbers: int) -> list[tuple[str, str, int, str]]:
    """The differences of a list from facts of these numbers: kind, key, line, and the key that is spelled alike."""
    ours = [statement_fact(fact(n), RATES, "2026-01", adjustment=False) for n in numbers]
    return [
        (one.kind.value, one.billing_key, one.line, one.similar_key)
        for one in differences(ours, their_facts(text.splitlines(keepends=True)))
    ]


IMPRESSION = "ref|{}|billable_impression"


def test_differences_are_told_and_what_is_the_same_is_not():
    rows = ["1|billable_impression,2500", *["2|billable_impression,2400"] * 2, "9|billable_impression,"]
    found = told("billingKey,priceMicros\n" + "\n".join(f"ref|{row}" for row in rows), 1, 2, 3)
    assert [(key.split("|")[1], kind) for kind, key, *_ in found] == [
        ("2", "price_differs"),
        ("2", "theirs_twice"),
        ("3", "ours_only"),
        ("9", "theirs_only"),
    ]


def test_a_key_that_stands_twice_with_two_prices_tells_the_one_that_differs():
    key = IMPRESSION.format(1)
    found = told(f"billingKey,priceMicros\n{key},7\n{key},2500\n", 1)
    assert found == [("price_differs", key, 2, ""), ("theirs_twice", key, 2, "")]


def test_another_currency_at_the_same_price_is_a_difference():
    key = IMPRESSION.format(1)
    assert told(f"billingKey,priceMicros,currency\n{key},2500,USD\n", 1) == [("currency_differs", key, 2, "")]
    assert told(f"billingKey,priceMicros,currency\n{key},2500,eur\n", 1) == []


def test_keys_that_differ_by_case_or_spaces_alone_name_each_other():
    ours, theirs = IMPRESSION.format(1), "REF |1|billable_impression"
    assert told(f"billingKey\n{theirs}\n", 1) == [
        ("theirs_only", theirs, 2, ours),
        ("ours_only", ours, 0, theirs),
    ]


def test_a_row_that_cannot_be_read_is_a_difference_and_hides_no_other():
    key = IMPRESSION.format(1)
    found = told(f"billingKey,priceMicros\nrubbish\n{key},1.5\n,,\nref|1,3\n", 1, 2)
    assert found == [
        ("row_unreadable", "ref|1,3", 5, ""),
        ("row_unreadable", key, 3, ""),
        ("ours_only", IMPRESSION.format(2), 0, ""),
        ("row_unreadable", "rubbish", 2, ""),
    ]


def test_a_quote_that_is_not_closed_makes_no_rows_look_missing():
    one, two = IMPRESSION.format(1), IMPRESSION.format(2)
    with pytest.raises(Invalid) as refused:
        told(f'billingKey,priceMicros\n{one},7\n"{two},7\nref|3|billable_click,7\n', 1, 2)
    assert (refused.value.code, refused.value.place) == ("reconcile_unreadable", "line 3")
    (row,) = their_facts(["billingKey,priceMicros\n", f'"{one},7\n', 'x",7\n'])
    assert (row.line, row.problem.partition("; ")[2]) == (2, "a quote makes one row of it up to line 3")


@pytest.mark.parametrize(
    "text",
    [
        "billingKey,priceMicros\nref|1|billable_impression,7\n",
        "\ufeffBilling_Key,Price Micros\r\nref|1|billable_impression,7\r\n\r\n",
        "billingKey;priceMicros\nref|1|billable_impression;7\n",
        "billingKey\tpriceMicros\n ref|1|billable_impression \t 7\n",
        'billingKey,priceMicros\n"ref|1|billable_impression","7"\n',
        "responseReference,renderAttemptId,billableType,priceMicros\nref,1,billable_impression,7\n",
        "render-attempt-id,response-reference,billable-type,price-micros\n1,ref,impression,7\n",
    ],
)
def test_their_list_may_have_any_of_these_forms(text: str):
    expected = TheirFact(billing_key="ref|1|billable_impression", price_micros=7, line=2)
    assert their_facts(text.splitlines(keepends=True)) == [expected]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "reconcile_columns_missing"),
        ("key\n1\n", "reconcile_columns_missing"),
        ("billingKey\n" + "x" * 200_000, "reconcile_unreadable"),
        ("\x00" * 200_000, "reconcile_unreadable"),
    ],
)
def test_a_list_that_is_none_is_refused_as_a_whole(text: str, code: str):
    with pytest.raises(Invalid) as refused:
        their_facts(text.splitlines(keepends=True))
    assert refused.value.code == code


def test_a_list_that_is_no_utf_8_is_refused():
    with pytest.raises(Invalid) as refused:
        their_facts(io.TextIOWrapper(io.BytesIO("billingKey\n".encode("utf-16")), encoding="utf-8"))
    assert refused.value.code == "reconcile_unreadable"


def test_a_price_of_any_length_is_no_price():
    (found,) = their_facts(["billingKey,priceMicros", "ref|1|billable_click," + "9" * 5000])
    assert "is not an integer" in found.problem


@pytest.mark.parametrize(
    ("key", "cell"),
    [
        ("-Zx9_a|r1|billable_impression", "-Zx9_a|r1|billable_impression"),
        ("+a/b=|r1|billable_click", "+a/b=|r1|billable_click"),
        ("=HYPERLINK(1)|r|billable_click", "'=HYPERLINK(1)|r|billable_click"),
        ("-cmd|'/C calc'!A0|billable_click", "'-cmd|'/C calc'!A0|billable_click"),
        ("@SUM(1)|r|billable_click", "'@SUM(1)|r|billable_click"),
    ],
)
def test_a_key_is_written_as_it_is_unless_it_could_act_in_a_spreadsheet(key: str, cell: str) -> None:
    assert key_cell(key) == cell
    assert cell_text(cell) == key
