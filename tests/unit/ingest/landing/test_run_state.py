"""What a run remembers and says of itself."""

import json

import pytest

from patra.ingest.extraction.pagination import PagePosition
from patra.ingest.fetching.sender import Tally
from patra.ingest.landing.run_state import (
    BATCH,
    RUN,
    BatchStatus,
    BatchTransition,
    Checkpoint,
    RunStatus,
    RunTransition,
    Stats,
    correlation_id,
    decode_checkpoint,
    encode_checkpoint,
)
from patra.kernel.errors import IllegalMove


def test_a_checkpoint_comes_back_as_it_was():
    checkpoint = Checkpoint(place=PagePosition(index=3, token="t"), pending=("a",), confirmed=5, restarts=2, at=9)
    assert decode_checkpoint(encode_checkpoint(checkpoint)) == checkpoint
    assert decode_checkpoint("{}") == Checkpoint()


def test_a_task_is_finished_when_its_list_is_over_and_no_id_waits():
    assert [Checkpoint(over=over, pending=ids).is_finished for over in (False, True) for ids in ((), ("a",))] == [
        False,
        False,
        True,
        False,
    ]


def test_the_stats_of_a_run_add_up_what_its_requests_cost():
    stats = Stats()
    for _ in range(2):
        stats.add_fetch(Tally(requests=2, retries=1, throttled=1, waited=3000, latency=4000, longest=2000, demoted=1))
    found = json.loads(stats.to_json())
    assert (found["reqCount"], found["retryCount"], found["429Count"], found["waitTotalMs"]) == (4, 2, 2, 6)
    assert (found["avgLatencyMs"], found["maxLatencyMs"], found["rateAdjusted"]) == (2, 2, True)
    assert found["remarks"] == "online-reslice-suggested:false"
    assert json.loads(Stats(healed={"reslice": 1}).to_json())["remarks"] == "online-reslice-suggested:true"


def test_only_a_running_batch_or_run_can_end():
    assert BATCH.target(BatchStatus.RUNNING, BatchTransition.SKIP) is BatchStatus.SKIPPED
    assert RUN.target(RunStatus.RUNNING, RunTransition.PART) is RunStatus.PARTIAL
    for status in BatchStatus:
        if status is not BatchStatus.RUNNING:
            with pytest.raises(IllegalMove):
                BATCH.target(status, BatchTransition.LAND)


def test_a_batch_is_known_by_one_id_in_every_log():
    assert correlation_id("p1.t000001.r1", 3) == "ing-p1.t000001.r1-3"
