"""When a quota is used up at the pace of its period."""

import pytest

from patra.ingest.operations.reads.quota_limits import used_up_at
from patra.kernel.clock import HOUR


@pytest.mark.parametrize(
    ("limit", "used", "hours", "at"),
    [
        (None, 5, 6, None),
        (100, 0, 6, None),
        (100, 25, 6, None),  # at the end of the day and not before
        (100, 50, 6, 12 * HOUR),
        (100, 100, 6, 6 * HOUR),
        (100, 130, 6, 6 * HOUR),
    ],
)
def test_a_quota_is_used_up_when_its_pace_says_so_or_not_in_its_period(
    limit: int | None, used: int, hours: int, at: int | None
) -> None:
    assert used_up_at(limit, used, 0, 24 * HOUR, hours * HOUR) == at
