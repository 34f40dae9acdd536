"""Lists whose run ends in the midst: the next one knows which records came before, as one run would (I10)."""

import json
from typing import Any

import pytest

from patra.ingest.operations.requeue import requeue_tasks
from patra.ingest.operations.retention import Retention, purge_once
from patra.kernel.clock import DAY
from patra.kernel.db import Database
from tests.contract.ingest.running.test_lists_without_a_total import SPREAD, Serve, landed, place_of, run, served_by
from tests.contract.ingest.running.world import NOW, T0, World, world
from tests.support.hostile_provider import Reply


class Substituted:
    """In the last page one record of the first stands in the place of another; before it, the provider fails a while.

    So often that the run is put back and another one goes on.
    """

    def __init__(self, *, times: int = 1000, failures: int = 6, status: int = 503) -> None:
        self.times = times
        self.status = status
        self.failures = failures
        self.first: Any = None

    def __call__(self, query: dict[str, str], serve: Serve) -> Reply:
        place, reply = place_of(query), serve(query)
        tree = json.loads(reply.body)
        if place == 0:
            self.first = tree["items"][0]
        if place == 20 and self.failures:
            self.failures -= 1
            return Reply(status=self.status, body=b"busy", kind="text/plain")
        if place == 30 and self.times and self.first is not None:
            self.times -= 1
            tree["items"][3] = self.first
        return Reply(status=200, body=json.dumps(tree).encode(), kind=reply.kind)


def runs(w: World) -> int:
    return w.one("SELECT count(*) FROM ing_task_run")


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE", "TOKEN", "URL"])
def test_a_record_that_stands_in_anothers_place_is_missed_after_a_restart(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        served_by(w, Substituted())
        assert run(w, kind, "$.total") == [("FAILED", "i_incomplete")]
        assert runs(w) > 1
        assert len(landed(w)) == 39
        assert (w.watermark() or 0) <= T0
        assert "stood there twice" in w.one("SELECT detail FROM ing_window_ledger")
        assert w.rows("SELECT positions, distinct_ids, missing FROM ing_window_ledger") == [(40, 39, 1)]
        assert w.rows("SELECT page FROM ing_list_keys") == []


@pytest.mark.parametrize("kind", ["OFFSET", "PAGE"])
def test_a_list_without_a_total_in_which_a_record_comes_twice_is_read_again_after_a_restart(
    database: Database, kind: str
) -> None:
    with world(database, SPREAD) as w:
        served_by(w, Substituted(times=1))
        assert run(w, kind) == [("SUCCEEDED", "i_done")]
        assert runs(w) > 1
        assert landed(w) == set(w.provider.truth)


@pytest.mark.parametrize("kind", ["OFFSET", "TOKEN"])
def test_an_interrupted_list_that_is_whole_adds_up(database: Database, kind: str) -> None:
    with world(database, SPREAD) as w:
        served_by(w, Substituted(times=0))
        assert run(w, kind, "$.total") == [("SUCCEEDED", "i_done")]
        assert runs(w) > 1
        assert w.rows("SELECT positions, distinct_ids, missing FROM ing_window_ledger") == [(40, 40, 0)]
        assert w.rows("SELECT page FROM ing_list_keys") == []


def test_keys_of_a_list_that_failed_stay_as_long_as_its_runs(database: Database) -> None:
    with world(database, SPREAD) as w:
        served_by(w, Substituted(failures=1, status=404))
        assert run(w, "OFFSET", "$.total") == [("FAILED", "i_failed_request")]
        assert w.rows("SELECT page FROM ing_list_keys ORDER BY page") == [(0,), (1,)]
        for _ in range(3):
            purge_once(database, NOW + 400 * DAY, Retention(history=90 * DAY))
        assert w.rows("SELECT page FROM ing_list_keys") == []


def test_a_requeued_task_knows_what_came_before_it_failed(database: Database) -> None:
    with world(database, SPREAD) as w:
        served_by(w, Substituted(failures=1, status=404))
        assert run(w, "OFFSET", "$.total") == [("FAILED", "i_failed_request")]
        [task] = w.rows("SELECT task_id FROM ing_task")
        database.run(lambda tx: requeue_tasks(tx, task, why="it answers again", now=NOW))
        w.drain()
        assert w.rows("SELECT status_code, reason_code FROM ing_task") == [("FAILED", "i_incomplete")]
        assert len(landed(w)) == 39
