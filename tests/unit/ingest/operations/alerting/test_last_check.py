"""When alerts were last checked is said where it is more than two intervals ago."""

from typing import Any

import pytest

from patra.ingest.operations.alerting.last_check import late_check_text
from patra.kernel.clock import DAY, HOUR, MINUTE, SECOND, format_instant

NOW = 1_800_000_000_000_000
EVERY = 30 * SECOND


def alert(age: int, state: str = "FIRING") -> dict[str, Any]:
    return {"state": state, "checked": format_instant(NOW - age)}


@pytest.mark.parametrize(
    ("age", "span"),
    [(61 * SECOND, "1 min"), (12 * MINUTE + SECOND, "12 min"), (3 * HOUR, "3 h"), (2 * DAY + HOUR, "2 d")],
)
def test_a_check_that_is_missing_is_said_with_its_age(age: int, span: str) -> None:
    text = f"last checked {span} ago; no process runs the alerts loop now"
    assert late_check_text([alert(age), alert(age + DAY)], NOW, EVERY) == text


def test_nothing_is_said_within_two_intervals_nor_of_alerts_that_are_over() -> None:
    assert late_check_text([alert(2 * EVERY)], NOW, EVERY) == ""
    assert late_check_text([alert(DAY), alert(EVERY, "PENDING")], NOW, EVERY) == ""
    assert late_check_text([alert(DAY, "OVER")], NOW, EVERY) == ""
    assert late_check_text([], NOW, EVERY) == ""
