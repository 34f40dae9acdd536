"""The sum under a table of windows says what the rows of the table are."""

import msgspec

from patra.cli.ingest.coverage import sum_line
from patra.ingest.operations.coverage import Coverage, Window, summed


def leg(task: str, name: str) -> Window:
    numbers = {field.name: 0 for field in msgspec.structs.fields(Window) if field.type in {int, int | None}}
    texts = {field.name: "" for field in msgspec.structs.fields(Window) if field.type in {str, str | None}}
    said = {"leg": name, "task": task, "status": "COMPLETE", "promised": 9, "positions": 9, "landed": 7, "missing": 0}
    return Window(**{**numbers, **texts, "made_good": False, **said})


def line(*legs: Window) -> str:
    return sum_line(Coverage(windows=list(legs), sum=summed(list(legs))))


def test_windows_of_two_legs_are_counted_once_and_their_rows_are_explained() -> None:
    assert line(*(leg(task, name) for task in ("a", "b") for name in ("LIST", "DETAIL"))) == (
        "2 of 2 windows add up (4 rows: windows of two legs, LIST and DETAIL, have a row for each): "
        "18 promised, 18 positions, 14 landed, 0 in quarantine, 0 missing"
    )


def test_windows_of_one_leg_need_no_explanation() -> None:
    assert line(leg("a", "LIST")).startswith("1 of 1 windows add up: 9 promised, 9 positions, 7 landed")
