"""`patra ingest record` and `try`: how long they wait between two pages."""

import pytest

from patra.cli.ingest.try_source import MAX_WAIT_SECONDS, wait_seconds
from patra.kernel.clock import HOUR, SECOND


@pytest.mark.parametrize(("asked", "slept"), [(SECOND // 4, 0.25), (2 * SECOND, 2), (HOUR, MAX_WAIT_SECONDS)])
def test_a_wait_is_as_long_as_the_rate_asks_for_up_to_a_limit(asked: int, slept: float) -> None:
    assert wait_seconds(asked) == slept
