"""Processes of an earlier and of this release work on one store: what one wrote, the other reads."""

import json

import msgspec
import pytest

from patra.kernel.db.queries import statement
from patra.kernel.errors import IllegalMove
from patra.studio.gateway import Options, Submission, write_options
from patra.studio.script.edits import Edit, ShotEdit, source_of
from patra.studio.storage import store
from patra.studio.vocabulary.contracts import Context, OutgoingEvent, plan_id_of, publish, run_id_of
from patra.studio.vocabulary.reasons import Reason
from tests.contract.studio.conftest import CHAPTER, PREFER_SERVERS

SHORT = "The Test\n\nThe sea was calm at dusk."
SET_PLAN = statement("set_plan", "UPDATE stu_plan SET body = :body WHERE plan_id = :plan_id")


class EarlierOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options as the release before `ambience` had them; its gateway compared their text."""

    subtitles: str = "soft"
    format: str = "16:9"
    narrator: bool = True
    on_failed_shot: str = "leave_out"
    profiles: dict[str, list[str]] = {}
    fresh: str = ""


def test_modules_of_an_earlier_release_read_the_options_of_a_task(site):
    run_id = site.submit(SHORT, format="1:1")
    site.queued()
    task = site.db.read(lambda tx: store.task_of_run(tx, run_id))
    run = site.db.read(lambda tx: store.run(tx, run_id))
    assert task["options"] == msgspec.json.encode(EarlierOptions(format="1:1")).decode()
    assert msgspec.convert(run.options, EarlierOptions) == EarlierOptions(format="1:1")


def test_what_is_not_left_at_its_default_is_written():
    wanted = Options(ambience=False, narrator=False)
    assert msgspec.convert(write_options(wanted), Options) == wanted


def test_a_task_of_an_earlier_release_that_is_submitted_again_is_the_same_task(site):
    first = site.submit(SHORT)
    said = site.log(first)[0].payload
    earlier = {"subtitles": "soft", "narrator": True, "on_failed_shot": "leave_out", "profiles": {}, "fresh": ""}

    def by_an_earlier_release(tx) -> None:
        task = store.task_of_run(tx, first)
        row = task | {"task_id": "old", "run_id": run_id_of("old"), "options": json.dumps(earlier)}
        tx.insert("stu_task", [row])
        chapter = said["chapter"] | {"uri": "studio:chapter/old"}
        payload = said | {"task_id": "old", "options": earlier, "chapter": chapter}
        context = Context(tenant_id="default", project_id="default", trace_id=task["trace_id"], correlation_id="old")
        outgoing = OutgoingEvent(type="task.submitted", key="old", payload=payload)
        publish(site.studio.bus, tx, context, [outgoing], by="Gateway")

    site.db.run(by_an_earlier_release)
    again = site.studio.submit(Submission(chapter=SHORT, task_id="old"))
    assert (again, site.types(again)) == (run_id_of("old"), ["task.submitted"])
    with pytest.raises(IllegalMove) as other:
        site.studio.submit(Submission(chapter=SHORT, task_id="old", options=Options(ambience=False)))
    assert other.value.code == Reason.TASK_CONFLICT


def test_a_plan_of_an_earlier_release_is_routed_to_the_profiles_that_the_task_prefers(served):
    run_id = served.submit(SHORT, profiles=PREFER_SERVERS)
    plan_id = plan_id_of(run_id, 1)
    before_the_router = served.studio.dispatchers[:3]
    while not (plan := served.db.read(lambda tx: store.plan(tx, plan_id))):
        assert sum(one.run_once().handled for one in before_the_router)
    body = msgspec.to_builtins(plan)
    del body["quality"], body["preferred"]
    served.db.run(lambda tx: tx.execute(SET_PLAN, {"plan_id": plan_id, "body": msgspec.json.encode(body)}))
    served.queued()
    routes = [e.payload for e in served.log(run_id) if e.event_type == "route.decision.made"]
    chosen = {route["worker_type"]: route["model_profile_id"] for route in routes}
    assert {kind: chosen[kind] for kind in PREFER_SERVERS} == {"llm": "chat", "audio": "speech", "video": "picture"}


def test_an_edit_that_this_release_cannot_draw_is_left_out_and_a_reset_clears_it(site):
    run_id = site.submit(CHAPTER)
    site.queued()
    site.studio.cancel(run_id)
    shot = site.db.read(lambda tx: store.plan(tx, plan_id_of(run_id, 1))).shots[1]
    start, end = source_of(shot)
    gone = Edit(shot_id=shot.shot_id, start=start, end=end, change=ShotEdit(place="moon base"), by="ann", at=1)
    site.db.run(lambda tx: store.keep_edits(tx, run_id, 1, [gone]))
    assert site.studio.edit(run_id, {"shot_0001": ShotEdit(weather="rain")}, "bob") == "planning"
    site.queued()
    plan = site.db.read(lambda tx: store.plan(tx, plan_id_of(run_id, 2)))
    assert [(one.by, one.applied) for one in plan.edits] == [("ann", False), ("bob", True)]
    assert (plan.shots[0].picture.weather, plan.shots[1].picture) == ("rain", shot.picture)
    site.studio.cancel(run_id)
    site.studio.edit(run_id, {"shot_0002": ShotEdit(reset=True, place="kitchen")}, "cyd")
    site.queued()
    assert site.db.read(lambda tx: store.plan(tx, plan_id_of(run_id, 3))).shots[1].picture.place == "kitchen"
