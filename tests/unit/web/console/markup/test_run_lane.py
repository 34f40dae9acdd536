"""The batches of a run on one axis: waits before requests, in their places, failures and answers of 429 marked."""

import re
from typing import Any

from patra.kernel.clock import SECOND
from patra.web.console.markup.run_lane import run_lane


def batch(number: int, at: int, status: str = "SUCCEEDED", **stats: Any) -> dict[str, Any]:
    return {"batch_no": number, "created_at": at * SECOND, "status_code": status, "stats": stats}


def test_waits_and_requests_stand_where_they_happened():
    drawn = run_lane(
        "p1.t1.r1",
        [
            batch(1, 12, waitMs=1000, latencyMs=1000),
            batch(2, 20, "FAILED", waitMs=2000, latencyMs=5000, **{"429Count": 1}),
        ],
    )
    bars = re.findall(r'<rect class="(g-\w+)" x="([\d.]+)%" y="\d+" width="([\d.]+)%"', drawn)
    assert bars == [
        ("g-wait", "0.0", "10.0"),
        ("g-ok", "10.0", "10.0"),
        ("g-wait", "30.0", "20.0"),
        ("g-bad", "50.0", "50.0"),
    ]
    assert drawn.count("g-hot") == 1
    assert 'aria-label="2 batches in 10 s, 3 s of it waiting for the rate, 1 answer of 429"' in drawn
    assert '/console/ingest/batch/p1.t1.r1/2"' in drawn


def test_batches_that_say_nothing_of_time_are_not_drawn():
    assert run_lane("r", []) == ""
    assert run_lane("r", [batch(1, 1), {**batch(2, 2), "stats": None}]) == ""
