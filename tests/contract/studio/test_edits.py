"""A shot of a finished film is changed and made again alone; the film, its manifest and its events say so."""

import threading
import time

import pytest

from patra.kernel.db.queries import statement
from patra.kernel.errors import IllegalMove, Invalid
from patra.studio.gateway import Submission
from patra.studio.script.edits import ShotEdit
from patra.studio.storage import store
from patra.studio.storage.artifacts import ArtifactStore
from patra.studio.views import shot_details
from patra.studio.vocabulary.reasons import Reason

WAITS = statement("waits", "SELECT 1 FROM pg_locks WHERE NOT granted AND :pid = ANY(pg_blocking_pids(pid))")
OWN_PID = statement("own_pid", "SELECT pg_backend_pid()")
FORGET_FIRST = statement("forget_first", "DELETE FROM stu_edit WHERE run_id = :run_id AND number = 1")


def done_anew(site, run_id: str, version: int) -> set[tuple[str, str]]:
    """What workers really did for a plan: shot and kind of worker."""
    plan = [e for e in site.log(run_id) if e.event_type == "route.decision.made"]
    shots = len({e.payload["shot_id"] for e in plan})
    of_plan = {e.payload["job_id"] for e in plan[(version - 1) * len(plan) // version :]}
    assert shots == 3
    return {
        (e.payload["shot_id"], e.event_type.split(".")[1])
        for e in site.log(run_id)
        if e.event_type.startswith("worker.")
        and e.payload["job_id"] in of_plan
        and not e.payload["metrics"].get("reused")
    }


def test_one_shot_is_changed_and_made_again_alone(each_site):
    run_id = each_site.submit()
    each_site.drain(run_id)
    _, first = each_site.studio.film(run_id)
    assert "edits" not in first.work

    change = ShotEdit(place="kitchen", people=("Tom",), things=("kettle",))
    assert each_site.studio.edit(run_id, {"shot_0002": change}, "ann") == "planning"
    each_site.studio = each_site.opened()  # the process that took the edit is gone
    each_site.drain(run_id)

    assert each_site.stage(run_id) == "completed"
    assert done_anew(each_site, run_id, 2) == {("shot_0002", "video")}  # what is said is the same
    _, second = each_site.studio.film(run_id)
    assert second.artifacts[0].sha256 != first.artifacts[0].sha256
    assert [
        before["video"] == after["video"]
        for before, after in zip(first.work["shots"], second.work["shots"], strict=True)
    ] == [True, False, True]
    (shown,) = second.work["edits"]
    assert (shown["shot_id"], shown["by"], shown["changes"]) == ("shot_0002", "ann", change.changes | {
        "people": ["Tom"], "things": ["kettle"]
    })  # fmt: skip
    told = [e.payload for e in each_site.log(run_id) if e.event_type == "run.stage.changed"]
    edited = [p for p in told if p.get("reason_code") == Reason.SHOTS_EDITED]
    assert [(p["stage"], "by ann: shot_0002" in p["reason"]) for p in edited] == [("planning", True)]
    assert [d.place for d in each_site.db.read(lambda tx: shot_details(tx, run_id))][1] == "kitchen"

    each_site.studio.edit(run_id, {"shot_0002": ShotEdit(reset=True)}, "bob")
    each_site.drain(run_id)
    assert done_anew(each_site, run_id, 3) == set()
    _, third = each_site.studio.film(run_id)
    assert third.artifacts[0].sha256 == first.artifacts[0].sha256  # the same parts are the same film
    assert [one["by"] for one in third.work["edits"]] == ["ann", "bob"]


def test_another_take_asks_the_model_servers_anew_for_that_shot_alone(served, server):
    wishes = {"llm": ["chat"], "audio": ["speech"], "video": ["picture"]}
    run_id = served.submit(profiles=wishes)
    served.drain(run_id)
    asked = len(server.asked("/v1/generate")), len(server.asked("/v1/audio/speech"))
    served.studio.edit(run_id, {"shot_0002": ShotEdit(again=True, time="dawn")}, "ann")
    served.drain(run_id)
    assert served.stage(run_id) == "completed"
    assert len(server.asked("/v1/generate")) == asked[0] + 1
    assert len(server.asked("/v1/audio/speech")) == asked[1] + 1
    # the stand-in's chat model stages every shot at night: what someone set stays
    assert server.asked("/v1/generate")[-1]["staging"]["time"] == "dawn"


def test_edits_are_kept_until_the_film_is_rendered(site):
    run_id = site.submit()
    site.drain(run_id)
    assert site.studio.edit(run_id, {"shot_0001": ShotEdit(lettering="A harbour")}, "ann", later=True) == "completed"
    assert site.studio.edit(run_id, {"shot_0003": ShotEdit(seconds=20.0)}, "bob", later=True) == "completed"
    site.drain(run_id)
    assert "edits" not in site.studio.film(run_id)[1].work
    assert site.studio.edit(run_id, {}, "cyd") == "planning"
    site.drain(run_id)
    manifest = site.studio.film(run_id)[1]
    assert [one["by"] for one in manifest.work["edits"]] == ["ann", "bob"]
    starts = manifest.facts["starts_ms"]
    assert manifest.facts["duration_ms"] - starts[2] == pytest.approx(20_000, abs=200)


def test_a_chapter_may_come_with_the_edits_of_its_storyboard(site):
    asked = Submission(chapter="The Test\n\nThe sea was calm at dusk.", task_id="task_board", submitted_by="ann")
    edits = {"shot_0001": ShotEdit(weather="rain")}
    for _ in range(2):  # the same submission again is the same task
        run_id = site.db.run(lambda tx: site.studio.submit_in(tx, asked, edits))
    site.drain(run_id)
    (edit,) = site.studio.film(run_id)[1].work["edits"]
    assert (edit["by"], edit["changes"]) == ("ann", {"weather": "rain"})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"shot_0001": ShotEdit(weather="rain")}, {"shot_0001": ShotEdit(weather="snow")}),
        ({"shot_0001": ShotEdit(weather="rain")}, {}),
        ({}, {"shot_0001": ShotEdit(weather="rain")}),
    ],
)
def test_the_same_task_again_with_other_edits_is_refused(site, first, second):
    asked = Submission(chapter="The Test\n\nThe sea was calm at dusk.", task_id="task_board", submitted_by="ann")
    run_id = site.db.run(lambda tx: site.studio.submit_in(tx, asked, first))
    with pytest.raises(IllegalMove) as refused:
        site.db.run(lambda tx: site.studio.submit_in(tx, asked, second))
    assert refused.value.code == Reason.TASK_CONFLICT
    kept = site.db.read(lambda tx: store.edits(tx, run_id))
    assert {edit.shot_id: edit.change for edit in kept} == first


def test_later_edits_do_not_make_the_same_task_another_one(site):
    asked = Submission(chapter="The Test\n\nThe sea was calm at dusk.", task_id="task_board", submitted_by="ann")
    edits = {"shot_0001": ShotEdit(weather="rain")}
    run_id = site.db.run(lambda tx: site.studio.submit_in(tx, asked, edits))
    site.studio.cancel(run_id)
    site.clock.advance(1)
    site.studio.edit(run_id, {"shot_0001": ShotEdit(weather="snow")}, "bob", later=True)
    assert site.db.run(lambda tx: site.studio.submit_in(tx, asked, edits)) == run_id
    assert [edit.by for edit in site.db.read(lambda tx: store.edits(tx, run_id))] == ["ann", "bob"]


def while_held(site, first, second) -> list[BaseException]:
    """`first` in a transaction that ends when `second`, in another thread, waits for it; gives what that raised."""
    if site.db.dialect != "postgres":
        pytest.skip("SQLite has one writer at a time")
    raised = list[BaseException]()

    def act() -> None:
        try:
            second()
        except Exception as error:  # noqa: BLE001  looked at by the test's own thread
            raised.append(error)

    other = threading.Thread(target=act)

    def work(tx) -> None:
        first(tx)
        other.start()
        own, until = tx.fetch(OWN_PID)[0][0], time.monotonic() + 20
        while not tx.fetch(WAITS, {"pid": own}) and time.monotonic() < until:
            pass

    site.db.run(work)
    other.join(20)
    return raised


def test_of_two_who_edit_a_run_at_once_each_edit_is_kept(each_site):
    studio, run_id = each_site.studio, each_site.submit()
    each_site.queued()
    studio.cancel(run_id)
    kitchen, sea = {"shot_0001": ShotEdit(place="kitchen")}, {"shot_0002": ShotEdit(place="sea")}
    raised = while_held(
        each_site,
        lambda tx: studio.edit_in(tx, run_id, kitchen, "ann", later=True),
        lambda: studio.edit(run_id, sea, "bob", later=True),
    )
    assert raised == []
    assert [edit.by for edit in each_site.db.read(lambda tx: store.edits(tx, run_id))] == ["ann", "bob"]


@pytest.mark.parametrize("act", ["resume", "rerun"])
def test_who_goes_on_with_a_run_while_an_edit_makes_it_again_is_refused(each_site, act):
    studio, run_id = each_site.studio, each_site.submit()
    each_site.queued()
    studio.cancel(run_id)
    raised = while_held(
        each_site,
        lambda tx: studio.edit_in(tx, run_id, {"shot_0001": ShotEdit(place="kitchen")}, "ann"),
        lambda: studio.resume(run_id) if act == "resume" else studio.rerun(run_id, "planning"),
    )
    run = each_site.db.read(lambda tx: store.run(tx, run_id))
    assert (run.stage, run.plan_version) == ("planning", 2)  # the plan with the edit
    assert [error.code for error in raised] == [Reason.RUN_NOT_ENDED]


def test_an_edit_whose_number_is_taken_is_refused_and_not_lost(site):
    run_id = site.submit()
    site.queued()
    site.studio.cancel(run_id)
    for shot_id in ("shot_0001", "shot_0002"):
        site.studio.edit(run_id, {shot_id: ShotEdit(place="sea")}, "ann", later=True)
    site.db.run(lambda tx: tx.execute(FORGET_FIRST, {"run_id": run_id}))  # as if another process had kept number 2
    with pytest.raises(IllegalMove, match="another edit"):
        site.studio.edit(run_id, {"shot_0003": ShotEdit(place="sea")}, "bob", later=True)
    assert [edit.by for edit in site.db.read(lambda tx: store.edits(tx, run_id))] == ["ann"]


def test_what_cannot_be_edited_is_refused_and_changes_nothing(site):
    run_id = site.submit()
    with pytest.raises(IllegalMove, match="submitted"):
        site.studio.edit(run_id, {"shot_0001": ShotEdit(place="sea")})
    site.queued()
    with pytest.raises(IllegalMove) as early:
        site.studio.edit(run_id, {"shot_0001": ShotEdit(place="sea")})
    assert early.value.code == Reason.RUN_NOT_ENDED
    site.studio.cancel(run_id)
    for edits, code in (
        ({"shot_0009": ShotEdit(place="sea")}, Reason.SHOT_UNKNOWN),
        ({"shot_0001": ShotEdit(place="sea"), "shot_0002": ShotEdit(place="moon base")}, Reason.EDIT_INVALID),
    ):
        with pytest.raises(Invalid) as refused:
            site.studio.edit(run_id, edits)
        assert refused.value.code == code
    with pytest.raises(Invalid, match="s_run_unknown"):
        site.studio.edit("run_nothing", {"shot_0001": ShotEdit(place="sea")})
    details = site.db.read(lambda tx: shot_details(tx, run_id))
    assert (site.stage(run_id), [one.edits for one in details]) == ("cancelled", [()] * 3)


def test_a_studio_that_is_stopped_while_it_renders_an_edit_goes_on_with_it(site):
    run_id = site.submit()
    site.drain(run_id)
    site.studio.edit(run_id, {"shot_0002": ShotEdit(place="kitchen")}, "ann")
    site.studio.run_once()
    site.studio.cancel(run_id, "bob")
    site.drain(run_id)
    assert site.stage(run_id) == "cancelled"
    site.studio = site.opened()
    assert ArtifactStore(site.folder).sweep() >= 0
    site.studio.resume(run_id, "cyd")
    site.drain(run_id)
    assert site.stage(run_id) == "completed"
    assert [one["shot_id"] for one in site.studio.film(run_id)[1].work["edits"]] == ["shot_0002"]
