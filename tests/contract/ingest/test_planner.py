"""Triggers become plans, slices and tasks, each once, whatever happens in between (ch. 5.3, 6, 8)."""

import itertools
from unittest.mock import Mock

import msgspec
import pytest

from patra.ingest.operations.alerting.failed_windows import open_failures
from patra.ingest.operations.alerting.monitor import Watch
from patra.ingest.operations.reads import views
from patra.ingest.operations.reads.rates import quotas
from patra.ingest.operations.reads.read_models import read_list
from patra.ingest.packs import bundled
from patra.ingest.packs.spec import decode_spec
from patra.ingest.planning import operations, own_schedules, store
from patra.ingest.planning.reslice import answer_reslices, request_reslice
from patra.ingest.planning.schedule import ScheduledExport, trigger_now
from patra.ingest.planning.schedule_run import run_schedule
from patra.ingest.planning.slicing.slice_groups import Rest
from patra.ingest.planning.slicing.windows import PageRange, Span
from patra.ingest.planning.states import TASKS
from patra.ingest.planning.trigger import Trigger
from patra.ingest.vocabulary.codes import Operation
from patra.ingest.vocabulary.reasons import Reason
from patra.ingest.works import scheduled_export
from patra.ingest.works.scheduled_export import ScheduledExports
from patra.kernel.clock import DAY, HOUR, MINUTE
from patra.kernel.db import Database
from patra.kernel.errors import Invalid
from patra.kernel.leases import acquire
from patra.kernel.machine import history
from tests.contract.ingest.site import Site, at
from tests.support.faults import FaultyDatabase, InjectedFault
from tests.unit.ingest.sample_packs import changed

BACKFILL, UPDATE = Operation.BACKFILL, Operation.UPDATE


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


def covered(tasks):
    return sorted((start, end) for _, status, start, end, *_ in tasks if status != "CANCELLED")


class TestHarvest:
    def test_the_first_harvest_goes_from_the_initial_watermark_to_now_minus_the_lag(self, site):
        made = site.trigger("atomlike", "query")
        assert (made.outcome, made.status, made.slices) == (Reason.PLANNED, "READY", 7)
        windows = covered(site.tasks(made.plan_id))
        assert windows[0][0] == at("2026-11-09T02:03:00Z")
        assert windows[-1][1] == at("2026-11-16T01:53:00Z")
        assert all(a[1] == b[0] for a, b in itertools.pairwise(windows))
        assert {row[1] for row in site.tasks(made.plan_id)} == {"QUEUED"}

    def test_triggering_twice_adds_nothing(self, site):
        site.trigger("atomlike", "query")
        before = site.everything()
        again = site.trigger("atomlike", "query")
        assert (again.outcome, again.plan_id, again.is_refused) == (Reason.WINDOW_COVERED, None, False)
        third = site.trigger("atomlike", "query")
        after = site.everything()
        assert {name: rows for name, rows in after.items() if name != "instance"} == {
            name: rows for name, rows in before.items() if name != "instance"
        }
        assert third.schedule_instance_id == again.schedule_instance_id, "the same wish with the same end is one root"
        new = [row for row in after["instance"] if row not in before["instance"]]
        assert [row[:2] for row in new] == [(again.schedule_instance_id, "i_window_covered")]
        assert site.db.read(lambda tx: read_list(tx, "refused", {}, limit=10)).rows == []

    def test_later_only_what_is_new_is_planned(self, site):
        first = site.trigger("atomlike", "query")
        site.clock.advance(2 * HOUR)
        second = site.trigger("atomlike", "query")
        assert covered(site.tasks(second.plan_id)) == [
            (covered(site.tasks(first.plan_id))[-1][1], at("2026-11-16T03:53:00Z"))
        ]

    def test_a_failed_or_cancelled_window_is_planned_again_and_nothing_else(self, site):
        made = site.trigger("atomlike", "query")
        tasks = site.tasks(made.plan_id)
        for task in tasks:
            site.set_status(task[0], "SUCCEEDED")
        site.set_status(tasks[2][0], "FAILED")
        site.set_status(tasks[4][0], "CANCELLED")
        again = site.trigger("atomlike", "query")
        assert covered(site.tasks(again.plan_id)) == [(tasks[2][2], tasks[2][3]), (tasks[4][2], tasks[4][3])]
        assert again.plan_id != made.plan_id

    def test_the_watermark_of_the_first_harvest_is_where_it_began_and_moves_the_next_one(self, site):
        made = site.trigger("atomlike", "query")
        start = covered(site.tasks(made.plan_id))[0][0]
        assert site.rows("SELECT normalized_instant, plan_id FROM ing_cursor WHERE provenance_code = 'atomlike'") == [
            (start, made.plan_id)
        ]
        site.run(
            "UPDATE ing_cursor SET normalized_instant = :at WHERE provenance_code = 'atomlike'",
            at=at("2026-11-15T00:00:00Z"),
        )
        site.run("DELETE FROM ing_task")
        again = site.trigger("atomlike", "query")
        assert covered(site.tasks(again.plan_id))[0][0] == at("2026-11-15T00:00:00Z")

    def test_other_parameters_are_another_harvest(self, site):
        site.trigger("atomlike", "query")
        other = site.trigger("atomlike", "query", params={"search": "all:proton"})
        assert (other.outcome, other.slices) == (Reason.PLANNED, 7)
        assert site.trigger("atomlike", "query", params={"mailto": "b@example.org"}).outcome is Reason.WINDOW_COVERED

    def test_the_snapshot_of_a_plan_does_not_change_with_the_registry(self, site):
        made = site.trigger("tokenlike", "works")
        before = site.plan(made.plan_id).expr_proto_snapshot
        site.load_text(
            changed(
                "tokenlike".replace("like", ""),
                ("pageSize: 1000", "pageSize: 10"),
                ("maxPageSize: 1000", "maxPageSize: 10"),
            )
        )
        assert site.plan(made.plan_id).expr_proto_snapshot == before
        assert decode_spec(before).pagination.page_size == 1000
        site.clock.advance(3 * DAY)
        later = site.trigger("tokenlike", "works")
        assert decode_spec(site.plan(later.plan_id).expr_proto_snapshot).pagination.page_size == 10

    def test_lineage_goes_from_the_trigger_to_the_tasks(self, site):
        made = site.trigger("atomlike", "query")
        found = site.db.read(lambda tx: views.lineage(tx, made.plan_id))
        assert found.schedule_instance["schedule_instance_id"] == made.schedule_instance_id
        assert (found.slice_counts, found.task_counts) == ({"READY": 7}, {"QUEUED": 7})
        assert found.slices[0].task == f"{made.plan_id}.t000001"
        assert found.plan["record_remarks"]["sliceCount"] == 7
        assert (
            found.plan["record_remarks"]["avgWindow"] == "PT86314S"
        )  # seven windows, the last one cut off at the safety lag
        assert found.plan["record_remarks"]["degradation"] == ["i_has_next_by_page_size"]
        moves = site.db.read(lambda tx: history(tx, [made.plan_id]))
        assert [(move.was, move.to) for move in moves] == [("DRAFT", "SLICING"), ("SLICING", "READY")]

    def test_page_slices_where_the_pack_asks_for_them(self, site):
        site.load_text(
            changed(
                "page",
                (
                    "    limits: {maxDepth: 1000}",
                    "    planning: {dimension: PAGE, pagesPerSlice: 4}\n    operations: {BACKFILL: {planning: {dimension: TIME}}}\n    limits: {maxDepth: 1000}",
                ),
            )
        )
        spec = site.planner.compile(Trigger(source="pagelike", endpoint="articles", operation=Operation.HARVEST)).spec
        window, now = Span(at("2026-11-01T00:00:00Z"), at("2026-11-02T00:00:00Z")), site.clock.now()
        total = 10 * spec.pagination.page_size + 1
        site.db.run(lambda tx: store.report_total(tx, spec.selection_key, window, total, now))
        made = site.trigger("pagelike", "articles")
        specs = [
            msgspec.json.decode(text)
            for (text,) in site.rows("SELECT slice_spec FROM ing_plan_slice ORDER BY slice_id")
        ]
        assert [(s["bounds"]["page"]["fromPage"], s["bounds"]["page"]["toPage"]) for s in specs] == [
            (1, 4),
            (5, 8),
            (9, 10),
            (11, None),
        ]
        assert site.trigger("pagelike", "articles").outcome is Reason.WINDOW_COVERED
        assert site.plan(made.plan_id).plan_strategy == "PAGE"


class TestBackfill:
    def test_a_backfill_goes_backward_in_a_namespace_of_its_own(self, site):
        made = site.trigger("atomlike", "query", BACKFILL, since="2026-10-01T00:00:00Z", until="2026-10-11T00:00:00Z")
        windows = [(start, end) for _, _, start, end, *_ in site.tasks(made.plan_id)]
        assert windows == sorted(windows, reverse=True)
        assert (windows[0][1], windows[-1][0]) == (at("2026-10-11T00:00:00Z"), at("2026-10-01T00:00:00Z"))
        plan = site.plan(made.plan_id)
        assert (plan.namespace_scope_code, plan.priority) == ("CUSTOM", 300)
        assert site.count("ing_cursor") == 0

    def test_harvest_and_backfill_do_not_cover_each_other(self, site):
        harvest = site.trigger("atomlike", "query")
        backfill = site.trigger(
            "atomlike", "query", BACKFILL, since="2026-11-09T00:00:00Z", until="2026-11-16T00:00:00Z"
        )
        assert (harvest.outcome, backfill.outcome) == (Reason.PLANNED, Reason.PLANNED)

    def test_a_campaign_is_resumed_where_it_failed(self, site):
        said = {"since": "2026-10-01T00:00:00Z", "until": "2026-10-04T00:00:00Z"}
        made = site.trigger("atomlike", "query", BACKFILL, **said)
        tasks = site.tasks(made.plan_id)
        for task in tasks:
            site.set_status(task[0], "SUCCEEDED")
        site.set_status(tasks[1][0], "FAILED")
        again = site.trigger("atomlike", "query", BACKFILL, **said)
        assert covered(site.tasks(again.plan_id)) == [(tasks[1][2], tasks[1][3])]
        assert site.trigger("atomlike", "query", BACKFILL, activity="again", **said).slices == 3

    @pytest.mark.parametrize("cursor", ["{key: other}", "{scope: GLOBAL}", "{revision: 2}"])
    def test_it_ends_at_the_watermark_of_the_harvest_however_that_is_named(self, site, cursor):
        site.load_text(
            changed(
                "offset",
                ("    pagination: {", f"    operations: {{HARVEST: {{cursor: {cursor}}}}}\n    pagination: {{"),
            )
        )
        site.trigger("atomlike", "query")
        mark = at("2026-11-12T00:00:00Z")
        site.run("UPDATE ing_cursor SET normalized_instant = :at WHERE provenance_code = 'atomlike'", at=mark)
        made = site.trigger("atomlike", "query", BACKFILL, since="2026-11-01T00:00:00Z")
        assert covered(site.tasks(made.plan_id))[-1][1] == mark

    def test_it_must_say_where_it_begins(self, site):
        made = site.trigger("atomlike", "query", BACKFILL)
        assert (made.outcome, made.plan_id) == (Reason.WINDOW_INVALID, None)
        assert site.rows("SELECT outcome_code FROM ing_schedule_instance") == [("i_window_invalid",)]


def record(site, provider_id, *, checked, expr_hash="old", deleted=0):
    site.run(
        "INSERT INTO ing_record (provenance_code, endpoint_name, provider_id, updated_at, deleted, expr_hash, content, "
        "content_hash, task_id, run_id, batch_no, first_seen_at, changed_at, refresh_checked_at) "
        "VALUES ('tokenlike', 'works', :id, 1, :deleted, :hash, :content, '', '', '', 1, 1, 1, :checked)",
        id=provider_id,
        checked=checked,
        hash=expr_hash,
        deleted=deleted,
        content=b"{}",
    )


def ids_of(site, plan_id):
    texts = site.rows("SELECT slice_spec FROM ing_plan_slice WHERE plan_id = :p ORDER BY slice_id", p=plan_id)
    return [one for (text,) in texts for one in msgspec.json.decode(text)["bounds"]["id"]["ids"]]


class TestUpdate:
    def test_named_records_are_planned_once_while_they_are_under_way(self, site):
        made = site.trigger("tokenlike", "works", UPDATE, ids=("b", "a"))
        assert ids_of(site, made.plan_id) == ["b", "a"]
        assert site.trigger("tokenlike", "works", UPDATE, ids=("b", "a")).outcome is Reason.WINDOW_COVERED
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        assert site.trigger("tokenlike", "works", UPDATE, ids=("b", "a")).outcome is Reason.PLANNED

    def test_records_with_another_mapping_are_due(self, site):
        spec = site.planner.compile(Trigger(source="tokenlike", endpoint="works", operation=UPDATE)).spec
        now = site.clock.now()
        record(site, "current", checked=now, expr_hash=spec.record_expr_hash)
        record(site, "other", checked=now)
        record(site, "gone", checked=now, deleted=1)
        made = site.trigger("tokenlike", "works", UPDATE)
        assert ids_of(site, made.plan_id) == ["other"]

    def test_stale_records_are_due_the_stalest_first_and_a_share_at_a_time(self, site):
        spec = site.planner.compile(Trigger(source="tokenlike", endpoint="works", operation=UPDATE)).spec
        now = site.clock.now()
        for number in range(60):
            record(site, f"r{number:02}", checked=now - (31 + number) * DAY, expr_hash=spec.record_expr_hash)
        record(site, "fresh", checked=now, expr_hash=spec.record_expr_hash)
        made = site.trigger("tokenlike", "works", UPDATE)
        assert ids_of(site, made.plan_id) == ["r59", "r58", "r57"]

    def test_signals_are_taken_up_once(self, site):
        site.db.run(
            lambda tx: store.raise_signals(
                tx, "tokenlike", "works", ["x", "y", "x"], reason="retracted", detail="", by="t", now=1
            )
        )
        made = site.trigger("tokenlike", "works", UPDATE)
        assert ids_of(site, made.plan_id) == ["x", "y"]
        assert site.count("ing_signal", f"plan_id = '{made.plan_id}'") == 2
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        assert site.trigger("tokenlike", "works", UPDATE).outcome is Reason.NO_CANDIDATES
        site.db.run(
            lambda tx: store.raise_signals(tx, "tokenlike", "works", ["x"], reason="again", detail="", by="t", now=2)
        )
        assert ids_of(site, site.trigger("tokenlike", "works", UPDATE).plan_id) == ["x"]

    def test_nothing_due_is_nothing_planned(self, site):
        assert site.trigger("tokenlike", "works", UPDATE).outcome is Reason.NO_CANDIDATES
        assert site.count("ing_plan") == 0
        assert site.rows("SELECT outcome_code FROM ing_schedule_instance") == [("i_no_candidates",)]

    def test_ids_come_in_slices_and_buckets(self, site):
        made = site.trigger(
            "tokenlike",
            "works",
            UPDATE,
            ids=tuple(f"id{n}" for n in range(25)),
            sections={"planning": {"idsPerSlice": 10}},
        )
        assert made.slices == 3
        spread = site.trigger(
            "tokenlike",
            "works",
            UPDATE,
            ids=tuple(f"x{n}" for n in range(25)),
            sections={"planning": {"idsPerSlice": 10, "hashBuckets": 4}},
        )
        assert len(ids_of(site, spread.plan_id)) == 25


class TestFailure:
    def test_a_plan_that_cannot_be_cut_fails_and_its_window_is_planned_anew(self, database: Database):
        site = Site(database, chunk=1)
        broken = site.trigger("atomlike", "query", sections={"planning": {"inventoryLimit": 2}})
        other = site.trigger(
            "atomlike", "query", params={"search": "all:proton"}, sections={"planning": {"inventoryLimit": 4}}
        )
        assert (broken.status, other.status) == ("PARTIAL", "PARTIAL")
        site.run("UPDATE ing_plan SET expr_proto_snapshot = '{}' WHERE plan_id = :plan", plan=broken.plan_id)
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED' WHERE plan_id = :plan", plan=other.plan_id)
        site.planner.run_once()
        row = site.plan(broken.plan_id)
        assert row.status_code == "FAILED"
        assert "missing required field" in msgspec.json.decode(row.record_remarks)["failed"]
        assert {task[1] for task in site.tasks(broken.plan_id)} == {"CANCELLED"}
        assert site.rows("SELECT DISTINCT reason_code FROM ing_task WHERE status_code = 'CANCELLED'") == [
            ("i_plan_failed",)
        ]
        assert len(site.tasks(other.plan_id)) > 1, "the plan after it was cut further"
        [told] = site.db.read(open_failures)
        assert (told.where.subject, told.reason) == ("atomlike/query/HARVEST", "i_plan_failed")
        watch = Watch(site.db, site.clock)
        assert [watch.run_once().told for _ in range(2)] == [1, 0], "it is told once"
        again = site.trigger("atomlike", "query")
        assert (again.outcome, again.slices) == (Reason.PLANNED, 7)
        assert site.db.read(open_failures) == [], "another plan stands for it"

    def test_a_plan_of_a_newer_version_is_left_to_it(self, database: Database):
        site = Site(database, chunk=1)
        made = site.trigger("atomlike", "query", sections={"planning": {"inventoryLimit": 2}})
        row = site.plan(made.plan_id)
        newer = msgspec.json.decode(row.expr_proto_snapshot) | {"ofTomorrow": 1}
        text = msgspec.json.encode(newer).decode()
        site.run("UPDATE ing_plan SET expr_proto_snapshot = :text WHERE plan_id = :plan", text=text, plan=made.plan_id)
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        assert site.planner.advance(made.plan_id) == ("PARTIAL", 0)
        assert {task[1] for task in site.tasks(made.plan_id)} == {"SUCCEEDED"}

    @pytest.mark.parametrize(
        ("operation", "said", "word"),
        [
            (Operation.HARVEST, {"ids": ("a",)}, "ids"),
            (Operation.HARVEST, {"activity": "x"}, "activity"),
            (BACKFILL, {"ids": ("a",), "since": "2026-01-01T00:00:00Z"}, "ids"),
            (UPDATE, {"since": "2026-01-01T00:00:00Z"}, "from"),
            (UPDATE, {"until": "2026-01-01T00:00:00Z"}, "to"),
        ],
    )
    def test_what_an_operation_does_not_use_is_refused(self, site, operation, said, word):
        made = site.trigger("tokenlike", "works", operation, **said)
        assert (made.outcome, made.is_refused) == (Reason.OPTION_UNUSED, True)
        assert f"{operation} does not use {word}" in made.detail


class TestInventory:
    def test_a_full_queue_holds_the_plan_back_and_a_drained_one_lets_it_go_on(self, site):
        limit = {"planning": {"inventoryLimit": 3}}
        made = site.trigger("atomlike", "query", sections=limit)
        assert (made.status, made.slices) == ("PARTIAL", 3)
        assert site.plan(made.plan_id).record_remarks.find("i_inventory_full") > 0
        before = site.everything()
        assert site.planner.run_once().slices == 0
        assert site.everything() == before
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        site.planner.advance(made.plan_id)
        assert site.plan(made.plan_id).status_code == "PARTIAL"
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        site.planner.run_once()
        assert site.plan(made.plan_id).status_code == "READY"
        assert len(site.tasks(made.plan_id)) == 7
        assert covered(site.tasks(made.plan_id))[-1][1] == at("2026-11-16T01:53:00Z")

    def test_slices_that_are_added_later_are_spread_from_then_on(self, site):
        made = site.trigger("atomlike", "query", sections={"planning": {"inventoryLimit": 2, "spread": "PT1M"}})
        first = [row[4] for row in site.tasks(made.plan_id)]
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        site.clock.advance(DAY)
        site.planner.run_once()
        later = [row[4] for row in site.tasks(made.plan_id)][len(first) :]
        assert [at - site.clock.now() for at in later] == [n * MINUTE for n in range(len(later))]
        assert later

    def test_what_a_held_back_plan_will_cut_counts_as_covered(self, site):
        site.trigger("atomlike", "query", sections={"planning": {"inventoryLimit": 3}})
        assert site.trigger("atomlike", "query").outcome is Reason.WINDOW_COVERED

    def test_a_quota_spreads_slices_over_days_and_then_holds_the_plan_back(self, site):
        text = changed("offset", ("rateLimit: {refill", "rateLimit: {quotaDaily: 4, quotaReserve: 0, refill"))
        site.load_text(text)
        made = site.trigger("atomlike", "query", since="2026-10-01T00:00:00Z")
        due = [row[4] for row in site.tasks(made.plan_id)]
        assert due.count(site.clock.now()) == 4
        assert due.count(at("2026-11-17T00:00:00Z")) == 4
        assert made.status == "PARTIAL"
        assert "i_quota_short" in site.plan(made.plan_id).record_remarks
        reserved = site.rows("SELECT period_start, reserved FROM ing_quota WHERE period_code = 'DAY' ORDER BY 1")
        assert reserved[0] == (at("2026-11-16T00:00:00Z"), 4)
        site.clock.advance(20 * DAY)
        site.planner.run_once()
        assert len(site.tasks(made.plan_id)) > len(due)

    def test_a_quota_is_shown_with_its_limit_and_with_when_it_is_used_up(self, site):
        text = changed("offset", ("rateLimit: {refill", "rateLimit: {quotaDaily: 40, quotaReserve: 0, refill"))
        site.load_text(text)
        site.trigger("atomlike", "query")
        noon = at("2026-11-16T12:00:00Z")
        site.run("UPDATE ing_quota SET consumed = 30 WHERE period_code = 'DAY'")
        (found,) = site.db.read(lambda tx: quotas(tx, noon))
        assert (found["limit"], found["consumed"], found["used_up_at"]) == (40, 30, at("2026-11-16T16:00:00Z"))
        site.run("UPDATE ing_quota SET rate_key = 'other'")
        (unknown,) = site.db.read(lambda tx: quotas(tx, noon))
        assert (unknown["limit"], unknown["used_up_at"]) == (None, None)

    def test_a_cancelled_plan_gives_its_reservations_back_and_a_request_may_cost_more_than_one(self, site):
        text = changed("offset", ("rateLimit: {refill", "rateLimit: {quotaDaily: 40, quotaReserve: 0, cost: 3, refill"))
        site.load_text(text)
        made = site.trigger("atomlike", "query")
        reserved = "SELECT coalesce(sum(reserved), 0) FROM ing_quota WHERE period_code = 'DAY'"
        assert site.rows(reserved) == [(3 * made.slices,)]
        one = site.tasks(made.plan_id)[0][0]
        site.db.run(lambda tx: operations.cancel_task(tx, one, why="", now=site.clock.now()))
        assert site.rows(reserved) == [(3 * (made.slices - 1),)]
        site.db.run(lambda tx: operations.cancel_plan(tx, made.plan_id, why="", now=site.clock.now()))
        assert site.rows(reserved) == [(0,)]

    def test_a_paused_source_gets_no_more_tasks_of_a_plan_that_was_held_back(self, site):
        site.load_text(changed("offset", ("rateLimit: {refill", "rateLimit: {quotaDaily: 4, quotaReserve: 0, refill")))
        made = site.trigger("atomlike", "query", since="2026-10-01T00:00:00Z")
        before = len(site.tasks(made.plan_id))
        site.db.run(lambda tx: operations.pause(tx, "atomlike", "", by="op", why="", now=site.clock.now()))
        site.clock.advance(20 * DAY)
        site.planner.run_once()
        assert len(site.tasks(made.plan_id)) == before
        site.db.run(lambda tx: operations.resume(tx, "atomlike", ""))
        site.planner.run_once()
        assert len(site.tasks(made.plan_id)) > before


class TestEstimates:
    def test_a_window_that_was_crowded_is_cut_by_what_was_counted(self, site):
        spec = site.planner.compile(Trigger(source="pmlike", endpoint="search", operation=Operation.HARVEST)).spec
        week = Span(at("2026-11-09T00:00:00Z"), at("2026-11-16T00:00:00Z"))
        site.db.run(lambda tx: store.report_total(tx, spec.selection_key, week, 40_000, site.clock.now()))
        made = site.trigger("pmlike", "search")
        widths = {(end - start) // DAY for _, _, start, end, *_ in site.tasks(made.plan_id)}
        assert made.slices >= 5
        assert widths <= {1, 2}
        estimate = site.plan(made.plan_id).total_estimated
        assert 39_000 <= estimate <= 40_000

    def test_a_newer_report_counts_and_an_older_one_does_not(self, site):
        span = Span(0, DAY)
        for total, when in ((10, 5), (20, 9), (30, 7)):
            site.db.run(lambda tx, t=total, w=when: store.report_total(tx, "s", span, t, w))
        assert site.db.read(lambda tx: store.reports(tx, "s", span)) == [(span, 20)]


class TestReslicing:
    def asked(self, site, task_id, rest, total):
        return site.db.run(lambda tx: request_reslice(tx, task_id, rest, total, "i_too_deep", site.clock.now()))

    def test_the_rest_of_a_window_is_cut_smaller(self, site):
        made = site.trigger("pmlike", "search")
        (task,) = site.tasks(made.plan_id)
        window = Span(task[2], task[3])
        site.set_status(task[0], "PARTIAL")
        assert self.asked(site, task[0], Rest(window=window), 40_000)
        assert not self.asked(site, task[0], Rest(window=window), 40_000)
        assert site.trigger("pmlike", "search").outcome is Reason.WINDOW_COVERED
        assert answer_reslices(site.db, site.clock) == (1, len(site.tasks(made.plan_id)) - 1)
        children = site.tasks(made.plan_id)[1:]
        assert covered(children)[0][0] == window.start
        assert covered(children)[-1][1] == window.end
        assert all(a[1] == b[0] for a, b in zip(covered(children), covered(children)[1:], strict=False))
        assert site.rows("SELECT status_code FROM ing_plan_slice ORDER BY slice_id")[0] == ("PARTIAL",)
        assert site.trigger("pmlike", "search").outcome is Reason.WINDOW_COVERED
        assert answer_reslices(site.db, site.clock) == (0, 0)

    def test_what_was_finished_stays_with_the_old_task(self, site):
        made = site.trigger("atomlike", "query")
        task = site.tasks(made.plan_id)[0]
        site.set_status(task[0], "PARTIAL")
        middle = task[2] + 12 * HOUR
        self.asked(site, task[0], Rest(window=Span(middle, task[3])), None)
        answer_reslices(site.db, site.clock)
        first = site.tasks(made.plan_id)[0]
        assert (first[2], first[3]) == (task[2], middle)
        assert covered(site.tasks(made.plan_id))[0] == (task[2], middle)

    def test_the_smallest_window_cannot_be_cut_and_becomes_a_hole(self, site):
        made = site.trigger("pmlike", "search", since="2026-11-14T00:00:00Z", until="2026-11-15T00:00:00Z")
        (task,) = site.tasks(made.plan_id)
        site.set_status(task[0], "PARTIAL")
        self.asked(site, task[0], Rest(window=Span(task[2], task[3])), 99_999)
        assert answer_reslices(site.db, site.clock) == (1, 0)
        assert site.rows("SELECT status_code, record_remarks FROM ing_reslice_request") == [
            ("REFUSED", "as small as it may be (i_too_deep)")
        ]
        assert site.rows("SELECT status_code FROM ing_plan_slice") == [("FAILED",)]

    def test_pages_and_ids_are_halved(self, site):
        made = site.trigger("tokenlike", "works", UPDATE, ids=tuple("abcde"))
        (task,) = site.tasks(made.plan_id)
        site.set_status(task[0], "PARTIAL")
        self.asked(site, task[0], Rest(ids=("c", "d", "e")), None)
        assert answer_reslices(site.db, site.clock) == (1, 2)
        assert ids_of(site, made.plan_id)[5:] == ["c", "d", "e"]
        assert msgspec.json.decode(msgspec.json.encode(Rest(pages=PageRange(1, None))), type=Rest).pages.last is None


class TestSchedules:
    @pytest.fixture
    def site(self, database: Database) -> Site:
        return Site(database, scheduled=True)

    def test_a_schedule_fires_once_for_each_tick(self, site):
        first = site.planner.run_once()
        assert (first.triggered, first.planned) == (1, 1)
        assert site.planner.run_once().triggered == 0
        site.clock.advance(HOUR)
        second = site.planner.run_once()
        assert (second.triggered, second.planned) == (1, 1)
        ticks = site.db.read(views.ticks)
        assert [(row["job_id"], row["outcome_code"]) for row in ticks] == [("pagelike/hourly", "i_planned")]

    def test_a_tick_in_a_pause_fires_when_the_source_goes_on(self, site):
        site.db.run(lambda tx: operations.pause(tx, "pagelike", "", by="op", why="", now=site.clock.now()))
        site.planner.run_once()
        site.planner.run_once()
        assert site.count("ing_plan") == 0
        assert site.count("ing_schedule_instance", "outcome_code = 'i_paused'") == 1
        site.db.run(lambda tx: operations.resume(tx, "pagelike", ""))
        assert site.planner.run_once().planned == 1
        assert site.planner.run_once().planned == 0

    def test_an_operator_turns_a_schedule_off_and_on_and_a_reload_of_the_pack_keeps_it(self, site):
        def switch(enabled):
            return site.db.run(
                lambda tx: operations.switch_schedule(
                    tx, "pagelike/hourly", enabled=enabled, by="op", why="", now=site.clock.now()
                )
            )

        assert switch(False).changed == 1
        assert switch(False).changed == 0
        assert site.planner.run_once().triggered == 0
        site.load("page")
        assert site.planner.run_once().triggered == 0
        entries = site.db.read(store.all_schedules)
        assert [(entry.job, entry.enabled) for entry in entries] == [("pagelike/hourly", False)]
        made = site.planner.trigger(trigger_now(entries[0], site.clock.now()))
        assert made.outcome is Reason.PLANNED
        assert switch(True).changed == 1
        assert site.planner.run_once().triggered == 1
        with pytest.raises(Invalid, match="no schedule pagelike/nope"):
            site.db.read(lambda tx: operations.known_schedule(tx, "pagelike/nope"))

    def test_two_planners_make_one_plan(self, site):
        other = Site(site.db, migrated=True)
        site.planner.run_once()
        site.run("DELETE FROM ing_schedule_tick")
        assert other.planner.run_once().planned == 0
        assert site.count("ing_plan") == 1


class TestRefusals:
    def test_a_snapshot_that_does_not_compile_leaves_an_instance_that_says_what_is_missing(self, site):
        made = site.trigger("oailike", "records")
        assert (made.outcome, made.plan_id) == (Reason.COMPILE_FAILED, None)
        (remarks,) = site.rows("SELECT record_remarks FROM ing_schedule_instance")[0]
        assert "baseUrl" in remarks
        assert "--param" in remarks
        assert site.count("ing_plan") == 0
        site.trigger("oailike", "records")
        assert site.count("ing_schedule_instance") == 1
        assert (
            site.trigger("oailike", "records", params={"baseUrl": "https://oai.example.org"}).outcome is Reason.PLANNED
        )

    def test_an_unknown_source_and_a_disabled_one_are_refused(self, site):
        assert site.trigger("nope", "x").problems[0].code is Reason.SOURCE_UNKNOWN
        site.load_text(changed("page", ('version: "1.0"', 'version: "1.1"\nenabled: false')))
        assert site.trigger("pagelike", "articles").problems[0].code is Reason.SOURCE_DISABLED
        assert site.planner.run_once().triggered == 0

    def test_a_preview_writes_nothing(self, site):
        before = site.everything()
        preview = site.planner.preview(
            Trigger(source="atomlike", endpoint="query", operation=Operation.HARVEST), limit=3
        )
        assert (len(preview.slices), preview.more, preview.outcome) == (3, True, Reason.PLANNED)
        assert site.everything() == before


def test_the_same_trigger_on_another_store_gives_the_same_bytes(site, tmp_path):
    from patra.kernel.db import open_database

    other = Site(open_database(f"sqlite:///{tmp_path / 'other.db'}"))
    for one in (site, other):
        one.trigger("atomlike", "query")
        one.trigger("pmlike", "search", BACKFILL, since="2026-01-01T00:00:00Z", until="2026-03-01T00:00:00Z")
        one.trigger("tokenlike", "works", UPDATE, ids=("a",))
    assert site.everything() == other.everything()
    other.db.close()


def test_a_fault_at_any_statement_ends_in_the_same_state(database: Database):
    """The planner dies at its n-th statement, comes back, and the store is as if nothing had happened."""
    clean = Site(database, chunk=3)
    counting = FaultyDatabase(database)
    Site.trigger(Site(counting, chunk=3, migrated=True), "atomlike", "query")
    wanted = clean.everything()
    assert len(wanted["task"]) == 7
    for step in range(1, counting.steps + 1):
        for table in (
            "ing_task",
            "ing_plan_slice",
            "ing_plan",
            "ing_schedule_instance",
            "ing_quota",
            "ing_cursor",
            "krn_move",
        ):
            clean.run(f"DELETE FROM {table}")
        faulty = Site(FaultyDatabase(database, step), chunk=3, migrated=True)
        with pytest.raises(InjectedFault):
            faulty.trigger("atomlike", "query")
        healthy = Site(database, chunk=3, migrated=True)
        healthy.planner.run_once()  # goes on with a plan that was left half cut
        healthy.trigger("atomlike", "query")
        found = healthy.everything()
        assert {k: found[k] for k in ("slice", "task", "cursor")} == {
            k: wanted[k] for k in ("slice", "task", "cursor")
        }, step


def test_executors_lease_the_tasks_in_the_order_of_priority(site):
    site.trigger("atomlike", "query", BACKFILL, since="2026-10-01T00:00:00Z", until="2026-10-04T00:00:00Z")
    harvest = site.trigger("atomlike", "query")
    now = site.clock.now()
    leases = site.db.run(lambda tx: acquire(tx, TASKS, holder="w", n=8, now=now, ttl=MINUTE))
    assert [lease.id.partition(".")[0] for lease in leases][:7] == [harvest.plan_id] * 7
    assert leases[-1].partition == "atomlike/query/BACKFILL"
    assert site.count("ing_task", "lease_owner IS NOT NULL") == 8


class TestOperations:
    def act(self, site, work):
        return site.db.run(work)

    def test_a_paused_source_or_endpoint_makes_no_plans_until_it_is_resumed(self, site):
        now = site.clock.now()
        for endpoint in ("", "query"):
            act = self.act(
                site, lambda tx, e=endpoint: operations.pause(tx, "atomlike", e, by="ann", why="maintenance", now=now)
            )
            assert (act.act, act.changed) == ("ingest.pause", 1)
            made = site.trigger("atomlike", "query")
            assert made.outcome is Reason.PAUSED
            assert "maintenance" in made.detail
            assert (
                self.act(
                    site, lambda tx, e=endpoint: operations.pause(tx, "atomlike", e, by="ann", why="", now=now)
                ).changed
                == 0
            )
            assert self.act(site, lambda tx, e=endpoint: operations.resume(tx, "atomlike", e)).changed == 1
        assert site.trigger("atomlike", "query").outcome is Reason.PLANNED
        assert self.act(site, lambda tx: operations.resume(tx, "atomlike", "")).changed == 0

    def test_an_endpoint_that_is_paused_does_not_stop_the_others(self, site):
        self.act(site, lambda tx: operations.pause(tx, "urllike", "records", by="a", why="", now=1))
        assert site.trigger("urllike", "records").outcome is Reason.PAUSED
        assert site.trigger("urllike", "header").outcome is Reason.PLANNED

    def test_a_breaker_is_lifted_by_an_operator_only(self, site):
        self.act(
            site,
            lambda tx: operations.halt(
                tx, "atomlike", "query", operations.BREAKER, reason="L4", detail="401", by="executor", now=1
            ),
        )
        assert site.trigger("atomlike", "query").outcome is Reason.BREAKER_OPEN
        assert self.act(site, lambda tx: operations.resume(tx, "atomlike", "query")).changed == 0
        assert self.act(site, lambda tx: operations.lift_breaker(tx, "atomlike", "query", why="new key")).changed == 1
        assert site.trigger("atomlike", "query").outcome is Reason.PLANNED

    def test_cancelling_a_plan_cancels_all_that_has_not_ended(self, site):
        made = site.trigger("atomlike", "query")
        tasks = site.tasks(made.plan_id)
        site.set_status(tasks[0][0], "SUCCEEDED")
        now = site.clock.now()
        site.db.run(lambda tx: acquire(tx, TASKS, holder="w", n=1, now=now, ttl=MINUTE))
        act = self.act(site, lambda tx: operations.cancel_plan(tx, made.plan_id, why="wrong window", now=now))
        assert (act.changed, act.detail["tasks"], act.detail["was"]) == (7, 6, "READY")  # the plan and its tasks
        assert [row[1] for row in site.tasks(made.plan_id)] == ["SUCCEEDED"] + ["CANCELLED"] * 6
        assert site.plan(made.plan_id).status_code == "CANCELLED"
        assert site.count("ing_task", "lease_owner IS NOT NULL") == 0
        assert self.act(site, lambda tx: operations.cancel_plan(tx, made.plan_id, why="", now=now)).changed == 0
        assert site.trigger("atomlike", "query").slices == 6

    def test_a_plan_that_waits_can_be_cancelled(self, site):
        made = site.trigger("atomlike", "query", sections={"planning": {"inventoryLimit": 2}})
        self.act(site, lambda tx: operations.cancel_plan(tx, made.plan_id, why="", now=1))
        assert site.planner.run_once().slices == 0
        assert site.plan(made.plan_id).status_code == "CANCELLED"

    def test_slices_and_tasks_are_cancelled_and_requeued_one_by_one(self, site):
        made = site.trigger("atomlike", "query")
        task, other = site.tasks(made.plan_id)[0][0], site.tasks(made.plan_id)[1][0]
        assert self.act(site, lambda tx: operations.cancel_task(tx, task, why="", now=1)).changed == 1
        assert self.act(site, lambda tx: operations.cancel_task(tx, task, why="", now=1)).changed == 0
        assert (
            self.act(site, lambda tx: operations.cancel_slice(tx, other.replace(".t", ".s"), why="", now=1)).changed
            == 1
        )
        third = site.tasks(made.plan_id)[2][0]
        site.set_status(third, "FAILED")
        assert self.act(site, lambda tx: operations.requeue_task(tx, third, why="", now=5)).changed == 1
        assert [row[1] for row in site.tasks(made.plan_id)][:3] == ["CANCELLED", "CANCELLED", "QUEUED"]

    @pytest.mark.parametrize(
        "work", [operations.cancel_plan, operations.cancel_slice, operations.cancel_task, operations.requeue_task]
    )
    def test_what_is_not_there_is_refused(self, site, work):
        from patra.kernel.errors import Invalid

        with pytest.raises(Invalid):
            self.act(site, lambda tx: work(tx, "nope", why="", now=1))
        with pytest.raises(Invalid):
            self.act(site, lambda tx: operations.pause(tx, "nope", "", by="", why="", now=1))


def test_planners_that_see_the_same_moment_plan_it_once(site):
    """Different triggers of one window, at once: the second finds it covered."""
    from concurrent.futures import ThreadPoolExecutor

    planners = [Site(site.db, migrated=True).planner for _ in range(6)]

    def ask(number):
        return planners[number].trigger(
            Trigger(source="atomlike", endpoint="query", operation=Operation.HARVEST, job=f"job {number % 3}")
        )

    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(ask, range(6)))
    assert [one.outcome for one in made].count(Reason.PLANNED) == 1
    assert site.count("ing_task") == 7


def test_several_planners_cut_one_plan_together_without_doubling_a_slice(database: Database):
    from concurrent.futures import ThreadPoolExecutor

    site = Site(database, chunk=1)
    made = site.trigger("atomlike", "query", sections={"planning": {"inventoryLimit": 1}})
    site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    for _ in range(7):
        planners = [Site(database, chunk=1, migrated=True).planner for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda planner: planner.advance(made.plan_id), planners))
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    windows = covered(site.tasks(made.plan_id))
    assert len(windows) == 7
    assert site.plan(made.plan_id).status_code == "READY"


def test_a_schedule_that_cannot_be_planned_does_not_stop_the_others(database: Database):
    site = Site(database, scheduled=True)
    site.load_text(
        changed(
            "token",
            (
                "endpoints:\n  works:",
                "schedules:\n  s: {endpoint: works, operation: HARVEST, cron: '* * * * *'}\nendpoints:\n  works:",
            ),
        )
    )
    site.run("UPDATE reg_provenance SET cfg = '{' WHERE provenance_code = 'pagelike'")
    counts = site.planner.run_once()
    assert (counts.triggered, counts.planned) == (2, 1)


def test_plans_that_overlap_do_not_postpone_an_export_for_ever(database: Database, tmp_path):
    site = Site(database)
    out = tmp_path / "records.jsonl"
    said = {"endpoint": "query", "operation": "HARVEST", "cron": "0 3 * * *"}
    entry = own_schedules.schedule_of("atomlike/nightly", said, ScheduledExport(what="records", out=str(out)))
    site.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=site.clock.now()))
    exports = ScheduledExports(site.db, site.clock)
    plans = []
    for _ in range(2):
        site.planner.run_once()
        plans = [plan for (plan,) in site.rows("SELECT plan_id FROM ing_schedule_history ORDER BY tick")]
        site.clock.advance(DAY // 2 if len(plans) == 2 else DAY)
    assert len(set(plans)) == 2
    site.run(f"UPDATE ing_task SET status_code = 'SUCCEEDED' WHERE plan_id = '{plans[0]}'")
    assert exports.run_once().written == 1, "the plan of the first tick is done, whatever the second does"
    assert [row[0] for row in site.rows("SELECT then_status FROM ing_schedule_history ORDER BY tick")] == [
        "DONE",
        "PENDING",
    ]
    assert exports.run_once().written == 0, "the second plan is under way"
    site.clock.advance(DAY)
    assert exports.run_once().written == 1, "after a day its end is not waited for longer"
    (tick, _) = site.db.read(lambda tx: views.schedule_history(tx, "atomlike/nightly", 9))
    assert tick["then_detail"] == f"0 rows in {out}; plans still under way: 1"


def test_a_plan_that_outlasts_its_export_is_counted_until_it_ends(database: Database, tmp_path):
    site = Site(database)
    out = tmp_path / "records.jsonl"
    said = {"endpoint": "query", "operation": "HARVEST", "cron": "0 3 * * *"}
    entry = own_schedules.schedule_of("atomlike/nightly", said, ScheduledExport(what="records", out=str(out)))
    site.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=site.clock.now()))
    exports = ScheduledExports(site.db, site.clock)

    def night() -> str:
        """One more tick, and its export; gives what it says."""
        site.planner.run_once()
        site.run(f"UPDATE ing_task SET status_code = 'SUCCEEDED' WHERE plan_id <> '{first()}'")
        site.clock.advance(DAY)
        exports.run_once()
        return site.db.read(lambda tx: views.schedule_history(tx, "atomlike/nightly", 9))[0]["then_detail"]

    def first() -> str:
        return site.rows("SELECT plan_id FROM ing_schedule_history ORDER BY tick LIMIT 1")[0][0]

    site.planner.run_once()
    site.clock.advance(DAY)
    assert night().endswith("; plans still under way: 1")
    assert site.rows("SELECT then_status FROM ing_schedule_history ORDER BY tick LIMIT 1") == [("SUPERSEDED",)]
    assert night().endswith("; plans still under way: 1"), "the file still lacks what it has not read"
    site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    assert night() == f"0 rows in {out}"


def test_a_scheduled_export_is_written_when_its_plan_is_done(database: Database, tmp_path, monkeypatch):
    site = Site(database)
    out = tmp_path / "records.jsonl"
    said = {"endpoint": "query", "operation": "HARVEST", "cron": "0 3 * * *"}
    entry = own_schedules.schedule_of("atomlike/nightly", said, ScheduledExport(what="records", out=str(out)))
    site.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=site.clock.now()))
    site.planner.run_once()
    exports = ScheduledExports(site.db, site.clock)
    assert exports.run_once().written == 0, "the tasks of its plan wait"
    site.run(
        "INSERT INTO ing_schedule_history (job_id, tick, outcome_code, detail, fired_at, then_cfg, then_status, then_detail)"
        " SELECT job_id, tick + 1, 'i_window_covered', '', fired_at, then_cfg, 'PENDING', '' FROM ing_schedule_history"
    )
    assert exports.run_once().written == 0, "the tick after it planned nothing: the plan before it is still its own"
    site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    with monkeypatch.context() as quiet:  # another test of the process may have set the level of the log
        quiet.setattr(scheduled_export, "log", log := Mock())
        assert exports.run_once().written == 1
    log.info.assert_called_once_with("scheduled_export_written", job="atomlike/nightly", rows=0, out=str(out))
    assert exports.run_once().written == 0
    assert out.read_text("utf-8") == ""
    (tick, before) = site.db.read(lambda tx: views.schedule_history(tx, "atomlike/nightly", 9))
    assert before["then"] == "SUPERSEDED"
    assert (tick["then"], tick["then_detail"]) == ("DONE", f"0 rows in {out}")


def test_a_run_by_hand_is_noted_with_its_export_and_hides_no_tick_that_fires_after_it(database: Database, tmp_path):
    site = Site(database)
    out = tmp_path / "records.jsonl"
    said = {"endpoint": "query", "operation": "HARVEST", "cron": "0 3 * * *"}
    entry = own_schedules.schedule_of("atomlike/nightly", said, ScheduledExport(what="records", out=str(out)))
    site.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=site.clock.now()))
    exports = ScheduledExports(site.db, site.clock)

    def lines() -> list[tuple[str, str]]:
        return site.rows("SELECT outcome_code, then_status FROM ing_schedule_history ORDER BY fired_at")

    assert run_schedule(site.db, site.clock, entry).outcome is Reason.PLANNED
    assert lines() == [("i_planned", "PENDING")]
    assert exports.run_once().written == 0, "the tasks of its plan wait"
    site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    assert (exports.run_once().written, lines()) == (1, [("i_planned", "DONE")])
    site.clock.advance(MINUTE)
    site.planner.run_once()  # fires the tick of the night before
    site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    assert (exports.run_once().written, lines()[1][1]) == (1, "DONE")
    site.db.run(lambda tx: operations.pause(tx, "atomlike", "", by="me", why="", now=site.clock.now()))
    run_schedule(site.db, site.clock, entry)
    assert lines()[2:] == [("i_paused", "")], "what was refused writes no file"


def nightly(site: Site, name: str, **said) -> None:
    """A schedule of an operator that looks back a week, at three every night."""
    wanted = {"endpoint": "search", "operation": "BACKFILL", "cron": "0 3 * * *", "last": "P7D", **said}
    entry = own_schedules.schedule_of(f"pubmed/{name}", wanted, None)
    site.db.run(lambda tx: own_schedules.add(tx, entry, by="me", now=site.clock.now()))


def test_a_schedule_that_looks_back_reads_each_day_once(database: Database):
    site = Site(database)
    site.load_text(bundled.text("pubmed"))
    site.run("DELETE FROM reg_prov_schedule")
    nightly(site, "otters", params={"term": "otters"})
    read = []
    for _ in range(3):
        before = {task for (task,) in site.rows("SELECT task_id FROM ing_task")}
        site.planner.run_once()
        new = site.rows("SELECT task_id, window_from, window_to FROM ing_task ORDER BY window_from")
        read.append([(start, end) for task, start, end in new if task not in before])
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        site.clock.advance(DAY)
    first, second, third = read
    assert (first[0][0], first[-1][1]) == (at("2026-11-08T00:00:00Z"), at("2026-11-15T00:00:00Z"))
    assert second == [(at("2026-11-15T00:00:00Z"), at("2026-11-16T00:00:00Z"))]
    assert third == [(at("2026-11-16T00:00:00Z"), at("2026-11-17T00:00:00Z"))]


def test_a_schedule_that_looks_back_goes_on_past_the_watermark_of_an_earlier_harvest(database: Database):
    site = Site(database)
    site.load_text(bundled.text("pubmed"))
    site.run("DELETE FROM reg_prov_schedule")
    site.trigger("pubmed", "search", params={"term": "otters"}, since="2026-11-12T00:00:00Z")
    site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
    nightly(site, "otters", params={"term": "otters"})
    ends = []
    for _ in range(2):
        assert site.planner.run_once().planned == 1
        ends.append(site.rows("SELECT max(window_to) FROM ing_task WHERE operation_code = 'BACKFILL'")[0][0])
        site.run("UPDATE ing_task SET status_code = 'SUCCEEDED'")
        site.clock.advance(DAY)
    assert ends == [at("2026-11-15T00:00:00Z"), at("2026-11-16T00:00:00Z")]


def test_a_schedule_that_takes_the_name_of_a_removed_one_fires_its_first_tick(database: Database):
    site = Site(database)
    site.load_text(bundled.text("pubmed"))
    site.run("DELETE FROM reg_prov_schedule")

    def remove() -> None:
        site.db.run(lambda tx: own_schedules.remove(tx, "pubmed/nightly", why="another search"))

    nightly(site, "nightly", params={"term": "otter"})
    assert site.planner.run_once().planned == 1
    remove()
    nightly(site, "nightly", params={"term": "otters"})
    assert site.planner.run_once().planned == 1, "the plan of the removed one is not its own"
    remove()
    nightly(site, "nightly", params={"term": "otters"})
    counts = site.planner.run_once()
    assert (counts.triggered, counts.planned) == (1, 0), "what asks for the same at the same tick has its plan"


def test_two_schedules_that_read_the_same_days_again_at_the_same_time_both_do(database: Database):
    site = Site(database)
    site.load_text(bundled.text("pubmed"))
    site.run("DELETE FROM reg_prov_schedule")
    for topic in ("otters", "bees"):
        nightly(site, topic, reread=True, params={"term": topic})
    assert site.planner.run_once().planned == 2


def test_the_window_of_a_plan_is_said_with_the_lag_that_ends_it(database: Database):
    site = Site(database)
    site.load_text(bundled.text("pubmed"))
    site.run("DELETE FROM reg_prov_schedule")
    nightly(site, "otters", params={"term": "otters"})
    site.planner.run_once()
    [tick] = site.db.read(lambda tx: views.schedule_history(tx, "pubmed/otters", 9))
    assert tick["detail"] == (
        "window 2026-11-08T00:00:00Z … 2026-11-15T00:00:00Z: up to the last whole day before "
        "2026-11-15T02:03:04Z (now minus window.safetyLag P1D); a later run reads the rest"
    )
    asked = {"since": "2026-01-01T00:00:00Z", "until": "2026-02-01T00:00:00Z"}
    made = site.trigger("pubmed", "search", BACKFILL, params={"term": "a"}, **asked)
    assert (made.outcome, made.note) == (Reason.PLANNED, "")
