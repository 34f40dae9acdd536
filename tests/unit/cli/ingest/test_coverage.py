"""The sum under a table of windows says what the rows of the table are."""

import json
from typing import Any

import msgspec
import pytest

from patra.cli.ingest.coverage import sum_line, unproven_line
from patra.ingest.operations.coverage import Coverage, Window, sum_windows, verify
from patra.kernel.canonical import fingerprint


def leg(task: str, name: str) -> Window:
    numbers = {field.name: 0 for field in msgspec.structs.fields(Window) if field.type in {int, int | None}}
    texts = {field.name: "" for field in msgspec.structs.fields(Window) if field.type in {str, str | None}}
    said = {"leg": name, "task": task, "status": "COMPLETE", "promised": 9, "positions": 9, "landed": 7, "missing": 0}
    return Window(**{**numbers, **texts, "made_good": False, **said})


def line(*legs: Window) -> str:
    return sum_line(Coverage(windows=list(legs), sum=sum_windows(list(legs))))


def test_windows_of_two_legs_are_counted_once_and_their_rows_are_explained() -> None:
    assert line(*(leg(task, name) for task in ("a", "b") for name in ("LIST", "DETAIL"))) == (
        "2 of 2 windows add up (4 rows: windows of two legs, LIST and DETAIL, have a row for each): "
        "18 promised, 18 read, 14 landed, 0 in quarantine, 0 missing"
    )


def test_windows_of_one_leg_need_no_explanation() -> None:
    assert line(leg("a", "LIST")).startswith("1 of 1 windows add up: 9 promised, 9 read, 7 landed")


@pytest.mark.parametrize(("proof", "unproven"), [("TOTAL", 0), ("READINGS", 0), ("ESTIMATE", 0), ("NONE", 1)])
def test_a_window_that_nothing_counts_is_said_to_be_unproven(proof: str, unproven: int) -> None:
    one = msgspec.structs.replace(leg("a", "LIST"), proof=proof)
    assert sum_windows([one]).unproven == unproven
    assert bool(unproven_line(unproven)) is bool(unproven)


def certified(*windows: Window, version: int, drop: str = "") -> bytes:
    body: dict[str, Any] = {
        "certificate": version,
        "source": "s",
        "windows": [
            {name: value for name, value in msgspec.to_builtins(one).items() if name != drop} for one in windows
        ],
        "sum": {
            name: value
            for name, value in msgspec.to_builtins(sum_windows(list(windows))).items()
            if not drop or name != "unproven"
        },
    }
    return json.dumps({**body, "hash": fingerprint(body)}).encode()


def test_a_certificate_says_how_many_of_its_windows_are_not_proven() -> None:
    windows = [msgspec.structs.replace(leg(proof, "LIST"), proof=proof) for proof in ("TOTAL", "NONE")]
    found = verify(certified(*windows, version=2))
    assert (found.problems, found.windows, found.unproven) == ([], 2, 1)


def test_a_certificate_of_the_first_version_can_still_be_checked() -> None:
    windows = [msgspec.structs.replace(leg(total, "LIST"), total=total) for total in ("EXACT", "NONE")]
    found = verify(certified(*windows, version=1, drop="proof"))
    assert (found.problems, found.unproven) == ([], 1)


@pytest.mark.parametrize("said", [7, None, "all", {}])
def test_a_certificate_whose_sum_is_none_is_refused_with_a_word(said: Any) -> None:
    tree = json.loads(certified(msgspec.structs.replace(leg("a", "LIST"), proof="TOTAL"), version=2))
    body = {**{name: value for name, value in tree.items() if name != "hash"}, "sum": said}
    found = verify(json.dumps({**body, "hash": fingerprint(body)}))
    assert found.problems == ["the sum is not that of its windows"]


def test_a_certificate_of_today_cannot_leave_out_how_much_of_it_is_not_proven() -> None:
    tree = json.loads(certified(msgspec.structs.replace(leg("a", "LIST"), proof="NONE"), version=2))
    body = {name: value for name, value in tree.items() if name != "hash"}
    del body["sum"]["unproven"]
    found = verify(json.dumps({**body, "hash": fingerprint(body)}))
    assert found.problems == ["the sum is not that of its windows"]
